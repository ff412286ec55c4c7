"""How well a front-end's maps show a benchmark's objects, beside simple ways of finding them.

Benchmarks with paired views (`make_pairs`, and labels for names) know the truth. Videos of held-out levels under random
actions are divided in two: on one half the map and its threshold are chosen for each class, the other half scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.table import Table
from torch import nn

from lcd.envs.benchmarks import Benchmark
from lcd.envs.errors import InputError
from lcd.envs.protocols import Pairs, offers
from lcd.envs.streams import seed_sequence
from lcd.frontends.objectness import (
    Candidate,
    Frames,
    Maps,
    best_candidates,
    colour_clusters,
    frame_differences,
    iou,
    rand_index,
)
from lcd.frontends.protocols import HasMaps, HasUntrainedTwin
from lcd.report.seeing import COLOUR, DIFFERENCE, FIGURE, OWN, UNTRAINED, summary
from lcd.scores.contrasts import PERCEPTION

SEEN = PERCEPTION.baseline
LABELS = "labels"
"""The paired views: what a front-end sees, and the number of the class that each pixel shows."""

VIDEOS, LENGTH, STRIDE = 16, 8, 8
"""Videos of each half, frames of a video, and steps from one to the next."""
BATCH = 32
KEPT = "objectness.csv"
"""The file of a pretraining's run that holds its measurements."""


def collect_frames(benchmark: Pairs, task: str, videos: int, seed: int, **knobs: Any) -> Frames:
    """Frames of `videos` held-out videos of a task, with their neighbours in time and their labels."""
    env = benchmark.make_pairs(task, split="eval", num_envs=videos, seed=seed, views=(SEEN, LABELS), **knobs)
    try:
        env.action_space.seed(int(seed_sequence(seed, "exploration").generate_state(1)[0]))
        observations, _ = env.reset()
        pixels, labels = [observations[SEEN]], [observations[LABELS][..., 0]]
        fresh = [np.ones(videos, bool)]
        while len(pixels) < STRIDE * LENGTH + 2:
            observations, _, terminated, truncated, _ = env.step(env.action_space.sample())
            pixels.append(observations[SEEN])
            labels.append(observations[LABELS][..., 0])
            fresh.append(terminated | truncated)
    finally:
        env.close()
    parts: list[tuple[np.ndarray, ...]] = []
    for t in range(STRIDE, len(pixels) - 1, STRIDE):
        # Neighbours of another episode are none.
        whole = np.flatnonzero(~fresh[t] & ~fresh[t + 1])
        parts.append((pixels[t - 1][whole], pixels[t][whole], pixels[t + 1][whole], labels[t][whole], whole))
    return Frames(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def maps_of(frontend: nn.Module) -> Maps:
    """A front-end's maps as something to score; it sees one frame at a time."""
    device = next((tensor.device for tensor in frontend.state_dict().values()), torch.device("cpu"))
    if not offers(frontend, HasMaps):
        raise InputError(
            f"frontend={type(frontend).__name__} has no maps to measure: it needs a method maps(observations), "
            "as flow, clip and backbone have."
        )

    @torch.no_grad()
    def maps(frames: Frames) -> np.ndarray:
        parts = torch.from_numpy(np.ascontiguousarray(frames.now)).split(BATCH)
        return torch.cat([frontend.maps(part.to(device)).float().cpu() for part in parts]).numpy()

    return maps


def classes(benchmark: Pairs, task: str, frames: Frames) -> dict[str, np.ndarray]:
    """Class → its pixels, (N, H, W); `objects` is all of them together."""
    names = benchmark.label_names(task, PERCEPTION.variants[-1])
    masks = {name: frames.labels == label for label, name in enumerate(names) if label > 0}
    return {FIGURE: frames.labels > 0} | masks


def score(chosen: dict[str, Candidate], maps: np.ndarray, frames: Frames, masks: dict[str, np.ndarray]) -> pd.DataFrame:
    """A row a class: IoU and adjusted Rand index over the frames that show it, and the IoU's error over videos."""
    rows = []
    changed = (frames.now != frames.before).any(-1)
    for name, candidate in chosen.items():
        visible = masks[name].any((-2, -1))
        if not visible.any():
            continue
        found, true = candidate.finds(maps[visible]), masks[name][visible]
        of_video = pd.Series(iou(found, true)).groupby(frames.video[visible]).mean()
        rows.append(
            {
                "class": name,
                "iou": iou(found, true).mean(),
                "iou_error": of_video.sem() if len(of_video) > 1 else np.nan,
                "rand": rand_index(found, true).mean(),
                "share": true.mean(),
                "changes": changed[visible][true].mean(),
                "frames": int(visible.sum()),
                "videos": len(of_video),
                **candidate._asdict(),
            }
        )
    return pd.DataFrame(rows)


class Objectness:
    """Measures front-ends on the same frames: films and baselines are made once.

    Args:
        benchmark: one with paired views.
        tasks: which of its tasks.
        seed: of the videos.
        videos: of each half.
        knobs: passed on to the environments.
    """

    def __init__(self, benchmark: Benchmark, tasks: Sequence[str], seed: int = 0, videos: int = VIDEOS, **knobs: Any):
        if not offers(benchmark, Pairs):
            raise InputError(
                f"benchmark={benchmark.name} has no paired views: objectness needs true masks, as procgen has."
            )
        self.benchmark: Pairs = benchmark
        self.tasks = list(tasks)
        self.frames = {task: collect_frames(benchmark, task, 2 * videos, seed, **knobs) for task in self.tasks}
        self.videos = videos
        self._compared: pd.DataFrame | None = None

    def halves(self, task: str) -> tuple[Frames, Frames]:
        """The frames that choose and the frames that score, of different videos."""
        frames = self.frames[task]
        first = frames.video < self.videos
        return frames.of(first), frames.of(~first)

    def measure(self, ways: dict[str, Callable[[Frames], Maps]], tell: Callable[[str], object] = str) -> pd.DataFrame:
        """A row a task, a way of finding objects, and a class.

        Args:
            ways: name → from the frames that choose to maps of frames.
            tell: called with what is being done.
        """
        tables = []
        for task in self.tasks:
            choosing, scoring = self.halves(task)
            for name, way in ways.items():
                tell(f"{task}: {name}")
                maps = way(choosing)
                best = best_candidates(maps(choosing), classes(self.benchmark, task, choosing))
                chosen = {of: candidate for of, (_, candidate) in best.items()}
                table = score(chosen, maps(scoring), scoring, classes(self.benchmark, task, scoring))
                table.insert(0, "task", task)
                table.insert(1, "by", name)
                tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def __call__(self, frontend: nn.Module) -> pd.DataFrame:
        """The table of a front-end and its baselines, as pretraining takes it now and then."""
        if self._compared is None:
            self._compared = self.measure(baselines(frontend))
        return pd.concat([self.measure({OWN: lambda _: maps_of(frontend)}), self._compared], ignore_index=True)


def baselines(frontend: nn.Module) -> dict[str, Callable[[Frames], Maps]]:
    """What a front-end is compared with; the untrained encoder has its sizes where it tells them (`config`)."""
    found: dict[str, Callable[[Frames], Maps]] = {COLOUR: colour_clusters, DIFFERENCE: lambda _: frame_differences}
    untrained = untrained_like(frontend)
    return found if untrained is None else {UNTRAINED: lambda _: maps_of(untrained), **found}


def untrained_like(frontend: nn.Module) -> nn.Module | None:
    """An encoder of the same build before any training, where a front-end knows how to make one."""
    return frontend.untrained_twin() if offers(frontend, HasUntrainedTwin) else None


def summary_table(table: pd.DataFrame) -> Table:
    """The summary, for the terminal."""
    made = Table("task", "by", "class IoU", "object IoU", "object Rand", box=None, pad_edge=False)
    for row in summary(table).itertuples(index=False):
        made.add_row(*row[:2], *(f"{value:.3f}" for value in row[2:]))
    return made


def draw(objectness: Objectness, task: str, maps: Maps, out: Path, frames: int = 6) -> None:
    """A sheet: frames, true masks, the best map for all objects, and that map thresholded.

    Where the frames that choose show no object there is nothing to draw.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    choosing, scoring = objectness.halves(task)
    best = best_candidates(maps(choosing), {FIGURE: choosing.labels > 0})
    if not best:
        return
    candidate = best[FIGURE][1]
    moment = scoring.of(np.linspace(0, len(scoring.now) - 1, frames).astype(int))
    found = maps(moment)
    rows: dict[str, Iterable[np.ndarray]] = {
        "frame": moment.now,
        "true classes": moment.labels,
        f"map {candidate.map}": found[:, candidate.map],
        "thresholded": candidate.finds(found),
    }
    figure = Figure(figsize=(1.3 * frames, 1.3 * len(rows) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(task, fontsize=9)
    for line, (name, images) in zip(figure.subplots(len(rows), frames, squeeze=False), rows.items(), strict=True):
        line[0].set_ylabel(name, fontsize=8)
        for axis, image in zip(line, images, strict=True):
            axis.imshow(image, interpolation="nearest", cmap="nipy_spectral" if name == "true classes" else "viridis")
            axis.set_xticks([])
            axis.set_yticks([])
    figure.savefig(out, dpi=120)
