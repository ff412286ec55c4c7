"""What an image of the toy shows: one figure a state, in three views.

The figure's place, size and orientation (its geometry) are the same in every view. Texture, contrast and
distractors exist in `pixels` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lcd.envs.checks import MOST_TABLE_BYTES, is_number, require_share, require_whole_knob
from lcd.envs.colours import label_colours
from lcd.envs.errors import InputError, nearest
from lcd.envs.hardness.picture_files import picture_sprites
from lcd.envs.hardness.shapes import RADIUS, distractor_masks, figure_masks, noise_tiles
from lcd.envs.state import State
from lcd.envs.streams import Streams

TRANSFORMS = ("shift", "scale", "rotate", "flip")
MOST_PIXELS = 1024
MOST_DISTRACTORS = 1000
_SCALE_STEPS = 5
_MOST_SPRITE_BYTES = 2**29


@dataclass(frozen=True)
class ImageKnobs:
    """What makes the toy hard to see. Those called `image_…` are MDP Playground's, except the size."""

    image_size: int = 24
    """Height and width in pixels. Below about 36, a few scales and rotations make many-sided states look the same."""
    image_transforms: str | Sequence[str] = ()
    """Which of shift, scale, rotate and flip happen at random: "shift,flip" or a sequence."""
    image_sh_quant: int = 1
    """Shifts are multiples of this many pixels."""
    image_scale_range: Sequence[float] = (0.75, 1.25)
    """Least and largest scale."""
    image_ro_quant: int = 15
    """Rotations are multiples of this many degrees."""
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
        require_whole_knob(self, "image_sh_quant", 1, MOST_PIXELS)
        require_whole_knob(self, "image_ro_quant", 1, 360)
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
        return tuple(float(s) for s in np.geomspace(self.image_scale_range[0], self.image_scale_range[1], _SCALE_STEPS))

    @property
    def rotations(self) -> tuple[float, ...]:
        """The rotations that occur, in degrees."""
        if "rotate" not in self.image_transforms:
            return (0.0,)
        return tuple(float(angle) for angle in range(0, 360, self.image_ro_quant))

    @property
    def flips(self) -> int:
        """The number of ways in which a figure is flipped."""
        return 4 if "flip" in self.image_transforms else 1

    @property
    def moves(self) -> bool:
        """Does the figure ever leave the middle?"""
        return "shift" in self.image_transforms or self.motion > 0

    @property
    def reaches(self) -> tuple[int, ...]:
        """By how many pixels a figure of each scale can move and stay in the image."""
        return tuple(int(self.image_size * (0.5 - self.image_radius * scale) + 1e-9) for scale in self.scales)


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


class Renderer:
    """Draws frames of a fixed number of copies, whose randomness comes from streams of their own."""

    def __init__(
        self, knobs: ImageKnobs, view: str, states: int, geometry: Streams, appearance: Streams, halves: int = 1
    ) -> None:
        """Draw every state's figure once.

        Args:
            knobs: what to draw.
            view: one of `IMAGE_VIEWS`.
            states: number of states.
            geometry: streams for transforms and motion, one a copy.
            appearance: streams for textures and distractors, one a copy.
            halves: 2 for a second image to the right, of the same geometry.
        """
        self.knobs, self.view, self.halves = knobs, view, halves
        self._geometry, self._appearance = geometry, appearance
        self._reaches = np.array(knobs.reaches if knobs.moves else [0] * len(knobs.scales))
        self._reach = int(self._reaches.max())
        self._variants = len(knobs.scales) * len(knobs.rotations) * knobs.flips
        self._colours: np.ndarray | None = None
        self._figures = _windows(self._sprites(states), knobs.image_size)
        self._plain = view != "pixels" or (knobs.texture == 0 and knobs.distractors == 0)
        if not self._plain:
            self._backgrounds, self._fillings = _texture_windows(knobs)
            self._clutter = _windows(
                _margin(distractor_masks(knobs.image_size), knobs.image_size // 2), knobs.image_size
            )
        copies = len(geometry)
        self._variant = np.zeros(copies, dtype=np.int64)
        self._start = np.zeros((copies, 2))
        self._velocity = np.zeros((copies, 2))
        self._words = np.zeros((copies, self._words_a_frame), dtype=np.uint64)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.knobs.image_size, self.halves * self.knobs.image_size, 3

    @property
    def _words_a_half(self) -> int:
        return 0 if self._plain else 2 + 2 * self.knobs.distractors

    @property
    def _words_a_frame(self) -> int:
        return self.halves * self._words_a_half

    def _sprites(self, states: int) -> np.ndarray:
        knobs, side = self.knobs, self.knobs.image_size + 2 * self._reach
        if 3 * states * self._variants * side * side > _MOST_SPRITE_BYTES:
            raise InputError(
                f"image_ro_quant is {knobs.image_ro_quant}, but {states * self._variants} different figures of "
                f"{side}x{side} pixels are too many to keep; a larger image_ro_quant or a smaller image_size would fit."
            )
        variants = (knobs.scales, knobs.rotations, knobs.flips)
        if knobs.image_folder is None:
            masks = figure_masks(states, knobs.image_size, knobs.lookalikes, *variants, knobs.image_radius)
        else:
            radius = knobs.image_size * knobs.image_radius
            masks, colours = picture_sprites(knobs.image_folder, states, knobs.image_size, radius, *variants)
            if self.view == "pixels":
                border = [(0, 0), (self._reach, self._reach), (self._reach, self._reach), (0, 0)]
                colours = np.pad(colours.reshape(-1, *colours.shape[2:]), border)
                self._colours = _windows(colours, knobs.image_size)
        sprites = _margin(masks.reshape(-1, knobs.image_size, knobs.image_size), self._reach)
        if self.view == "semantic":
            sprites &= np.repeat(label_colours(states), self._variants, axis=0)[:, None, None, :]
        return sprites

    def begin(self, index: np.ndarray | None = None) -> None:
        """Start a new episode of the copies in `index` (None: all)."""
        if self.knobs.motion == 0:
            return
        rows = slice(None) if index is None else index
        variant, offset = self._draw_geometry(index, np.float64)
        angle = 2 * np.pi * self._geometry.uniform(index)
        self._variant[rows], self._start[rows] = variant, offset
        self._velocity[rows] = self.knobs.motion * np.stack([np.sin(angle), np.cos(angle)], axis=1)
        if self._words_a_frame:
            self._words[rows] = self._appearance.bits(index, self._words_a_frame)

    def draw(self, states: np.ndarray, steps: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        """Frames (n, size, halves * size, 3) of the copies in `index` (None: all).

        Args:
            states: each copy's state; with two halves a row for each.
            steps: how many steps each copy's episode is old.
            index: the copies, as numbers.
        """
        rows = slice(None) if index is None else index
        if self.knobs.motion > 0:
            variant = self._variant[rows]
            path = self._start[rows] + self._velocity[rows] * steps[:, None]
            offset = np.rint(_bounce(path, self._reaches[self._scale_of(variant)][:, None])).astype(np.int64)
            words: Any = self._words[rows]
        else:
            variant, offset = self._draw_geometry(index, np.int64)
            words = self._appearance.bits(index, self._words_a_frame) if self._words_a_frame else None
        frames = []
        for half, of_half in enumerate(np.atleast_2d(states)):
            own = None if words is None else words[:, half * self._words_a_half : (half + 1) * self._words_a_half]
            frames.append(self._draw_half(of_half, variant, offset, own))
        return frames[0] if self.halves == 1 else np.concatenate(frames, axis=2)

    def _draw_half(self, states: np.ndarray, variant: np.ndarray, offset: np.ndarray, words: Any) -> np.ndarray:
        corner = self._reach - offset
        place = (states * self._variants + variant, corner[:, 0], 3 * corner[:, 1])
        figure = self._figures[place]
        if self._colours is not None:
            frames = self._paint_pictures(figure, self._colours[place], words)
        else:
            frames = self._paint_plainly(figure) if self._plain else self._paint(figure, offset, words)
        return frames.reshape(len(states), self.knobs.image_size, self.knobs.image_size, 3)

    def _scale_of(self, variant: np.ndarray) -> np.ndarray:
        return variant // (self._variants // len(self.knobs.scales))

    def _draw_geometry(self, index: np.ndarray | None, dtype: type) -> tuple[np.ndarray, np.ndarray]:
        """The figures' variants, and their offsets (down, right) from the middle."""
        count = len(self._geometry) if index is None else len(index)
        variant = np.zeros(count, dtype=np.int64)
        if self._variants > 1:
            variant = self._geometry.integers(self._variants, index)
        if "shift" not in self.knobs.image_transforms:
            return variant, np.zeros((count, 2), dtype=dtype)
        quantum = self.knobs.image_sh_quant
        steps_each_way = (self._reaches // quantum)[self._scale_of(variant)][:, None]
        offset = self._geometry.integers(2 * steps_each_way + 1, index, count=2) - steps_each_way
        return variant, (quantum * offset).astype(dtype)

    def _paint_plainly(self, figure: np.ndarray) -> np.ndarray:
        if self.view != "pixels":
            return figure
        light, dark = _brightness(self.knobs.contrast)
        figure &= np.uint8(light ^ dark)
        figure ^= np.uint8(dark)
        return figure

    def _paint_pictures(self, figure: np.ndarray, colours: np.ndarray, words: np.ndarray | None) -> np.ndarray:
        """The user's images, on the plain background or among textures and distractors."""
        frames = np.full_like(figure, _brightness(self.knobs.contrast)[1]) if words is None else self._scenery(words)
        _overlay(frames, colours, figure)
        return frames

    def _paint(self, figure: np.ndarray, offset: np.ndarray, words: np.ndarray) -> np.ndarray:
        frames = self._scenery(words)
        _overlay(frames, self._crop(self._fillings, words[:, 1], offset), figure)
        return frames

    def _scenery(self, words: np.ndarray) -> np.ndarray:
        """Background and distractors."""
        frames = self._crop(self._backgrounds, words[:, 0])
        for number in range(self.knobs.distractors):
            filling = self._crop(self._fillings, words[:, 2 + 2 * number])
            place = words[:, 3 + 2 * number]
            shape, down, right = (_field(place, n, high) for n, high in enumerate(self._clutter.shape[:3]))
            _overlay(frames, filling, self._clutter[shape, down, right - right % 3])
        return frames

    def _crop(self, tiles: np.ndarray, words: np.ndarray, offset: np.ndarray | None = None) -> np.ndarray:
        """A place in a texture for every copy; with an offset, the texture moves along with the figure."""
        period = tiles.shape[1] - 1
        down, right = _field(words, 1, period), _field(words, 2, period)
        if offset is not None:
            down, right = (down - offset[:, 0]) % period, (right - offset[:, 1]) % period
        return tiles[_field(words, 0, len(tiles)), down, 3 * right]

    def get_state(self) -> State:
        """What an episode keeps (the streams are their owner's)."""
        return {
            "variant": self._variant.copy(),
            "start": self._start.copy(),
            "velocity": self._velocity.copy(),
            "words": self._words.copy(),
        }

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self._variant, self._start = state["variant"].copy(), state["start"].copy()
        self._velocity, self._words = state["velocity"].copy(), state["words"].copy()


def _brightness(contrast: float) -> tuple[int, int]:
    return round(127.5 * (1 + contrast)), round(127.5 * (1 - contrast))


def _texture_windows(knobs: ImageKnobs) -> tuple[np.ndarray, np.ndarray]:
    """Windows into textures for backgrounds and for fillings of figures."""
    period = max(64, 1 << (knobs.image_size - 1).bit_length())
    noise = 127.5 * knobs.texture * noise_tiles(period)
    light, dark = _brightness(knobs.contrast)
    wrap = [(0, 0), (0, knobs.image_size), (0, knobs.image_size), (0, 0)]
    tiles = (np.clip(np.rint(level + noise), 0, 255).astype(np.uint8) for level in (dark, light))
    backgrounds, fillings = (_windows(np.pad(t, wrap, mode="wrap"), knobs.image_size) for t in tiles)
    return backgrounds, fillings


def _margin(masks: np.ndarray, margin: int) -> np.ndarray:
    """(n, size, size) masks with a border, repeated for three channels."""
    padded = np.pad(masks, [(0, 0), (margin, margin), (margin, margin)])
    return np.repeat(padded[..., None], 3, axis=3)


def _windows(images: np.ndarray, size: int) -> np.ndarray:
    """All (size, size, 3) cut-outs, to be indexed by image, top and three times the left."""
    count, height, width, channels = images.shape
    rows = np.ascontiguousarray(images).reshape(count, height, width * channels)
    return sliding_window_view(rows, (size, size * channels), axis=(1, 2))


def _field(words: np.ndarray, number: int, high: int) -> np.ndarray:
    """An integer in [0, high) from the 16-bit field `number` of every word."""
    sixteen = (words >> np.uint64(16 * number)) & np.uint64(0xFFFF)
    return ((sixteen * np.uint64(high)) >> np.uint64(16)).view(np.int64)


def _overlay(frames: np.ndarray, filling: np.ndarray, mask: np.ndarray) -> None:
    filling ^= frames
    filling &= mask
    frames ^= filling


def _bounce(path: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """A straight path, folded into [-reach, reach]."""
    along = (path + reach) % (4 * reach)
    return np.where(along > 2 * reach, 4 * reach - along, along) - reach
