"""Does what was measured on one MDP hold for its family? Reported against overall performance, ranks, profiles.

Methods are trained on every point of a family and evaluated where they were trained. A method's overall performance is
Σ s_i p_i over the points; what is usually reported is its score on the default point.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence, cell_text, joined_names
from lcd.analyses.areas import with_interval
from lcd.analyses.family_accuracy import Failing, accuracy_of, prevalence_of
from lcd.analyses.family_distributions import drawn_distributions, under_distributions
from lcd.analyses.family_drawings import drawings
from lcd.analyses.family_settings import KEY, FamilySettings, ranks_of, signed
from lcd.analyses.family_suite import ranks_over_tasks
from lcd.envs.errors import InputError
from lcd.families.measured import Measured, measured_families
from lcd.families.profiles import dominance
from lcd.families.standings import TIE, leads, rank_shares
from lcd.scores.diagnosis import Diagnosis
from lcd.statistics.intervals import BOOTSTRAP_SEED, replicates, widen

MOST_SAID = 6
SAME = 0.005
"""Normalised scores on the default point that differ by no more are told to be the same."""


def families(evidence: Evidence, settings: FamilySettings) -> list[Analysis]:
    """Does what methods reach on the default point hold over the family that a task is one point of?"""
    diagnosis = evidence.diagnosis
    if diagnosis.points.empty:
        return []
    found = list(measured_families(diagnosis.points, diagnosis.curves, settings.score))
    made = [analysis for place, each in enumerate(found) for analysis in _of_family(each, place, settings, diagnosis)]
    try:
        return [*made, *ranks_over_tasks(found, settings)]
    except InputError as too_many:
        return [replace(made[0], says=[*made[0].says, f"No ranks over choices: {too_many}"]), *made[1:]]


def _of_family(found: Measured, place: int, settings: FamilySettings, diagnosis: Diagnosis) -> Iterator[Analysis]:
    """All that is told of one family."""
    stem = KEY if place == 0 else f"{KEY}-{place + 1}"
    what = f"{found.task}, {found.setting['view']}"
    drawn = drawn_distributions(found, settings)
    random = drawn @ signed(found, settings).T
    points = signed(found, settings).T
    pairs = pair_table(found, random, points, settings)
    solved = solved_points(found, settings)
    table = method_table(found, random, solved, settings)
    says = [*_held(table, settings, "points" if found.turns else "seeds"), *_orders(found, pairs, settings)]
    failing = failing_points(found, solved)
    if failing is not None and found.failed:
        says.append(_failed_where(found, failing.points))
    if solved is not None:
        nobody = float(100 * found.distribution @ ~solved.any(0))
        by = found.methods[0] if len(found.methods) == 1 else f"any of {joined_names(found.methods)}"
        says.append(f"{nobody:.1f} % of the family is not solved by {by}.")
    note = (
        f"{len(found.distribution)} points; an agent a point, evaluated where it was trained. Overall is Σ s_i p_i "
        f"with the {'last return' if settings.score == 'final' else 'mean height of the curve'} of point i as s_i and "
        "its probability as p_i; intervals over seeds. Rank columns: how often a method has the rank over "
        f"{settings.draws:,} random distributions over the points (Dirichlet, concentration "
        f"{settings.concentration:g}); best, seeds: how often it is the best of resampled seeds."
    )
    if solved is not None:
        note += f" Solved: {'its agent has' if found.turns else 'the mean over seeds is'} {settings.solved_from:g} or "
        note += "more." if settings.higher_is_better else "less."
    yield Analysis(stem, f"The family of {what}", table, [*says, *found.notes], note,
                   drawings(found, table, stem, what, settings.higher_is_better, diagnosis))  # fmt: skip
    if len(found.distribution) > 1:
        yield under_distributions(found, drawn, settings, stem, what)
    yield Analysis(
        f"{stem}-choices",
        f"One point for the family of {what}",
        choice_table(found, settings),
        note="What choosing a single point would have told: the default one, those that the family marks, or any one, "
        "drawn from the distribution (the mean over points). Off by: the mean over methods of the distance to the "
        "overall performance. Same order: how often the methods' order is that of the family.",
    )
    if len(found.methods) > 1:
        yield Analysis(
            f"{stem}-pairs",
            f"Pairs of methods over the family of {what}",
            pairs,
            note="Differences of the first to the second, with intervals over seeds; how often the first is ahead, "
            "over random distributions and over points; whether its performance profile is nowhere below the other's. "
            "Against: the share of the area between the profiles that speaks against it.",
        )
    if settings.approximations and len(found.distribution) > 2:
        yield from accuracy_of(found, stem, what)
        if failing is not None:
            yield prevalence_of(found, failing, stem, what)


def is_of_methods(key: str) -> bool:
    """Whether an analysis of this key is a family's table of methods, which a terminal shows, too."""
    return re.fullmatch(rf"{KEY}(-\d+)?", key) is not None


def answers(key: str) -> bool:
    """Whether an analysis of this key says what holds over a family; others say how it could have been found out."""
    return re.fullmatch(rf"{KEY}(-\d+)?(-choices|-distributions|-pairs)?|{KEY}-suite(-\d+)?", key) is not None


def solved_points(found: Measured, settings: FamilySettings) -> np.ndarray | None:
    """(methods, points): who solves what; None where nobody says from where on scores are good.

    That goes without saying where scores are normalised and no benchmark says by what else a point fails.
    """
    if settings.solved is None and (found.scale != "normalised" or found.failed):
        return None
    least = settings.solved_from
    return found.means >= least if settings.higher_is_better else found.means <= least


def failing_points(found: Measured, solved: np.ndarray | None) -> Failing | None:
    """The points on which every method fails; None where nobody knows what failing is."""
    if found.failure is not None and found.failed:
        name, most = found.failure
        every = np.asarray(np.stack(list(found.failed.values())).all(axis=0))
        return Failing(every, f"A point fails where no method has '{name}' at {most:g} or less")
    if solved is not None:
        return Failing(np.asarray(~solved.any(0)), "A point fails that no method solves")
    return None


def _failed_where(found: Measured, every: np.ndarray) -> str:
    """What share of the family each method fails on, and all of them."""
    shares = {name: float(100 * found.distribution @ failed) for name, failed in found.failed.items()}
    order = sorted(shares, key=lambda name: -shares[name])[:MOST_SAID]
    told = joined_names([f"{name} on {shares[name]:.1f} %" for name in order])
    column, most = found.failure or ("", 0.0)
    return (
        f"Failing ('{column}' above {most:g} on average): {told} of the family; all methods on "
        f"{float(100 * found.distribution @ every):.1f} %."
    )


def method_table(
    found: Measured, random: np.ndarray, solved: np.ndarray | None, settings: FamilySettings
) -> pd.DataFrame:
    """A row a method: reported and overall performance, how often it has each rank, what it solves if that is known."""
    shares = 100 * rank_shares(random)
    best = 100 * rank_shares(_resampled(found, settings))[:, 0]
    rows: list[dict[str, Any]] = []
    for place, (method, overall) in enumerate(found.overall.items()):
        row: dict[str, Any] = {"task": found.task, "view": found.setting["view"], "agent": method}
        reported = found.reported.get(method)
        row |= dict.fromkeys(("reported", "reported_low", "reported_high"), np.nan)
        if reported is not None and len(reported):
            row |= with_interval(("reported",), {"": pd.Series(reported)}, lambda means: means)
        row |= with_interval(("overall",), {"": pd.Series(overall)}, lambda means: means)
        row |= {"reported rank": np.nan, "rank": np.nan, "best, seeds %": best[place]}
        if solved is not None:
            row["solved %"] = float(100 * found.distribution @ solved[place])
        if method in found.failed:
            row["failed %"] = float(100 * found.distribution @ found.failed[method])
        row["seeds"] = float(len(overall))
        row |= {f"rank {rank + 1} %": shares[place, rank] for rank in range(len(shares))}
        rows.append(row)
    table = pd.DataFrame(rows)
    table["reported rank"] = ranks_of(table["reported"], settings.higher_is_better)
    table["rank"] = ranks_of(table["overall"], settings.higher_is_better)
    for name in ("reported rank", "rank"):
        table[name] = [f"{value:.0f}" if np.isfinite(value) else "" for value in table[name]]
    order = np.argsort(-table["overall"] if settings.higher_is_better else table["overall"], kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _resampled(found: Measured, settings: FamilySettings) -> np.ndarray:
    """(resamples, methods): overall performances from resampled seeds; the higher, the better."""
    samples = list(found.overall.values())
    estimate = np.array([[sample.mean() for sample in samples]])
    fewest = min(map(len, samples))
    if fewest > 1:
        seeds = [found.seeds[method] for method in found.overall]
        drawn = replicates(samples, seeds=seeds, rng=np.random.default_rng(BOOTSTRAP_SEED))
        estimate = widen(estimate[0], drawn, fewest)
    return estimate if settings.higher_is_better else -estimate


def choice_table(found: Measured, settings: FamilySettings) -> pd.DataFrame:
    """What one point alone would have told (the paper's section 2, table 3)."""
    means = found.means
    overall = means @ found.distribution
    order = ranks_of(overall, settings.higher_is_better)
    reported = np.array([found.reported.get(method, np.array([np.nan])).mean() for method in found.methods])
    chosen = {"default": ("", reported)} if np.isfinite(reported).all() else {}
    chosen |= {name: (found.contexts[place], means[:, place]) for name, place in found.marks.items()}
    rows = [
        {"choice": name, "point": point, **dict(zip(found.methods, scores, strict=True)),
         "off by": float(np.abs(scores - overall).mean()),
         "same order %": 100.0 * bool((ranks_of(scores, settings.higher_is_better) == order).all())}
        for name, (point, scores) in chosen.items()
    ]  # fmt: skip
    same = np.array([(ranks_of(column, settings.higher_is_better) == order).all() for column in means.T])
    off = np.abs(means - overall[:, None]).mean(0)
    rows.append(
        {"choice": "random", "point": "", **dict(zip(found.methods, overall, strict=True)),
         "off by": float(off @ found.distribution), "same order %": float(100 * same @ found.distribution)}
    )  # fmt: skip
    family = dict(zip(found.methods, overall, strict=True))
    rows.append({"choice": "family", "point": "", **family, "off by": 0.0, "same order %": 100.0})
    return pd.DataFrame(rows)


def pair_table(found: Measured, random: np.ndarray, points: np.ndarray, settings: FamilySettings) -> pd.DataFrame:
    """A row a pair of methods, the one that is better overall first."""
    means, overall = found.means @ found.distribution, found.overall
    over, on_points = 100 * leads(random), 100 * leads(points, found.distribution)
    better = np.argsort(-means if settings.higher_is_better else means, kind="stable")
    rows = []
    for one, other in combinations(better, 2):
        names = [found.methods[one], found.methods[other]]
        row: dict[str, Any] = {"better": names[0], "than": names[1]}
        row |= dict.fromkeys(("reported", "reported_low", "reported_high"), np.nan)
        if all(len(found.reported.get(name, ())) for name in names):
            row |= _difference("reported", [found.reported[name] for name in names], found, names)
        row |= _difference("overall", [overall[name] for name in names], found, names)
        row |= {"ahead, distributions %": over[one, other], "ahead, points %": on_points[one, other]}
        row["behind, points %"] = on_points[other, one]
        scores = [found.scores[name] for name in names]
        held = dominance(scores[0], scores[1], found.distribution, settings.higher_is_better)
        rows.append(row | {"dominates": "yes" if held.holds else "no", "against": held.against})
    return pd.DataFrame(rows)


def _difference(name: str, samples: Sequence[np.ndarray], found: Measured, methods: Sequence[str]) -> dict[str, float]:
    # Seeds of the default point may be others than those of the family: then they are not paired.
    indices = [found.seeds[method] for method in methods]
    named = {
        str(place): pd.Series(sample, index=seeds if len(seeds) == len(sample) else None)
        for place, (sample, seeds) in enumerate(zip(samples, indices, strict=True))
    }
    return with_interval((name,), named, lambda both: (both[..., 0] - both[..., 1])[..., None])


def _held(table: pd.DataFrame, settings: FamilySettings, more_of: str) -> list[str]:
    """What each method reports and reaches over the family, and of which of them intervals say that it differs.

    Args:
        table: a row a method.
        settings: which scores are good.
        more_of: what would tell more.
    """
    known = table[table["reported"].notna()]
    if known.empty:
        return []
    first, more = known.head(MOST_SAID), len(known) - MOST_SAID
    told = [cell_text(row, "reported", bounds=False) for _, row in first.iterrows()]
    over = [cell_text(row, "overall", bounds=False) for _, row in first.iterrows()]
    reach = [f"{name}{' reaches' * (place == 0)} {told[place]}" for place, name in enumerate(first["agent"])]
    says = [f"On the default MDP {joined_names(reach)}; over the family {joined_names(over)}."]
    says += [f"The table has {more} more."] if more > 0 else []
    if not np.isfinite(known[["reported_low", "overall_low"]].to_numpy(float)).all():
        return [*says, "One seed cannot tell how sure this is."]
    down = known["overall_high"] < known["reported_low"] - TIE
    up = known["overall_low"] > known["reported_high"] + TIE
    worse, better = (down, up) if settings.higher_is_better else (up, down)
    for which, words in ((worse, "Worse"), (better, "Better")):
        if which.any():
            says.append(f"{words} over the family than reported, by more than both intervals: "
                        f"{joined_names(known.loc[which, 'agent'].tolist())}.")  # fmt: skip
    if not (worse | better).all():
        unsure = joined_names(known.loc[~(worse | better), "agent"].tolist())
        says.append(
            f"Of {unsure} what is reported and what holds over the family cannot be told apart (their intervals "
            f"overlap): more {more_of} would tell."
        )
    return says


def _orders(found: Measured, pairs: pd.DataFrame, settings: FamilySettings) -> list[str]:
    """What a pair's order on the default point becomes over the family; those that turn come first."""
    same = SAME if found.scale == "normalised" else TIE
    told = []
    for _, row in pairs.iterrows():
        a, b, gap = row["better"], row["than"], row["reported"]
        over = (
            f"over the family {a} leads {b} (under {row['ahead, distributions %']:.1f} % of random distributions, "
            f"on {row['ahead, points %']:.1f} % of the points by weight)"
        )
        if row["overall_low"] <= 0 <= row["overall_high"]:
            over += ", which the seeds leave open"
        if abs(row["overall"]) <= TIE:
            over = "over the family they do the same"
        if np.isnan(gap):
            told.append((1, f"{over[0].upper()}{over[1:]}."))
        elif abs(gap) <= same:
            told.append((1, f"On the default MDP {a} and {b} do the same; {over}."))
        elif (gap > 0) == settings.higher_is_better:
            told.append((2, f"On the default MDP {a} leads {b}; {over}."))
        else:
            told.append((0, f"On the default MDP {b} leads {a}; {over}."))
    return [sentence for _, sentence in sorted(told, key=lambda each: each[0])[:MOST_SAID]]
