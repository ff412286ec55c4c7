"""Films of held-out episodes for a tracker that wants some: what is played, and what comes of it, stays the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lcd.agents.evaluate import EveryTask
from lcd.files.atomic import make_folder, replacing
from lcd.pipelines.publish.track import Tracker

FOLDER = "films"
FRAME_MS = 66
SMALLEST = 128
"""Pixels of a picture's shorter side, at the least; smaller ones are shown in larger squares."""


class Films:
    """Plays a run's evaluations, and of every so many keeps a film.

    Args:
        folder: the run's.
        tracker: how many it wants, and who gets them.
        every: environment steps of a seed between two evaluations; 0: no film is made.
    """

    def __init__(self, folder: Path, tracker: Tracker, every: int):
        self.folder, self.tracker, self.every = folder, tracker, every
        self.pending: list[tuple[int, Path]] = []

    def play(
        self, evaluators: Mapping[str, EveryTask | Callable[[Any, int], Any]], agent: Any, step: int
    ) -> dict[str, Any]:
        """What each split's evaluators find."""
        found: dict[str, Any] = {}
        for split, evaluator in evaluators.items():
            if split == "eval" and self._wanted(step) and isinstance(evaluator, EveryTask):
                found[split], frames = evaluator.filmed(agent, step)
                self._keep(frames, step)
            else:
                found[split] = evaluator(agent, step)
        return found

    def _wanted(self, step: int) -> bool:
        return self.tracker.videos > 0 and self.every > 0 and step // self.every % self.tracker.videos == 0

    def _keep(self, frames: Sequence[np.ndarray], step: int) -> None:
        if frames:
            path = self.folder / FOLDER / f"step-{step:012d}.gif"
            make_folder(path.parent)
            save_gif(frames, path)
            self.pending.append((step, path))

    def mirror_kept(self) -> None:
        """Send what earlier starts of the run have filmed."""
        for path in sorted((self.folder / FOLDER).glob("step-*.gif")) if self.tracker.videos else ():
            self.tracker.log_video(int(path.stem.removeprefix("step-")), path)

    def mirror(self) -> None:
        """Send the films that are not sent yet."""
        sent, self.pending = self.pending, []
        for step, path in sent:
            self.tracker.log_video(step, path)


def save_gif(frames: Sequence[np.ndarray], path: Path) -> None:
    """Write pictures as a film that goes round."""
    from PIL import Image

    scale = max(1, -(-SMALLEST // min(frames[0].shape[:2])))
    pictures = [Image.fromarray(_shown(frame).repeat(scale, axis=0).repeat(scale, axis=1)) for frame in frames]
    with replacing(path) as file:
        pictures[0].save(file, format="GIF", save_all=True, append_images=pictures[1:], duration=FRAME_MS, loop=0)


def _shown(frame: np.ndarray) -> np.ndarray:
    """Three colours are shown as they are; of anything else the first channel, in grey."""
    if frame.ndim == 3 and frame.shape[-1] != 3:
        frame = frame[..., 0]
    return frame
