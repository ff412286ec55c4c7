"""What an image of the toy shows: one figure a state, in three views.

The figure's place, size and orientation (its geometry) are the same in every view. Texture, contrast and
distractors exist in `pixels` only.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial

import numpy as np

from lcd.envs.colours import MOST_GREY_LABELS, label_colours, label_greys
from lcd.envs.errors import InputError
from lcd.envs.hardness.figure_sprites import MOST_BYTES, MOST_PICTURE_BYTES, KeptSprites, ShownSprites, margin, windows
from lcd.envs.hardness.image_knobs import GREY, ImageKnobs
from lcd.envs.hardness.picture_files import picture_sprites
from lcd.envs.hardness.shapes import (
    distractor_masks,
    figure_masks,
    figure_radii,
    flips_of,
    noise_tiles,
    turned_masks,
)
from lcd.envs.state import State
from lcd.envs.streams import LoneStream, Streams


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
        self._bounds = None if knobs.chances is None else np.cumsum(knobs.chances)[:-1]
        steps_each_way = self._reaches[self._scale_of(np.arange(self._variants))] // knobs.image_sh_quant
        self._farthest = knobs.image_sh_quant * steps_each_way
        """Of each variant: by how many pixels it may be shifted."""
        self._shifts = (2 * steps_each_way + 1).astype(np.uint64)
        """Of each variant: how many shifts there are along an axis."""
        self._colours: KeptSprites | None = None
        self._figures = self._sprites(states)
        self._plain = view != "pixels" or (knobs.texture == 0 and knobs.distractors == 0)
        light, dark = _brightness(knobs.contrast) if view == "pixels" else (255, 0)
        self._levels = None if (light, dark) == (255, 0) else (np.uint8(light ^ dark), np.uint8(dark))
        """What figures are changed by; None: they are as bright as can be, and what is around them is black."""
        bare = self._plain and self._levels is None and halves == 1
        self._pasted = self._figures if bare and isinstance(self._figures, ShownSprites) else None
        """Figures that are all that images show, where an image takes less time to draw again than to copy."""
        if not self._plain:
            self._backgrounds, self._fillings = _texture_windows(knobs)
            clutter = margin(distractor_masks(knobs.image_size), knobs.image_size // 2, knobs.image_channels)
            self._clutter = windows(clutter, knobs.image_size)
        copies = len(geometry)
        self._variant = np.zeros(copies, dtype=np.int64)
        self._start = np.zeros((copies, 2))
        self._velocity = np.zeros((copies, 2))
        self._words = np.zeros((copies, self._words_a_frame), dtype=np.uint64)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.knobs.image_size, self.halves * self.knobs.image_size, self.knobs.image_channels

    @property
    def _words_a_half(self) -> int:
        return 0 if self._plain else 2 + 2 * self.knobs.distractors

    @property
    def _words_a_frame(self) -> int:
        return self.halves * self._words_a_half

    def _sprites(self, states: int) -> KeptSprites | ShownSprites:
        knobs, side = self.knobs, self.knobs.image_size + 2 * self._reach
        size = knobs.image_channels * states * self._variants * side * side
        variants = (knobs.scales, knobs.rotations, knobs.flips)
        if knobs.image_folder is not None:
            if size > MOST_PICTURE_BYTES:
                raise InputError(
                    f"image_ro_quant is {knobs.image_ro_quant}, but {states * self._variants} different pictures of "
                    f"{side}x{side} pixels are too many to keep; a larger image_ro_quant or image_sc_quant, or a "
                    "smaller image_size, would fit."
                )
            radius = knobs.image_size * knobs.image_radius
            masks, colours = picture_sprites(knobs.image_folder, states, knobs.image_size, radius, *variants)
            colours = _in_channels(colours, knobs.image_channels)
            if self.view == "pixels":
                border = [(0, 0), (self._reach, self._reach), (self._reach, self._reach), (0, 0)]
                colours = np.pad(colours.reshape(-1, *colours.shape[2:]), border)
                self._colours = KeptSprites(colours, knobs.image_size, self._reach)
        elif size <= MOST_BYTES:
            masks = figure_masks(states, knobs.image_size, knobs.lookalikes, *variants, knobs.image_radius)
        else:
            draw, in_a_block = partial(self._turned, self._labels(states)), len(knobs.rotations) * knobs.flips
            blocks = states * len(knobs.scales)
            return ShownSprites(draw, in_a_block, blocks, knobs.reaches, knobs.image_size, knobs.image_channels)
        sprites = margin(masks.reshape(-1, knobs.image_size, knobs.image_size), self._reach, knobs.image_channels)
        if self.view == "semantic":
            sprites &= np.repeat(self._labels(states), self._variants, axis=0)[:, None, None, :]
        return KeptSprites(sprites, knobs.image_size, self._reach)

    def _labels(self, states: int) -> np.ndarray:
        """(states, channels): the states' colours, or levels of grey, in the view `semantic`."""
        if self.knobs.image_channels == GREY and states > MOST_GREY_LABELS and self.view == "semantic":
            raise InputError(
                f"image_channels is 1, but there are only {MOST_GREY_LABELS} levels of grey to label {states} states "
                "by: choose 3 channels, or another view than 'semantic'."
            )
        return label_greys(states) if self.knobs.image_channels == GREY else label_colours(states)

    def _turned(self, labels: np.ndarray, block: int) -> list[np.ndarray]:
        """A state's figure at one scale under all rotations and flips, in images that it just fits into."""
        knobs = self.knobs
        state, scale = divmod(block, len(knobs.scales))
        side = knobs.image_size - 2 * knobs.reaches[scale]
        radius = knobs.image_radius * knobs.image_size * knobs.scales[scale]
        masks = turned_masks(side, figure_radii(state, knobs.lookalikes), radius, knobs.rotations)
        sprites: dict[int, list[np.ndarray]] = {}
        for mask in masks:
            if id(mask) not in sprites:
                flipped = margin(np.stack(flips_of(mask, knobs.flips)), 0, knobs.image_channels)
                sprites[id(mask)] = list(flipped & labels[state] if self.view == "semantic" else flipped)
        return [figure for mask in masks for figure in sprites[id(mask)]]

    def lone(self) -> LoneFigures | None:
        """What draws an only copy's images; None where they have more than a figure that transforms change."""
        if not self._plain or self.knobs.motion > 0 or self.halves > 1 or self._colours is not None:
            return None
        shift = "shift" in self.knobs.image_transforms
        quantum = self.knobs.image_sh_quant
        steps = [int(reach) // quantum for reach in self._reaches] if shift else None
        bounds = None if self._bounds is None else self._bounds.tolist()
        return LoneFigures(self._figures, self._variants, bounds, steps, quantum, self._levels, self.shape)

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
        variant, offset = self._placed(steps, index)
        words: np.ndarray | None = None
        if self._words_a_frame and self.knobs.motion > 0:
            words = self._words if index is None else self._words[index]
        elif self._words_a_frame:
            words = self._appearance.bits(index, self._words_a_frame)
        frames = []
        for half, of_half in enumerate(np.atleast_2d(states)):
            own = None if words is None else words[:, half * self._words_a_half : (half + 1) * self._words_a_half]
            numbers = of_half * self._variants + variant
            frames.append(self._draw_half(numbers, offset, own))
        if index is None:
            self._last = numbers, offset
        return frames[0] if self.halves == 1 else np.concatenate(frames, axis=2)

    def draw_again(self, frames: np.ndarray, states: np.ndarray, steps: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Frames of all copies, in memory of their own: of those in `index` new ones, of the others those just drawn.

        Args:
            frames: what `draw` has just drawn of all copies; they stay as they are.
            states: as for `draw`, of the copies in `index`.
            steps: likewise.
            index: the copies, as numbers.
        """
        if self._pasted is None:
            frames = frames.copy()
            frames[index] = self.draw(states, steps, index)
            return frames
        variant, of_these = self._placed(steps, index)
        numbers, offset = self._last
        numbers[index], offset[index] = states * self._variants + variant, of_these
        return self._pasted.at(numbers, offset).reshape(frames.shape)

    def _draw_half(self, numbers: np.ndarray, offset: np.ndarray, words: np.ndarray | None) -> np.ndarray:
        figure = self._figures.at(numbers, offset)
        if self._colours is not None:
            frames = self._paint_pictures(figure, self._colours.at(numbers, offset), words)
        else:
            frames = self._paint_plainly(figure) if words is None else self._paint(figure, offset, words)
        return frames.reshape(len(numbers), self.knobs.image_size, self.knobs.image_size, -1)

    def _placed(self, steps: np.ndarray, index: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The figures' variants, and their offsets (down, right) from the middle."""
        if self.knobs.motion == 0:
            return self._draw_geometry(index, np.int64)
        rows = slice(None) if index is None else index
        variant = self._variant[rows]
        path = self._start[rows] + self._velocity[rows] * steps[:, None]
        offset = _bounce(path, self._reaches[self._scale_of(variant)][:, None])
        return variant, np.rint(offset).astype(np.int64)

    def _scale_of(self, variant: np.ndarray) -> np.ndarray:
        return variant // (self._variants // len(self.knobs.scales))

    def _draw_geometry(self, index: np.ndarray | None, dtype: type) -> tuple[np.ndarray, np.ndarray]:
        """The figures' variants, and their offsets (down, right) from the middle."""
        count = len(self._geometry) if index is None else len(index)
        variant = np.zeros(count, dtype=np.int64)
        if self._variants > 1:
            variant = self._drawn_variants(index)
        if "shift" not in self.knobs.image_transforms:
            return variant, np.zeros((count, 2), dtype=dtype)
        offset = self._geometry.integers(self._shifts.take(variant)[:, None], index, count=2)
        if self.knobs.image_sh_quant > 1:
            offset *= self.knobs.image_sh_quant
        offset -= self._farthest.take(variant)[:, None]
        return variant, offset.astype(dtype, copy=False)

    def _drawn_variants(self, index: np.ndarray | None) -> np.ndarray:
        if self._bounds is None:
            return self._geometry.integers(self._variants, index)
        return np.searchsorted(self._bounds, self._geometry.uniform(index), side="right")

    def _paint_plainly(self, figure: np.ndarray) -> np.ndarray:
        if self._levels is not None:
            figure &= self._levels[0]
            figure ^= self._levels[1]
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
            _overlay(frames, filling, self._clutter[shape, down, right - right % self.knobs.image_channels])
        return frames

    def _crop(self, tiles: np.ndarray, words: np.ndarray, offset: np.ndarray | None = None) -> np.ndarray:
        """A place in a texture for every copy; with an offset, the texture moves along with the figure."""
        period = tiles.shape[1] - 1
        down, right = _field(words, 1, period), _field(words, 2, period)
        if offset is not None:
            down, right = (down - offset[:, 0]) % period, (right - offset[:, 1]) % period
        return tiles[_field(words, 0, len(tiles)), down, self.knobs.image_channels * right]

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


class LoneFigures:
    """Draws an only copy's images as `Renderer` does, in plain numbers."""

    def __init__(
        self,
        figures: KeptSprites | ShownSprites,
        variants: int,
        bounds: list[float] | None,
        steps_each_way: list[int] | None,
        quantum: int,
        levels: tuple[np.uint8, np.uint8] | None,
        shape: tuple[int, int, int],
    ) -> None:
        """Draw figures of the renderer.

        Args:
            figures: the renderer's.
            variants: how many each state has.
            bounds: where the probabilities of variants end; None: they are equally likely.
            steps_each_way: how many quanta a figure of each scale shifts by at most; None: it stays.
            quantum: pixels that shifts are multiples of.
            levels: what white figures on black are changed by; None: they stay so.
            shape: of an image.
        """
        self._figures, self._variants, self._bounds, self._quantum = figures, variants, bounds, quantum
        self._steps_each_way, self._levels, self._shape = steps_each_way, levels, shape
        self._of_scale = variants // len(steps_each_way) if steps_each_way else variants

    def draw(self, state: int, geometry: LoneStream) -> np.ndarray:
        """An image of this state, transformed anew."""
        variant = down = right = 0
        if self._bounds is not None:
            variant = bisect_right(self._bounds, geometry.uniform())
        elif self._variants > 1:
            variant = geometry.integer(self._variants)
        if self._steps_each_way is not None:
            most = self._steps_each_way[variant // self._of_scale]
            down = self._quantum * (geometry.integer(2 * most + 1) - most)
            right = self._quantum * (geometry.integer(2 * most + 1) - most)
        frame = self._figures.one(state * self._variants + variant, down, right)
        if self._levels is not None:
            frame &= self._levels[0]
            frame ^= self._levels[1]
        return frame.reshape(self._shape)


def _in_channels(images: np.ndarray, channels: int) -> np.ndarray:
    """(…, 3) as they are, or as grey (…, 1)."""
    if channels == images.shape[-1]:
        return images
    return images.mean(axis=-1, keepdims=True).astype(images.dtype)


def _brightness(contrast: float) -> tuple[int, int]:
    return round(127.5 * (1 + contrast)), round(127.5 * (1 - contrast))


def _texture_windows(knobs: ImageKnobs) -> tuple[np.ndarray, np.ndarray]:
    """Windows into textures for backgrounds and for fillings of figures."""
    period = max(64, 1 << (knobs.image_size - 1).bit_length())
    noise = 127.5 * knobs.texture * _in_channels(noise_tiles(period), knobs.image_channels)
    light, dark = _brightness(knobs.contrast)
    wrap = [(0, 0), (0, knobs.image_size), (0, knobs.image_size), (0, 0)]
    tiles = (np.clip(np.rint(level + noise), 0, 255).astype(np.uint8) for level in (dark, light))
    backgrounds, fillings = (windows(np.pad(t, wrap, mode="wrap"), knobs.image_size) for t in tiles)
    return backgrounds, fillings


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
