"""MuJoCo's bodies under views: Gymnasium's and the control suite's, on the real engines."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from lcd.envs.benchmarks import check_view, get_benchmark, make_copies, reward_range
from lcd.envs.bodies.benchmark import DM_CONTROL, GYMNASIUM, MUJOCO, Gymnasiums, Suite, simulation
from lcd.envs.bodies.camera import Camera
from lcd.envs.bodies.figure import BodyMasks
from lcd.envs.bodies.opengl import context
from lcd.envs.errors import InputError
from lcd.envs.masks import Moment
from lcd.envs.protocols import NeedsPackages, Pairs, SaysMasks, check_installed, offers
from tests.envs.contract import BenchmarkContract

mujoco = pytest.importorskip("mujoco")


@pytest.fixture(scope="module", autouse=True)
def _draws():
    """In CI there is a renderer; elsewhere, where there is none, nothing here can be looked at."""
    try:
        context()
    except InputError as why:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(why))


needs_suite = pytest.mark.skipif(
    importlib.util.find_spec("dm_control") is None and not os.environ.get("CI"), reason="dm_control is not installed"
)


class SomeRobots(Gymnasiums):
    """One that stays where it is, and one that a camera goes along with."""

    tasks = ("mujoco/InvertedPendulum", "mujoco/Hopper")


class SomeOfTheSuite(Suite):
    tasks = ("dm_control/ball-in-cup-catch",)


class TestRobots(BenchmarkContract):
    benchmark = SomeRobots()


@needs_suite
class TestSuite(BenchmarkContract):
    benchmark = SomeOfTheSuite()


SCENE = """
<mujoco>
  <worldbody>
    <light pos="0 0 5"/>
    <geom name="floor" type="plane" size="20 20 .1"/>
    <geom name="wall" type="box" pos="0 3 .5" size="1 .1 .5"/>
    <geom name="goal_disc" type="sphere" pos="1.25 .75 0" size=".06"/>
    <site name="a target" type="sphere" pos="-1.25 .75 0" size=".06"/>
    <site name="target unseen" group="4" pos="0 -1 0" size=".3"/>
    <body name="cart" pos="0 0 .3">
      <joint type="slide" axis="1 0 0"/>
      <geom type="box" size=".2 .2 .1"/>
      <body name="load" pos="0 0 .2"><geom type="sphere" size=".1"/></body>
    </body>
    <body name="tower" pos="-1 1 .5"><geom type="box" size=".1 .1 .5"/></body>
    <body name="along" pos="0 -4 3"><joint type="slide" axis="1 0 0"/><geom size=".01"/>
      <camera name="moving" pos="0 0 0" xyaxes="1 0 0 0 .6 .8"/></body>
    <camera name="still" pos="0 -4 3" xyaxes="1 0 0 0 .6 .8"/>
  </worldbody>
</mujoco>
"""


class Scene:
    """What an environment has, unwrapped."""

    def __init__(self):
        self.model = mujoco.MjModel.from_xml_string(SCENE)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)


def looked_at(place, size=128, scene=None):
    scene = scene or Scene()
    masks = BodyMasks(Camera(size, place), simulation, scene.model)
    return masks, masks(Moment(lambda: np.zeros((size, size, 3), np.uint8), None, {}, scene))


def test_the_figure_is_what_moves_and_what_is_aimed_at():
    masks, labels = looked_at("still")
    assert masks.names == ("background", "goal_disc", "cart", "load", "along", "a target")
    assert masks.ground == 1
    assert {masks.names[label] for label in np.unique(labels)} == {*masks.names} - {"along"}
    # Things are where pictures have them: the cart is in the middle, its load above it.
    rows, columns = np.nonzero(labels == masks.names.index("cart"))
    assert abs(columns.mean() - 63.5) < 2
    assert np.nonzero(labels == masks.names.index("load"))[0].mean() < rows.mean()


def test_a_camera_that_goes_along_has_squares_where_the_floor_has_them():
    scene = Scene()
    masks, first = looked_at("moving", scene=scene)
    assert masks.names[:3] == ("background", "floor", "floor, every other square")
    assert masks.ground == 3
    # The line of sight through what lies on the floor meets the floor there.
    for name, place in (("goal_disc", (1.25, 0.75)), ("a target", (-1.25, 0.75))):
        pixel = tuple(round(where.mean()) for where in np.nonzero(first == masks.names.index(name)))
        assert masks.camera.on_plane(np.zeros(3), np.eye(3))[pixel] == pytest.approx(place, abs=0.1)
    # Two metres on, the floor looks the same as before; one metre on, its squares have changed places.
    flat = (first == 1) | (first == 2)
    for metres, alike in ((2.0, True), (1.0, False)):
        scene.data.qpos[1] = metres
        mujoco.mj_forward(scene.model, scene.data)
        _, then = looked_at("moving", scene=scene)
        near = flat & ((then == 1) | (then == 2)) & (np.arange(128) > 70)[:, None]
        assert near.sum() > 2000
        assert ((first == then)[near].mean() > 0.97) == alike
        assert ((first != then)[near].mean() > 0.97) != alike


def test_pictures_are_drawn_where_masks_are():
    """What has the figure's colours in a picture of the control suite is what the mask says."""
    pytest.importorskip("dm_control")
    env = DM_CONTROL.make_pairs("dm_control/reacher-easy", split="train", num_envs=2, seed=0, size=96, frames=1,
                                views=("pixels", "figure_ground", "labels"))  # fmt: skip
    shown, _ = env.reset()
    for _ in range(5):
        reddish = shown["pixels"][..., 0].astype(int) > shown["pixels"][..., 2]  # the floor is blue
        figure = shown["figure_ground"][..., 0] > 0
        assert figure.any()
        assert (reddish != figure).mean() < 0.002
        shown, *_ = env.step(env.action_space.sample())
    names = DM_CONTROL.label_names("dm_control/reacher-easy", "semantic")
    assert {names[label] for label in np.unique(shown["labels"])} >= {"background", "target", "arm", "hand", "finger"}
    assert np.array_equal(shown["figure_ground"][..., 0] > 0, shown["labels"][..., 0] > 0)


def test_frames_are_stacked_and_knobs_reach_the_engine():
    env = make_copies(MUJOCO, "mujoco/InvertedPendulum", view="semantic", split="train", num_envs=1, seed=0,
                      size=32, frames=2, reset_noise_scale=0.2, camera={"distance": 3.0})  # fmt: skip
    assert env.single_observation_space.shape == (32, 32, 6)
    assert env.unwrapped.envs[0].unwrapped._reset_noise_scale == 0.2
    how = {"split": "train", "num_envs": 1, "seed": 0}
    with pytest.raises(InputError, match=r"mujoco/Hopper cannot be made with \{'gravitas': 2\}"):
        make_copies(MUJOCO, "mujoco/Hopper", view="state", gravitas=2, **how)
    with pytest.raises(InputError, match="camera=front: the model has no such camera, by name or number; it has track"):
        make_copies(MUJOCO, "mujoco/Hopper", view="pixels", camera="front", **how)
    with pytest.raises(InputError, match="size is 0, but it must be a whole number of at least 1"):
        make_copies(MUJOCO, "mujoco/Hopper", view="pixels", size=0, **how)


@needs_suite
def test_episodes_of_the_suite_end_by_time_and_their_rewards_are_bounded():
    env = make_copies(DM_CONTROL, "dm_control/cartpole-balance", view="state", split="train", num_envs=2, seed=0)
    assert env.single_observation_space.shape == (5,)
    env.reset()
    for step in range(1000):
        _, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
        assert ((rewards >= 0) & (rewards <= 1)).all()
        assert not terminated.any()
        assert truncated.all() == (step == 999)
    assert reward_range(DM_CONTROL, "dm_control/cartpole-balance", 0)[1] == 1000


def test_every_task_has_a_random_agents_return_and_can_be_made():
    for benchmark in (MUJOCO, *([DM_CONTROL] if importlib.util.find_spec("dm_control") else [])):
        for task in benchmark.tasks:
            low, high = reward_range(benchmark, task, 0)
            assert np.isfinite(low)
            assert not high <= low
            assert "figure" in benchmark.label_names(task, "figure_ground")
    assert set(GYMNASIUM) == set(MUJOCO.tasks)


def test_it_says_what_it_offers_and_what_it_lacks(monkeypatch):
    assert get_benchmark("mujoco") is MUJOCO
    assert get_benchmark("dm_control") is DM_CONTROL
    assert all(offers(DM_CONTROL, what) for what in (Pairs, SaysMasks, NeedsPackages))
    check_view(MUJOCO, "mujoco/Hopper", "state")
    monkeypatch.setattr("lcd.envs.viewed_benchmark.find_spec", lambda name: None)
    for benchmark, told in (
        (DM_CONTROL, r"dm_control and mujoco, which are .*\[dm-control\]"),
        (MUJOCO, r"\[mujoco\]"),
    ):
        with pytest.raises(InputError, match=told):
            check_installed(benchmark, benchmark.tasks[:1])


def test_without_a_renderer_one_sentence_names_what_to_install(tmp_path):
    code = (
        "from lcd.envs.bodies import opengl; opengl.ctypes.util.find_library = lambda name: None\n"
        "from lcd.envs.benchmarks import get_benchmark\n"
        "how = dict(split='train', num_envs=1, seed=0)\n"
        "env = get_benchmark('mujoco').make_vec('mujoco/InvertedPendulum', view='state', **how)\n"
        "print(env.reset()[0].shape)\n"
        "try: get_benchmark('mujoco').make_vec('mujoco/InvertedPendulum', view='pixels', **how).reset()\n"
        "except Exception as why: print(type(why).__name__, why)\n"
    )
    outside = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=outside, cwd=tmp_path)
    shape, told = done.stdout.strip().split("\n")
    assert shape == "(1, 4)", done.stderr
    assert told.startswith("InputError MuJoCo's bodies are drawn with OpenGL")
    assert "libegl1 libgl1 libgl1-mesa-dri" in told
    assert "view=state" in told
    # Nothing is complained of, and nothing is left where it ran.
    assert "DISPLAY" not in done.stderr
    assert list(tmp_path.iterdir()) == []
