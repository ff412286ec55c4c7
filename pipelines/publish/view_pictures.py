"""What tasks look like under each view: taken when a study is made, kept in its folder for the report."""

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from lcd.config.schema_parts import BenchmarkConfig, TaskConfig
from lcd.config.schemas import ViewConfig
from lcd.files.atomic import write_atomic
from lcd.files.slugs import slug
from lcd.pipelines.study.configs import RunConfig, task_name
from lcd.pipelines.study.store import Study
from lcd.scores.contrasts import PERCEPTION

FOLDER = "views"
MOMENT = 12
"""Steps of random actions before the picture, so that something has happened."""
MOST_BYTES = 400_000
PNG = b"\x89PNG\r\n\x1a\n"


def take_pictures(study: Study, run_configs: Iterable[RunConfig]) -> None:
    """Picture the tasks of runs under the views they are trained with, those that are not pictured yet.

    A picture that cannot be taken is left out: nothing depends on it.
    """
    wanted: dict[str, tuple[RunConfig, set[str]]] = {}
    for config in run_configs:
        wanted.setdefault(task_name(config), (config, set()))[1].add(config["view"])
    for name, (config, views) in wanted.items():
        places = {view: _picture_path(study, name, view) for view in sorted(views & set(PERCEPTION.values))}
        if places and not all(path.is_file() for path in places.values()):
            try:
                shown = _one_moment(config, list(places))
            except Exception:  # a stranger's environment may fail in any way
                continue
            for view, image in shown.items():
                if not places[view].exists():
                    places[view].parent.mkdir(parents=True, exist_ok=True)
                    write_atomic(places[view], _png(image))


def read_pictures(study: Study) -> dict[str, dict[str, bytes]]:
    """Task to view to the content of a PNG file, as far as the study has them."""
    found: dict[str, dict[str, bytes]] = {}
    for run in study.trainings():
        name = task_name(run.config)
        for view in PERCEPTION.values:
            path = _picture_path(study, name, view)
            if view not in found.get(name, {}) and path.is_file() and path.stat().st_size <= MOST_BYTES:
                content = path.read_bytes()
                if content.startswith(PNG):
                    found.setdefault(name, {})[view] = content
    return found


def _picture_path(study: Study, task: str, view: str) -> Path:
    return study.path / FOLDER / slug(task)[:120] / f"{view}.png"


def _one_moment(config: RunConfig, views: list[str]) -> dict[str, np.ndarray]:
    """One moment of a task under each view; masks with labels in a colour for each."""
    from lcd.envs.benchmarks import get_benchmark
    from lcd.envs.protocols import Pairs, offers
    from lcd.pipelines.publish.sheets import labelled_moment
    from lcd.pipelines.publish.view import frames

    benchmark = get_benchmark(config["benchmark"])
    cfg = ViewConfig(
        benchmark=BenchmarkConfig(name=config["benchmark"]),
        task=TaskConfig(name=config["task"], knobs=dict(config["knobs"])),
        steps=MOMENT,
        levels=1,
        frames=4 * MOMENT,
    )
    if offers(benchmark, Pairs):
        return labelled_moment(benchmark, cfg, views)
    return {view: frames(benchmark, view, cfg)[-1][0] for view in views}


def _png(image: np.ndarray) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    grey = image.shape[2:] == (1,)
    Image.fromarray(np.ascontiguousarray(image[..., 0] if grey else image, dtype=np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()
