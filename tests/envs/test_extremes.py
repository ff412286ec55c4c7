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

from lcd import cli
from lcd.envs.benchmarks import get_benchmark
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


WORLDS = (
    ("ale_py", "atari/Breakout", "pixels", {"size": 1024, "frames": 100, "sticky": 1.0, "longest": 1}),
    ("mujoco", "mujoco/HalfCheetah", "state", {"frame_skip": 1, "reset_noise_scale": 0.0}),
    ("mujoco", "mujoco/InvertedPendulum", "state", {"size": 1, "frames": 100, "shadows": True}),
    ("dm_control", "dm_control/cartpole-swingup", "state", {"time_limit": 0.1}),
    ("crafter", "crafter/collect-wood", "pixels", {"length": 1, "area": 16}),
    ("minigrid", "minigrid/Empty-Random-6x6", "pixels", {"size": 5, "max_steps": 1}),
    ("minigrid", "minigrid/MultiRoom-N2-S4", "pixels", {"maxNumRooms": 2, "maxRoomSize": 4}),
    ("minigrid", "minigrid/GoToRedBallGrey", "pixels", {"num_dists": 0, "room_size": 8}),
    ("bsuite", "bsuite/deep_sea", "state", {"size": 2}),
    ("bsuite", "bsuite/memory_len", "state", {"memory_length": 1}),
)
"""What needs to be there, a task, a view, and knobs with values that are allowed.

Nothing here draws by OpenGL: a forked child that does after its parent did may wait for ever.
"""


@pytest.mark.parametrize(("needs", "task", "view", "knobs"), WORLDS, ids=lambda each: each if "/" in each else "")
def test_worlds_of_others_at_their_extremes(needs, task, view, knobs):
    """Engines of others may fail in their own words, but not loop for ever."""
    pytest.importorskip(needs)

    def played(name, value):
        benchmark = get_benchmark(task.partition("/")[0])
        env = benchmark.make_vec(task, view=view, split="train", num_envs=1, seed=0, **{name: value})
        env.reset(seed=1)
        env.action_space.seed(0)
        for _ in range(3):
            env.step(env.action_space.sample())

    def all_played():
        for name, allowed in knobs.items():
            played(name, allowed)
            for value in dict.fromkeys((50, *EXTREMES)):
                with contextlib.suppress(Exception):
                    played(name, value)

    in_a_child(all_played)


@pytest.mark.parametrize(
    ("needs", "task", "knobs", "sentence"),
    [
        ("minigrid", "minigrid/MultiRoom-N2-S4", {"minNumRooms": 50, "maxNumRooms": 50}, "more rooms or things than"),
        ("minigrid", "minigrid/GoToRedBallGrey", {"num_dists": 50}, "more rooms or things than there is room for"),
        ("minigrid", "minigrid/Empty-Random-6x6", {"size": 10**9}, "size is 1000000000, .* at most 255"),
        ("minigrid", "minigrid/Empty-Random-6x6", {"agent_view_size": 2}, "agent_view_size.*no such world"),
        ("mujoco", "mujoco/HalfCheetah", {"frame_skip": 10**9}, "frame_skip is 1000000000, .* at most 100000"),
        ("mujoco", "mujoco/HalfCheetah", {"frame_skip": 0}, "frame_skip is 0, .* at least 1"),
        ("mujoco", "mujoco/HalfCheetah", {"shadows": 2}, "shadows is 2, but it must be true or false"),
        ("crafter", "crafter/reward", {"area": 10**9}, "area is 1000000000, .* at most 128"),
        ("ale_py", "atari/Breakout", {"size": 10**9}, "size is 1000000000, .* at most 1024"),
        ("ale_py", "atari/Breakout", {"frames": 10**9}, "frames is 1000000000, .* at most 100"),
        ("ale_py", "atari/Breakout", {"sticky": 2}, "sticky is 2, but it must be a number from 0 to 1"),
        ("ale_py", "atari/Breakout", {"longest": 0}, "longest is 0, .* at least 1"),
    ],
)
def test_worlds_of_others_that_cannot_be_are_refused(needs, task, knobs, sentence):
    pytest.importorskip(needs)
    make = get_benchmark(task.partition("/")[0]).make_vec
    with deadline(str(knobs)), pytest.raises(InputError, match=sentence):
        make(task, view="pixels", split="train", num_envs=1, seed=0, **knobs).reset(seed=1)


@pytest.mark.parametrize("noise", [1, 255, 1.0, 254.99])
def test_noise_that_leaves_nothing_of_the_images_is_refused(noise):
    """It drew classes for ever: without grey levels all of them are equal."""
    with deadline("noise_on_read"), pytest.raises(InputError, match=r"noise_on_read is .*only 1 differ.*less noise"):
        CTGraphVectorEnv(2, view="pixels", image_dataset={"noise_on_read": noise})


def test_noise_that_leaves_nothing_is_refused_before_anything_is_made_in_the_same_sentence(tmp_path, capsys):
    knob = "task.knobs.image_dataset.noise_on_read=255"
    line = ["train", "task=ctgraph/ct-su-b1", "view=pixels", knob, f"out={tmp_path / 'run'}", "tracker=none"]
    with deadline("noise_on_read"):
        assert cli.main(line) == 2
    assert "noise_on_read is 1, which leaves 0 of 255 grey levels" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


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
