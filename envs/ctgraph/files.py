"""Image sets of the user's own: a folder of images, or an .npz file of labelled arrays."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from lcd.envs.errors import InputError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


def read_images(path: Path) -> list[np.ndarray]:
    """The instances (n, h, w, 3) of every class, classes in the order of their names or labels.

    Args:
        path: an .npz file with `images` (n, h, w) or (n, h, w, channels) and `labels` (n,); or a folder whose
            sub-folders are the classes and hold their instances, or whose image files are the classes.
    """
    where = f"image_dataset.path is '{path}'"
    if path.is_dir():
        classes = _read_folder(path, where)
    elif path.suffix.lower() == ".npz" and path.is_file():
        classes = _read_arrays(path, where)
    else:
        raise InputError(f"{where}, which is no folder of images and no .npz file with `images` and `labels`.")
    shapes = sorted({image.shape for of_class in classes for image in of_class})
    if len(shapes) > 1:
        raise InputError(f"{where}, whose images have the sizes {shapes[0]} and {shapes[1]}: all must be of one size.")
    return [np.stack(of_class) for of_class in classes]


def _read_folder(folder: Path, where: str) -> list[list[np.ndarray]]:
    inside = sorted(folder.iterdir())
    groups = [sorted(entry.iterdir()) for entry in inside if entry.is_dir()] or [[entry] for entry in inside]
    groups = [[file for file in group if file.suffix.lower() in SUFFIXES] for group in groups]
    classes = [[_read_image(file, where) for file in group] for group in groups if group]
    if not classes:
        raise InputError(f"{where}, which holds no images: files that end in {', '.join(SUFFIXES[:3])}, … are read.")
    return classes


def _read_image(file: Path, where: str) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, UnidentifiedImageError):
        raise InputError(f"{where}, where '{file.name}' is not readable as an image.") from None


def _read_arrays(file: Path, where: str) -> list[list[np.ndarray]]:
    try:
        with np.load(file, allow_pickle=False) as content:
            images, given = content["images"], content["labels"]
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(f"{where}, which lacks `images` or `labels` as plain arrays ({error}).") from None
    if images.ndim == 3:
        images = np.repeat(images[..., None], 3, axis=3)
    elif images.ndim == 4 and images.shape[3] == 1:
        images = np.repeat(images, 3, axis=3)
    if images.ndim != 4 or images.shape[3] != 3 or given.shape != images.shape[:1] or not len(images):
        raise InputError(
            f"{where}, whose images have the shape {images.shape} and labels {given.shape}; they must be (n, h, w) or "
            "(n, h, w, 3), and (n,)."
        )
    if images.dtype != np.uint8:
        raise InputError(f"{where}, whose images are {images.dtype}, but they must be uint8.")
    return [list(images[given == label]) for label in np.unique(given)]
