"""What a flow front-end sees, drawn: frames, flow as colours, the warped frame, the maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from lcd.files.atomic import replacing

TILE_INCHES = 0.9


def flow_colours(flow: np.ndarray, greatest: float | None = None) -> np.ndarray:
    """A flow field (2, H, W) as RGB in 0–1: the hue is its direction, white stands still.

    Args:
        greatest: the length that has full colour; None takes the field's own greatest.
    """
    from matplotlib.colors import hsv_to_rgb

    x, y = flow
    length = np.hypot(x, y)
    scale = max(float(length.max()) if greatest is None else greatest, 1e-6)
    hue = (np.arctan2(y, x) / (2 * np.pi)) % 1.0
    return hsv_to_rgb(np.stack([hue, np.clip(length / scale, 0, 1), np.ones_like(hue)], -1))


def save_sheet(path: Path, names: Sequence[str], seen: Mapping[str, Tensor], heads: Sequence[str], title: str) -> None:
    """Write a PNG with a row a pair of frames.

    Args:
        names: of the rows.
        seen: `first`, `second`, `warped` (N, 3, H, W), `flow` (N, 2, H, W), `maps` (N, K, H, W).
        heads: what the first four pictures of a row are called.
        title: of the sheet.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    arrays = {name: value.detach().float().cpu().numpy() for name, value in seen.items() if value.ndim == 4}
    maps = arrays["maps"].shape[1]
    figure = Figure(figsize=(TILE_INCHES * (maps + 5.5), TILE_INCHES * (len(names) + 0.6)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=9)
    axes = figure.subplots(len(names), maps + 4, squeeze=False)
    for axis, head in zip(axes[0], [*heads, *(f"map {index}" for index in range(maps))], strict=True):
        axis.set_title(head, fontsize=6)
    for row, (line, name) in enumerate(zip(axes, names, strict=True)):
        line[0].set_ylabel(name, fontsize=5)
        images = [arrays[key][row].transpose(1, 2, 0) for key in ("first", "second")]
        images += [flow_colours(arrays["flow"][row]), arrays["warped"][row].transpose(1, 2, 0).clip(0, 1)]
        for axis, image in zip(line, [*images, *arrays["maps"][row]], strict=True):
            axis.imshow(image, interpolation="nearest", **({"vmin": 0, "vmax": 1} if image.ndim == 2 else {}))
            axis.set_xticks([])
            axis.set_yticks([])
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=110)
