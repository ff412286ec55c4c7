"""Videos of a benchmark's tasks on disk, from which pretraining draws pairs of frames.

videos/<hash of what was asked for>/<task>-<split>.bin     one compressed block a video, one after the other
                                   <task>-<split>.json    where each begins, its length, colours' sums, data hash

A video is consecutive frames of one episode, each stored as what changed since the one before. The JSON comes last:
without it the videos of that task are recorded anew. Only the frames that are asked for are ever in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from lcd.agents.stepping import Stepper
from lcd.envs.benchmarks import Benchmark, make_copies
from lcd.envs.errors import InputError
from lcd.envs.streams import seed_sequence
from lcd.files.atomic import make_folder, replacing, write_atomic
from lcd.files.reading import read_json
from lcd.files.slugs import slug
from lcd.pipelines.jobs.players import Policy

LEVEL = 1
"""Of zlib: more takes three times as long and saves a tenth."""
SPLITS = ("train", "eval")
IMAGE = 3
"""Axes of a frame."""
NEAR = 2
"""Farthest neighbour that stands for what moves alike, in pixels along each axis."""


@dataclass(frozen=True)
class Index:
    """What is known about the videos of one task and split."""

    frame: tuple[int, int, int]
    """Height, width and colours."""
    starts: list[int]
    lengths: list[int]
    bytes: int
    """Of the file with the frames."""
    sums: list[float]
    squares: list[float]
    """Sums of each colour's values and of their squares, over all pixels."""
    sha256: str
    """Of all frames, uncompressed."""

    def check(self) -> None:
        """Refuse, by a `ValueError`, what can be no index: somebody may have edited it."""
        counts = [*self.frame, *self.starts, *self.lengths, self.bytes]
        whole = all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts)
        numbers = all(isinstance(number, int | float) for number in (*self.sums, *self.squares))
        fits = len(self.frame) == IMAGE and len(self.starts) == len(self.lengths) > 0
        if not (whole and numbers and fits and len(self.sums) == len(self.squares) == self.frame[-1]):
            raise ValueError("no index of videos")


class VideoFile:
    """The videos of one task and split, read a frame at a time.

    Args:
        path: without its ending.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            found = read_json(_with(path, ".json"))
            self.index = Index(**{**found, "frame": tuple(found["frame"])})
            self.index.check()
            size = _with(path, ".bin").stat().st_size
        except (OSError, ValueError, TypeError, KeyError):
            raise InputError(f"The videos {path} are not whole: remove them, and they are recorded anew.") from None
        if size != self.index.bytes:
            raise InputError(f"The videos {path}.bin are cut off: remove {path}.json, and they are recorded anew.")
        self._ends = [*self.index.starts[1:], self.index.bytes]
        self._file = os.open(_with(path, ".bin"), os.O_RDONLY)

    def __len__(self) -> int:
        return len(self.index.starts)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def frames(self, video: int, first: int, count: int) -> np.ndarray:
        """uint8 (count, H, W, C): some consecutive frames of a video."""
        start, each = self.index.starts[video], int(np.prod(self.index.frame))
        wanted = (first + count) * each
        try:
            block = os.pread(self._file, self._ends[video] - start, start)
            content = zlib.decompressobj().decompress(block, wanted)
            changes = np.frombuffer(content, np.uint8, wanted).reshape(first + count, *self.index.frame)
        except (zlib.error, ValueError):
            raise InputError(
                f"The videos {self.path}.bin are damaged: remove {self.path}.json, and they are recorded anew."
            ) from None
        return np.bitwise_xor.accumulate(changes, 0)[first:]


def open_videos(path: Path) -> VideoFile | None:
    """The videos at a path, None where they are not recorded yet."""
    return VideoFile(path) if _with(path, ".json").is_file() else None


def record(
    path: Path, env: Any, policy: Policy, videos: int, length: int, least: int, watch: Callable[[int], None]
) -> VideoFile:
    """Record videos of one task.

    Args:
        path: of the files, without their ending.
        env: the copies that are filmed.
        policy: acts.
        videos: how many.
        length: most frames of a video; an episode's end ends it earlier.
        least: fewest frames that make a video.
        watch: called with the number of videos so far.
    """
    digest, starts, lengths = hashlib.sha256(), [], []
    sums = np.zeros((2, env.single_observation_space.shape[-1]))
    with replacing(_with(path, ".bin")) as file:
        for frames in _endless_videos(env, policy, length, least):
            digest.update(frames.data)
            pixels = frames.reshape(-1, frames.shape[-1]).astype(np.float64) / 255
            sums += pixels.sum(0), np.square(pixels).sum(0)
            starts.append(file.tell())
            lengths.append(len(frames))
            changes = np.concatenate([frames[:1], frames[1:] ^ frames[:-1]])
            file.write(zlib.compress(changes.tobytes(), LEVEL))
            watch(len(starts))
            if len(starts) == videos:
                break
        size = file.tell()
    total, squares = sums.tolist()
    index = Index(env.single_observation_space.shape, starts, lengths, size, total, squares, digest.hexdigest())
    write_atomic(_with(path, ".json"), json.dumps(asdict(index)))
    return VideoFile(path)


def _endless_videos(env: Any, policy: Policy, length: int, least: int) -> Iterator[np.ndarray]:
    """Videos without end, as copies finish them."""
    stepper = Stepper(env)
    observations = stepper.reset()
    policy.begin(env.num_envs)
    running: list[list[np.ndarray]] = [[frame.copy()] for frame in observations]
    barren = 0
    while True:
        step = stepper.step(policy(observations))
        policy.stepped(step)
        observations = step.observations
        for copy, frames in enumerate(running):
            ended = bool(step.dones[copy]) or not step.valid[copy]
            if not ended:
                frames.append(observations[copy].copy())
            if ended or len(frames) == length:
                if len(frames) >= least:
                    barren = 0
                    yield np.stack(frames)
                # The last frame of a whole video is the next one's first, so that no change between frames is lost.
                running[copy] = [observations[copy].copy()]
        barren += 1
        if barren > 1000 * length:
            raise InputError(
                f"Episodes end before {least} frames, so that nothing is seen moving: make pretraining.videos.gap less."
            )


def record_videos(
    folder: Path,
    benchmark: Benchmark,
    tasks: Sequence[str],
    asked: Mapping[str, Any],
    policy_for: Callable[[str, Any], Policy],
    watch: Callable[[str, int, int], None],
) -> dict[str, dict[str, VideoFile]]:
    """The videos of all tasks, by split and task; recorded where they are not there yet.

    Args:
        folder: where they live.
        asked: what `VideosEntry` says.
        policy_for: the policy that acts in a task's environment.
        watch: called with a task, videos so far, videos in all.
    """
    make_folder(folder)
    counts = dict(zip(SPLITS, (asked["count"], asked["held_out"]), strict=True))
    found: dict[str, dict[str, VideoFile]] = {split: {} for split in counts}
    for split, count in counts.items():
        for task in tasks:
            path = folder / f"{slug(task)}-{split}"
            found[split][task] = open_videos(path) or _record_task(
                path, benchmark, task, split, count, asked, policy_for, watch
            )
    return found


def _record_task(
    path: Path,
    benchmark: Benchmark,
    task: str,
    split: str,
    count: int,
    asked: Mapping[str, Any],
    policy_for: Callable[[str, Any], Policy],
    watch: Callable[[str, int, int], None],
) -> VideoFile:
    seed = int(seed_sequence(asked["seed"], "videos", split).generate_state(1)[0])
    copies = min(asked["copies"], count)
    env = make_copies(benchmark, task, view=asked["view"], split=split, num_envs=copies, seed=seed, **asked["knobs"])
    try:
        space = env.single_observation_space
        if len(space.shape) != IMAGE or space.dtype != np.uint8:
            raise InputError(f"view={asked['view']} of {task} shows no images: there is nothing to film.")
        return record(
            path,
            env,
            policy_for(task, env),
            count,
            asked["length"],
            span(asked) + 1,
            lambda done: watch(f"{task} ({split})", done, count),
        )
    finally:
        env.close()


def span(asked: Mapping[str, Any]) -> int:
    """Steps from the first to the last of the frames that belong together."""
    return int(asked["gap"]) * (int(asked.get("frames", Pairs.frames)) - 1)


def recorded(folder: Path, tasks: Sequence[str]) -> dict[str, dict[str, VideoFile]]:
    """The videos of all tasks that `record_videos` has recorded, by split and task."""
    return {split: {task: VideoFile(folder / f"{slug(task)}-{split}") for task in tasks} for split in SPLITS}


def statistics(files: Mapping[str, VideoFile]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each colour, in 0–1, over all frames of some tasks."""
    pixels = sum(sum(file.index.lengths) * np.prod(file.index.frame[:2]) for file in files.values())
    mean = np.sum([file.index.sums for file in files.values()], 0) / pixels
    square = np.sum([file.index.squares for file in files.values()], 0) / pixels
    # A colour that hardly varies must not be blown up.
    return mean.tolist(), np.sqrt(np.maximum(square - mean**2, 1e-4)).tolist()


def data_hash(files: Mapping[str, VideoFile]) -> str:
    """One hash of all videos of some tasks."""
    told = json.dumps({task: file.index.sha256 for task, file in sorted(files.items())})
    return hashlib.sha256(told.encode()).hexdigest()


def _with(path: Path, ending: str) -> Path:
    """A path with an ending; names of tasks may hold dots."""
    return path.with_name(path.name + ending)


class Pairs(IterableDataset):
    """Batches of pairs of frames, drawn anew for every iteration from a stream that the iteration names.

    Args:
        files: the videos of each task.
        batch: pairs in a batch.
        gap: steps between one frame of a pair and the next.
        total: batches in all.
        seed: the run's.
    """

    frames = 2
    """Frames that belong together."""

    def __init__(self, files: Mapping[str, VideoFile], batch: int, gap: int, total: int, seed: int):
        self.files, self.batch, self.gap, self.total, self.seed = list(files.values()), batch, gap, total, seed
        self.places = [(file, video) for file in self.files for video in range(len(file))]
        self.iteration = 0

    def __len__(self) -> int:
        return self.total

    def __iter__(self) -> Iterator[Any]:
        while self.iteration < self.total:
            batch = self.draw(self.iteration)
            self.iteration += 1
            yield batch

    def draw(self, iteration: int) -> Any:
        """uint8 (2, batch, H, W, C): the first frames, and those that follow."""
        rng = np.random.default_rng(seed_sequence(self.seed, "shuffle", iteration))
        return self._drawn([self.places[index] for index in rng.integers(len(self.places), size=self.batch)], rng)

    def measured(self, most: int) -> Tensor:
        """The same frames every time, from as many videos as there are."""
        rng = np.random.default_rng(seed_sequence(self.seed, "evaluation"))
        count = min(most, 4 * len(self.places))
        return self._drawn([self.places[index % len(self.places)] for index in range(count)], rng)

    def _drawn(self, chosen: Sequence[tuple[VideoFile, int]], rng: np.random.Generator) -> Tensor:
        return torch.from_numpy(np.stack([self._together(file, video, rng.random()) for file, video in chosen], axis=1))

    def _together(self, file: VideoFile, video: int, draw: float) -> np.ndarray:
        span = self.gap * (self.frames - 1)
        first = int(draw * (file.index.lengths[video] - span))
        return file.frames(video, first, span + 1)[:: self.gap]

    def state_dict(self) -> dict[str, int]:
        """All that the next batches depend on."""
        return {"iteration": self.iteration}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue from a checkpoint."""
        self.iteration = state["iteration"]


class Moments(NamedTuple):
    """A batch for an encoder of groups."""

    frames: Tensor
    """uint8 (3, batch, H, W, C): before, now, after."""
    tasks: Tensor
    """Of which task each is, int64 (batch,)."""
    offsets: list[tuple[int, int]]
    """By how many rows and columns each frame of now, then of after, is moved around its borders."""
    neighbour: tuple[int, int]
    """Rows and columns to the neighbour that stands for what moves alike."""


class Triples(Pairs):
    """Batches of three frames each, as many of one task as of another, with all else that grouping draws."""

    frames = 3

    def draw(self, iteration: int) -> Moments:
        """The batch of an iteration."""
        rng = np.random.default_rng(seed_sequence(self.seed, "shuffle", iteration))
        tasks = (iteration * self.batch + np.arange(self.batch)) % len(self.files)
        files = [self.files[task] for task in tasks]
        frames = self._drawn([(file, int(rng.integers(len(file)))) for file in files], rng)
        offsets = [(int(row), int(column)) for row, column in rng.integers(frames.shape[2:4], size=(2 * self.batch, 2))]
        row, column = rng.integers(-NEAR, NEAR + 1, size=2).tolist()
        return Moments(frames, torch.from_numpy(tasks), offsets, (row, column))
