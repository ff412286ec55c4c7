"""Copies of MuJoCo models with other fields or shapes, stepped by threads, as MuJoCo lets go of Python's lock."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import gymnasium
import numpy as np
from gymnasium import spaces

from lcd.envs.errors import InputError
from lcd.envs.families.drawing import GREY, RED, Canvas
from lcd.envs.families.point_vector import UNBOUNDED, FamilyVectorEnv
from lcd.envs.state import State

MISSING = "This task needs MuJoCo, which is not installed: pip install 'learning-challenge-diagnosticator[mujoco]'."
FEWEST_A_THREAD = 8
"""Copies that are worth a thread."""


def engine() -> Any:
    """The module `mujoco`."""
    try:
        import mujoco
    except ImportError as error:
        raise InputError(MISSING) from error
    return mujoco


class MujocoFamilyVectorEnv(FamilyVectorEnv):
    """Copies of one robot of Gymnasium's, of any points; the state is positions, then speeds.

    What is observed is the state but for the first `hidden` positions.
    """

    kept = ("steps",)
    model_file: ClassVar[str]
    hidden: ClassVar[int]
    frame_skip: ClassVar[int]
    """Simulation steps of one action."""
    seen_from: ClassVar[tuple[int, int]]
    """The axes of the world that pictures show."""

    def _describe(self, robot: ElementTree.Element, point: dict[str, float]) -> None:
        """Change the description of the robot to that of a point."""

    def _adjust(self, model: Any, point: dict[str, float]) -> None:
        """Change the model to that of a point."""

    def _first_speeds(self, copies: np.ndarray, count: int) -> np.ndarray:
        """(count, copies): the speeds that these copies begin with."""
        raise NotImplementedError

    def _paid(self, before: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rewards of a step from positions `before`, and whether each episode ended by where it is."""
        raise NotImplementedError

    def _make(self) -> None:
        self._mujoco = engine()
        points = [dict(zip(self.context, row, strict=True)) for row in zip(*self.context.values(), strict=True)]
        models: dict[tuple[float, ...], Any] = {}
        for point in points:
            if (key := tuple(point.values())) not in models:
                models[key] = self._model(point)
        self._models = [models[tuple(point.values())] for point in points]
        self._data = [self._mujoco.MjData(model) for model in self._models]
        model = self._models[0]
        self._seconds = model.opt.timestep * self.frame_skip
        self._rest = np.concatenate([model.qpos0, np.zeros(model.nv)])
        self._rows = np.zeros((self.num_envs, model.nq + model.nv))
        self._state = self._rows.T
        self._pool = _threads(self.num_envs)
        size = model.nq + model.nv - self.hidden
        self.single_observation_space = spaces.Box(-UNBOUNDED, UNBOUNDED, (size,), np.float32)
        low, high = model.actuator_ctrlrange.astype(np.float32).T
        self.single_action_space = spaces.Box(low, high, dtype=np.float32)

    def _model(self, point: dict[str, float]) -> Any:
        robot = ElementTree.parse(Path(gymnasium.__file__).parent / "envs/mujoco/assets" / self.model_file).getroot()
        # MuJoCo warns of this attribute whenever it reads it.
        compiler = robot.find("compiler")
        mass = None if compiler is None else compiler.attrib.pop("settotalmass", None)
        self._describe(robot, point)
        model = self._mujoco.MjModel.from_xml_string(ElementTree.tostring(robot, encoding="unicode"))
        if mass is not None:
            self._mujoco.mj_setTotalmass(model, float(mass))
        self._adjust(model, point)
        self._mujoco.mj_setConst(model, self._mujoco.MjData(model))
        return model

    def _start(self, copies: np.ndarray) -> np.ndarray:
        positions = self._models[0].nq
        offsets = [
            self._uniform(copies, -0.1, 0.1, positions),
            self._first_speeds(copies, len(self._rest) - positions),
        ]
        return self._rest[:, None] + np.concatenate(offsets)

    def _begin(self, index: np.ndarray | None) -> None:
        super()._begin(index)
        for copy in range(self.num_envs) if index is None else index.tolist():
            self._mujoco.mj_resetData(self._models[copy], self._data[copy])
            self._place(copy)

    def _place(self, copy: int) -> None:
        model, data = self._models[copy], self._data[copy]
        data.qpos[:], data.qvel[:] = self._rows[copy, : model.nq], self._rows[copy, model.nq :]
        self._mujoco.mj_forward(model, data)

    @property
    def states(self) -> np.ndarray:
        """(quantities, copies): where every copy is."""
        return self._state.copy()

    @states.setter
    def states(self, states: np.ndarray) -> None:
        self._rows[:] = np.asarray(states).T
        for copy in range(self.num_envs):
            self._place(copy)

    def _move(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        before = self._rows[:, :2].copy()
        controls = actions.astype(np.float64)
        if self._pool is None:
            self._simulate(range(self.num_envs), controls)
        else:
            pool, threads = self._pool
            parts = [range(first, self.num_envs, threads) for first in range(threads)]
            list(pool.map(self._simulate, parts, [controls] * threads))
        return self._paid(before, actions)

    def _simulate(self, copies: range, controls: np.ndarray) -> None:
        step, keep, kind = self._mujoco.mj_step, self._mujoco.mj_getState, self._mujoco.mjtState
        what = kind.mjSTATE_QPOS | kind.mjSTATE_QVEL
        for copy in copies:
            model, data = self._models[copy], self._data[copy]
            data.ctrl[:] = controls[copy]
            step(model, data, self.frame_skip)
            keep(model, data, self._rows[copy], what)

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        rows = self._rows if index is None else self._rows[index]
        return rows[:, self.hidden :].astype(np.float32)

    def get_state(self) -> State:
        """Everything that the future depends on, MuJoCo's own states among it."""
        kind = self._mujoco.mjtState.mjSTATE_INTEGRATION
        whole = np.zeros((self.num_envs, self._mujoco.mj_stateSize(self._models[0], kind)))
        for model, data, row in zip(self._models, self._data, whole, strict=True):
            self._mujoco.mj_getState(model, data, row, kind)
        return {**super().get_state(), "rows": self._rows.copy(), "whole": whole}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called (on an environment made with the same arguments)."""
        super().set_state(state)
        self._rows[:] = state["rows"]
        kind = self._mujoco.mjtState.mjSTATE_INTEGRATION
        for model, data, row in zip(self._models, self._data, state["whole"], strict=True):
            self._mujoco.mj_setState(model, data, np.ascontiguousarray(row), kind)

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool[0].shutdown()
            self._pool = None

    def _pictures(self) -> np.ndarray:
        across, up = self.seen_from
        for model, data in zip(self._models, self._data, strict=True):
            self._mujoco.mj_kinematics(model, data)
        middle = np.array([data.xpos[1] for data in self._data])
        low = np.zeros(self.num_envs) - 0.2 if up == 2 else middle[:, up] - 1.2
        canvas = Canvas(self.num_envs, middle[:, across] - 2.0, middle[:, across] + 2.0, low, low + 2.4)
        if up == 2:
            canvas.box(-1e6, 1e6, -10.0, 0.0, GREY)
        capsule = self._mujoco.mjtGeom.mjGEOM_CAPSULE
        for geom in np.flatnonzero(self._models[0].geom_type == capsule):
            centres = np.array([data.geom_xpos[geom] for data in self._data])
            halves = np.array([data.geom_xmat[geom].reshape(3, 3)[:, 2] for data in self._data])
            sizes = np.array([model.geom_size[geom] for model in self._models])
            ends = [centres + sign * sizes[:, 1:2] * halves for sign in (-1, 1)]
            (start, end) = ((place[:, across], place[:, up]) for place in ends)
            canvas.rod(start, end, sizes[:, 0], RED)
        return canvas.pictures


def _threads(copies: int) -> tuple[ThreadPoolExecutor, int] | None:
    """As many threads as a run may have; none where copies are few."""
    allowed = int(os.environ.get("OMP_NUM_THREADS") or 0) or len(os.sched_getaffinity(0))
    count = min(allowed, copies // FEWEST_A_THREAD)
    return (ThreadPoolExecutor(count), count) if count > 1 else None
