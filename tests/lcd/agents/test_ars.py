"""Augmented random search: its update by hand, what it learns, and that members are on their own."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.agents import validate
from lcd.agents.ars import ARS, Moments
from lcd.envs.errors import InputError

BEST = np.array([0.3, -0.6])


class Targets(VectorEnv):
    """Episodes of two steps that show 1 and pay for actions near `BEST`."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int):
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(0, 1, (1,), np.float32)
        self.single_action_space = spaces.Box(-2.0, 2.0, (2,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.told: list[np.ndarray] = []
        self.step_number = 0

    def reset(self, *, seed=None, options=None):
        return np.ones((self.num_envs, 1), np.float32), {}

    def step(self, actions):
        self.told.append(actions.copy())
        self.step_number += 1
        ended = np.full(self.num_envs, self.step_number % 2 == 0)
        rewards = -np.square(actions / 2 - BEST).sum(axis=1)
        return self.reset()[0], rewards, ended, np.zeros(self.num_envs, bool), {}


def trained(seeds, steps, **settings):
    config = validate("ars", settings)
    env = Targets(len(seeds) * config.copies)
    agent = ARS(config, env, seeds)
    agent.learn(steps, steps, lambda step: None)
    return agent, env


def test_an_iteration_moves_along_the_best_directions_as_the_paper_has_it():
    settings = {"directions": 4, "top": 2, "learning_rate": 0.1, "deviation": 0.2, "normalise": False}
    agent, env = trained([5], 2 * 2 * 4, **settings)
    first, _ = trained([5], 1, **settings)
    directions = first.directions[0]
    told = np.array(env.told)[::2, 0] / 2
    returns = -2 * np.square(np.float32(told * 2) / 2 - BEST).sum(axis=1)
    candidates = np.concatenate([0.2 * directions, -0.2 * directions])[:, :, 0]
    assert np.allclose(told, candidates.clip(-1, 1), atol=1e-6)
    plus, minus = returns[:4], returns[4:]
    best = np.argsort(-np.maximum(plus, minus))[:2]
    spread = np.std([*plus[best], *minus[best]], ddof=1)
    moved = sum((plus[k] - minus[k]) * directions[k] for k in best) * 0.1 / (2 * spread)
    assert np.allclose(agent.weights[0], moved, rtol=1e-4)


@pytest.mark.parametrize("copies", [1, 5])
def test_it_learns(copies):
    agent, _ = trained([0, 1, 2], 4000 * copies, copies=copies, normalise=False)
    assert np.allclose(agent.weights[:, :, 0], BEST, atol=0.1)


def test_a_member_learns_what_it_learns_alone():
    together, _ = trained([4, 7, 4], 600, copies=3)
    for place, seed in enumerate([4, 7, 4]):
        alone, _ = trained([seed], 600, copies=3)
        assert np.array_equal(together.weights[place], alone.weights[0])
    assert not np.array_equal(together.weights[0], together.weights[1])


def test_moments_are_those_of_all_that_was_seen():
    rng = np.random.default_rng(0)
    seen = rng.normal(3, [1, 5, 0], (2, 40, 3))
    moments = Moments(2, 3)
    for part in np.split(seen, 8, axis=1):
        moments.add(part)
    assert np.allclose(moments.mean, seen.mean(axis=1))
    expected = seen.std(axis=1, ddof=1)
    expected[:, 2] = 1
    assert np.allclose(moments.deviation(np.arange(2)), expected)


@pytest.mark.parametrize("wrong", [{"top": 9}, {"top": 0}, {"directions": 0}, {"deviation": 0.0}])
def test_a_wrong_setting_is_one_sentence(wrong):
    with pytest.raises(InputError, match=rf"agent.{next(iter(wrong))}="):
        validate("ars", wrong)
