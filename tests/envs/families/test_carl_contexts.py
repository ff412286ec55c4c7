"""CARL's environments as points: against a package with CARL's interface, and CARL itself where it is installed."""

from __future__ import annotations

import importlib.util
import sys
import types

import gymnasium
import numpy as np
import pytest

from lcd.envs.errors import InputError
from lcd.envs.families import carl_contexts
from lcd.envs.families.benchmark import FAMILIES

STANDS_IN = "families/carl:CARLCartPole"


class Bounded:
    """A feature as CARL's context spaces have them."""

    def __init__(self, default, lower, upper):
        self.default_value, self.lower, self.upper = default, lower, upper


class CARLCartPole(gymnasium.Wrapper):
    """A cartpole with CARL's interface: a set of contexts, and observations that tell the context, too."""

    features = {"length": Bounded(0.5, 0.05, 5), "gravity": Bounded(9.8, 0.1, np.inf), "name": Bounded("pole", 0, 1)}

    def __init__(self, contexts):
        super().__init__(gymnasium.make("CartPole-v1"))
        self.base_observation_space = self.env.observation_space
        (self.context,) = contexts.values()

    @classmethod
    def get_context_features(cls):
        return cls.features

    @classmethod
    def get_default_context(cls):
        print("what CARL prints")
        return {name: feature.default_value for name, feature in cls.features.items()}

    def reset(self, *, seed=None, options=None):
        for name, value in self.context.items():
            setattr(self.env.unwrapped, name, value)
        observation, info = self.env.reset(seed=seed)
        return {"obs": observation, "context": self.context}, info

    def step(self, action):
        observation, *others = self.env.step(action)
        return {"obs": observation, "context": self.context}, *others


@pytest.fixture
def carl(monkeypatch):
    package, envs = types.ModuleType("carl"), types.ModuleType("carl.envs")
    envs.CARLCartPole, envs.__all__ = CARLCartPole, ["CARLCartPole"]
    monkeypatch.setitem(sys.modules, "carl", package)
    monkeypatch.setitem(sys.modules, "carl.envs", envs)
    forget()
    yield
    forget()


def forget():
    carl_contexts._environments.cache_clear()
    carl_contexts._context.cache_clear()


def points_of(points, seeds=(0, 1), copies=2):
    return FAMILIES.make_points(STANDS_IN, points=points, seeds=list(seeds), copies=copies, view="state", split="train")


def steps(env, count=25):
    seen = [env.reset()[0]]
    actions = np.random.default_rng(0).integers(0, 2, (count, env.num_envs))
    return np.stack(seen + [env.step(each)[0] for each in actions])


def test_points_are_contexts_and_agents_see_the_observation_alone(carl, capsys):
    assert FAMILIES.features_of(STANDS_IN) == {"length": 0.5, "gravity": 9.8}
    points = [{"length": 0.5}, {"length": 3.0}]
    both = points_of(points)
    assert both.single_observation_space.shape == (4,)
    moves = steps(both)
    # Whatever stands beside it, a point gets what Gymnasium's cartpole does with that attribute.
    gym = FAMILIES.make_points(
        "families/gym:CartPole-v1",
        points=[{**point, "polemass_length": 0.05} for point in points],
        seeds=[0, 1],
        copies=2,
        view="state",
        split="train",
    )
    assert np.array_equal(moves, steps(gym))
    assert not np.array_equal(moves[:, :4], moves[:, 4:])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("task", "point", "told"),
    [
        (STANDS_IN, {"lenght": 1}, "no number called 'lenght'; did you mean 'length'"),
        (STANDS_IN, {"name": 1}, "no number called 'name'"),
        (STANDS_IN, {"length": 0}, "length is 0, but CARL has it from 0.05 to 5"),
        (STANDS_IN, {"gravity": np.inf}, "gravity is inf"),
        (STANDS_IN, {"gravity": "9"}, "gravity is '9'"),
        ("families/carl:CARLCartpole", {}, "CARL has no environment 'CARLCartpole' here; did you mean 'CARLCartPole'"),
        ("families/carl:os.path", {}, "has no task"),
    ],
)
def test_what_carl_does_not_have_is_refused(carl, task, point, told):
    with pytest.raises(InputError, match=told):
        FAMILIES.check_knobs(task, point)


def test_without_carl_one_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "carl.envs", None)
    forget()
    with pytest.raises(InputError, match="pip install --no-deps carl-bench"):
        FAMILIES.check_knobs(STANDS_IN, {})
    forget()


@pytest.mark.skipif(importlib.util.find_spec("carl") is None, reason="CARL is not installed")
def test_the_real_ones_step_and_the_cart_weighs_nothing():
    """CARL computes nothing anew, so that its cartpole's masses change nothing but what the environment asks for."""
    assert FAMILIES.features_of(STANDS_IN)["tau"] == 0.02
    one, other = (steps(points_of([{"masscart": mass}])) for mass in (0.5, 2.0))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, steps(points_of([{"length": 2.0}])))
