"""Which of a simulation's bodies are the figure, by one rule for all models.

What can move belongs to the figure: every geom of a body that has a joint on its way to the world, or that a mocap
moves; and what is called a target or goal, moved or not, sites included. All else that is fixed to the world (floors,
walls, rails, the sky) is ground. Each body that moves is a class of its own, and so is each target and each string.

A camera that goes along shows a floor that stands still where masks have one colour for it: there every other square
metre of the floor is another class of ground, so that masks show how fast it goes, as the floor's pattern does in
pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lcd.envs.bodies.camera import Camera, goes_along, placed
from lcd.envs.masks import ALL_WHITE, BACKGROUND, MOST_CLASSES, Moment

AIMS = ("target", "goal")
SQUARE = 1.0
"""Metres."""
FIRST_HIDDEN = 3
"""Groups of sites from this one on are not drawn."""
SMALLEST = 2.0
"""Pixels that a square of the floor is at least long where it is drawn: smaller ones would flicker."""


class BodyMasks:
    """Labels by what a camera sees of a simulation's bodies."""

    figure = ALL_WHITE

    def __init__(self, camera: Camera, simulation: Callable[[Any], tuple[Any, Any]], model: Any) -> None:
        """Sort a model's bodies into classes.

        Args:
            camera: what looks.
            simulation: gives MuJoCo's model and data of an environment, unwrapped.
            model: one that is equal to theirs.
        """
        import mujoco

        self.camera, self.simulation = camera, simulation
        self._squares = goes_along(model, placed(model, camera.place))
        names = [BACKGROUND, *(("floor", "floor, every other square") if self._squares else ())]
        self.ground = len(names)
        kinds = mujoco.mjtObj
        self._labels = {
            int(kinds.mjOBJ_GEOM): _told(names, [_figure_geom(model, number) for number in range(model.ngeom)]),
            int(kinds.mjOBJ_SITE): _told(names, [_site(model, number) for number in range(model.nsite)]),
            int(kinds.mjOBJ_TENDON): _told(names, [_string(model, number) for number in range(model.ntendon)]),
            int(kinds.mjOBJ_SKIN): _told(names, ["skin"] * model.nskin),
        }
        self._planes = np.flatnonzero(model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE))
        self._geom = int(kinds.mjOBJ_GEOM)
        self.names = tuple(names[:MOST_CLASSES])

    def __call__(self, moment: Moment) -> np.ndarray:
        """The class that each pixel belongs to."""
        model, data = self.simulation(moment.env)
        seen = self.camera.segments(model, data)
        found = np.zeros(seen.shape[:2], np.uint8)
        for kind, labels in self._labels.items():
            own = seen[..., 1] == kind
            if own.any():
                found[own] = labels[seen[..., 0][own]]
        if self._squares:
            for plane in self._planes:
                floor = (seen[..., 1] == self._geom) & (seen[..., 0] == plane)
                axes = np.asarray(data.geom_xmat[plane]).reshape(3, 3)
                found[floor] = self._floor(np.asarray(data.geom_xpos[plane]), axes)[floor]
        return found

    def _floor(self, position: np.ndarray, axes: np.ndarray) -> np.ndarray:
        places = self.camera.on_plane(position, axes) / SQUARE
        # What is behind the camera, or at the horizon, is no number, or an endless one.
        steps = np.maximum(*(np.abs(np.gradient(places, axis=axis)).max(-1) for axis in (0, 1)))
        with np.errstate(invalid="ignore"):
            odd = np.floor(places).sum(-1) % 2 == 1
        return np.where(odd & (steps * SMALLEST < 1), 2, 1).astype(np.uint8)

    def __str__(self) -> str:
        return "MuJoCo's segmentation"


def _figure_geom(model: Any, number: int) -> str:
    body, name = int(model.geom_bodyid[number]), model.geom(number).name
    if model.body_weldid[body] or model.body_mocapid[body] >= 0:
        return model.body(body).name or f"body {body}"
    return _aim(name)


def _aim(name: str) -> str:
    return name if any(word in name.lower() for word in AIMS) else ""


def _site(model: Any, number: int) -> str:
    return _aim(model.site(number).name) if model.site_group[number] < FIRST_HIDDEN else ""


def _string(model: Any, number: int) -> str:
    """Only what runs through space is drawn; tendons of joints are sums of these."""
    import mujoco

    of_joints = model.wrap_type[model.tendon_adr[number]] == mujoco.mjtWrap.mjWRAP_JOINT.value
    return "" if of_joints else model.tendon(number).name or f"string {number}"


def _told(names: list[str], of: list[str]) -> np.ndarray:
    """The label of each; names that are new are added, "" is the background."""
    for name in of:
        if name and name not in names:
            names.append(name)
    return np.array([names.index(name) if name else 0 for name in of], np.uint8)
