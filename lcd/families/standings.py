"""Who ranks where: over distributions of a family, and over every choice of one point of each of several tasks."""

from collections.abc import Iterator, Sequence

import numpy as np

from lcd.envs.errors import InputError

TIE = 1e-9
"""Performances that differ by less are the same."""
MOST_CHOICES = 2e7
"""Of one point a task: a report takes seconds, and half a gigabyte, for as many."""
BLOCK = 1 << 18


def rank_shares(performances: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """How often each method has each rank.

    Args:
        performances: (cases, methods), higher is better.
        weights: of each case; None: all count alike.

    Returns:
        (methods, ranks), rows sum to 1. Methods that tie share their ranks evenly.
    """
    weights = np.full(len(performances), 1 / len(performances)) if weights is None else weights / weights.sum()
    methods = performances.shape[1]
    gaps = {(a, b): performances[:, a] - performances[:, b] for a in range(methods) for b in range(a + 1, methods)}
    return _shared(_counted(gaps, weights, methods))


def leads(performances: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """(methods, methods): how often the one is strictly ahead of the other.

    Args:
        performances: (cases, methods), higher is better.
        weights: of each case; None: all count alike.
    """
    weights = np.full(len(performances), 1 / len(performances)) if weights is None else weights / weights.sum()
    ahead = performances[:, :, None] - performances[:, None, :] > TIE
    return np.einsum("c,cab->ab", weights, ahead)


def rank_shares_of_choices(
    tasks: Sequence[np.ndarray], distributions: Sequence[np.ndarray] | None = None
) -> np.ndarray:
    """How often each method has each rank, over every choice of one point of each task; exact (the paper's table 6).

    Args:
        tasks: of each task the scores (methods, points); a method's performance is the sum of those of the points.
        distributions: of each task the probability of its points; None: all choices count alike.

    Returns:
        (methods, ranks), rows sum to 1. Methods that tie share their ranks evenly.
    """
    if not tasks or len({len(scores) for scores in tasks}) != 1:
        raise InputError("Ranks over choices of points need at least one task, and the same methods on all of them.")
    methods = len(tasks[0])
    given = [None] * len(tasks) if distributions is None else list(distributions)
    # Points on which all methods score the same take one place.
    merged = [_merged(scores, weights) for scores, weights in zip(tasks, given, strict=True)]
    choices = float(np.prod([float(len(weights)) for _, weights in merged]))
    if choices > MOST_CHOICES:
        raise InputError(
            f"There are {choices:.3g} choices of one point a task, more than {MOST_CHOICES:.0e}: give fewer tasks."
        )
    counts = np.zeros((methods, methods, methods))
    for gaps, weights in _blocks(merged, methods):
        counts += _counted(gaps, weights, methods)
    return _shared(counts)


def _merged(scores: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Distinct columns of scores (methods, distinct), without what all methods have alike, and their weights."""
    relative = np.round(scores - scores[:1], 12)
    distinct, place = np.unique(relative, axis=1, return_inverse=True)
    weights = np.full(scores.shape[1], 1 / scores.shape[1]) if weights is None else weights / weights.sum()
    return distinct, np.bincount(place.ravel(), weights, minlength=distinct.shape[1])


def _blocks(
    tasks: Sequence[tuple[np.ndarray, np.ndarray]], methods: int
) -> Iterator[tuple[dict[tuple[int, int], np.ndarray], np.ndarray]]:
    """Differences of every pair of methods over all choices, some at a time, and the weight of each choice."""
    ordered = sorted(tasks, key=lambda task: len(task[1]))
    scores, weights = ordered[0]
    for more, their in ordered[1:-1]:
        scores = (scores[:, :, None] + more[:, None, :]).reshape(methods, -1)
        weights = np.outer(weights, their).ravel()
    last, their = ordered[-1] if len(ordered) > 1 else (np.zeros((methods, 1)), np.ones(1))
    pairs = [(a, b) for a in range(methods) for b in range(a + 1, methods)]
    size = max(1, BLOCK // len(their))
    for start in range(0, len(weights), size):
        some = scores[:, start : start + size]
        gaps = {(a, b): np.add.outer(some[a] - some[b], last[a] - last[b]).ravel() for a, b in pairs}
        yield gaps, np.outer(weights[start : start + size], their).ravel()


def _counted(gaps: dict[tuple[int, int], np.ndarray], weights: np.ndarray, methods: int) -> np.ndarray:
    """(methods, how many are ahead, how many tie): the weight of the cases."""
    code = np.zeros((methods, len(weights)), np.int16)
    for (a, b), gap in gaps.items():
        ahead, behind = gap > TIE, gap < -TIE
        tied = ~(ahead | behind)
        code[a] += methods * behind + tied
        code[b] += methods * ahead + tied
    found = [np.bincount(each, weights, minlength=methods * methods) for each in code]
    return np.array(found).reshape(methods, methods, methods)


def _shared(counts: np.ndarray) -> np.ndarray:
    """Shares (methods, ranks): who ties with others has the ranks that they take in equal parts."""
    methods = len(counts)
    shares = np.zeros((methods, methods))
    for ahead in range(methods):
        for tied in range(methods - ahead):
            shares[:, ahead : ahead + tied + 1] += counts[:, ahead, tied, None] / (tied + 1)
    return shares / shares.sum(1, keepdims=True)
