"""Sheets of a benchmark whose masks have labels: levels under each view, what the labels mean, and all of it moving."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from lcd.config.schemas import ViewConfig
from lcd.envs.gym_ids import unseen_classes
from lcd.envs.masks import SEMANTIC
from lcd.envs.streams import seed_sequence

INCHES = 1.9
LEGEND_INCHES = 2.2
LINE_INCHES = 0.145
FOR_YOU = "colours are for you: the agent\nsees the grey in brackets"
FRAMES_A_SECOND = 10
LASTING = 0.4
"""How often an action changes."""


def write_sheets(benchmark: Any, cfg: ViewConfig, views: Sequence[str], out: Path) -> tuple[list[Path], list[str]]:
    """Write `out` (a row a level, a column a view) and an animation beside it.

    Masks are drawn in a colour for each label; the legend gives the label's number and the grey that agents see.

    Returns:
        Both paths, and sentences on what the pictures lack.
    """
    shown = list(_moments(benchmark, cfg, views))
    colours = {view: _colours(benchmark.label_names(cfg.task.name, view)) for view in views}
    greys = {v: benchmark.intensities(cfg.task.name, v) if len(colours[v]) else () for v in views}
    # Later moments for later rows, so that not all are an episode's first.
    rows = [shown[(level + 1) * len(shown) // cfg.levels - 1] for level in range(cfg.levels)]
    tiles = [[_tile(row[view][level], greys[view], colours[view]) for view in views] for level, row in enumerate(rows)]
    figure = _figure(benchmark, cfg, views, tiles, colours, greys)
    figure.savefig(out, dpi=150)
    # An animated PNG keeps the colours of the legend, for which a GIF's 256 are too few.
    moving = out.with_suffix(".apng")
    _animate(benchmark, cfg, views, shown, colours, greys, moving)
    return [out, moving], _lacking(benchmark, cfg.task.name, shown)


def _lacking(benchmark: Any, task: str, shown: Sequence[dict[str, np.ndarray]]) -> list[str]:
    """A sentence for each class of a table of colours that none of some moments has."""
    if SEMANTIC not in shown[0]:
        return []
    pictures = np.stack([moment[SEMANTIC] for moment in shown])
    count = pictures.shape[0] * pictures.shape[1]
    lacking = unseen_classes(benchmark, task, pictures) or ()
    return [f"{task}: the colour of {name} was in none of {count} pictures." for name in lacking]


def labelled_moment(benchmark: Any, cfg: ViewConfig, views: Sequence[str]) -> dict[str, np.ndarray]:
    """The last of `cfg.frames` moments of one level under each view, masks in a colour for each label."""
    *_, last = _moments(benchmark, cfg, views)
    shown = {}
    for view in views:
        colours = _colours(benchmark.label_names(cfg.task.name, view))
        greys = benchmark.intensities(cfg.task.name, view) if len(colours) else ()
        shown[view] = _tile(last[view][0], greys, colours)
    return shown


def _moments(benchmark: Any, cfg: ViewConfig, views: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
    env = benchmark.make_pairs(
        cfg.task.name, split=cfg.split, num_envs=cfg.levels, seed=cfg.seed, views=tuple(views), **cfg.task.knobs
    )
    try:
        chooser = np.random.default_rng(seed_sequence(cfg.seed, "exploration"))
        observations, _ = env.reset()
        actions = _actions(env.single_action_space, chooser, cfg.levels)
        for _ in range(max(cfg.frames, cfg.levels)):
            yield observations
            # Actions that last, so that something happens.
            new = _actions(env.single_action_space, chooser, cfg.levels)
            changed = chooser.random(cfg.levels) < LASTING
            actions = np.where(changed.reshape(-1, *[1] * (actions.ndim - 1)), new, actions)
            observations, *_ = env.step(actions)
    finally:
        env.close()


def _actions(space: Any, chooser: np.random.Generator, copies: int) -> np.ndarray:
    if isinstance(space, spaces.Discrete):
        return chooser.integers(0, space.n, copies)
    space.seed(int(chooser.integers(2**31)))
    return np.stack([space.sample() for _ in range(copies)])


def _colours(names: Sequence[str]) -> np.ndarray:
    """One colour a label: black for the background, then well apart."""
    from matplotlib import colormaps

    if not names:
        return np.zeros((0, 3), dtype=np.uint8)
    wheel = np.array(colormaps["tab20"].colors)[[0, 6, 4, 2, 8, 18, 12, 16, 10, 5, 1, 14]]
    further = colormaps["turbo"](np.linspace(0, 1, max(len(names) - 1 - len(wheel), 0)))[:, :3]
    return np.concatenate([np.zeros((1, 3)), wheel, further])[: len(names)] @ (255 * np.eye(3)) // 1


def _tile(frames: np.ndarray, greys: Sequence[int], colours: np.ndarray) -> np.ndarray:
    """The newest of the pictures that an observation stacks as channels."""
    frame = frames[..., -3:] if frames.shape[-1] % 3 == 0 else np.repeat(frames[..., -1:], 3, -1)
    if not len(greys):
        return frame
    table = np.zeros((256, 3), dtype=np.uint8)
    # Of labels that share a grey the first one gives the colour: the background, the first figure.
    table[list(greys)[::-1]] = colours[::-1]
    return table[frame[..., 0]]


def _figure(benchmark: Any, cfg: ViewConfig, views: Sequence[str], tiles: Any, colours: Any, greys: Any) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    labelled = [view for view in views if len(greys[view])]
    width = INCHES * len(views) + LEGEND_INCHES * bool(labelled)
    lines = sum(len(greys[view]) + 1 for view in labelled) + FOR_YOU.count("\n") + 1
    height = max(INCHES * len(tiles) + 0.5, LINE_INCHES * lines + 0.3)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{cfg.task.name}, seed {cfg.seed}, {cfg.split}", fontsize=9)
    axes = figure.subplots(len(tiles), len(views), squeeze=False)
    for level, (line, row) in enumerate(zip(axes, tiles, strict=True), 1):
        if len(tiles) > 1:
            line[0].set_ylabel(f"level {level}", fontsize=8)
        for axis, view, tile in zip(line, views, row, strict=True):
            axis.imshow(tile, interpolation="nearest")
            axis.set_xticks([])
            axis.set_yticks([])
            if level == 1:
                axis.set_title(view, fontsize=8)
    _legends(figure, benchmark, cfg.task.name, labelled, colours, greys)
    return figure


def _legends(figure: Any, benchmark: Any, task: str, views: Sequence[str], colours: Any, greys: Any) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(alpha=0, label=FOR_YOU)] if views else []
    for view in views:
        handles.append(Patch(alpha=0, label=f"{view} (grey)"))
        names = benchmark.label_names(task, view)
        for number, name in enumerate(names):
            if name in names[:number]:
                continue
            label = f"{number} {name} ({greys[view][number]})"
            handles.append(Patch(facecolor=colours[view][number] / 255, edgecolor="grey", label=_short(label)))
    if handles:
        figure.legend(handles=handles, loc="outside right upper", fontsize=6, frameon=False)


def _short(text: str) -> str:
    return text if len(text) < 44 else f"{text[:40]} …"


def _animate(
    benchmark: Any, cfg: ViewConfig, views: Sequence[str], shown: Any, colours: Any, greys: Any, out: Path
) -> None:
    """One level, all views side by side, with the sheet's legend at the right."""
    from matplotlib.animation import PillowWriter

    def tiles(moment: Any) -> list[list[np.ndarray]]:
        return [[_tile(moment[view][0], greys[view], colours[view]) for view in views]]

    figure = _figure(benchmark, cfg, views, tiles(shown[0]), colours, greys)
    figure.canvas.draw()
    figure.set_layout_engine("none")  # what has its place stays there
    images = [axis.images[0] for axis in figure.axes]
    writer = PillowWriter(fps=FRAMES_A_SECOND)
    writer.setup(figure, out, dpi=100)
    for moment in shown[: cfg.frames]:
        for image, tile in zip(images, tiles(moment)[0], strict=True):
            image.set_data(tile)
        writer.grab_frame()
    writer.finish()
