"""Exact numbers of toys as they are paid, against recursion over histories, simulation and closed forms."""

from functools import cache

import numpy as np
import pytest

from lcd.envs.calibration import CALIBRATION
from lcd.envs.errors import InputError
from lcd.envs.hardness.chain import NEAR, chain_of, relaxation_time
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.mdp import HardnessKnobs, build_mdp
from lcd.envs.hardness.solve import expected_return
from lcd.envs.toy import COMMON

SMALL = {"state_space_size": 4, "action_space_size": 3, "terminal_state_density": 0.0, "reward_density": 0.3}
VARIED = [
    {**SMALL, "horizon": 4, "transition_noise": 0.2},
    {**SMALL, "horizon": 4, "delay": 2, "terminal_state_density": 0.3, "transition_noise": 0.1},
    {**SMALL, "horizon": 4, "sequence_length": 2, "reward_every_n_steps": 2, "delay": 1, "reward_noise": 0.5},
    {**SMALL, "horizon": 4, "sequence_length": 2, "make_denser": True, "reward_shift": 0.1, "reward_scale": 2.0},
    {**SMALL, "state_space_size": None, "diameter": 2, "horizon": 4, "terminal_state_density": 0.4, "delay": 1},
]


class Histories:
    """A toy by its rules alone: what is paid follows from all states since the start."""

    def __init__(self, mdp):
        self.mdp, self.knobs = mdp, mdp.knobs
        self.worth = {tuple(s): w for s, w in zip(mdp.sequences.tolist(), mdp.sequence_rewards, strict=True)}
        self.ahead, self.of_look_ahead, self.ever = (
            cache(each) for each in (self.ahead, self.of_look_ahead, self.ever)
        )

    def next(self, history, action):
        """(probability, history) of all that an action may lead to."""
        size, true = self.knobs.set_size, int(self.mdp.transitions[history[-1], action])
        stray = self.knobs.transition_noise
        for state in range(true // size * size, true // size * size + size):
            yield (1 - stray if state == true else stray / (size - 1)), (*history, state)

    def earned(self, history):
        """What was earned by the last step of a history."""
        length, steps = self.knobs.sequence_length, len(history) - 1
        if self.knobs.make_denser:
            return sum(
                worth * i / length
                for sequence, worth in self.worth.items()
                for i in range(1, length + 1)
                if steps >= i and history[-i:] == sequence[:i]
            )
        open_now = steps >= length and steps % self.knobs.reward_every_n_steps == 0
        return self.worth.get(history[-length:], 0.0) if open_now else 0.0

    def paid(self, history):
        late = history[: len(history) - self.knobs.delay]
        due = self.earned(late) if len(late) > 1 else 0.0
        return due * self.knobs.reward_scale + self.knobs.reward_shift

    def over(self, history):
        return len(history) > self.knobs.horizon or self.mdp.terminal[history[-1]]

    def actions(self):
        return range(self.knobs.action_space_size)

    def ahead(self, history, deep):
        """The best that can be had in so many steps, and that of each first action."""
        if deep == 0 or self.over(history):
            return 0.0, ()
        values = tuple(
            sum(p * (self.paid(then) + self.ahead(then, deep - 1)[0]) for p, then in self.next(history, action))
            for action in self.actions()
        )
        return max(values), values

    def of_look_ahead(self, history, deep):
        """The return of who looks so far ahead at every step; of nobody's look-ahead: of random play."""
        if self.over(history):
            return 0.0
        best, values = self.ahead(history, deep) if deep else (0.0, (0.0,) * len(self.actions()))
        taken = [action for action, value in enumerate(values) if value >= best - 1e-9]
        return sum(
            p * (self.paid(then) + self.of_look_ahead(then, deep)) / len(taken)
            for action in taken
            for p, then in self.next(history, action)
        )

    def ever(self, history):
        """The probability that random play is paid more than what every step is."""
        if self.over(history):
            return 0.0
        found = 0.0
        for action in self.actions():
            for p, then in self.next(history, action):
                pays = self.paid(then) > self.knobs.reward_shift
                found += p / len(self.actions()) * (1.0 if pays else self.ever(then))
        return found

    def mean(self, function, *arguments):
        return float(np.mean([function((int(start),), *arguments) for start in self.mdp.starts]))


@pytest.mark.parametrize("knobs", VARIED)
def test_look_ahead_and_payment_are_those_of_all_histories(knobs):
    mdp = build_mdp(HardnessKnobs.from_dict(knobs), 1)
    chain, twin = chain_of(mdp), Histories(mdp)
    horizon = knobs["horizon"]
    assert list(chain.look_ahead()) == pytest.approx([twin.mean(twin.of_look_ahead, k + 1) for k in range(horizon)])
    assert chain.random == pytest.approx(twin.mean(twin.of_look_ahead, 0))
    assert chain.random == pytest.approx(expected_return(mdp, "random"))
    assert chain.optimal == pytest.approx(expected_return(mdp, "optimal"))
    assert chain.rewarded == pytest.approx(twin.mean(twin.ever))


def toy(seed=0, **knobs):
    return build_mdp(HardnessKnobs.from_dict({**COMMON, **knobs}), seed)


@pytest.mark.parametrize("delay", [1, 2, 4])
def test_delay_deepens_look_ahead_by_itself(delay):
    """Without ends, whoever sees k steps of payments sees what k - delay steps earn."""
    now, late = chain_of(toy(sequence_length=2)), chain_of(toy(sequence_length=2, delay=delay))
    now_late = chain_of(toy(sequence_length=2, horizon=COMMON["horizon"] - delay))
    assert late.depth == pytest.approx(now_late.depth + delay)
    assert late.optimal == pytest.approx(now_late.optimal)
    assert late.noise_to_signal > now.noise_to_signal


def test_one_step_is_enough_where_all_is_a_step_away_and_none_where_nothing_can_be_done():
    assert chain_of(toy()).depth == pytest.approx(NEAR)
    assert chain_of(toy(transition_noise=5 / 6)).depth == 0.0
    assert chain_of(toy(transition_noise=5 / 6)).noise_to_signal == np.inf


@pytest.mark.parametrize(("every", "chances"), [(1, 20), (4, 5), (10, 2)])
def test_the_probability_of_a_reward_is_that_of_independent_trials(every, chances):
    """Six actions lead to six states: every step reaches the rewarding one with probability 1/6."""
    assert chain_of(toy(reward_every_n_steps=every)).rewarded == pytest.approx(1 - (5 / 6) ** chances)


@pytest.mark.parametrize(
    ("task", "knobs"),
    [(0, {}), (3, {}), (0, {"sequence_length": 2, "reward_noise": 0.5}), (0, {"delay": 3, "action_space_size": 4})],
)
def test_noise_to_signal_is_that_of_simulated_play(task, knobs):
    knobs = CALIBRATION.knobs(CALIBRATION.tasks[task]) | knobs
    env = HardnessDiscreteVectorEnv(256, view="semantic", split="train", seed=5, **knobs)
    assert chain_of(env.mdps[0]).noise_to_signal == pytest.approx(simulated(env), rel=0.15)


def simulated(env, steps=800):
    """Noise to signal of played episodes, all of one length."""
    rng, length = np.random.default_rng(0), env.knobs.horizon
    env.reset(seed=0)
    states, actions, rewards = (np.zeros((steps, env.num_envs), kind) for kind in (int, int, float))
    for step in range(steps):
        states[step], actions[step] = env.states, rng.integers(env.knobs.action_space_size, size=env.num_envs)
        rewards[step] = env.step(actions[step])[1]
    episodes = rewards.reshape(-1, length, env.num_envs)
    to_go = episodes[:, ::-1].cumsum(1)[:, ::-1]
    values = (to_go - to_go.mean((0, 2), keepdims=True)).ravel()
    groups = states.ravel() * env.knobs.action_space_size + actions.ravel()
    size = np.bincount(groups)
    means = np.bincount(groups, values) / size
    within = (values - means[groups]).var()
    by_action = means.reshape(-1, env.knobs.action_space_size)
    signal = by_action.var(1, ddof=1) - (within / size).reshape(by_action.shape).mean(1)
    return within / np.average(signal, weights=size.reshape(by_action.shape).sum(1))


def test_random_play_relaxes_as_fast_as_its_second_eigenvalue_says():
    assert relaxation_time(toy()) == pytest.approx(1)  # every step goes anywhere
    swap = {"state_space_size": 2, "action_space_size": 2, "terminal_state_density": 0.0}
    swap |= {"transition_function": [[0, 1], [1, 0]], "transition_noise": 0.1}
    even = build_mdp(HardnessKnobs.from_dict(swap))
    assert relaxation_time(even) == pytest.approx(1)
    stay = build_mdp(HardnessKnobs.from_dict(swap | {"transition_function": [[0, 0], [1, 1]]}))
    assert relaxation_time(stay) == pytest.approx(1 / (1 - 0.8))  # of (.9 .1, .1 .9) the second one is .8
    rounds = HardnessKnobs.from_dict({"action_space_size": 3, "diameter": 2, "terminal_state_density": 0.0})
    assert relaxation_time(build_mdp(rounds)) == np.inf


def test_what_is_no_number_or_too_large_is_refused():
    with pytest.raises(InputError, match="not functions"):
        chain_of(toy(reward_noise=lambda state, action, rng: 0.0))
    with pytest.raises(InputError, match="delay is 15"):
        chain_of(toy(delay=15))
