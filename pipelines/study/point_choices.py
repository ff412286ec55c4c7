"""Points of a family that are chosen under a budget: which ones, what each weighs, and how a study remembers it.

What a point weighs is no part of a run's config, since it changes when more points are chosen, or more is learned of
them, and the training does not. It stands in study.yaml, and becomes the column `weight` of the study's curves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lcd.config.keys import show
from lcd.envs.errors import InputError, Unfinished, nearest
from lcd.envs.families.family import Family, Point, point_name
from lcd.pipelines.study import store
from lcd.pipelines.study.point_weights import RECORD, own_seeds, recorded
from lcd.pipelines.study.quarantine import read_finished

KEYS = ("choose", "budget", "seed", "seeds")
ALL_SEEDS, TURNS = "all", "turns"
"""Which of a study's seeds are trained on a chosen point: all, or one of them, points taking turns."""
USUAL = "without_replacement"
"""How a plain number of points is chosen."""
LEARNS = "quadrature"
"""The way that goes on from what a study has chosen before, and from what it has scored."""


@dataclass(frozen=True)
class Asked:
    """What is asked for.

    Attributes:
        choose: one of `lcd.families.choosing.WAYS`.
        budget: how many points.
        seed: of what is left to chance.
        turns: the seeds that points take turns at, one agent a point; none: all seeds are trained on each.
    """

    choose: str
    budget: int
    seed: int = 0
    turns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """What was chosen.

    Attributes:
        asked: how.
        family: of which family.
        rounds: places of points that were chosen together, in the order in which they take turns; those of one round
            share runs.
        beforehand: what was known of all points, as `lcd.families.choosing.choose_points` takes it.
        weights: place → what its score weighs in the overall performance; they sum to 1.
    """

    asked: Asked
    family: Family
    rounds: tuple[tuple[int, ...], ...]
    weights: Mapping[int, float]
    beforehand: np.ndarray | None = None

    @property
    def points(self) -> list[list[Point]]:
        """The points of each round."""
        return [[self.family.points[place] for place in places] for places in self.rounds]

    @property
    def own_seeds(self) -> dict[str, int]:
        """Point as curves call it → its seed, where points take turns; the default point has all seeds."""
        return own_seeds(self.record)

    @property
    def record(self) -> dict[str, Any]:
        """What a study remembers of it; points as curves call them."""
        names = [self.family.context_of(point) for point in self.family.points]
        return {
            "choose": self.asked.choose,
            "seed": self.asked.seed,
            **({"turns": list(self.asked.turns)} if self.asked.turns else {}),
            "rounds": [[names[place] for place in places] for places in self.rounds],
            "weights": {names[place]: float(weight) for place, weight in self.weights.items()},
        }


def choice_asked(how: Any, where: str, seeds: Sequence[int] = ()) -> Asked | None:
    """The choice that a study asks for; None where it lists its points otherwise.

    Args:
        how: what it says of points.
        where: the config key, for an error's sentence.
        seeds: the study's; none where points cannot take turns at them.
    """
    if isinstance(how, int) and not isinstance(how, bool) and how >= 1:
        return Asked(USUAL, how)
    if not is_choice(how):
        return None
    for key in how:
        if key not in KEYS:
            raise InputError(f"{where}: '{key}' is no part of a choice: {nearest(str(key), KEYS)}")
    from lcd.families.choosing import WAYS

    choose, seed = how.get("choose"), how.get("seed", 0)
    if choose not in WAYS:
        raise InputError(f"{where}.choose={show(choose)} is no way to choose points: {nearest(str(choose), WAYS)}")
    for key, value, least in (("budget", how.get("budget"), 1), ("seed", seed, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise InputError(f"{where}.{key}={show(value)} must be a whole number of at least {least}.")
    which = how.get("seeds", ALL_SEEDS)
    if which not in (ALL_SEEDS, TURNS):
        raise InputError(f"{where}.seeds={show(which)} must be {ALL_SEEDS} or {TURNS}.")
    if which == TURNS and not seeds:
        raise InputError(
            f"{where}.seeds={TURNS}: one run has all seeds on each point; ask a study (lcd diagnose) for it."
        )
    return Asked(choose, how["budget"], seed, tuple(seeds) if which == TURNS else ())


def is_choice(how: Any) -> bool:
    """Whether a mapping says how to choose, and is not one of tasks."""
    return isinstance(how, Mapping) and bool({*how} & {*KEYS})


def choose(
    family: Family,
    asked: Asked,
    where: str,
    study: Path | None = None,
    task: str = "",
    beforehand: Callable[[], np.ndarray | None] = lambda: None,
) -> Chosen:
    """Choose points, after those that a study has chosen before where the way goes on from them.

    Args:
        family: the family.
        asked: how, and how many.
        where: the config key, for an error's sentence.
        study: the folder of a study, which need not be there.
        task: what curves call the task.
        beforehand: tells what is known of all points before any is trained; asked where the way makes use of it.
    """
    possible = int(np.count_nonzero(family.distribution)) if asked.choose == USUAL else len(family.points)
    if asked.budget > possible:
        raise InputError(f"{where}: {asked.budget} is more than the {possible} points of the family: give all.")
    before = _rounds_before(family, asked, study, task)
    known = [place for places in before for place in places]
    if len(known) > asked.budget:
        raise InputError(
            f"{where}: a budget of {asked.budget} is less than the {len(known)} points that the study {study} has "
            f"chosen: give {len(known)} or more, or another folder with out=."
        )
    scores = _scores_of(family, study, task) if study is not None and known else {}
    return _chosen(family, asked, before, scores, beforehand() if asked.choose == LEARNS else None)


def weighed_again(study: store.Study, chosen: Mapping[str, Chosen]) -> dict[str, Chosen]:
    """The same points with the weights that hold now that they are trained."""
    return {
        task: _chosen(each.family, each.asked, each.rounds, _scores_of(each.family, study.path, task), each.beforehand)
        if each.asked.choose == LEARNS
        else each
        for task, each in chosen.items()
    }


def remember(study: store.Study, chosen: Mapping[str, Chosen], tasks: Collection[str]) -> None:
    """Note what was chosen.

    Args:
        tasks: those whose points the study trains now: the ones that are not in `chosen` weigh as in the family.
    """
    kept = {task: record for task, record in recorded(study.record).items() if task not in tasks}
    now = kept | {task: each.record for task, each in chosen.items()}
    if now or RECORD in study.record:
        study.note(**{RECORD: now})


def _rounds_before(family: Family, asked: Asked, study: Path | None, task: str) -> tuple[tuple[int, ...], ...]:
    if asked.choose != LEARNS or study is None or not (study / "study.yaml").is_file():
        return ()
    record = recorded(store.Study(study).record).get(task, {})
    if (record.get("choose"), record.get("seed")) != (asked.choose, asked.seed):
        return ()
    _check_turns(record.get("turns", []), asked, study)
    places = {family.context_of(point): place for place, point in enumerate(family.points)}
    try:
        return tuple(tuple(places[name] for name in names) for names in record["rounds"])
    except (TypeError, KeyError):
        raise InputError(
            f"{study / 'study.yaml'}: {RECORD} names points that the family of '{task}' does not have: mend it, or "
            "give another folder with out=."
        ) from None


def _check_turns(before: Any, asked: Asked, study: Path) -> None:
    """Refuse to go on from points that took turns at other seeds."""
    if before != list(asked.turns):
        how = f"took turns at the seeds {show(before)}" if before else "had all seeds each"
        now = f"would at {show(list(asked.turns))}" if asked.turns else "would have all seeds each"
        raise InputError(
            f"The points that the study {study} has chosen {how}, and the further ones {now}: ask for the same "
            f"seeds (study.seeds, study.points.seeds), or give another folder with out=."
        )


def _chosen(
    family: Family,
    asked: Asked,
    before: tuple[tuple[int, ...], ...],
    scores: Mapping[int, np.ndarray],
    beforehand: np.ndarray | None,
) -> Chosen:
    from lcd.families.choosing import choose_points

    known = {place: scores.get(place, np.array([math.nan])) for places in before for place in places}
    choice = choose_points(family, asked.budget, asked.choose, known, beforehand=beforehand, seed=asked.seed)
    weights = np.bincount(choice.places, choice.weights, minlength=len(family.points))
    # A process may give a point a little less than nothing, and what counts in a report is a share.
    weights = np.maximum(weights, 0)
    new = list(dict.fromkeys(place for place in choice.places.tolist() if place not in known))
    # Neighbours in a family do not always take the same turns: what was chosen one after the other lies apart.
    new = new if asked.turns else sorted(new)
    told = {place: weights[place] / weights.sum() for place in sorted({*choice.places.tolist()})}
    return Chosen(asked, family, (*before, *([tuple(new)] if new else [])), told, beforehand)


def _scores_of(family: Family, study: Path, task: str) -> dict[int, np.ndarray]:
    """Place → the mean score of each method and setting, of the points on which all of them are trained."""
    from lcd.curves.table import as_trained, attach_ranges, check_curves, normalised, of_points
    from lcd.families.measured import measured_families

    try:
        curves, _ = attach_ranges(check_curves(read_finished(study, store.Study(study)).curves))
        curves = curves[curves["task"] == task].assign(normalised=normalised)
        found = list(measured_families(curves[of_points(curves)], curves[as_trained(curves)]))
    except (InputError, Unfinished):
        return {}
    places = {point_name(point): place for place, point in enumerate(family.points)}
    means = [dict(zip(each.contexts, each.means.T, strict=True)) for each in found]
    shared = set(places).intersection(*means) if means else set()
    return {places[name]: np.concatenate([each[name] for each in means]) for name in shared}
