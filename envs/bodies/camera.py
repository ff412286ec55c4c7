"""A camera for MuJoCo's scenes: pictures, what each of their pixels belongs to, and where the floor is that it sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from lcd.envs.bodies.opengl import context
from lcd.envs.errors import InputError

MOST_GEOMS = 2000


class Camera:
    """Draws any simulation of one model; simulations of equal models may share a camera."""

    def __init__(self, size: int, place: Any = None, shadows: bool = False) -> None:
        """Take a camera.

        Args:
            size: height and width of what it draws.
            place: a camera of the model's, by name or number; or settings of one that is free (`distance`, …).
            shadows: whether lights cast shadows, floors reflect and edges are smoothed, which takes nine tenths of the
                time and more without a GPU.
        """
        self.size, self.place, self.shadows = size, place, shadows
        self._scene: Any = None

    def picture(self, model: Any, data: Any) -> np.ndarray:
        """What it sees: uint8 (size, size, 3)."""
        self._look(model, data)
        return self._drawn(segments=False)

    def segments(self, model: Any, data: Any) -> np.ndarray:
        """What each pixel belongs to, (size, size, 2): a number, and of what kind (mjtObj) it is; −1 for nothing."""
        self._look(model, data)
        colours = self._drawn(segments=True).astype(np.int32)
        codes = colours[..., 0] + (colours[..., 1] << 8) + (colours[..., 2] << 16)
        meant = np.full((self._scene.ngeom + 1, 2), -1, np.int32)
        for geom in self._scene.geoms[: self._scene.ngeom]:
            if geom.segid != -1:
                meant[geom.segid + 1] = geom.objid, geom.objtype
        # Edges that are smoothed between two colours have that of neither.
        return meant[np.where(codes < len(meant), codes, 0)]

    def on_plane(self, position: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """Where the line of sight of each pixel meets a plane, after `segments`: (size, size, 2) along its own axes.

        Args:
            position: a point of the plane.
            axes: (3, 3): its two axes and its normal, as columns.
        """
        left, right = self._scene.camera[:2]
        eye, forward, up = ((np.array(getattr(left, n)) + getattr(right, n)) / 2 for n in ("pos", "forward", "up"))
        aside = np.cross(forward, up)
        middles = (np.arange(self.size) + 0.5) / self.size
        half = (left.frustum_top - left.frustum_bottom) / 2
        across = (left.frustum_center + right.frustum_center) / 2 + half * (2 * middles - 1)
        down = left.frustum_top - (left.frustum_top - left.frustum_bottom) * middles
        rays = left.frustum_near * forward + across[None, :, None] * aside + down[:, None, None] * up
        with np.errstate(divide="ignore", invalid="ignore"):
            far = ((position - eye) @ axes[:, 2]) / (rays @ axes[:, 2])
        return ((eye - position) + far[..., None] * rays) @ axes[:, :2]

    def _look(self, model: Any, data: Any) -> None:
        import mujoco

        if self._scene is None:
            context()
            # A buffer of the picture's size, and no larger one.
            model.vis.global_.offwidth = model.vis.global_.offheight = self.size
            model.vis.quality.offsamples *= self.shadows
            self._scene = mujoco.MjvScene(model, maxgeom=MOST_GEOMS)
            self._drawing = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._drawing)
            self._options, self._eye = mujoco.MjvOption(), placed(model, self.place)
            for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
                self._scene.flags[flag] = self.shadows
        every = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(model, data, self._options, None, self._eye, every, self._scene)

    def _drawn(self, segments: bool) -> np.ndarray:
        import mujoco

        context()
        for flag in (mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR):
            self._scene.flags[flag] = segments
        whole = mujoco.MjrRect(0, 0, self.size, self.size)
        found = np.empty((self.size, self.size, 3), np.uint8)
        mujoco.mjr_render(whole, self._scene, self._drawing)
        mujoco.mjr_readPixels(found, None, whole, self._drawing)
        return found[::-1]

    def close(self) -> None:
        """Give back what the graphics library holds; what is drawn after that takes it anew."""
        if self._scene is not None:
            context()
            self._drawing.free()
            self._scene = None


def placed(model: Any, place: Any) -> Any:
    """MuJoCo's camera at a place (`Camera`)."""
    import mujoco

    eye = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, eye)
    if place is None or isinstance(place, dict):
        for name, value in (place or {}).items():
            if isinstance(value, np.ndarray):
                getattr(eye, name)[:] = value
            else:
                setattr(eye, name, value)
        return eye
    names = [model.camera(number).name for number in range(model.ncam)]
    number = names.index(place) if place in names else place
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < model.ncam:
        there = ", ".join(filter(None, names)) or "none"
        raise InputError(f"camera={place}: the model has no such camera, by name or number; it has {there}.")
    eye.type, eye.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED.value, number
    return eye


def goes_along(model: Any, eye: Any) -> bool:
    """Whether a camera moves with a body."""
    import mujoco

    if eye.type != mujoco.mjtCamera.mjCAMERA_FIXED.value:
        return False
    number = eye.fixedcamid
    fixed = model.cam_mode[number] == mujoco.mjtCamLight.mjCAMLIGHT_FIXED.value
    return not fixed or bool(model.body_weldid[model.cam_bodyid[number]])
