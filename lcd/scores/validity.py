"""Whether scores can be trusted: checks of a diagnosis, each with a sentence on what is wrong and what to do.

Where a check finds an error, the class of its tasks (hard to see, hard to learn from reward) would mean nothing, or not
what it says: it is withheld. The scores themselves stay as their definition gives them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from lcd.scores.contrasts import DEFINITIONS, HEADLINE, PERCEPTION, REWARD
from lcd.scores.judging import ROUNDING, Thresholds
from lcd.statistics.confidence import LEVEL
from lcd.statistics.hypotheses import adjust
from lcd.statistics.rank_correlation import spearman

ERROR, WARNING = "error", "warning"
OK = "ok"
ENDS = ("_low", "_high")
SIGNS = {contrast.name: contrast.sign for contrast in HEADLINE}
WORDS = {PERCEPTION.name: "see", REWARD.name: "learn from reward"}
MIDDLE = 0.5
"""Of the scale from 0 to 1: what is hard lies above it."""
LEAST_LOSS = 0.02
"""An AUC that pixels must be ahead of the solved views by: less is of no consequence, however sure it is."""
FAR = 0.5
"""How far from 0 to 1 normalised returns may be: a random agent's and the best possible bound them but for noise."""
LEAST_VALUES = 3
"""So many different returns must two curves share before their likeness is no accident (all at 0, say)."""
MOST_NAMES = 4
"""Tasks that a sentence names before it counts the rest."""

_UNSCALED = ("single_task", "no_spread")
LEAST_TASKS = 3
"""So many tasks must two definitions order before they can be said to disagree."""

LOOKED_AT = ("task", "view", "reward_p", "seed", "step", "return_mean")
"""The columns of curves that checks look at."""

Concern = tuple[pd.DataFrame, str]
"""The rows that a finding concerns, and what is wrong with them and what to do."""


@dataclass(frozen=True)
class Finding:
    """One thing that keeps scores from being trusted.

    Attributes:
        key: the check that found it, a name in `CHECKS`.
        severity: "error": no class is told of these tasks. "warning": it is, with the sentence beside it.
        tasks: the tasks that it concerns.
        says: what is wrong and what to do, in one sentence.
        group: the (benchmark, agent, front-end, shaping) group in which it was found.
    """

    key: str
    severity: str
    tasks: tuple[str, ...]
    says: str
    group: tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    """What is known of one group.

    Attributes:
        rows: its rows of a diagnosis' table.
        curves: of its held-out curves the columns `LOOKED_AT`.
        dynamics: task to what tells its views apart as environments; see `lcd.envs.lockstep`.
        thresholds: when a task counts as unsolved or without signal.
    """

    rows: pd.DataFrame
    curves: pd.DataFrame
    dynamics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    thresholds: Thresholds = field(default_factory=Thresholds)


def solved_views_worse(found: Evidence) -> Iterator[Concern]:
    """Less is learned from the solved views than from pixels, by more than seeds differ."""
    rows = found.rows[found.rows["phi_gain"].notna() & (found.rows["seeds"] > 1)]
    half = (rows["phi_gain_high"] - rows["phi_gain_low"]).to_numpy(float) / 2
    gain, freedom = rows["phi_gain"].to_numpy(float), rows["seeds"].to_numpy(float) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        p = stdtr(freedom, gain / (half / stdtrit(freedom, 0.5 + LEVEL / 2)))
    # Corrected for being several: of forty tasks that lose nothing, one looks as if it did.
    worse = rows[(adjust(p) < (1 - LEVEL) / 2) & (gain <= -LEAST_LOSS)]
    if len(worse):
        yield (
            worse,
            "more is learned from pixels than from the solved views (by up to "
            f"{-worse['phi_gain'].min():.2f} of AUC, and seeds do not differ by so much), so φ says nothing about "
            f"seeing: look at the views with 'lcd view', and let {' and '.join(PERCEPTION.variants)} show all that is "
            "needed.",
        )


def nothing_to_see(found: Evidence) -> Iterator[Concern]:
    """φ reaches at least as far below 0 as above it, so that scaling would call a task hard that gains nothing."""
    # Of a φ that divides by next to nothing the sign is chance, too.
    rows = found.rows[found.rows["phi_raw"].notna() & found.rows["phi_status"].isin([OK, *_UNSCALED])]
    low, high = rows["phi_raw"].min(), rows["phi_raw"].max()
    if len(rows) < 2 or low >= 0 or high > -low:
        return
    above = f"no φ is above 0 (from {low:.2f} to {high:.2f})"
    if high > 0:
        above = f"φ reaches further below 0 ({low:.2f}) than above it ({high:.2f})"
    yield (
        found.rows,
        f"on the whole solved views do not help, {above}, and once scaled a task that gains nothing would count as "
        "hard to see: check the views, and compare the areas instead.",
    )


def definitions_disagree(found: Evidence) -> Iterator[Concern]:
    """The definitions put tasks in opposite orders, or on opposite sides of the scale, for sure under both."""
    both = " and ".join(DEFINITIONS)
    for score in SIGNS:
        names = [f"{score}_{name}" for name in DEFINITIONS]
        rows = found.rows[found.rows[names].notna().all(axis=1) & ~_of_noise(found, score)]
        if len(rows) < LEAST_TASKS:
            continue
        correlation = float(spearman(*(rows[name].to_numpy(float) for name in names)))
        sides = np.array([_sides(rows, name) for name in names])
        split = rows[(sides.min(axis=0) < 0) & (sides.max(axis=0) > 0)]
        if correlation < 0 and _surely_opposite(rows, names):
            yield (
                found.rows,
                f"the definitions {both} order them by {SIGNS[score]} in opposite ways (rank correlation "
                f"{correlation:.2f}), so that it depends on the definition which are hard to {WORDS[score]}: compare "
                "the areas.",
            )
        elif len(split):
            yield (
                split,
                f"hard to {WORDS[score]} by one of the definitions {both} and easy by the other, each for sure: "
                "compare the areas.",
            )


def interval_covers_scale(found: Evidence) -> Iterator[Concern]:
    """An interval reaches over the whole scale, so that every class is possible."""
    wide = pd.Series(False, index=found.rows.index)
    for score in SIGNS:
        wide |= (found.rows[f"{score}_low"] <= 0) & (found.rows[f"{score}_high"] >= 1)
    if wide.any():
        yield (
            found.rows[wide],
            "the interval of φ or ψ is wider than the scale from 0 to 1, so that any class may be the true one: train "
            "more seeds ('lcd power' tells how many).",
        )


def nothing_learned(found: Evidence) -> Iterator[Concern]:
    """Scores by the paper's definition of tasks of which nothing was learned under any condition."""
    rows = found.rows[(found.rows["status"] == "floor") & found.rows["phi_raw"].notna()]
    if len(rows):
        yield (
            rows,
            "nothing was learned under any condition, so φ and ψ, which the paper's definition has of every task, are "
            "of noise: train longer; definition=calibrated leaves such a φ out.",
        )


def nothing_learned_from_pixels(found: Evidence) -> Iterator[Concern]:
    """φ by the paper's definition divides by next to nothing, and other views are surely better."""
    rows = _without_pixels(found)
    rows = rows[rows["phi_gain_low"] > 0]
    if len(rows):
        yield (
            rows,
            f"next to nothing was learned from pixels (AUC {_rounded(rows['auc_pixels'].max())} at most), so φ divides "
            "by the least area that may be divided by: it says that the task is hard to see, and not how hard.",
        )


def no_view_surely_learned(found: Evidence) -> Iterator[Concern]:
    """φ by the paper's definition divides by next to nothing, and what other views gain may be chance."""
    rows = _without_pixels(found)
    rows = rows[rows["phi_gain_low"] <= 0]
    if len(rows):
        gains = f"{_rounded(rows['phi_gain_low'].min())} to {_rounded(rows['phi_gain_high'].max())}"
        yield (
            rows,
            f"next to nothing was learned from pixels (AUC {_rounded(rows['auc_pixels'].max())} at most), and what "
            f"other views gain over them may be chance (intervals from {gains}), so that φ is of noise: train longer, "
            "or more seeds.",
        )


def _without_pixels(found: Evidence) -> pd.DataFrame:
    rows = found.rows[(found.rows["status"] == "no_pixels_signal") & found.rows["phi_raw"].notna()]
    return rows[rows["phi_status"] == rows["status"]]


def _rounded(value: float) -> str:
    return f"{round(value, 2) + 0:.2f}"


def one_seed(found: Evidence) -> Iterator[Concern]:
    """A single seed cannot tell a task's hardness from luck."""
    scored = found.rows[["phi_raw", "psi_raw"]].notna().any(axis=1)
    rows = found.rows[scored & (found.rows["seeds"] == 1)]
    if len(rows):
        yield rows, "one seed cannot tell how hard a task is from how lucky the seed was: train at least five."


def returns_out_of_range(found: Evidence) -> Iterator[Concern]:
    """Mean normalised returns lie far outside 0 to 1, so that the range they were normalised by is wrong."""
    measures = [name for name in found.rows if name.startswith(("auc_", "final_")) and not name.endswith(ENDS)]
    values = found.rows[measures].to_numpy(float)
    outside = np.nan_to_num(np.maximum(values - 1, -values), nan=-np.inf)
    far = outside.max(axis=1) > FAR
    if far.any():
        worst = values.flat[outside.argmax()]
        yield (
            found.rows[far],
            f"mean normalised returns are as far off as {worst:.2f}, where 0 is a random agent's and 1 the highest "
            "possible: correct r_min and r_max.",
        )


def dynamics_differ(found: Evidence) -> Iterator[Concern]:
    """The same seed and actions gave other rewards or ends under another view."""
    for task, rows in found.rows.groupby("task", sort=False):
        for sentence in found.dynamics.get(task, ()):
            yield rows, sentence


def views_identical(found: Evidence) -> Iterator[Concern]:
    """φ's baseline and its last variant have the same curves, number by number, so that they showed the same.

    Its first variant may rightly be the same: where there is nothing but plain figures, as in the easy toys.
    """
    told = ", as if the environment ignored which view is asked for: mend that, and train again."
    yield from _equal_curves(found, (PERCEPTION.baseline, PERCEPTION.variants[-1]), told)


def solved_views_identical(found: Evidence) -> Iterator[Concern]:
    """φ's variants have the same curves: right where they show the same, and half a φ where not."""
    told = ": if the two should show different things, mend the views, and train again."
    yield from _equal_curves(found, PERCEPTION.variants, told)


def _equal_curves(found: Evidence, views: Sequence[str], told: str) -> Iterator[Concern]:
    if alike := _alike(found.curves, *views):
        sentence = f"the curves of {' and '.join(views)} are equal to the last digit{told}"
        yield found.rows[found.rows["task"].isin(alike)], sentence


CHECKS: Mapping[str, tuple[str, Callable[[Evidence], Iterator[Concern]]]] = {
    "views_identical": (ERROR, views_identical),
    "dynamics_differ": (ERROR, dynamics_differ),
    "returns_out_of_range": (ERROR, returns_out_of_range),
    "solved_views_worse": (ERROR, solved_views_worse),
    "nothing_to_see": (ERROR, nothing_to_see),
    "definitions_disagree": (ERROR, definitions_disagree),
    "nothing_learned": (ERROR, nothing_learned),
    "no_view_surely_learned": (ERROR, no_view_surely_learned),
    "one_seed": (ERROR, one_seed),
    "interval_covers_scale": (ERROR, interval_covers_scale),
    "nothing_learned_from_pixels": (WARNING, nothing_learned_from_pixels),
    "solved_views_identical": (WARNING, solved_views_identical),
}
"""Check to how severe its findings are; what makes scores wrong comes before what makes them unsure."""

UNSURE = ("one_seed", "interval_covers_scale")
"""The errors that more seeds would mend."""


def check_validity(
    table: pd.DataFrame,
    held_out: pd.DataFrame,
    group: Sequence[str],
    dynamics: Mapping[str, Sequence[str]] | None = None,
    thresholds: Thresholds | None = None,
) -> tuple[Finding, ...]:
    """All findings of all groups.

    Args:
        table: a diagnosis' table.
        held_out: the curves behind it, with the column `normalised`.
        group: the columns that tell groups apart.
        dynamics: task to what tells its views apart as environments.
        thresholds: those of the diagnosis.
    """
    findings = []
    for key, rows in table.groupby(list(group), sort=False):
        mine = np.logical_and.reduce([held_out[name] == value for name, value in zip(group, key, strict=True)])
        evidence = Evidence(rows, held_out.loc[mine, list(LOOKED_AT)], dynamics or {}, thresholds or Thresholds())
        for name, (severity, check) in CHECKS.items():
            for concerned, what in check(evidence):
                says = f"{_named(concerned['task'].tolist(), len(rows))}: {what}"
                findings.append(Finding(name, severity, tuple(concerned["task"]), says, key))
    return tuple(findings)


def validity_column(table: pd.DataFrame, findings: Sequence[Finding], group: Sequence[str]) -> list[str]:
    """For each row the keys of the findings that concern it, with a space between them; "ok" where there is none."""
    column = []
    for _, row in table.iterrows():
        where = tuple(row[list(group)])
        keys = (found.key for found in findings if found.group == where and row["task"] in found.tasks)
        column.append(" ".join(dict.fromkeys(keys)) or OK)
    return column


def withheld(validity: str) -> bool:
    """Whether a class is withheld from a row with that in its column `validity`."""
    return any(CHECKS[key][0] == ERROR for key in validity.split() if key in CHECKS)


def distrusted(validity: str) -> bool:
    """Whether a row's scores do not even tell which of two tasks is harder: more than certainty is missing."""
    return any(CHECKS[key][0] == ERROR and key not in UNSURE for key in validity.split() if key in CHECKS)


def sentences_of(findings: Sequence[Finding], groups: int) -> list[tuple[str, str]]:
    """(severity, sentence) of each finding, errors first.

    What was found in several groups is said once; what was not found in all of so many groups names those it was.
    """
    told: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for found in findings:
        told.setdefault((found.severity, found.says), []).append(found.group)
    sentences = []
    for (severity, says), where in sorted(told.items(), key=lambda item: item[0][0] != ERROR):
        named = "; ".join(" · ".join(group) for group in where)
        sentences.append((severity, says if len(where) == groups else f"{says} (In {named}.)"))
    return sentences


def _of_noise(found: Evidence, score: str) -> pd.Series:
    """Whether the paper's definition scores a task of which nothing was learned, or divides by next to nothing."""
    areas = found.rows[[name for name in found.rows if name.startswith("auc_") and not name.endswith(ENDS)]]
    noise = areas.max(axis=1) <= found.thresholds.floor + ROUNDING
    blind = found.rows[f"auc_{PERCEPTION.baseline}"] <= found.thresholds.no_signal + ROUNDING
    return noise | blind if score == PERCEPTION.name else noise


def _surely_opposite(rows: pd.DataFrame, names: Sequence[str]) -> bool:
    """Whether two tasks are in opposite orders under two definitions, with their intervals apart under both."""

    def order(first: pd.Series, second: pd.Series, name: str) -> int:
        return int(first[f"{name}_low"] > second[f"{name}_high"]) - int(first[f"{name}_high"] < second[f"{name}_low"])

    pairs = combinations((row for _, row in rows.iterrows()), 2)
    return any(np.prod([order(*pair, name) for name in names]) < 0 for pair in pairs)


def _sides(rows: pd.DataFrame, name: str) -> np.ndarray:
    """1 for tasks that are hard for sure by a raw score, -1 for those that are easy for sure, else 0."""
    low, high = rows[name].min(), rows[name].max()
    middle = low + MIDDLE * (high - low)
    return (rows[f"{name}_low"] > middle).to_numpy(int) - (rows[f"{name}_high"] < middle).to_numpy(int)


def _alike(curves: pd.DataFrame, *views: str) -> list[str]:
    """Tasks with the same returns under two views, at every step of every seed that both have."""
    tasks, where = [], ["seed", "step", "return_mean"]
    unthinned = curves.loc[np.isclose(curves["reward_p"], 1), ["task", "view", *where]]
    for task, mine in unthinned.groupby("task", sort=True):
        # Before training two views may well give the same return.
        later = mine[mine["step"] > mine["step"].min()]
        first, second = (later.loc[later["view"] == view, where] for view in views)
        # One of them may have been given more seeds.
        first, second = first[first["seed"].isin(second["seed"])], second[second["seed"].isin(first["seed"])]
        if len(first) == len(second) and first["return_mean"].nunique() >= LEAST_VALUES:
            first, second = (rows.sort_values(where[:2], ignore_index=True) for rows in (first, second))
            tasks += [str(task)] if first.equals(second) else []
    return tasks


def _named(tasks: Sequence[str], total: int) -> str:
    """Tasks of a group as a sentence begins with them."""
    if len(tasks) == total > 1:
        return f"All {total} tasks"
    left = len(tasks) - MOST_NAMES
    return ", ".join(tasks if left <= 1 else [*tasks[:MOST_NAMES], f"{left} more"])
