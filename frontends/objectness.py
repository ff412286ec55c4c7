"""Do maps show objects? Their agreement with true masks, and simple ways of finding objects to compare with.

A candidate is one map, thresholded, either side of the threshold. For each class the candidate that agrees best on some
frames is chosen there, and scored on others: by its intersection over union with the class, and by the adjusted Rand
index of the two halves into which candidate and class divide the pixels (Hubert and Arabie 1985).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

SHARES = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
"""Thresholds are those that this share of pixels exceeds, or falls short of."""
COLOURS, ROUNDS = 16, 20

Maps = Callable[["Frames"], np.ndarray]
"""Frames → maps (N, K, H, W)."""


class Frames(NamedTuple):
    """Frames with their neighbours in time and their truth."""

    before: np.ndarray
    now: np.ndarray
    after: np.ndarray
    """uint8 (N, H, W, 3)."""
    labels: np.ndarray
    """uint8 (N, H, W): the class of each pixel, 0 for the background."""
    video: np.ndarray
    """(N,): which video a frame is of."""

    def of(self, chosen: np.ndarray) -> Frames:
        """Some of the frames."""
        return Frames(*(part[chosen] for part in self))


class Candidate(NamedTuple):
    """A way to find a class: pixels where `sign * map > sign * threshold`."""

    map: int
    threshold: float
    sign: int

    def finds(self, maps: np.ndarray) -> np.ndarray:
        """The pixels that it picks, (N, H, W)."""
        return self.sign * maps[:, self.map] > self.sign * np.float32(self.threshold)


def iou(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Intersection over union of each frame's pixels, (N,); NaN where both are empty."""
    both, either = (found & true).sum((-2, -1)), (found | true).sum((-2, -1))
    return np.divide(both, either, out=np.full(both.shape, np.nan), where=either > 0)


def rand_index(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Adjusted Rand index of each frame's two halves, (N,); 1 where neither divides the frame."""
    hits, picked, actual = (part.sum((-2, -1)).astype(float) for part in (found & true, found, true))
    number = float(found.shape[-2] * found.shape[-1])
    cells = (hits, picked - hits, actual - hits, number - picked - actual + hits)
    together = sum(_pair_count(cell) for cell in cells)
    by_found = _pair_count(picked) + _pair_count(number - picked)
    by_true = _pair_count(actual) + _pair_count(number - actual)
    expected = by_found * by_true / _pair_count(number)
    spread = (by_found + by_true) / 2 - expected
    return np.divide(together - expected, spread, out=np.ones_like(spread), where=spread != 0)


def _pair_count(number: np.ndarray | float) -> np.ndarray | float:
    return number * (number - 1) / 2


def best_candidates(maps: np.ndarray, masks: dict[str, np.ndarray]) -> dict[str, tuple[float, Candidate]]:
    """For each class the candidate of the greatest mean IoU over the frames that show the class, and that IoU.

    Args:
        maps: (N, K, H, W).
        masks: class → (N, H, W) booleans; a class that no frame shows is left out.
    """
    shown = {name: mask for name, mask in masks.items() if mask.any()}
    if not shown:
        return {}
    true = np.stack([mask.reshape(len(mask), -1) for mask in shown.values()])
    best: dict[str, tuple[float, Candidate]] = {}
    for index in range(maps.shape[1]):
        values = maps[:, index].reshape(len(maps), -1)
        edges = np.unique(np.quantile(values, [*SHARES, *(1 - share for share in SHARES)]).astype(np.float32))
        for sign in (1, -1):
            for name, scores in zip(shown, _mean_ious(values, edges, sign, true), strict=True):
                at = int(scores.argmax())
                if name not in best or scores[at] > best[name][0]:
                    best[name] = float(scores[at]), Candidate(index, float(edges[at]), sign)
    return best


def _mean_ious(values: np.ndarray, edges: np.ndarray, sign: int, true: np.ndarray) -> Iterator[np.ndarray]:
    """For each class the mean IoU, over the frames that show it, with what lies on one side of each threshold.

    Args:
        values: (N, pixels).
        edges: the thresholds, ascending, (T,).
        sign: 1 for what exceeds them, -1 for what falls short of them.
        true: (classes, N, pixels) booleans.
    """
    frames, places = len(values), len(edges) + 1
    # Between which two thresholds a pixel lies is looked up once, and then pixels are only counted.
    bins = np.searchsorted(edges, values, "left" if sign > 0 else "right")
    bins += places * np.arange(frames)[:, None]

    def found(pixels: np.ndarray) -> np.ndarray:
        counts = np.bincount(pixels.ravel(), minlength=frames * places).reshape(frames, places)
        beyond = counts[:, ::-1].cumsum(1)[:, -2::-1] if sign > 0 else counts.cumsum(1)[:, :-1]
        return beyond.astype(np.float32)

    picked = found(bins)
    for mask in true:
        actual = mask.sum(1).astype(np.float32)[:, None]
        hits, seen = found(bins[mask]), actual[:, 0] > 0
        yield (hits[seen] / (actual[seen] + picked[seen] - hits[seen])).mean(0)


def colour_clusters(frames: Frames, seed: int = 0) -> Maps:
    """k-means of the colours (Lloyd 1982): a map for each cluster, with 1 where a pixel is nearest to it."""
    rng = np.random.default_rng(seed)
    pixels = frames.now.reshape(-1, 3)
    pixels = pixels[rng.choice(len(pixels), min(len(pixels), 20_000), replace=False)].astype(np.float32)
    different = np.unique(pixels, axis=0)
    centres = different[rng.choice(len(different), min(COLOURS, len(different)), replace=False)]
    for _ in range(ROUNDS):
        nearest = _nearest(pixels, centres)
        counts = np.bincount(nearest, minlength=len(centres))
        sums = np.stack([np.bincount(nearest, pixels[:, c], len(centres)) for c in range(3)], 1)
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres).astype(np.float32)

    def maps(frames: Frames) -> np.ndarray:
        nearest = _nearest(frames.now.reshape(-1, 3).astype(np.float32), centres).reshape(frames.now.shape[:3])
        return (nearest[:, None] == np.arange(len(centres))[:, None, None]).astype(np.float32)

    return maps


def _nearest(pixels: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return ((centres**2).sum(1) - 2 * pixels @ centres.T).argmin(1)


def frame_differences(frames: Frames) -> np.ndarray:
    """How much a pixel differs from the frame before, from the one after, and from both: what moves."""
    now = frames.now.astype(np.float32)
    before, after = (np.abs(now - other).mean(-1) for other in (frames.before, frames.after))
    return np.stack([before, after, np.minimum(before, after)], 1)
