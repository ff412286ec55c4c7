"""`lcd view`: a contact sheet of a task, rows = views, columns = successive steps; or `lcd.pipelines.publish.sheets`'.

A task that has a graph gets a picture of it, too. Of a task whose views are no images drawings are shown, and of one
with a family some of its points, a row each.
"""

import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from lcd.config.schemas import ViewConfig
from lcd.envs.benchmarks import Benchmark, get_benchmark, make_copies
from lcd.envs.errors import InputError
from lcd.envs.families.family import point_name
from lcd.envs.masks import MASKED
from lcd.envs.protocols import Drawn, Families, Graphs, Pairs, SaysMasks, check_installed, offers
from lcd.envs.streams import seed_sequence
from lcd.files import outputs
from lcd.pipelines.publish.graph_pictures import draw_graph
from lcd.pipelines.study import needs
from lcd.pipelines.study.parts import check_names
from lcd.scores.contrasts import PERCEPTION

TILE_INCHES = 1.1
LINE_INCHES, LETTERS_AN_INCH = 0.14, 17
"""Of what is said below a sheet."""
MOST_POINTS = 6
"""Points of a family on one sheet."""


def run(cfg: ViewConfig) -> int:
    """Write the sheets as PNG and print their paths; returns the exit code."""
    benchmark = get_benchmark(cfg.benchmark.name)
    whole = cfg.task.name == cfg.benchmark.name
    if not whole:
        check_names("task", [cfg.task.name], benchmark.tasks, cfg.benchmark.name)
    check_installed(benchmark, benchmark.tasks if whole else [cfg.task.name])
    images = [view for view in benchmark.views if view in PERCEPTION.values]
    views = [cfg.view] if cfg.view is not None else images or list(benchmark.views)
    check_names("view", views, benchmark.views, cfg.benchmark.name)
    needs.check_sheets(cfg, len(views))
    place = Path(cfg.out or ("." if whole else f"{_file(cfg.task.name)}.png")).expanduser()
    tasks = benchmark.tasks if whole else [cfg.task.name]
    single = place.suffix.lower() == ".png"
    if single and len(tasks) > 1:
        raise InputError(f"out={place} is one file, and {cfg.benchmark.name} has {len(tasks)} tasks: give a folder.")
    if not whole and not single:
        raise InputError(f"out={place} must end in .png.")
    for task in tasks:
        out = place if single else place / f"{_file(task)}.png"
        _draw(benchmark, replace(cfg, task=replace(cfg.task, name=task)), views, out)
    return 0


def _file(task: str) -> str:
    return task.replace("/", "-")


def _draw(benchmark: Benchmark, cfg: ViewConfig, views: list[str], out: Path) -> None:
    outputs.check_file(out)
    remarks: list[str] = []
    with outputs.drafted_file(out) as draft:
        if offers(benchmark, Pairs):
            from lcd.pipelines.publish.sheets import write_sheets

            written, remarks = write_sheets(benchmark, cfg, views, draft)
        else:
            rows = _rows(benchmark, cfg, views)
            pictures = {
                draft: sheet(rows, f"{cfg.task.name}, seed {cfg.seed}, {cfg.split}", _of_masks(benchmark, views)),
                **_graph(benchmark, cfg, draft),
            }
            for place, picture in pictures.items():
                picture.savefig(place, dpi=150)
            written = list(pictures)
    print(*(out.with_name(path.name) for path in written), sep="\n")
    for remark in remarks:
        print(remark, file=sys.stderr)


def _rows(benchmark: Benchmark, cfg: ViewConfig, views: list[str]) -> dict[str, list[tuple[np.ndarray, float]]]:
    """What each row of a sheet shows: a view, or a point of the task's family where no point is asked for."""
    family = benchmark.family(cfg.task.name) if offers(benchmark, Families) else None
    if family is None or cfg.task.knobs or any(view in PERCEPTION.values for view in views):
        return {view: frames(benchmark, view, cfg) for view in views}
    places = np.unique(np.linspace(0, len(family.points) - 1, MOST_POINTS).round().astype(int))
    points = [family.points[place] for place in places]
    tasks = {point_name(point).replace(",", "\n"): replace(cfg.task, knobs=dict(point)) for point in points}
    return {name: frames(benchmark, views[0], replace(cfg, task=task)) for name, task in tasks.items()}


def _graph(benchmark: Benchmark, cfg: ViewConfig, out: Path) -> dict[Path, Any]:
    """The picture of a task's graph, by its path; none where a benchmark has no graphs."""
    if not offers(benchmark, Graphs):
        return {}
    knobs, goal = benchmark.graph(cfg.task.name, cfg.seed, **cfg.task.knobs)
    title = f"{cfg.task.name}, goal ⟨{', '.join(map(str, goal))}⟩"
    return {out.with_name(f"{out.stem}-graph.png"): draw_graph(knobs, goal, title)}


def frames(benchmark: Benchmark, view: str, cfg: ViewConfig) -> list[tuple[np.ndarray, float]]:
    """Images of successive steps and the reward that came with each, under actions that are the same for all views."""
    env = make_copies(benchmark, cfg.task.name, view=view, split=cfg.split, num_envs=1, seed=cfg.seed, **cfg.task.knobs)
    try:
        env.single_action_space.seed(int(seed_sequence(cfg.seed, "exploration").generate_state(1)[0]))
        observations, _ = env.reset()
        shown = [(_picture(env, observations, f"view={view} of {cfg.task.name}"), 0.0)]
        while len(shown) < cfg.steps:
            action = np.asarray([env.single_action_space.sample()])
            observations, rewards, *_ = env.step(action)
            shown.append((_picture(env, observations, view), float(rewards[0])))
    finally:
        env.close()
    return shown


def _picture(env: VectorEnv, observations: np.ndarray, what: str) -> np.ndarray:
    """The first copy's observation where it is an image, else a drawing of the copy."""
    if observations.ndim == 4:
        return observations[0]
    if not offers(env, Drawn):
        raise InputError(f"{what} shows no images: there is nothing to draw.")
    return env.pictures()[0]


def _of_masks(benchmark: Benchmark, views: list[str]) -> str:
    """What a benchmark says of its masks, where some are shown."""
    return benchmark.masks_are if offers(benchmark, SaysMasks) and set(views) & set(MASKED) else ""


def sheet(rows: dict[str, list[tuple[np.ndarray, float]]], title: str, says: str = "") -> Any:
    """The figure: one row a view, one column a step, and below it what is said of them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = max(len(shown) for shown in rows.values())
    width = TILE_INCHES * (columns + 0.4)
    lines = textwrap.wrap(says, max(int(LETTERS_AN_INCH * width), 40))
    height = TILE_INCHES * (len(rows) + 0.5) + LINE_INCHES * len(lines)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if lines:
        figure.supxlabel("\n".join(lines), fontsize=7, x=0.02, ha="left")
    figure.suptitle(title, fontsize=9)
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, (view, shown) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(view, fontsize=8)
        for step, (axis, (image, reward)) in enumerate(zip(line, shown, strict=True)):
            axis.imshow(image, interpolation="nearest", cmap="gray", vmin=0, vmax=255)
            axis.set_xticks([])
            axis.set_yticks([])
            axis.set_xlabel(f"{step}" + (f", reward {reward:.3g}" if reward else ""), fontsize=7)
    return figure
