"""Reward p keeps expectations and optimal policies, and touches nothing but events."""

from __future__ import annotations

from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from hypothesis import given, settings
from hypothesis import strategies as st

from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.mdp import HardnessKnobs, build_mdp
from lcd.envs.rewards import KeepRewards, wrap_rewards

PROBABILITIES = (0.75, 0.5, 0.25)


class Paying(VectorEnv):
    """Pays the same rewards at every step."""

    metadata: ClassVar = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, rewards, noise=0.0):
        self.rewards, self.noise = np.asarray(rewards, dtype=np.float64), noise
        self.num_envs = len(self.rewards)
        self.single_observation_space = gymnasium.spaces.Discrete(1)
        self.single_action_space = gymnasium.spaces.Discrete(1)
        self.observation_space = self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(self, *, seed=None, options=None):
        return np.zeros(self.num_envs, dtype=np.int64), {}

    def step(self, actions):
        off = np.zeros(self.num_envs, dtype=bool)
        infos = {"event_reward": self.rewards} if self.noise else {}
        return np.zeros(self.num_envs, dtype=np.int64), self.rewards + self.noise, off, off, infos


def thin(rewards, p, steps, noise=0.0, seed=0):
    env = KeepRewards(Paying(rewards, noise), p, seed)
    env.reset()
    return np.stack([env.step(None)[1] for _ in range(steps)])


@settings(max_examples=50, deadline=None)
@given(
    rewards=st.lists(st.floats(-1e6, 1e6).filter(lambda r: r == 0 or abs(r) > 1e-3), min_size=1, max_size=8),
    p=st.floats(0.05, 1.0),
)
def test_the_two_outcomes_and_their_expectation(rewards, p):
    """A kept event is r / p, a lost one 0, so that p * (r / p) + (1 - p) * 0 is r."""
    rewards = np.array(rewards)
    for thinned in thin(rewards, p, 20):
        kept = thinned != 0
        assert thinned[kept] == pytest.approx(rewards[kept] / p)
        assert not thinned[rewards == 0].any()


@pytest.mark.parametrize("p", PROBABILITIES)
def test_the_mean_reward_stays(p):
    rewards = np.array([1.0, -2.0, 10.0, 0.0])
    thinned = thin(rewards, p, 8000)
    standard_error = np.abs(rewards) * np.sqrt((1 / p - 1) / 8000)
    assert (np.abs(thinned.mean(axis=0) - rewards) <= 4.5 * standard_error).all()
    shares = (thinned[:, :3] != 0).mean(axis=0)
    assert np.abs(shares - p).max() < 4.5 * np.sqrt(p * (1 - p) / 8000)


def test_copies_lose_different_events():
    kept = thin(np.ones(100), 0.5, 400) != 0
    correlations = np.corrcoef(kept.T)[np.triu_indices(100, 1)]
    assert np.abs(correlations).max() < 0.3
    assert len({tuple(column) for column in kept.T}) == 100


@pytest.mark.parametrize("p", PROBABILITIES)
def test_noise_is_no_event(p):
    thinned = thin(np.array([0.0, 3.0]), p, 500, noise=0.125)
    assert (thinned[:, 0] == 0.125).all()
    assert set(np.round(thinned[:, 1], 9)) == {0.125, round(3 / p + 0.125, 9)}


def test_noise_of_the_toy_is_untouched():
    arguments = {"num_envs": 50, "seed": 3, "reward_noise": 0.5, "terminal_state_density": 0.0}
    plain, thinned = (
        HardnessDiscreteVectorEnv(**arguments),
        KeepRewards(HardnessDiscreteVectorEnv(**arguments), 0.25, 3),
    )
    plain.reset()
    thinned.reset()
    for _ in range(30):
        actions = plain.action_space.sample()
        _, reward, *_, infos = plain.step(actions)
        _, other, *_, other_infos = thinned.step(actions)
        event = infos["event_reward"]
        assert np.array_equal(other_infos["original_reward"], reward)
        assert np.array_equal(other[event == 0], reward[event == 0])
        difference = other - reward
        assert (np.isclose(difference, 3 * event) | np.isclose(difference, -event)).all()


def test_the_environment_is_not_disturbed():
    plain, thinned = (HardnessDiscreteVectorEnv(8, seed=1) for _ in range(2))
    thinned = KeepRewards(thinned, 0.5, 1)
    assert np.array_equal(plain.reset()[0], thinned.reset()[0])
    for _ in range(50):
        actions = plain.action_space.sample()
        one, other = plain.step(actions), thinned.step(actions)
        assert np.array_equal(one[0], other[0])
        assert np.array_equal(one[2], other[2])


def greedy(transitions, rewards, discount=0.9):
    values = np.zeros(len(transitions))
    for _ in range(300):
        of_actions = rewards + discount * values[transitions]
        values = of_actions.max(axis=1)
    return of_actions.argmax(axis=1)


@pytest.mark.parametrize("p", PROBABILITIES)
def test_the_optimal_policy_stays(p):
    """Value iteration on rewards as an agent would estimate them from thinned ones finds the same policy."""
    transitions = build_mdp(HardnessKnobs(state_space_size=5, action_space_size=5), 2).transitions
    rewards = np.random.default_rng(4).permutation(25).reshape(5, 5).astype(float)
    estimated = thin(rewards.ravel(), p, 20_000).mean(axis=0).reshape(5, 5)
    assert np.array_equal(greedy(transitions, rewards), greedy(transitions, estimated))


def test_p_of_one_changes_nothing():
    rewards = np.array([0.1, -7.3, 0.0])
    assert np.array_equal(thin(rewards, 1.0, 5), np.tile(rewards, (5, 1)))


def test_own_stream_for_every_copy_and_seed():
    together = KeepRewards(Paying(np.ones(6)), 0.5, [4, 9])
    alone = KeepRewards(Paying(np.ones(3)), 0.5, 9)
    together.reset()
    alone.reset()
    for _ in range(40):
        assert np.array_equal(together.step(None)[1][3:], alone.step(None)[1])


def test_state_and_seeding():
    def make():
        return KeepRewards(HardnessDiscreteVectorEnv(6, seed=[1, 2], terminal_state_density=0.0), 0.5, [1, 2])

    env = make()
    env.reset()
    actions = [env.action_space.sample() for _ in range(40)]
    first = [env.step(a)[1] for a in actions]
    state = env.get_state()
    onward = [env.step(a)[1] for a in actions]
    other = make()
    other.set_state(state)
    assert np.array_equal([other.step(a)[1] for a in actions], onward)
    env.reset(seed=[1, 2])
    assert np.array_equal([env.step(a)[1] for a in actions], first)


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None, True, float("nan")])
def test_no_seed(seed):
    for env in (Paying([1.0]), gymnasium.make("CartPole-v1")):
        with pytest.raises(InputError, match=r"seed is .*, but it must be a whole number of at least 0"):
            wrap_rewards(env, 0.5, seed=seed)


@pytest.mark.parametrize("p", [0, -0.5, 1.5, "half", True, float("nan")])
def test_no_probability(p):
    with pytest.raises(InputError, match="reward_p"):
        KeepRewards(Paying([1.0]), p)
