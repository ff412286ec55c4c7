"""What views in which seeing is done preserve: are two things that differ drawn alike, can a probe read as much?

The first is asked exactly where looks come again: of moments that look the same and get the same action, those that
are paid differently must be as often the same in the pixels as those that are paid alike. Where pixels never come
again, a small network reads the coming reward from either view, and is asked about copies that it was not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lcd.envs.benchmarks import Benchmark
from lcd.envs.protocols import Pairs, offers
from lcd.envs.spaces import is_image
from lcd.pipelines.check.random_play import Moments, looks
from lcd.pipelines.check.rows import Row
from lcd.scores.contrasts import PERCEPTION

MASKS, ALIKE, READ = "views", "drawn alike", "what masks preserve"
COMPARING = (ALIKE, READ)
"""The checks that compare views with pixels."""
MOST_ALIKE = 32
"""Moments of one look and action that are compared with one another."""
ENOUGH_PAIRS, ENOUGH_SAME = 10, 0.02
"""Pairs of moments not paid as usual that say something, and the share of pairs whose pixels are the same, too."""
MOST_PROBED, LEAST_PAID = 6000, 60
"""Moments that the network is shown, and those among them whose reward is not the usual one, below which it says
nothing."""
PASSES, BATCH, LOST = 12, 128, 0.15
"""Passes over the moments, moments in a batch, and explained variance less than from pixels that is a warning."""


def view_rows(benchmark: Benchmark, task: str, moments: Moments, space: Any, seed: int) -> Iterator[Row]:
    """Which scores the task's views allow, and what those without perception keep of the baseline's."""
    views = list(moments.seen)
    baseline, solved = PERCEPTION.baseline, [view for view in views if view != PERCEPTION.baseline]
    yield _of_scores(task, views)
    yield from _of_labels(benchmark, task, solved)
    shown = {view: looks(_rows(moments.seen[view])) for view in views}
    blank = [view for view in views if len(np.unique(shown[view])) == 1]
    for view in blank:
        yield Row(ALIKE, "fail", f"'{view}' always shows the same.", "draw what moves, or leave the view out", task)
    for one, other in pairwise(solved):
        if one not in blank and np.array_equal(shown[one], shown[other]):
            told = f"'{one}' and '{other}' are the same picture."
            yield Row(
                ALIKE, "warn", told, "give each class a grey or colour of its own in the view that names classes", task
            )
    if baseline not in views or not solved:
        for check in (ALIKE, READ):
            yield Row(check, "not judged", f"there is no view to compare with '{baseline}'.", task=task)
        return
    undecided = []
    for view in [view for view in solved if view not in blank]:
        found = _lost(shown[baseline], shown[view], moments)
        if isinstance(found, Undecided):
            undecided.append(view)
            yield Row(ALIKE, "not judged", f"'{view}': {found.why}", task=task)
        elif found:
            yield Row(ALIKE, "fail", f"'{view}' {found}", "draw apart what is paid differently", task)
        else:
            yield Row(ALIKE, "pass", f"'{view}': what looks the same is paid the same, or left to chance.", task=task)
    if undecided and is_image(space):
        yield from _read(task, moments, undecided, seed)
    elif undecided:
        yield Row(READ, "not judged", "there are no pictures for a probe to read.", task=task)
    else:
        yield Row(READ, "pass", f"no probe is needed: '{ALIKE}' compared exactly.", task=task)


@dataclass(frozen=True)
class Undecided:
    """Comparing looks does not say.

    Attributes:
        why: the reason, in a sentence.
    """

    why: str


def _rows(seen: np.ndarray) -> np.ndarray:
    return seen.reshape(-1, *seen.shape[2:])


def _of_scores(task: str, views: Sequence[str]) -> Row:
    """Which of φ and ψ can be told."""
    lacking = [view for view in PERCEPTION.values if view not in views]
    if not lacking:
        return Row(MASKS, "pass", f"{', '.join(views)}: φ and ψ can be told.", task=task)
    told = f"{', '.join(views)}: ψ can be told, and φ cannot, for which {' and '.join(lacking)} lack."
    return Row(MASKS, "warn", told, "draw them (lcd new benchmark shows how; masks=… where labels are at hand)", task)


def _of_labels(benchmark: Benchmark, task: str, views: Sequence[str]) -> Iterator[Row]:
    if not offers(benchmark, Pairs):
        return
    for view in views:
        names, greys = benchmark.label_names(task, view), benchmark.intensities(task, view)
        # Labels that a view calls the same are one class there: all figures, all ground.
        alike = [
            (one, other)
            for n, one in enumerate(names)
            for m, other in enumerate(names[:n])
            if greys[n] == greys[m] and one != other
        ]
        for one, other in alike:
            yield Row(ALIKE, "fail", f"'{view}' draws {other} and {one} in one grey.", "give each class its own", task)


def _lost(pixels: np.ndarray, shown: np.ndarray, moments: Moments) -> str | Undecided:
    """What a view draws alike that pixels tell apart: a sentence's end, "" for nothing."""
    valid = moments.valid.ravel()
    actions = np.ascontiguousarray(_rows(moments.actions).reshape(len(valid), -1))
    keys = looks(np.column_stack([shown.view(np.int64), looks(actions).view(np.int64)]))
    outcome = moments.rewards.ravel()
    order = np.argsort(keys, kind="stable")
    order = order[valid[order]]
    groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    repeated = [group for group in groups if len(group) > 1]
    if sum(map(len, repeated)) < len(order) / 5:
        return Undecided(f"{'few pictures' if repeated else 'no picture'} came twice with the same action.")
    values, counts = np.unique(outcome[order], return_counts=True)
    usual = values[counts.argmax()]
    # Pairs by whether they are paid alike, and whether their pixels are the same.
    pairs, times, unusual = np.zeros((2, 2)), 0, 0
    for group in (group[:MOST_ALIKE] for group in repeated):
        one, other = np.triu_indices(len(group), 1)
        paid = outcome[group]
        alike, same = np.isclose(paid[one], paid[other]), pixels[group][one] == pixels[group][other]
        times += not alike.all()
        unusual += int(np.count_nonzero((paid[one] != usual) & alike))
        np.add.at(pairs, (alike.astype(int), same.astype(int)), 1)
    different, paid_alike = pairs
    if different.sum() < ENOUGH_PAIRS:
        if unusual >= ENOUGH_PAIRS:
            return ""
        return Undecided("too few of the pictures that came twice were paid otherwise than the rest.")
    again = paid_alike[1] / max(paid_alike.sum(), 1)
    if again < ENOUGH_SAME:
        return Undecided(f"what looks the same in it is hardly ever the same in '{PERCEPTION.baseline}'.")
    if different[1] / different.sum() >= again / 2:
        return ""
    return (
        f"draws alike what pixels tell apart: {times} of its looks are paid now this, now that for one action, and "
        f"only {different[1] / different.sum():.0%} of such moments are the same in '{PERCEPTION.baseline}' "
        f"({again:.0%} of those that are paid alike)."
    )


def _read(task: str, moments: Moments, views: Sequence[str], seed: int) -> Iterator[Row]:
    """What a network reads of the coming reward from pixels, and from each view."""
    rewards, valid = moments.rewards, moments.valid
    values, counts = np.unique(rewards[valid], return_counts=True)
    unusual = (rewards != values[counts.argmax()]) & valid
    if (few := int(unusual.sum())) < LEAST_PAID:
        told = f"of {valid.sum():,} moments of random play {few} are paid otherwise than the rest, too few to say."
        yield Row(READ, "not judged", told, task=task)
        return
    chosen = _chosen(unusual, valid, seed)
    baseline = _explained(moments, PERCEPTION.baseline, chosen, seed)
    if baseline <= LOST:
        told = f"a probe reads nothing of the coming reward even from pixels ({max(baseline, 0):.0%})."
        yield Row(READ, "not judged", told, task=task)
        return
    for view in views:
        found = _explained(moments, view, chosen, seed)
        told = (
            f"a probe reads {max(found, 0):.0%} of the coming reward from '{view}', {max(baseline, 0):.0%} from pixels."
        )
        worse = baseline - found > LOST
        fix = "look at it (lcd view): is something that is paid for not drawn, or drawn like something else?"
        yield Row(READ, "warn" if worse else "pass", told, fix if worse else "", task)


def _chosen(unusual: np.ndarray, valid: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps and copies of the moments that the network gets: of the usual ones no more than four times the others."""
    rng = np.random.default_rng(seed)
    rare, usual = np.flatnonzero(unusual.ravel()), np.flatnonzero((valid & ~unusual).ravel())
    rare = rng.permutation(rare)[: MOST_PROBED // 2]
    usual = rng.permutation(usual)[: min(4 * len(rare), MOST_PROBED - len(rare))]
    steps, copies = np.unravel_index(rng.permutation(np.concatenate([rare, usual])), unusual.shape)
    return steps, copies


def _explained(moments: Moments, view: str, chosen: tuple[np.ndarray, np.ndarray], seed: int) -> float:
    """The share of the reward's variance that a network explains in copies that it was not shown."""
    import torch
    from torch import nn

    from lcd.agents.networks import SmallCnn

    steps, copies = chosen
    rewards = moments.rewards[steps, copies]
    rewards = (rewards - rewards.mean()) / max(rewards.std(), 1e-9)
    actions = moments.actions[steps, copies].reshape(len(steps), -1).astype(np.float32)
    if not np.issubdtype(moments.actions.dtype, np.floating):
        actions = (actions[:, :, None] == np.arange(actions.max() + 1)).reshape(len(steps), -1).astype(np.float32)
    seen = torch.as_tensor(moments.seen[view][steps, copies])
    seen = seen[..., None] if seen.ndim == 3 else seen
    # Every other copy is held out, so that no episode is on both sides.
    train = torch.as_tensor(copies % 2 == 0)
    given, told = torch.as_tensor(actions), torch.as_tensor(rewards, dtype=torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = SmallCnn((seen.shape[-1], *seen.shape[1:3]))
        head = nn.Sequential(nn.Linear(encoder.features + given.shape[1], 64), nn.ReLU(), nn.Linear(64, 1))

        def read(rows: torch.Tensor) -> torch.Tensor:
            return head(torch.cat([encoder(seen[rows].permute(0, 3, 1, 2)), given[rows]], 1))[:, 0]

        optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], 1e-3, weight_decay=1e-4)
        rows = train.nonzero()[:, 0]
        for _ in range(PASSES):
            for batch in rows[torch.randperm(len(rows))].split(BATCH):
                optimiser.zero_grad()
                nn.functional.mse_loss(read(batch), told[batch]).backward()
                optimiser.step()
        held_out = (~train).nonzero()[:, 0]
        with torch.no_grad():
            wrong = torch.cat([read(batch) for batch in held_out.split(BATCH)]) - told[held_out]
    return float(1 - wrong.square().mean() / told[held_out].var().clamp_min(1e-9))
