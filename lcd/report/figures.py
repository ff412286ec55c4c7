"""What all figures look like, and how they are written. It loads no more than drawing takes."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lcd.files.atomic import write_atomic

if TYPE_CHECKING:
    from lcd.scores.contrasts import Contrast


INK, MUTED, GRID = "#1f2933", "#64707d", "#d9dee4"
# Okabe and Ito's colours for a set of values, one hue from dark to light for amounts; dashes tell the lines apart
# without colour.
SET_STYLES = (
    ("#d55e00", "-"),
    ("#009e73", (0, (5, 1.5))),
    ("#0072b2", (0, (1.2, 1.2))),
    ("#cc79a7", (0, (3, 1.2, 1, 1.2))),
    ("#56b4e9", (0, (8, 2))),
    ("#e69f00", (0, (8, 1.5, 1.2, 1.5))),
    (INK, "-"),
    ("#8c6d31", (0, (2.5, 2.5))),
)
ORDER_STYLES = (
    ("#08306b", "-"),
    ("#2171b5", (0, (5, 1.5))),
    ("#5a9fd4", (0, (3, 1.2, 1, 1.2))),
    ("#8fb8dd", (0, (1.2, 1.2))),
)
PATH, CURVED, FINER = re.compile(rb' d="[^"]*"'), re.compile(rb"[QCHV]"), re.compile(rb"(\.\d)\d+")
SUPERFLUOUS = re.compile(rb'<metadata>.*?</metadata>| transform="rotate\(-0 [^"]*"|(?<=\n) +', re.DOTALL)
# Names come from files: nothing in them may be taken for mathematics or TeX.
LOOKS = {
    "text.parse_math": False,
    "text.usetex": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "lcd",
}


def styled_figure(draw: Callable) -> Callable:
    @wraps(draw)
    def styled(*args, **kwargs):
        with mpl.rc_context(LOOKS), warnings.catch_warnings():
            # A name in letters that the font lacks: a picture shows boxes, the page's own figures the reader's font.
            warnings.filterwarnings("ignore", message=r"Glyph \d+ ")
            return draw(*args, **kwargs)

    return styled


def styles(contrast: Contrast) -> list[tuple]:
    """The (colour, dashes) of each of a contrast's values, in order."""
    given = ORDER_STYLES if contrast.ordered else SET_STYLES
    return [given[place % len(given)] for place in range(len(contrast.values))]


@styled_figure
def save_figure(figure: Figure, folder: str | Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG into a folder; return their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _lay_out(figure)
    paths = []
    for kind in ("png", "svg"):
        paths.append(folder / f"{name}.{kind}")
        write_atomic(paths[-1], _render(figure, kind))
    return paths


@styled_figure
def draw_svg(figure: Figure) -> bytes:
    """A figure as the content of an SVG file."""
    _lay_out(figure)
    return _render(figure, "svg")


def data_uri(svg: bytes) -> str:
    """An SVG file's content as an address, so that a page needs no other file."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()


def short_name(name: object, length: int = 44) -> str:
    """A name that fits into a figure: a task's without its benchmark, if that helps, and cut at its end."""
    name = str(name)
    if len(name) > length and "/" in name and "[" not in name:
        name = "…/" + name.rpartition("/")[2]
    return name if len(name) <= length else name[: length - 1] + "…"


def new_figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def shown_in_notebooks(figure: Figure) -> Figure:
    """A figure that a notebook shows as SVG, whether or not pyplot is set up there."""
    drawn = draw_svg(figure).decode()
    setattr(figure, "_repr_svg_", lambda: drawn)  # noqa: B010
    return figure


def _lay_out(figure: Figure) -> None:
    """Find the places of everything once, not anew for every file."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine(None)


def _render(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "png":
        # Half of the time of a PNG would go into its last few per cent.
        figure.savefig(buffer, format=kind, dpi=160, pil_kwargs={"compress_level": 4})
        return buffer.getvalue()
    # Without a date, because the same curves should give the same file.
    figure.savefig(buffer, format=kind, metadata={"Date": None})
    return PATH.sub(_shorter, SUPERFLUOUS.sub(b"", buffer.getvalue()))


def _shorter(path: re.Match[bytes]) -> bytes:
    """A path of straight lines to a tenth of a point, finer than a pixel; pairs of numbers alone are lines."""
    if CURVED.search(path[0]):
        return path[0]
    return FINER.sub(rb"\1", path[0]).replace(b" \nL ", b" ")
