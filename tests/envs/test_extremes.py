"""No knob of any environment loops for ever or takes all memory: every one at its extremes, with a deadline."""

import contextlib
import os
import signal
import traceback
from dataclasses import fields
from functools import partial

import gymnasium
import pytest
from gymnasium import registry
from gymnasium.envs.registration import load_env_creator
from gymnasium.vector import AutoresetMode
from procgen_support import INSTALLED

from lcd.envs.ctgraph.graph import CTGraphVectorEnv
from lcd.envs.ctgraph.images import synthetic
from lcd.envs.ctgraph.knobs import SECTIONS, GraphKnobs
from lcd.envs.errors import InputError
from lcd.envs.families.mujoco_vector import MujocoFamilyVectorEnv
from lcd.envs.hardness.continuous import HardnessContinuousVectorEnv
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.image_knobs import ImageKnobs
from lcd.envs.hardness.injection import InjectionKnobs
from lcd.envs.hardness.knobs import HardnessKnobs
from lcd.envs.hardness.mdp import build_mdp
from lcd.envs.hardness.point import PointKnobs
from lcd.envs.hardness.solve import expected_return
from lcd.envs.hardness.wrappers import HardnessVectorWrapper
from lcd.envs.mujoco import MujocoHardness
from lcd.envs.procgen.knobs import LAST_LEVEL, ProcgenKnobs
from lcd.envs.traffic.intersections import FEATURES
from lcd.envs.traffic.signal_vector import LONGEST, IntersectionVectorEnv

EXTREMES = (0, 1, -1, 2, 255, 10**9, 2**63, 10**18, 10**400, 0.0, 0.5, 1.0, 1e-308, 1e308, float("inf"), float("nan"))
DEADLINE_S = 60
"""Of all cases of one knob together, each of which takes milliseconds on a machine that has nothing else to do."""
DEADLINE_OF_ENGINES_S = 300
"""Of one environment, whose engine takes seconds to start, and minutes where many want the processor."""
NAMED = {"image_transforms", "image_folder", "image_scale_range", "reward_dist", "init_state_dist", "terminal_states"}
NAMED |= {"transition_function", "reward_function", "relevant_indices", "target_point", "images", "path", *SECTIONS}
"""Knobs that are no numbers."""


@contextlib.contextmanager
def deadline(what):
    def late(*_):
        raise TimeoutError(what)

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(DEADLINE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def injected(num_envs, view, **knobs):
    env = gymnasium.make_vec(
        "CartPole-v1",
        num_envs=num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
    )
    return HardnessVectorWrapper(env, [0], **knobs)


def knobs_of(*kinds):
    return [entry.name for kind in kinds for entry in fields(kind) if entry.init and entry.name not in NAMED]


CASES = [
    *((HardnessDiscreteVectorEnv, None, name) for name in knobs_of(HardnessKnobs, ImageKnobs)),
    *((HardnessContinuousVectorEnv, None, name) for name in knobs_of(PointKnobs)),
    *((CTGraphVectorEnv, part, name) for part, kind in SECTIONS.items() for name in knobs_of(kind)),
    *((CTGraphVectorEnv, None, name) for name in knobs_of(GraphKnobs)),
    *((injected, None, name) for name in knobs_of(InjectionKnobs)),
]


@pytest.mark.parametrize(("make", "part", "name"), CASES)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_every_knob_at_its_extremes_is_refused_or_steps(make, part, name):
    values = [*EXTREMES, [0, 10**9]] if name.endswith("_IDs") else EXTREMES
    for view in ("state",) if make is injected else ("state", "pixels"):
        for value in values:
            knobs = {name: value} if part is None else {part: {name: value}}
            with deadline(f"{view}, {knobs}"), contextlib.suppress(InputError):
                env = make(num_envs=2, view=view, **knobs)
                env.reset(seed=1)
                env.action_space.seed(0)
                for _ in range(3):
                    env.step(env.action_space.sample())


def in_a_child(what):
    """Call it in a process that its deadline ends wherever it is, in somebody's compiled code, too."""
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(DEADLINE_OF_ENGINES_S)
        try:
            what()
        except BaseException:  # whatever it is, the parent's tests must not go on here
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended != -signal.SIGALRM, f"not done after {DEADLINE_OF_ENGINES_S} s"
    assert ended == 0


def step_or_refuse(make, knobs):
    with contextlib.suppress(InputError):
        env = make(**knobs)
        env.reset(seed=1)
        env.action_space.seed(0)
        for _ in range(3):
            env.step(env.action_space.sample())
        env.close()


def with_values_of(name, values):
    return [{name: value} for value in dict.fromkeys(values)]


def refused(make, knobs):
    with contextlib.suppress(InputError):
        make(**knobs)
        return False
    return True


def all_at_their_extremes(make, features):
    """Values that are refused, and the others in one environment, each in a copy of its own."""
    points = []
    for feature in features:
        values = dict.fromkeys((*EXTREMES, feature.low, feature.high))
        allowed = [value for value in values if not refused(make, {feature.name: value})]
        assert {feature.low, feature.high} <= {*allowed}
        points += [{feature.name: value} for value in allowed]
    columns = {f.name: [point.get(f.name, f.default) for point in points] for f in features}
    seeds = list(range(len(points)))
    in_a_child(partial(step_or_refuse, make, {"num_envs": len(seeds), "seed": seeds, **columns}))


@pytest.mark.parametrize("place", [place for place in registry if "-family-" in place])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_feature_of_a_family_at_its_extremes(place):
    kind = load_env_creator(registry[place].vector_entry_point)
    if issubclass(kind, MujocoFamilyVectorEnv):
        pytest.importorskip("mujoco")
    all_at_their_extremes(kind, kind.features)


@pytest.mark.parametrize(("name", "value"), [("time_unit", 0.2), ("action_space_max", 1.0)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_mujoco_at_its_extremes(name, value):
    pytest.importorskip("mujoco")
    base = gymnasium.make("HalfCheetah-v5")
    for knobs in with_values_of(name, (*EXTREMES, value)):
        in_a_child(partial(step_or_refuse, partial(MujocoHardness, base), knobs))


def test_intersections_at_their_extremes():
    pytest.importorskip("libsumo")
    all_at_their_extremes(IntersectionVectorEnv, FEATURES)
    lengths = with_values_of("horizon", (*EXTREMES, LONGEST))
    allowed = [knobs["horizon"] for knobs in lengths if not refused(IntersectionVectorEnv, knobs)]
    for length in {min(allowed), LONGEST}:
        in_a_child(partial(step_or_refuse, IntersectionVectorEnv, {"horizon": length}))


@pytest.mark.skipif(not INSTALLED, reason="needs the extra procgen")
def test_procgen_at_its_extremes():
    from lcd.envs.procgen.vector import ProcgenVectorEnv

    make = partial(ProcgenVectorEnv, num_envs=2, game="heist")
    # The first one reads all of the game's pictures, which takes seconds and is then the children's, too.
    step_or_refuse(make, {})
    words = {"game", "view", "split", "mode", "shaping", "cache", "render_mode"}
    for entry in (entry for entry in fields(ProcgenKnobs) if entry.name not in words):
        # Each engine takes a tenth of a second, and rewards are added beside it.
        values = (1e308, float("nan")) if entry.type == "float" else (*EXTREMES, True, LAST_LEVEL, LAST_LEVEL - 1)
        shaped = {"shaping": "subgoals"} if entry.type == "float" else {}
        for knobs in with_values_of(entry.name, values):
            in_a_child(partial(step_or_refuse, make, knobs | shaped))


@pytest.mark.parametrize("noise", [1, 255, 1.0, 254.99])
def test_noise_that_leaves_nothing_of_the_images_is_refused(noise):
    """It drew classes for ever: without grey levels all of them are equal."""
    with deadline("noise_on_read"), pytest.raises(InputError, match=r"noise_on_read is .*only 1 differ.*less noise"):
        CTGraphVectorEnv(2, view="pixels", image_dataset={"noise_on_read": noise})


def test_the_last_grey_levels_still_make_different_classes():
    with deadline("noise_on_read"):
        env = CTGraphVectorEnv(2, view="pixels", image_dataset={"noise_on_read": 253})
        env.reset(seed=0)
        assert len(synthetic(1, 50, peak=2.0)) == 50


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ({"state_space_size": 10**400}, "state_space_size is 1000"),
        ({"diameter": 10**6}, "state_space_size is 8000000, but that makes a table"),
        ({"state_space_size": 1000, "sequence_length": 700, "horizon": 1000}, "table of all sequences"),
        ({"horizon": 10**9}, "horizon is 1000000000, but it must be a whole number of at most 1000000"),
    ],
)
def test_toys_that_are_too_large_are_refused_at_once(knobs, sentence):
    with deadline(str(knobs)), pytest.raises(InputError, match=sentence):
        HardnessKnobs.from_dict(knobs)


def test_a_delay_that_is_too_long_to_solve_is_told():
    """The number of Markov states has more digits than Python prints."""
    knobs = HardnessKnobs.from_dict({"delay": 20_000, "horizon": 30_000})
    with deadline("delay"), pytest.raises(InputError, match=r"delay is 20000 .* 1e\+30 Markov states"):
        expected_return(build_mdp(knobs, 0))


def test_an_action_of_a_billion_simulation_steps_is_refused():
    pytest.importorskip("mujoco")
    with pytest.raises(InputError, match=r"time_unit is .* whole number from 1 to 100000"):
        MujocoHardness(gymnasium.make("HalfCheetah-v5"), time_unit=1e9)
