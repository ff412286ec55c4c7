"""The knobs of what an image of the toy shows, checked, and the variants of a figure that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lcd.envs.checks import MOST_TABLE_BYTES, is_number, require_one_of, require_share, require_whole_knob
from lcd.envs.errors import InputError, nearest
from lcd.envs.hardness.shapes import RADIUS

TRANSFORMS = ("shift", "scale", "rotate", "flip")
MOST_PIXELS = 1024
MOST_DISTRACTORS = 1000
COLOUR, GREY = 3, 1
"""Channels of an image."""
_SCALE_STEPS = 5
_SINGLE_FLIPS = 3
DEFAULTS: dict[str, dict[str, Any]] = {
    "lcd": {},
    "mdp-playground": {
        "image_size": 100,
        "image_channels": 1,
        "image_radius": 0.2,
        "image_scale_range": (0.5, 1.5),
        "image_sc_quant": 1,
        "image_ro_quant": 1,
        "image_double_flips": False,
    },
}
"""What knobs that are not given are."""


@dataclass(frozen=True)
class ImageKnobs:
    """What makes the toy hard to see. Those called `image_…` are MDP Playground's, but most have other defaults."""

    image_defaults: str = "lcd"
    """Whose defaults the others have: ours, or those of the package `mdp-playground` (100 pixels, grey, radius 0.2,
    scales from 0.5 to 1.5 in whole pixels, rotations in whole degrees, no double flips)."""
    image_size: int = 24
    """Height and width in pixels. Below about 36, a few scales and rotations make many-sided states look the same."""
    image_channels: int = 3
    """3, or 1 for grey images. All views have as many: of one, textures are grey and labels levels of grey."""
    image_transforms: str | Sequence[str] = ()
    """Which of shift, scale, rotate and flip happen at random: "shift,flip" or a sequence."""
    image_sh_quant: int = 1
    """Shifts are multiples of this many pixels."""
    image_scale_range: Sequence[float] = (0.75, 1.25)
    """Least and largest scale."""
    image_sc_quant: int | None = None
    """Figures' radii are multiples of this many pixels, a scale as likely as its share of the range's logarithms; by
    default there are five scales, in equal ratios and equally likely."""
    image_ro_quant: int = 15
    """Rotations are multiples of this many degrees."""
    image_double_flips: bool = True
    """Flips are none, left-right, upside down and both, equally likely; else half are none, and no flip is both."""
    image_radius: float = RADIUS
    """Radius of a figure at scale 1, as a share of the image's side (MDP Playground's is 0.2)."""
    image_folder: str | None = None
    """Folder of the user's own images, which in alphabetical order take the polygons' place."""
    texture: float = 0.0
    """Strength of the textures of figure and background, 0 (none) to 1; new ones every frame unless `motion`."""
    contrast: float = 1.0
    """Difference in mean brightness between figure and background, above 0 and up to 1."""
    distractors: int = 0
    """Number of smaller shapes scattered over the background."""
    lookalikes: int = 0
    """How many other states have almost the same polygon as a state."""
    motion: float = 0.0
    """Pixels by which the figure drifts in a step, bouncing off the borders.

    What is otherwise drawn anew every frame (textures, distractors, transforms) then stays for an episode, so
    that the motion can be seen."""

    def __post_init__(self) -> None:
        require_whole_knob(self, "image_size", 12, MOST_PIXELS)
        require_whole_knob(self, "image_channels", 1, COLOUR)
        if self.image_channels not in (COLOUR, GREY):
            raise InputError(f"image_channels is {self.image_channels}, but it must be {COLOUR}, or {GREY} for grey.")
        require_whole_knob(self, "image_sh_quant", 1, MOST_PIXELS)
        require_whole_knob(self, "image_ro_quant", 1, 360)
        require_one_of("image_defaults", self.image_defaults, tuple(DEFAULTS))
        if self.image_sc_quant is not None:
            require_whole_knob(self, "image_sc_quant", 1, MOST_PIXELS)
        if not isinstance(self.image_double_flips, bool | np.bool_):
            raise InputError(f"image_double_flips is {self.image_double_flips!r}, but it must be true or false.")
        require_whole_knob(self, "distractors", 0, MOST_DISTRACTORS)
        require_whole_knob(self, "lookalikes", 0, MOST_TABLE_BYTES)
        require_share(self, "texture")
        require_share(self, "contrast")
        if self.contrast == 0:
            raise InputError("contrast is 0, but a figure without any contrast is invisible; it must be above 0.")
        if not is_number(self.motion) or not 0 <= self.motion <= MOST_PIXELS:
            raise InputError(f"motion is {self.motion!r}, but it must be a number of pixels from 0 to {MOST_PIXELS}.")
        object.__setattr__(self, "image_transforms", parse_transforms(self.image_transforms))
        if not is_number(self.image_radius) or not 0.05 <= self.image_radius <= 0.5:
            raise InputError(f"image_radius is {self.image_radius!r}, but it must be a number from 0.05 to 0.5.")
        object.__setattr__(self, "image_scale_range", _scale_range(self.image_scale_range, self.image_radius))
        if self.image_sc_quant is not None and min(self.scales) == 0:
            raise InputError(
                f"image_sc_quant is {self.image_sc_quant}, but the smallest figure has a radius of less than that many "
                "pixels (image_size, image_radius, image_scale_range): give less."
            )
        if self.moves and min(self.reaches) < 1:
            raise InputError(
                f"image_size is {self.image_size}, but at scale {self.image_scale_range[1]} the figure has no room to "
                "move; a larger image or a smaller image_scale_range would leave some."
            )

    @property
    def scales(self) -> tuple[float, ...]:
        """The scales that occur."""
        if "scale" not in self.image_transforms:
            return (1.0,)
        if self.image_sc_quant is None:
            low, high = self.image_scale_range
            return tuple(float(s) for s in np.geomspace(low, high, _SCALE_STEPS))
        return tuple(float(edge) for edge in self._scale_edges(self.image_sc_quant)[:-1])

    def _scale_edges(self, quantum: int) -> np.ndarray:
        """The multiples of the quantum around the range of scales, as scales."""
        step = quantum / (self.image_size * self.image_radius)
        first, last = (round(scale / step, 9) for scale in self.image_scale_range)
        return step * np.arange(int(first), max(int(np.ceil(last)), int(first) + 1) + 1)

    @property
    def chances(self) -> np.ndarray | None:
        """How likely each variant is, in the order of `figure_masks`; None: all are equally likely."""
        scales, flips = np.full(len(self.scales), 1 / len(self.scales)), np.full(self.flips, 1 / self.flips)
        if "scale" in self.image_transforms and self.image_sc_quant is not None and len(scales) > 1:
            low, high = self.image_scale_range
            within = np.log(self._scale_edges(self.image_sc_quant).clip(low, high))
            scales = np.diff(within) / (within[-1] - within[0])
        if self.flips == _SINGLE_FLIPS:
            flips = np.array([0.5, 0.25, 0.25])
        elif len(np.unique(scales)) == 1:
            return None
        rotations = len(self.rotations)
        return np.repeat(scales, rotations * len(flips)) * np.tile(flips, len(scales) * rotations) / rotations

    @property
    def rotations(self) -> tuple[float, ...]:
        """The rotations that occur, in degrees."""
        if "rotate" not in self.image_transforms:
            return (0.0,)
        return tuple(float(angle) for angle in range(0, 360, self.image_ro_quant))

    @property
    def flips(self) -> int:
        """The number of ways in which a figure is flipped."""
        if "flip" not in self.image_transforms:
            return 1
        return 4 if self.image_double_flips else _SINGLE_FLIPS

    @property
    def moves(self) -> bool:
        """Does the figure ever leave the middle?"""
        return "shift" in self.image_transforms or self.motion > 0

    @property
    def reaches(self) -> tuple[int, ...]:
        """By how many pixels a figure of each scale can move and stay in the image."""
        return tuple(int(self.image_size * (0.5 - self.image_radius * scale) + 1e-9) for scale in self.scales)

    @classmethod
    def from_dict(cls, knobs: Mapping[str, Any]) -> ImageKnobs:
        """Knobs from a table; the rest have the defaults that `image_defaults` names."""
        name = knobs.get("image_defaults", "lcd")
        require_one_of("image_defaults", name, tuple(DEFAULTS))
        return cls(**{**DEFAULTS[name], **knobs})


def parse_transforms(given: str | Sequence[str]) -> tuple[str, ...]:
    """The transforms' names in their fixed order."""
    given = "" if given == "none" else given
    names = [n.strip() for n in given.split(",") if n.strip()] if isinstance(given, str) else list(given or ())
    for name in names:
        if name not in TRANSFORMS:
            raise InputError(f"image_transforms has '{name}', which is no transform; {nearest(name, TRANSFORMS)}")
    return tuple(name for name in TRANSFORMS if name in names)


def _scale_range(given: Sequence[float], radius: float) -> tuple[float, float]:
    largest = round(0.5 / radius, 9)
    numbers = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
    if len(numbers) != 2 or not all(map(is_number, numbers)) or not 0.2 <= numbers[0] <= numbers[1] <= largest:
        raise InputError(
            f"image_scale_range is {given!r}, but it must be two rising numbers from 0.2 to {largest:.2f}, where the "
            "figure fills the image."
        )
    return float(numbers[0]), float(numbers[1])
