"""The benchmarks `mujoco` and `dm_control`: simulated bodies under views drawn by segmentation."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import Any

import gymnasium
import numpy as np

from lcd.envs.bodies.camera import Camera
from lcd.envs.bodies.figure import BodyMasks
from lcd.envs.bodies.opengl import quiet
from lcd.envs.checks import is_number, require_whole_number
from lcd.envs.dm_environments import DmEnvironment
from lcd.envs.errors import InputError
from lcd.envs.masks import VIEWS
from lcd.envs.mujoco import MOST_SIMULATED
from lcd.envs.viewed import SIDE, STATE
from lcd.envs.viewed_benchmark import ViewedBenchmark

FRAMES = 3
"""One picture does not show how fast things are."""
LARGEST = 1e9
"""The largest number that an engine is made with."""
BEST_OF_SUITE = 1000.0
"""Rewards of the control suite lie between 0 and 1, and its episodes have 1,000 steps."""
GYMNASIUM: Mapping[str, float] = {
    "mujoco/InvertedPendulum": 1000.0,  # 1 a step, of at most 1,000
    "mujoco/Reacher": 0.0,  # all that is paid are costs
    "mujoco/Swimmer": math.nan,
    "mujoco/Hopper": math.nan,
    "mujoco/HalfCheetah": math.nan,
    "mujoco/Walker2d": math.nan,
    "mujoco/Ant": math.nan,
}
"""Task → the best return that rules allow, where they do."""
FROM_ABOVE = {"mujoco/Reacher": {"distance": 0.8, "elevation": -90.0, "azimuth": 90.0, "lookat": np.zeros(3)}}
"""Where Gymnasium's camera is so far away that things would be a pixel wide."""
SUITE: Mapping[str, tuple[str, str]] = {
    "dm_control/cartpole-balance": ("cartpole", "balance"),
    "dm_control/cartpole-swingup": ("cartpole", "swingup"),
    "dm_control/cartpole-swingup-sparse": ("cartpole", "swingup_sparse"),
    "dm_control/reacher-easy": ("reacher", "easy"),
    "dm_control/reacher-hard": ("reacher", "hard"),
    "dm_control/ball-in-cup-catch": ("ball_in_cup", "catch"),
    "dm_control/point-mass-easy": ("point_mass", "easy"),
    "dm_control/finger-spin": ("finger", "spin"),
    "dm_control/cheetah-run": ("cheetah", "run"),
    "dm_control/walker-walk": ("walker", "walk"),
}
"""Task → domain and task of the control suite."""
ABOUT: Mapping[str, str] = {
    "mujoco/InvertedPendulum": "keep a pole upright on a cart",
    "mujoco/Reacher": "bring a two-jointed arm's tip to a target",
    "mujoco/Swimmer": "swim forward with three links",
    "mujoco/Hopper": "hop forward on one leg without falling",
    "mujoco/HalfCheetah": "run forward on two legs in a plane",
    "mujoco/Walker2d": "walk forward on two legs without falling",
    "mujoco/Ant": "walk forward on four legs without falling",
    "dm_control/cartpole-balance": "keep a pole upright on a cart",
    "dm_control/cartpole-swingup": "swing a hanging pole up and keep it there",
    "dm_control/cartpole-swingup-sparse": "the same, paid only while the pole stands in the middle",
    "dm_control/reacher-easy": "bring an arm's tip to a large target",
    "dm_control/reacher-hard": "bring an arm's tip to a small target",
    "dm_control/ball-in-cup-catch": "swing a ball on a string into a cup; paid while it is inside",
    "dm_control/point-mass-easy": "bring a point mass to the middle",
    "dm_control/finger-spin": "keep a hinged body spinning by a finger",
    "dm_control/cheetah-run": "run forward on two legs in a plane",
    "dm_control/walker-walk": "walk forward upright on two legs",
}


class Bodies(ViewedBenchmark):
    """What both have in common."""

    views: Sequence[str] = (*VIEWS, STATE)
    best: Mapping[str, float]
    knobs: Mapping[str, Any] = {"size": SIDE, "frames": FRAMES, "camera": None, "shadows": False}
    of_engine = True
    solved_view = "semantic"
    masks_are = (
        "masks are drawn by MuJoCo's segmentation: what can move, and targets, is the figure (in semantic each body "
        "has a grey); floors, walls, rails and sky are ground. Where the camera goes along, semantic shows every "
        "other square metre of the floor, and figure_ground does not, so that there is no telling how fast it goes. φ "
        "says how much better agents learn from these than from pictures."
    )

    @property
    def about(self) -> Mapping[str, str]:
        """What a body has to do."""
        return {task: ABOUT[task] for task in self.tasks}

    @property
    def r_min(self) -> Mapping[str, float]:
        """A random agent's mean return (`lcd.envs.random_means`)."""
        return {task: _random_returns().get(task, math.nan) for task in self.tasks}

    @property
    def r_max(self) -> Mapping[str, float]:
        """The best that rules allow, where they do."""
        return self.best

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse pictures of no size, shadows that are neither there nor not, and actions that take for ever."""
        super().check_knobs(task, knobs)
        if not isinstance(shadows := knobs.get("shadows", False), bool):
            raise InputError(f"shadows is {shadows!r}, but it must be true or false.")
        if "frame_skip" in knobs:
            require_whole_number("frame_skip", knobs["frame_skip"], 1, MOST_SIMULATED)
        for name, value in knobs.items():
            if is_number(value) and not abs(value) <= LARGEST:
                raise InputError(f"{name} is {value}, but numbers of {task} go from {-LARGEST:g} to {LARGEST:g}.")

    def masks(self, task: str, knobs: Mapping[str, Any]) -> BodyMasks:
        """Labels by what a camera sees; all copies share it."""
        env = self._engine(task, knobs)
        try:
            model, _ = simulation(env.unwrapped)
            camera = Camera(knobs["size"], self.place(task, env.unwrapped, knobs["camera"]), knobs["shadows"])
            return BodyMasks(camera, simulation, model)
        finally:
            env.close()

    def single(self, task: str, knobs: Mapping[str, Any]) -> gymnasium.Env:
        """One simulation."""
        return self._engine(task, knobs)

    def pictured(self, env: gymnasium.Env, masks: Any) -> gymnasium.Env:
        """A simulation that renders what the camera of its masks sees."""
        return Filmed(env, masks.camera)

    def _engine(self, task: str, knobs: Mapping[str, Any]) -> gymnasium.Env:
        given = {name: value for name, value in knobs.items() if name not in self.knobs}
        try:
            with quiet():
                return self.engine(task, given)
        except (TypeError, ValueError, ArithmeticError) as why:
            raise InputError(f"{task} cannot be made with {given}: {str(why).splitlines()[0]}.") from why

    def engine(self, task: str, given: Mapping[str, Any]) -> gymnasium.Env:
        """One simulation, made with what is the engine's to know."""
        raise NotImplementedError

    def place(self, task: str, env: Any, asked: Any) -> Any:
        """Where the camera stands (`Camera`)."""
        raise NotImplementedError


class Gymnasiums(Bodies):
    """Gymnasium's robots; pictures are of the model's camera `track` where it has one, which goes along."""

    name = "mujoco"
    tasks: Sequence[str] = tuple(GYMNASIUM)
    best = GYMNASIUM
    needs = (("mujoco",), "mujoco")

    def engine(self, task: str, given: Mapping[str, Any]) -> gymnasium.Env:
        """Gymnasium's newest version of a robot."""
        return gymnasium.make(f"{task.removeprefix('mujoco/')}-v5", disable_env_checker=True, **given)

    def place(self, task: str, env: Any, asked: Any) -> Any:
        """The camera that is asked for, else `track`, else settings of a free one: ours, or Gymnasium's."""
        if asked is not None or task in FROM_ABOVE:
            return FROM_ABOVE[task] if asked is None else asked
        names = [env.model.camera(number).name for number in range(env.model.ncam)]
        return "track" if "track" in names else dict(env.mujoco_renderer.default_cam_config or {})


class Suite(Bodies):
    """DeepMind's control suite; pictures are of the model's first camera."""

    name = "dm_control"
    tasks: Sequence[str] = tuple(SUITE)
    best = dict.fromkeys(SUITE, BEST_OF_SUITE)
    needs = (("dm_control", "mujoco"), "dm-control")

    def engine(self, task: str, given: Mapping[str, Any]) -> gymnasium.Env:
        """A task of the suite; knobs are its own (`time_limit`)."""
        return DmEnvironment(partial(_of_suite, *SUITE[task], given), lambda env, seed: env.task.random.seed(seed))

    def place(self, task: str, env: Any, asked: Any) -> Any:
        """The camera that is asked for, else the first."""
        return 0 if asked is None else asked


class Filmed(gymnasium.Wrapper):
    """A simulation that renders what a camera sees."""

    def __init__(self, env: gymnasium.Env, camera: Camera) -> None:
        """Point a camera at it."""
        super().__init__(env)
        self.camera = camera

    def render(self) -> Any:
        """What it sees."""
        return self.camera.picture(*simulation(self.env.unwrapped))

    def close(self) -> None:
        """Close both."""
        self.camera.close()
        super().close()


def simulation(env: Any) -> tuple[Any, Any]:
    """MuJoCo's model and data of an environment, unwrapped."""
    if isinstance(env, DmEnvironment):
        physics = env.inside.physics
        return physics.model.ptr, physics.data.ptr
    return env.model, env.data


def _of_suite(domain: str, task: str, given: Mapping[str, Any], seed: int) -> Any:
    with quiet():
        _forget_missing_fields()
    from dm_control import suite

    with quiet():
        return suite.load(domain, task, task_kwargs={**given, "random": seed})


@cache
def _forget_missing_fields() -> None:
    """Each dm_control names all fields of one MuJoCo, and fails where another has dropped one; no task needs it."""
    import mujoco
    from dm_control.mujoco.wrapper.mjbindings import sizes

    for struct, kind in (("mjmodel", mujoco.MjModel), ("mjdata", mujoco.MjData)):
        fields = sizes.array_sizes[struct]
        there = set(dir(kind))
        for gone in [field for field in fields if field not in there]:
            del fields[gone]


@cache
def _random_returns() -> Mapping[str, float]:
    lines = resources.files(__package__).joinpath("random_returns.csv").read_text(encoding="utf-8").splitlines()
    return {row["task"]: float(row["r_min"]) for row in csv.DictReader(lines)}


MUJOCO = Gymnasiums()
"""Gymnasium's robots in MuJoCo, with masks by segmentation (the extra `mujoco`)."""
DM_CONTROL = Suite()
"""DeepMind's control suite in MuJoCo, with masks by segmentation (the extra `dm-control`)."""
