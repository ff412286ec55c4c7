"""Images of the continuous toy: discs for the point and its target, squares for regions that end an episode."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lcd.envs.hardness.point import TO_A_POINT, PointKnobs
from lcd.envs.state import State

_RADIUS = 0.05
_COLOURS = {
    "pixels": {"ground": (200, 200, 200), "region": (0, 0, 0), "target": (0, 255, 0), "point": (0, 0, 255)},
    "figure_ground": {"ground": (0, 0, 0), "region": (255,) * 3, "target": (255,) * 3, "point": (255,) * 3},
    "semantic": {"ground": (0, 0, 0), "region": (255, 0, 0), "target": (0, 255, 0), "point": (0, 0, 255)},
}


class DiscRenderer:
    """Draws the copies: the relevant dimensions, and the irrelevant ones to the right, without target or regions."""

    def __init__(self, knobs: PointKnobs, view: str) -> None:
        """Prepare the disc that the point is drawn as.

        Args:
            knobs: those of the toy.
            view: one of the image views.
        """
        self._knobs, self._colours = knobs, _COLOURS[view]
        self._halves = [list(knobs.relevant_indices)]
        if knobs.irrelevant_indices:
            self._halves.append(list(knobs.irrelevant_indices))
        size = knobs.image_size
        distance = np.hypot(*np.mgrid[-size : size + 1, -size : size + 1])
        disc = np.where(distance <= _RADIUS * size, 255, 0).astype(np.uint8)
        self._discs = sliding_window_view(disc, (size, size))
        self._grounds = [self._ground(half) for half in range(len(self._halves))]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self._knobs.image_size, len(self._halves) * self._knobs.image_size, 3

    def _ground(self, half: int) -> np.ndarray:
        knobs = self._knobs
        size, most = knobs.image_size, knobs.state_space_max
        image = np.full((size, size, 3), self._colours["ground"], dtype=np.uint8)
        if half:
            return image
        axis = np.linspace(-most, most, size)
        for across, down in knobs.terminal_states:
            inside = [np.abs(axis - centre) <= knobs.term_state_edge / 2 for centre in (across, down)]
            image[inside[1][:, None] & inside[0]] = self._colours["region"]
        if knobs.reward_function == TO_A_POINT:
            image[self._masks(np.array([knobs.target_point]))[0] > 0] = self._colours["target"]
        return image

    def _masks(self, points: np.ndarray) -> np.ndarray:
        """(n, 2) -> (n, size, size): 255 on each point's disc. The first dimension goes right, the second down."""
        size, most = self._knobs.image_size, self._knobs.state_space_max
        place = np.rint((points + most) / (2 * most) * (size - 1)).astype(np.int64)
        return self._discs[size - place[:, 1], size - place[:, 0]]

    def begin(self, index: np.ndarray | None = None) -> None:
        """Nothing lasts for an episode."""

    def draw(self, positions: np.ndarray) -> np.ndarray:
        """Frames of points at these positions."""
        point = np.array(self._colours["point"], dtype=np.uint8)
        halves = []
        for ground, indices in zip(self._grounds, self._halves, strict=True):
            masks = self._masks(positions[:, indices])[..., None]
            halves.append(np.where(masks, point, ground))
        return np.concatenate(halves, axis=2)

    def get_state(self) -> State:
        """There is none."""
        return {}

    def set_state(self, state: State) -> None:
        """There is none."""
