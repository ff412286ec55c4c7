"""What an observation id looks like: as an instance, as the clean image of its class, or as its label.

The synthetic classes are the paper's: random 4x4 blueprints of {0, 1, 2}, scaled up to 12x12 and rotated by 0, 30 or
60 degrees. On every read an instance is rotated a little and gets noise; only the view `pixels` shows that.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from lcd.envs.colours import label_colours
from lcd.envs.ctgraph.files import read_images
from lcd.envs.ctgraph.knobs import ImageDataset
from lcd.envs.errors import InputError
from lcd.envs.streams import Streams

SIDE, BLUEPRINT, LEVELS, ROTATIONS = 12, 4, 3, (0.0, 30.0, 60.0)
CELLS = 4
"""A label has as many cells a side."""
_COLOURS = 8
_MOST_BYTES = 2**29
_MOST_REPEATS = 1000
"""Random classes in a row that are there already: by then there are hardly any others."""


class ImageSet:
    """The images of all classes: `clean` one a class, `instances` all that a read may start from."""

    def __init__(self, clean: np.ndarray, instances: np.ndarray, first: np.ndarray, count: np.ndarray) -> None:
        """Keep (classes, h, w, 3) and (n, h, w, 3); the first instance of each class, and how many there are."""
        self.clean, self.instances, self.first, self.count = clean, instances, first, count
        self.labels = labels(len(clean), clean.shape[1:3])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.clean.shape[1:]


@lru_cache(maxsize=8)
def image_set(knobs: ImageDataset, classes: int) -> ImageSet:
    """The images of that many observation ids; those of fewer ids are the first of those of more."""
    if knobs.path is None:
        peak = 255 * (1 - knobs.noise_on_read)
        _refuse_too_many(f"the graph shows {classes:,} observation ids", classes, SIDE * SIDE * 3)
        bases = [image[None] for image in np.repeat(synthetic(knobs.seed, classes, peak)[..., None], 3, axis=3)]
    else:
        bases = read_images(Path(knobs.path).expanduser())
        if len(bases) < classes:
            raise InputError(
                f"image_dataset.path is '{knobs.path}', which holds {len(bases)} classes, but the graph shows "
                f"{classes} observation ids; a graph with fewer ids, or a larger set, would do."
            )
        bases = bases[:classes]
    angles = np.linspace(0, knobs.rotation_on_read, int(np.ceil(knobs.rotation_on_read)) + 1)
    total = sum(map(len, bases))
    turns = f"image_dataset.rotation_on_read is {knobs.rotation_on_read}, and there are {total:,} images"
    _refuse_too_many(turns, total * len(angles), bases[0][0].size)
    count = np.array([len(of_class) * len(angles) for of_class in bases])
    turned = np.stack([rotate(np.concatenate(bases), angle) for angle in angles], axis=1)
    clean = np.stack([of_class[0] for of_class in bases])
    return ImageSet(clean, turned.reshape(-1, *clean.shape[1:]), np.cumsum(count) - count, count)


def _refuse_too_many(what: str, images: int, size: int) -> None:
    if images * size > _MOST_BYTES:
        raise InputError(
            f"{what}, but {images:,} images of {size} bytes are more than the {_MOST_BYTES:,} bytes that are kept; "
            "fewer ids (graph_shape, image_dataset.nr_of_images), or a smaller rotation, would fit."
        )


@lru_cache(maxsize=8)
def check_noise(knobs: ImageDataset, classes: int) -> None:
    """Refuse noise that leaves too little of the images for so many classes, without making what shows them."""
    peak = 255 * (1 - knobs.noise_on_read)
    # With as many grey levels as a blueprint has, there are more images than a graph could have ids.
    if knobs.path is None and peak < LEVELS - 1:
        _refuse_too_many(f"the graph shows {classes:,} observation ids", classes, SIDE * SIDE * 3)
        synthetic(knobs.seed, classes, peak)


def synthetic(seed: int, classes: int, peak: float = 255.0) -> np.ndarray:
    """(classes, 12, 12) uint8: the paper's random classes, all different."""
    rng = np.random.default_rng(seed)
    images: dict[bytes, np.ndarray] = {}
    repeats = 0
    while len(images) < classes:
        if repeats > _MOST_REPEATS:
            raise InputError(
                f"image_dataset.noise_on_read is {1 - peak / 255:g}, which leaves {peak:g} of 255 grey levels to the "
                f"images themselves: only {len(images):,} differ, but the graph shows {classes:,} observation ids; "
                "less noise, or fewer ids, would do."
            )
        blueprint = rng.integers(LEVELS, size=(BLUEPRINT, BLUEPRINT))
        angle = ROTATIONS[rng.integers(len(ROTATIONS))]
        large = np.kron(blueprint, np.ones((SIDE // BLUEPRINT, SIDE // BLUEPRINT))) * peak / (LEVELS - 1)
        image = rotate(np.rint(large).astype(np.uint8)[None, :, :, None], angle)[0, :, :, 0]
        repeats = repeats + 1 if image.tobytes() in images else 0
        images.setdefault(image.tobytes(), image)
    return np.stack(list(images.values()))


def rotate(images: np.ndarray, degrees: float) -> np.ndarray:
    """(n, h, w, channels) uint8 images, turned about their middle, bilinear, black outside."""
    if degrees == 0:
        return images
    height, width = images.shape[1:3]
    down, right = np.mgrid[:height, :width].astype(float)
    down -= (height - 1) / 2
    right -= (width - 1) / 2
    angle = np.deg2rad(degrees)
    y = down * np.cos(angle) + right * np.sin(angle) + (height - 1) / 2
    x = right * np.cos(angle) - down * np.sin(angle) + (width - 1) / 2
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    result = np.zeros(images.shape)
    for dy in (0, 1):
        for dx in (0, 1):
            row, column = top + dy, left + dx
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            weight = np.abs(1 - dy - (y - top)) * np.abs(1 - dx - (x - left)) * inside
            result += weight[None, :, :, None] * images[:, row.clip(0, height - 1), column.clip(0, width - 1)]
    return np.rint(result).astype(np.uint8)


def labels(classes: int, size: tuple[int, int] = (SIDE, SIDE)) -> np.ndarray:
    """(classes, h, w, 3) uint8: each id written as a code of 4x4 coloured cells that has little in common with others.

    Plain colours, or digits of the id, would be neater to look at; but ids that share colours are learned more slowly
    than the images that they stand for, and no view may be harder than `pixels` for the way it is drawn.
    """
    codes = np.random.default_rng(0).integers(_COLOURS, size=(classes, CELLS * CELLS))
    cell = (np.arange(size[0]) * CELLS // size[0])[:, None] * CELLS + np.arange(size[1]) * CELLS // size[1]
    return label_colours(_COLOURS)[codes[:, cell]]


class Reader:
    """Shows the observation ids of a fixed number of copies in one view."""

    def __init__(self, knobs: ImageDataset, classes: int, view: str, appearance: Streams) -> None:
        """Draw the classes that the copies will read.

        Args:
            knobs: the image set.
            classes: number of observation ids.
            view: one of `IMAGE_VIEWS`.
            appearance: streams for instances, rotations and noise, one a copy.
        """
        self._images = image_set(knobs, classes)
        self._appearance = appearance
        self._plain = {"figure_ground": self._images.clean, "semantic": self._images.labels}.get(view)
        self._varied = bool((self._images.count > 1).any())
        self._most_noise = round(255 * knobs.noise_on_read)
        self._may_clip = int(self._images.instances.max()) + self._most_noise > 255
        pixels = self._images.shape[0] * self._images.shape[1]
        self._words = int(self._varied) + (-(-pixels // 8) if self._most_noise else 0)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self._images.shape

    def show(self, ids: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        """Images (n, h, w, 3) of the ids that the copies in `index` (None: all) observe."""
        if self._plain is not None:
            return self._plain.take(ids, axis=0)
        if not self._words:
            return self._images.clean.take(ids, axis=0)
        words = self._appearance.bits(index, self._words)
        chosen = self._images.first[ids]
        if self._varied:
            chosen = chosen + _scaled(words[:, 0], self._images.count[ids])
        frames = self._images.instances.take(chosen, axis=0)
        if self._most_noise:
            _add_noise(frames, words[:, int(self._varied) :], self._most_noise, self._may_clip)
        return frames


def _scaled(words: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Integers in [0, high) from the upper halves of words."""
    return (((words >> np.uint64(32)) * high.astype(np.uint64)) >> np.uint64(32)).view(np.int64)


def _add_noise(frames: np.ndarray, words: np.ndarray, most: int, may_clip: bool) -> None:
    """Add to every pixel a whole number from 0 to `most`, in place; brightness stops at 255."""
    count, height, width, channels = frames.shape
    random = np.ascontiguousarray(words).view(np.uint8)[:, : height * width].astype(np.uint16)
    random *= np.uint16(most + 1)
    random >>= np.uint16(8)
    # Adding rows of one length is several times as fast as broadcasting over three channels.
    noise = np.repeat(random.astype(np.uint8), channels, axis=1)
    flat = frames.reshape(count, -1)
    flat += noise
    if may_clip:
        # A sum below its part has wrapped around.
        flat[flat < noise] = 255
