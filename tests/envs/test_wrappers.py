"""The wrappers change what they are asked to, in every autoreset mode, and nothing else."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from lcd.agents.stepping import EpisodeLog, Stepper
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.wrappers import HardnessVectorWrapper, HardnessWrapper
from lcd.envs.spaces import FlatActions, NumberedStates

MODES = list(AutoresetMode)


class Echo(gymnasium.Env):
    """Shows the last action; rewards 1, 2, 3, …; terminates or is truncated after `length` steps."""

    def __init__(self, length=5, cut=False, image=False, box=False):
        self.length, self.cut, self.image, self.box = length, cut, image, box
        self.observation_space = (
            spaces.Box(0, 255, (8, 8, 3), np.uint8) if image else spaces.Box(-99, 99, (2,), np.float32)
        )
        self.action_space = spaces.Box(-1, 1, (2,), np.float32) if box else spaces.Discrete(5)

    def _observe(self, action):
        if self.image:
            return np.tile(np.arange(8, dtype=np.uint8)[:, None, None] + 100, (1, 8, 3))
        return np.array([self.time, np.sum(action)], dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._observe(-1), {}

    def step(self, action):
        self.time += 1
        over = self.time == self.length
        return self._observe(action), float(self.time), over and not self.cut, over and self.cut, {}


def vector(mode=AutoresetMode.SAME_STEP, copies=2, **arguments):
    made = [lambda n=n: Echo(**{"length": 4 + n} | arguments) for n in range(copies)]
    return SyncVectorEnv(made, autoreset_mode=mode)


def play(env, steps, seed=0):
    """Rewards, ends and observations, with resets in the mode that leaves them to the caller."""
    rng = np.random.default_rng(seed)
    columns, infos_of = [env.reset(seed=3)[0]], []
    rows = []
    for _ in range(steps):
        actions = np.array([rng.integers(5) for _ in range(env.num_envs)])
        if isinstance(env.single_action_space, spaces.MultiDiscrete):
            actions = np.stack([actions, actions % env.single_action_space.nvec[1]], axis=1)
        elif isinstance(env.single_action_space, spaces.Box):
            actions = np.tile(actions[:, None] / 5, (1, env.single_action_space.shape[0])).astype(np.float32)
        observations, rewards, terminated, truncated, infos = env.step(actions)
        ended = terminated | truncated
        if env.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            observations = env.reset(options={"reset_mask": ended})[0]
        columns.append(np.array(observations))
        rows.append((rewards, terminated, truncated))
        infos_of.append(infos)
    return (np.stack(columns), *map(np.array, zip(*rows, strict=True)), infos_of)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_injected_nothing_changed(mode):
    plain, wrapped = play(vector(mode), 30), play(HardnessVectorWrapper(vector(mode)), 30)
    assert all(np.array_equal(a, b) for a, b in zip(plain[:4], wrapped[:4], strict=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("delay", [1, 3, 7])
def test_delayed_rewards_come_late_and_the_rest_at_the_end(mode, cut, delay):
    _, rewards, terminated, truncated, _ = play(HardnessVectorWrapper(vector(mode, cut=cut), delay=delay), 40)
    for copy, length in enumerate((4, 5)):
        earned = list(range(1, length + 1))
        paid = [0.0] * min(delay, length - 1) + [float(r) for r in earned[: max(length - 1 - delay, 0)]]
        episode = [*paid[: length - 1], sum(earned) - sum(paid[: length - 1])]
        if mode is AutoresetMode.NEXT_STEP:
            episode.append(0.0)
        found = rewards[: len(episode) * 3, copy].tolist()
        assert found == episode * 3
        assert (truncated if cut else terminated)[length - 1, copy]


@pytest.mark.parametrize("mode", MODES)
def test_scale_shift_and_the_reward_of_an_end(mode):
    knobs = {"reward_scale": 2.0, "reward_shift": -0.5, "term_state_reward": 3.0}
    for cut in (False, True):
        _, rewards, *_, infos = play(HardnessVectorWrapper(vector(mode, cut=cut), **knobs), 4)
        assert rewards[:4, 0].tolist() == [1.5, 3.5, 5.5, 7.5 + (0 if cut else 6.0)]
        assert infos[1]["event_reward"][0] == 4.0
    if mode is AutoresetMode.NEXT_STEP:
        assert play(HardnessVectorWrapper(vector(mode), **knobs), 5)[1][4, 0] == 0


def test_reward_noise_is_scaled_and_has_its_deviation():
    env = HardnessVectorWrapper(vector(copies=400, length=6), reward_noise=0.5, reward_scale=3.0, seed=1)
    _, rewards, _, _, infos = play(env, 30)
    noise = rewards - np.stack([i["event_reward"] for i in infos])
    assert abs(noise.mean()) < 0.06
    assert abs(noise.std() - 1.5) < 0.03


@pytest.mark.parametrize(("how", "clipped"), [("sign", np.sign), ("clip", lambda rewards: rewards.clip(-1, 1))])
def test_agents_learn_from_clipped_rewards_and_curves_are_of_whole_ones(how, clipped):
    knobs = {"reward_noise": 0.7, "reward_shift": -2.5}
    whole = play(HardnessVectorWrapper(vector(), seed=3, **knobs), 20)[1]
    _, rewards, _, _, infos = play(HardnessVectorWrapper(vector(), seed=3, reward_clip=how, **knobs), 20)
    assert np.array_equal(rewards, clipped(whole))
    assert np.array_equal([i["original_reward"] for i in infos], whole)
    stepper, log = Stepper(HardnessVectorWrapper(vector(), seed=3, reward_clip=how, **knobs)), EpisodeLog(1, 2)
    stepper.reset(seed=3)
    for _ in range(4):
        log.add(stepper.step(np.zeros(2, np.int64)))
    assert log.pop()[0]["return_mean"] == pytest.approx(whole[:4, 0].sum())


def test_another_action_is_taken_as_often_as_asked():
    env = HardnessVectorWrapper(vector(copies=500, length=100), transition_noise=0.3, seed=1)
    env.reset()
    asked = np.random.default_rng(0).integers(5, size=(40, 500))
    done = np.stack([env.step(actions)[0][:, 1] for actions in asked])
    shares = np.bincount(((done - asked) % 5).astype(int).ravel(), minlength=5) / done.size
    assert np.abs(shares - [0.7, 0.075, 0.075, 0.075, 0.075]).max() < 0.01


def test_continuous_states_get_normal_noise():
    env = HardnessVectorWrapper(vector(copies=500, length=100, box=True), transition_noise=0.2)
    observations = play(env, 20)[0][1:]
    noise = observations[:, :, 0] - np.arange(1, 21)[:, None]
    assert abs(noise.std() - 0.2) < 0.01


def test_noise_functions_see_observation_and_action():
    knobs = {
        "reward_noise": lambda seen, action, rng: 100 * seen[0] + action,
        "transition_noise": lambda seen, action, rng: 0.0,
    }
    env = HardnessVectorWrapper(vector(copies=1, length=9), **knobs)
    env.reset()
    assert [env.step(np.array([a]))[1][0] for a in (2, 4, 1)] == [1 + 2, 2 + 104, 3 + 201]


def test_irrelevant_features_are_seen_and_change_nothing_else():
    plain = play(vector(), 30)
    wrapped = play(HardnessVectorWrapper(vector(), irrelevant_features={"action_space_size": 3, "diameter": 2}), 30)
    assert wrapped[0].shape[-1] == 2 + 6
    assert np.array_equal(wrapped[0][..., :2], plain[0])
    assert np.array_equal(wrapped[1], plain[1])
    assert (wrapped[0][..., 2:].sum(-1) == 1).all()
    final = next(i["final_obs"] for i in wrapped[4] if "final_obs" in i)
    assert final.shape == (2, 8)


def test_irrelevant_features_of_continuous_and_image_environments():
    env = HardnessVectorWrapper(vector(box=True), irrelevant_features={"state_space_dim": 3})
    assert env.single_observation_space.shape == (5,)
    assert env.single_action_space.shape == (5,)
    assert play(env, 12)[0].shape == (13, 2, 5)
    with pytest.raises(InputError, match="image_size"):
        HardnessVectorWrapper(vector(image=True), irrelevant_features=True)


@pytest.mark.parametrize("mode", MODES)
def test_an_irrelevant_point_never_jumps_while_the_environments_episode_runs(mode):
    """It started anew after 100 steps of its own, and whenever it came upon the target that a lone one has."""
    own = {"state_space_dim": 2, "target_radius": 5.0}
    env = HardnessVectorWrapper(vector(mode, copies=40, length=250, box=True), irrelevant_features=own)
    actions = np.zeros((40, 4), np.float32)
    places = [env.reset(seed=1)[0][:, 2:]] + [env.step(actions)[0][:, 2:] for _ in range(249)]
    assert (np.array(places) == places[0]).all()
    actions[:, 2:] = -0.5 * np.sign(places[0])
    travelled = [env.reset(seed=1)[0][:, 2:]] + [env.step(actions)[0][:, 2:] for _ in range(15)]
    assert np.allclose(np.diff(travelled, axis=0), actions[:, 2:])
    assert (np.linalg.norm(travelled, axis=2).min(axis=0) < 5.0).sum() > 20


def test_irrelevant_states_follow_their_own_table_for_ever():
    own = {"state_space_size": 6, "action_space_size": 5, "terminal_state_density": 0.5}
    env = HardnessVectorWrapper(vector(copies=30, length=320), irrelevant_features=own)
    after = env.injector.side_toy.toy.mdps[0].transitions
    states, rng = env.reset(seed=1)[0][:, 2:].argmax(axis=1), np.random.default_rng(0)
    for _ in range(319):
        actions = rng.integers(5, size=(30, 2))
        expected, states = after[states, actions[:, 1]], env.step(actions)[0][:, 2:].argmax(axis=1)
        assert np.array_equal(states, expected)


def test_flat_actions_and_numbered_states():
    toy = HardnessDiscreteVectorEnv(4, action_space_size=[3, 2], irrelevant_features=True, state_space_size=[3, 2])
    flat = NumberedStates(FlatActions(toy))
    assert flat.single_action_space == spaces.Discrete(6)
    assert flat.single_observation_space == spaces.Discrete(6)
    numbers, _ = flat.reset()
    assert np.array_equal(numbers, toy.states * 2 + toy.irrelevant_states)
    again = HardnessDiscreteVectorEnv(4, action_space_size=[3, 2], irrelevant_features=True, state_space_size=[3, 2])
    again.reset()
    for action in range(6):
        numbers = flat.step(np.full(4, action))[0]
        again.step(np.tile([action // 2, action % 2], (4, 1)))
        assert np.array_equal(numbers, again.states * 2 + again.irrelevant_states)


def test_image_transforms():
    image = play(vector(image=True), 1)[0][0, 0]
    env = HardnessVectorWrapper(vector(image=True, copies=60), image_transforms="shift", image_padding=3)
    assert env.single_observation_space.shape == (14, 14, 3)
    places = set()
    for shown in play(env, 3)[0].reshape(-1, 14, 14, 3):
        rows, columns = np.nonzero(shown[..., 0])
        assert np.array_equal(shown[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1], image)
        places.add((rows.min(), columns.min()))
    assert {p[0] for p in places} == {p[1] for p in places} == set(range(7))
    flipped = HardnessVectorWrapper(vector(image=True, copies=60), image_transforms="flip")
    kinds = {frame.tobytes() for frame in play(flipped, 1)[0].reshape(-1, 8, 8, 3)}
    assert kinds == {image.tobytes(), image[::-1].tobytes()}
    turned = HardnessVectorWrapper(vector(image=True, copies=60), image_transforms="rotate", image_ro_quant=90)
    kinds = {frame.tobytes() for frame in play(turned, 1)[0].reshape(-1, 8, 8, 3)}
    assert kinds == {np.ascontiguousarray(np.rot90(image, k)).tobytes() for k in range(4)}
    scaled = HardnessVectorWrapper(vector(image=True, copies=3), image_transforms="scale", image_scale_range=(0.5, 0.5))
    assert (play(scaled, 1)[0] > 0).mean() == pytest.approx(0.25, abs=0.15)


@pytest.mark.parametrize(
    "knobs",
    [{"delay": 2, "reward_noise": 1.0, "transition_noise": 0.2}, {"irrelevant_features": True}],
)
def test_a_single_environment_passes_gymnasiums_checker(knobs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(HardnessWrapper(gymnasium.make("CartPole-v1").unwrapped, **knobs), skip_render_check=True)


def test_single_and_vector_do_the_same():
    knobs = {"delay": 2, "reward_noise": 1.0, "transition_noise": 0.4, "reward_shift": 0.1}
    single, many = (
        HardnessWrapper(Echo(), seed=5, **knobs),
        HardnessVectorWrapper(vector(copies=1, length=5), 5, **knobs),
    )
    assert np.array_equal(single.reset()[0], many.reset()[0][0])
    for action in (1, 0, 3, 2, 4):
        observation, reward, terminated, *_ = single.step(action)
        shown, rewards, ends, _, infos = many.step(np.array([action]))
        assert reward == rewards[0]
        assert np.array_equal(observation, infos["final_obs"][0] if ends[0] else shown[0])
    assert terminated


def test_a_run_continues_bit_for_bit():
    def make():
        toy = HardnessDiscreteVectorEnv(4, horizon=7)
        return HardnessVectorWrapper(toy, 9, delay=2, reward_noise=1.0, transition_noise=0.4, irrelevant_features=True)

    env = make()
    play(env, 10)
    state = env.get_state()
    other = make()
    other.reset()
    other.set_state(state)
    actions = np.random.default_rng(0).integers(8, size=(20, 4, 2))
    for row in actions:
        one, two = env.step(row), other.step(row)
        assert all(np.array_equal(a, b) for a, b in zip(one[:4], two[:4], strict=True))


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"dealy": 1}, ["dealy", "'delay'"]),
        ({"transition_noise": 1.5}, ["transition_noise", "1.5", "probability"]),
        ({"reward_noise": -1}, ["reward_noise", "-1"]),
        ({"image_transforms": "shift"}, ["image_transforms", "no images"]),
        ({"irrelevant_features": 3}, ["irrelevant_features", "3"]),
        ({"reward_clip": "signs"}, ["reward_clip", "signs", "sign"]),
        ({"image_scale_range": (2, 1)}, ["image_scale_range"]),
        ({"seed": [1, 2, 3]}, ["seed", "3"]),
    ],
)
def test_mistakes_are_told_in_a_sentence(knobs, words):
    with pytest.raises(InputError) as mistake:
        HardnessVectorWrapper(vector(), **knobs)
    assert all(word in str(mistake.value) for word in words), mistake.value
