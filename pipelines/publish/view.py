"""`lcd view`: a contact sheet of a task, rows = views, columns = successive steps; or `lcd.pipelines.publish.sheets`'.

A task that has a graph gets a picture of it, too.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lcd.config.schemas import ViewConfig
from lcd.envs.benchmarks import Benchmark, get_benchmark, make_copies
from lcd.envs.errors import InputError
from lcd.envs.protocols import Graphs, Pairs, offers
from lcd.envs.streams import seed_sequence
from lcd.files import outputs
from lcd.pipelines.publish.graph_pictures import draw_graph
from lcd.pipelines.study import needs
from lcd.pipelines.study.parts import check_names
from lcd.scores.contrasts import PERCEPTION

TILE_INCHES = 1.1


def run(cfg: ViewConfig) -> int:
    """Write the sheets as PNG and print their paths; returns the exit code."""
    benchmark = get_benchmark(cfg.benchmark.name)
    whole = cfg.task.name == cfg.benchmark.name
    if not whole:
        check_names("task", [cfg.task.name], benchmark.tasks, cfg.benchmark.name)
    views = [cfg.view] if cfg.view is not None else [view for view in benchmark.views if view in PERCEPTION.values]
    check_names("view", views, benchmark.views, cfg.benchmark.name)
    needs.check_sheets(cfg, len(views))
    place = Path(cfg.out or ("." if whole else f"{_file(cfg.task.name)}.png")).expanduser()
    if not whole and place.suffix.lower() != ".png":
        raise InputError(f"out={place} must end in .png.")
    for task in benchmark.tasks if whole else [cfg.task.name]:
        _draw(benchmark, replace(cfg, task=replace(cfg.task, name=task)), views, _path(place, task, whole))
    return 0


def _file(task: str) -> str:
    return task.replace("/", "-")


def _path(place: Path, task: str, whole: bool) -> Path:
    return place / f"{_file(task)}.png" if whole else place


def _draw(benchmark: Benchmark, cfg: ViewConfig, views: list[str], out: Path) -> None:
    outputs.check_file(out)
    with outputs.drafted_file(out) as draft:
        if offers(benchmark, Pairs):
            from lcd.pipelines.publish.sheets import write_sheets

            written = write_sheets(benchmark, cfg, views, draft)
        else:
            rows = {view: frames(benchmark, view, cfg) for view in views}
            pictures = {
                draft: sheet(rows, f"{cfg.task.name}, seed {cfg.seed}, {cfg.split}"),
                **_graph(benchmark, cfg, draft),
            }
            for place, picture in pictures.items():
                picture.savefig(place, dpi=150)
            written = list(pictures)
    print(*(out.with_name(path.name) for path in written), sep="\n")


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
        if observations.ndim != 4:
            raise InputError(f"view={view} of {cfg.task.name} shows no images: there is nothing to draw.")
        shown = [(observations[0], 0.0)]
        while len(shown) < cfg.steps:
            action = np.asarray([env.single_action_space.sample()])
            observations, rewards, *_ = env.step(action)
            shown.append((observations[0], float(rewards[0])))
    finally:
        env.close()
    return shown


def sheet(rows: dict[str, list[tuple[np.ndarray, float]]], title: str) -> Any:
    """The figure: one row a view, one column a step."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = max(len(shown) for shown in rows.values())
    figure = Figure(figsize=(TILE_INCHES * (columns + 0.4), TILE_INCHES * (len(rows) + 0.5)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=9)
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, (view, shown) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(view, fontsize=8)
        for step, (axis, (image, reward)) in enumerate(zip(line, shown, strict=True)):
            axis.imshow(image, interpolation="nearest")
            axis.set_xticks([])
            axis.set_yticks([])
            axis.set_xlabel(f"{step}" + (f", reward {reward:g}" if reward else ""), fontsize=7)
    return figure
