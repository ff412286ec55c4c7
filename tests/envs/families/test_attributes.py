"""Anybody's environment: its attributes are knobs, what it derives of them follows, and strangers import nothing."""

import gymnasium
import numpy as np
import pytest

from lcd.envs.errors import InputError
from lcd.envs.families import attributes
from lcd.envs.families.benchmark import FAMILIES

from ..contract import equal, play, random_actions

CARTPOLE, ACROBOT = "families/gym:CartPole-v1", "families/gym:Acrobot-v1"


def make(task, points, seeds=(4, 1), copies=2, split="train"):
    return FAMILIES.make_points(task, points=points, seeds=list(seeds), copies=copies, view="state", split=split)


def insides(env):
    return [single.unwrapped for single in env.unwrapped.envs]


def test_attributes_are_set_and_what_is_derived_follows():
    env = make(CARTPOLE, [{"masspole": 0.5, "length": 2}, {"masscart": 3.0}], seeds=[0], copies=1)
    first, second = insides(env)
    assert (first.masspole, first.length) == (0.5, 2)
    assert (first.total_mass, first.polemass_length) == (1.5, 1.0)
    assert (second.total_mass, second.polemass_length) == (3.1, 0.05)
    (given,) = insides(make(CARTPOLE, [{"masspole": 0.5, "total_mass": 9}], seeds=[0], copies=1))
    assert given.total_mass == 9


def test_attributes_of_the_class_are_set_on_one_environment_only():
    changed, other = insides(make(ACROBOT, [{"LINK_LENGTH_1": 2.0}, {}], seeds=[0], copies=1))
    assert (changed.LINK_LENGTH_1, other.LINK_LENGTH_1) == (2.0, 1.0)


def test_derived_attributes_are_those_that_the_constructor_computes():
    """With nothing changed, what is computed anew is what was there."""
    (env,) = insides(make(CARTPOLE, [{}], seeds=[0], copies=1))
    for name, compute in attributes.DERIVED["CartPoleEnv"].items():
        assert compute(env) == getattr(env, name)


@pytest.mark.parametrize("task", [CARTPOLE, ACROBOT])
def test_points_together_are_the_points_alone(task):
    points = [{}, {"LINK_MASS_1": 2.0} if task == ACROBOT else {"gravity": 20.0}]
    together = make(task, points)
    assert together.num_seeds == 4
    actions = random_actions(together, 40)
    first, _ = together.reset()
    trajectory = play(together, actions)
    for number, point in enumerate(points):
        for place, seed in enumerate((4, 1)):
            rows = slice(4 * number + 2 * place, 4 * number + 2 * place + 2)
            alone = FAMILIES.make_vec(task, view="state", split="train", num_envs=2, seed=seed, **point)
            assert np.array_equal(alone.reset()[0], first[rows])
            assert equal({k: v[:, rows] for k, v in trajectory.items()}, play(alone, actions[:, rows]))


def test_what_is_known_of_them():
    assert CARTPOLE in FAMILIES.tasks
    assert CARTPOLE not in list(FAMILIES.tasks)
    assert FAMILIES.family(CARTPOLE) is None
    assert np.isnan(FAMILIES.reward_range(CARTPOLE, 0, gravity=2)).all()


@pytest.mark.parametrize(
    ("task", "knobs", "said"),
    [
        (CARTPOLE, {"gravty": 9.8}, "no number called 'gravty'; did you mean 'gravity'"),
        (CARTPOLE, {"gravity": float("nan")}, "gravity is nan, but it must be a finite number"),
        (CARTPOLE, {"gravity": "much"}, "gravity is 'much'"),
        (CARTPOLE, {"kinematics_integrator": 1}, "no number called 'kinematics_integrator'"),
        (CARTPOLE, {"_sutton_barto_reward": 1}, "no number called"),
        (CARTPOLE, {"step.__func__": 1}, "no number called"),
        (CARTPOLE, {"masspole": 0}, "masspole is 0, but it must be a number from 0.001 to 1000"),
        ("families/gym:Pendulum-v1", {"m": 0}, "m is 0, but it must be a number from 0.001 to 1000"),
        ("families/gym:Pendulum-v1", {"l": -1}, "l is -1, but it must be a number from 0.01 to 1000"),
        ("families/gym:MountainCarContinuous-v0", {"max_speed": 0}, "max_speed is 0, but it must be a number from"),
        ("families/gym:CartPol-v1", {}, "no environment 'CartPol-v1'; did you mean 'CartPole-v1'"),
        ("families/gym:os:CartPole-v1", {}, "has no task"),
        ("families/gym:", {}, "has no task"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(task, knobs, said):
    with pytest.raises(InputError, match=said):
        FAMILIES.check_knobs(task, knobs)
    with pytest.raises(InputError, match=said):
        make(task, [knobs])


def test_numbers_within_public_objects_have_dots():
    numbers = attributes._numbers_of("Pendulum-v1")
    assert {"g", "m", "l", "max_speed", "max_torque", "dt"} <= numbers.keys()
    assert not any(name.startswith("_") for name in numbers)
    # What an environment is like is not what it does.
    assert not any(name.startswith(("spec.", "action_space.", "observation_space.")) for name in numbers)


def test_an_environment_that_cannot_be_made_here_is_refused_in_a_sentence():
    gymnasium.register("tests/Lost-v0", "no_such_module_anywhere:Lost")
    try:
        with pytest.raises(InputError, match=r"'tests/Lost-v0' cannot be made here \(ModuleNotFoundError: No module"):
            FAMILIES.check_knobs("families/gym:tests/Lost-v0", {"length": 1})
    finally:
        gymnasium.registry.pop("tests/Lost-v0")
