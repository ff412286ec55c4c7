"""Whether classes that a view tells apart have one shape in another, and whether all classes of a table occur.

A figure is what is connected of one class in the view of classes; its shape is what the view of figures shows there,
drawn to one size. Two classes of which many figures have one shape are told apart there by their places alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from lcd.envs.benchmarks import Benchmark
from lcd.envs.gym_ids import unseen_classes
from lcd.envs.masks import FIGURE_GROUND, SEMANTIC, resized
from lcd.envs.protocols import Pairs, offers
from lcd.pipelines.check.random_play import Moments
from lcd.pipelines.check.rows import Row

SHAPES, COLOURS = "shapes", "colours"
MOST_PICTURES = 128
SIDE = 16
"""Height and width to which shapes are drawn: squares of any size are one shape."""
LARGER = 1.25
"""How many times as large figures of one shape may be and still look alike; a pixel more always may."""
COMMON = 0.25
"""Share of a class's figures that must have a shape for it to be that of the class: others are cut by what is before
them."""
MOST_CLASSES = 64
Shape = tuple[bytes, int, int]
"""How it looks, its height and its width."""


def shape_row(benchmark: Benchmark, task: str, moments: Moments) -> Row:
    """Whether several classes have one shape in the view of figures."""
    if not {FIGURE_GROUND, SEMANTIC} <= set(moments.seen):
        return Row(SHAPES, "not judged", f"it takes the views {FIGURE_GROUND} and {SEMANTIC}.", task=task)
    figures, classes = (_pictures(moments.seen[view]) for view in (FIGURE_GROUND, SEMANTIC))
    if figures is None or classes is None or figures.shape[:3] != classes.shape[:3]:
        return Row(SHAPES, "not judged", "masks are no pictures of one size.", task=task)
    coded = classes.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1])
    if len(np.unique(coded)) > MOST_CLASSES:
        told = f"'{SEMANTIC}' has more than {MOST_CLASSES} colours: it shows no classes."
        return Row(SHAPES, "not judged", told, task=task)
    known = _names(benchmark, task)
    groups = _alike(_shapes(figures[..., 0], coded))
    if not groups:
        return Row(SHAPES, "pass", f"classes have shapes or greys of their own in '{FIGURE_GROUND}'.", task=task)
    told = "; ".join(_listed([known.get(each, _unnamed(each)) for each in group]) for group in groups)
    fix = "give each a shape or a grey of its own there (masks=: figure), or leave the view out: study.views="
    fix += f"[pixels,{SEMANTIC}]; nothing, where their places tell them apart"
    return Row(SHAPES, "warn", f"{told} have one shape in '{FIGURE_GROUND}'.", fix, task)


def unseen_colours(benchmark: Benchmark, task: str, moments: Moments) -> Iterator[Row]:
    """Whether each class of a table of colours was seen."""
    if SEMANTIC not in moments.seen:
        return
    seen = moments.seen[SEMANTIC]
    lacking = unseen_classes(benchmark, task, seen)
    if lacking is None:
        return
    pictures = f"{seen.shape[0] * seen.shape[1]:,} pictures"
    for name in lacking:
        fix = "give the exact colour (lcd view shows pictures), or a larger size (study.knobs.size=) of what is thin"
        yield Row(COLOURS, "warn", f"the colour of {name} was in none of {pictures}.", fix, task)
    if not lacking:
        yield Row(COLOURS, "pass", f"each colour of the table was in some of {pictures}.", task=task)


def _pictures(seen: np.ndarray) -> np.ndarray | None:
    """Some of the newest pictures that observations stack as channels, (pictures, height, width, 3)."""
    if seen.ndim != 5 or seen.dtype != np.uint8:
        return None
    rows = seen.reshape(-1, *seen.shape[2:])
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, MOST_PICTURES).round().astype(int))]
    return rows[..., -3:] if rows.shape[-1] % 3 == 0 else np.repeat(rows[..., -1:], 3, -1)


def _names(benchmark: Benchmark, task: str) -> dict[int, str]:
    """What the colours of the view of classes stand for, but for its background; empty where nobody says."""
    if not offers(benchmark, Pairs):
        return {}
    named = zip(benchmark.intensities(task, SEMANTIC), benchmark.label_names(task, SEMANTIC), strict=False)
    return {grey * 0x010101: name for grey, name in list(named)[1:]}


def _unnamed(code: int) -> str:
    red, green, blue = code >> 16, code >> 8 & 255, code & 255
    return f"grey {red}" if red == green == blue else f"colour {code:06x}"


def _shapes(figures: np.ndarray, coded: np.ndarray) -> dict[int, Counter[Shape]]:
    """Class → how often it has which shape."""
    from scipy import ndimage

    ground = int(np.bincount(figures.ravel()).argmax())
    values, counts = np.unique(coded, return_counts=True)
    nothing = values[counts.argmax()]
    found: dict[int, Counter[Shape]] = defaultdict(Counter)
    for shown, classes in zip(figures, coded, strict=True):
        for code in np.unique(classes[classes != nothing]):
            parts, _ = ndimage.label(classes == code, np.ones((3, 3)))
            for number, place in enumerate(ndimage.find_objects(parts), 1):
                # A figure may be drawn otherwise in either view, but what is before it is another one's.
                own = (parts[place] == number) | (classes[place] == nothing)
                if (drawn := _cut_out(np.where(own, shown[place], ground), ground)) is not None:
                    found[int(code)][resized(drawn, (SIDE, SIDE)).tobytes(), *drawn.shape] += 1
    return found


def _cut_out(drawn: np.ndarray, ground: int) -> np.ndarray | None:
    """The smallest box that holds all but the ground; None where there is nothing."""
    rows, columns = (np.flatnonzero((drawn != ground).any(axis)) for axis in (1, 0))
    return drawn[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] if len(rows) else None


def _alike(shapes: dict[int, Counter[Shape]]) -> list[list[int]]:
    """Classes that have one shape, together."""
    common: dict[bytes, list[tuple[int, int, int]]] = defaultdict(list)
    for code, counted in shapes.items():
        for (look, height, width), times in counted.items():
            if times >= COMMON * counted.total():
                common[look].append((code, height, width))
    pairs = (pair for members in common.values() for pair in combinations(members, 2))
    return _joined([{one, other} for (one, *size), (other, *its) in pairs if one != other and _as_large(size, its)])


def _as_large(size: list[int], other: list[int]) -> bool:
    """Whether figures of two heights and widths look as large."""
    sides = (sorted(pair) for pair in zip(size, other, strict=True))
    return all(large <= max(small + 1, LARGER * small) for small, large in sides)


def _joined(groups: list[set[int]]) -> list[list[int]]:
    """Groups that have a member in common, as one."""
    found: list[set[int]] = []
    for group in groups:
        near = [each for each in found if each & group]
        found = [each for each in found if not each & group] + [group.union(*near)]
    return sorted(sorted(group) for group in found)


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
