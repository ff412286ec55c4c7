"""From learning curves to what makes each task hard: φ (perception), ψ (reward) and how sure they are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from lcd.curves.index import Curve, CurveIndex
from lcd.curves.reading import concatenated, kept
from lcd.curves.table import as_trained, attach_ranges, check_curves, evaluated_names, normalised, of_points
from lcd.envs.errors import InputError
from lcd.families.measured import measured_families
from lcd.families.over_points import whole_families
from lcd.families.weights import check_weights
from lcd.files.atomic import write_atomic
from lcd.files.reading import Unreadable, parse_json
from lcd.files.spreadsheets import csv_text
from lcd.scores.calibration import calibrate, ground_truth
from lcd.scores.challenge_table import GROUP, KEYS, conditions_at, numeric, table_columns, tasks_of
from lcd.scores.contrasts import (
    DEFINITIONS,
    FAMILY_LOSS,
    HEADLINE,
    LETTER,
    PERCEPTION,
    USUAL_DEFINITION,
    Condition,
    Contrast,
    check_definition,
    most_solved,
    solved_view,
)
from lcd.scores.horizons import COLUMNS, UNKNOWN, Span, horizons_of
from lcd.scores.judging import GUARDED, ROUNDING, TaskNumbers, Thresholds, judge
from lcd.scores.left_out import LeftOut
from lcd.scores.masks_told import masks_told
from lcd.scores.plain import described, plain, strict, undescribed
from lcd.scores.ranking import add_ranks
from lcd.scores.scoring import TaskSamples, common_steps, curves_by_condition, samples_between
from lcd.scores.validity import SIGNS, Finding, check_validity, sentences_of, validity_column
from lcd.statistics.confidence import LEVEL
from lcd.statistics.intervals import METHOD, RESAMPLES

MOST_NAMED = 4
"""Tasks that a note names before it counts the rest."""


@dataclass(frozen=True)
class Diagnosis:
    """Scores of every task, and the curves they were computed from.

    Attributes:
        table: one row a task of a (benchmark, agent, front-end, shaping) group; see `diagnose_curves`.
        curves: the checked curves of tasks as they were trained, with the range used in `r_min`, `r_max` and the return
            under it in `normalised`; empty when the diagnosis was read back from JSON.
        others: those of curricula, of other tasks than the trained one, and of other contexts: the same columns.
        points: those of points of families on which agents were trained, likewise; see `lcd.analyses.families`.
        thresholds: what the statuses were decided by.
        notes: sentences about the curves that a reader should know.
        cautions: those that a reader should know before all scores: that runs are missing, or were for trying out.
        definition: which of `lcd.scores.contrasts.DEFINITIONS` the columns phi, psi, phi_raw and psi_raw follow.
        calibration: definition → measure (phi_recovery, psi_recovery, phi_crosstalk, psi_crosstalk) → value, low, high,
            ceiling, …; empty where the tasks' true hardness is not known. See `lcd.scores.calibration.calibrate`.
        cost: what the curves took, as `lcd.pipelines.study.cost.cost_so_far` tells it; empty where nobody knows.
        findings: what keeps scores from being trusted; see `lcd.scores.validity`.
        left_out: the study's runs that have no part in it; see `lcd.scores.marking.mark`.
        index: the held-out curves, by condition and seed.
        contrasts: what was asked of each task: φ and ψ, and a study's further contrasts.
        solved: benchmark to the view in which perception is out of the way: where `lcd.scores.contrasts.SOLVED` was
            asked for.
        horizons: task to its effective horizon and the bounds on it, as far as they are known; tasks whose knobs a
            contrast changes have their own.
        levels, dynamics: as `diagnose_curves` was given them.
    """

    table: pd.DataFrame
    curves: pd.DataFrame = field(repr=False)
    thresholds: Thresholds = field(default_factory=Thresholds)
    notes: tuple[str, ...] = ()
    definition: str = USUAL_DEFINITION
    calibration: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    index: CurveIndex = field(default_factory=CurveIndex, repr=False)
    contrasts: tuple[Contrast, ...] = field(default=HEADLINE, repr=False)
    solved: dict[str, str] = field(default_factory=dict)
    others: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    points: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    horizons: dict[str, Span] = field(default_factory=dict)
    levels: Mapping[str, Mapping[str, float]] | None = field(default=None, repr=False)
    dynamics: Mapping[str, Sequence[str]] | None = field(default=None, repr=False)

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """(severity, sentence) of what keeps scores from being trusted, errors first."""
        return sentences_of(self.findings, self.table.groupby(list(GROUP)).ngroups)

    @cached_property
    def by_the_letter(self) -> "Diagnosis":
        """φ and ψ of the same curves with the paper's definition in the headline."""
        return diagnose_curves(self.curves, None, self.thresholds, LETTER, self.levels, self.dynamics)

    def conditions(self, benchmark: str | None = None) -> dict[str, Condition]:
        """The conditions of the contrasts by name; without a benchmark those of all."""
        views = self.solved.values() if benchmark is None else [self.solved[benchmark]]
        return conditions_at(self.contrasts, views)

    def conditions_of(self, contrast: Contrast, benchmark: str) -> tuple[Condition, ...]:
        """What a contrast compares on a benchmark, in order."""
        return contrast.conditions(self.solved[benchmark])

    def curves_under(self, row: Mapping[str, Any], condition: Condition) -> dict[int, Curve]:
        """Seed → held-out curve of a row of the table under a condition."""
        return self.index.under({name: row[name] for name in KEYS}, condition)

    left_out: tuple[LeftOut, ...] = ()
    cautions: tuple[str, ...] = ()

    @classmethod
    def empty(cls, others: pd.DataFrame | None = None, points: pd.DataFrame | None = None) -> "Diagnosis":
        """No task at all: what is left when no curve is of a task as it was trained."""
        nothing = pd.DataFrame()
        others, points = (nothing if each is None else each for each in (others, points))
        return cls(pd.DataFrame(columns=list(table_columns())), nothing, others=others, points=points)

    def to_json(self) -> str:
        """The diagnosis without its curves, as strict JSON: what is not a number is null."""
        content = {
            "definition": self.definition,
            "definitions": DEFINITIONS,
            "contrasts": [described(contrast) for contrast in self.contrasts],
            "solved_views": self.solved,
            "interval": {"level": LEVEL, "method": METHOD, "resamples": RESAMPLES, "unit": "seed"},
            "thresholds": asdict(self.thresholds),
            "findings": [asdict(found) for found in self.findings],
            "cautions": list(self.cautions),
            "notes": list(self.notes),
            "calibration": self.calibration,
            "cost": self.cost,
            "left_out": [asdict(each) for each in self.left_out],
            "tasks": [{key: plain(value) for key, value in row.items()} for row in self.table.to_dict("records")],
        }
        return json.dumps(strict(content), indent=2, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Diagnosis":
        """Read back what `to_json` wrote; the curves are left empty."""
        try:
            return cls._of_plain(parse_json(text))
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
            why = error if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"
            raise InputError(f"This is no diagnosis ({why}): give a diagnosis.json as LCD wrote it.") from None

    @classmethod
    def _of_plain(cls, content: Any) -> "Diagnosis":
        known = {each.name: each for each in HEADLINE}
        contrasts = tuple(known.get(each["name"]) or undescribed(each) for each in content["contrasts"])
        solved = {str(name): str(view) for name, view in content["solved_views"].items()}
        names = list(table_columns(contrasts, solved.values()))
        table = pd.DataFrame(content["tasks"], columns=names)
        table = table.astype(dict.fromkeys(numeric(names), float) | {"seeds": int})
        told: dict[str, Any] = {key: content.get(key, {}) for key in ("calibration", "cost")}
        told["findings"] = tuple(
            Finding(**found | {key: tuple(found[key]) for key in ("tasks", "group")}) for found in content["findings"]
        )
        told["left_out"] = tuple(LeftOut(**each) for each in content["left_out"])
        thresholds, notes = Thresholds(**content["thresholds"]), tuple(content["notes"])
        told |= {"contrasts": contrasts, "solved": solved, "cautions": tuple(map(str, content.get("cautions", ())))}
        return cls(table, pd.DataFrame(), thresholds, notes, content["definition"], **told)

    def save(self, folder: str | Path) -> dict[str, Path]:
        """Write `diagnosis.json` and `challenge.csv` into a folder, each whole or not at all."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = {"json": folder / "diagnosis.json", "csv": folder / "challenge.csv"}
        write_atomic(paths["json"], self.to_json() + "\n")
        write_atomic(paths["csv"], csv_text(self.table))
        return paths


def diagnose_curves(
    dataframe: pd.DataFrame,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    thresholds: Thresholds | None = None,
    definition: str = USUAL_DEFINITION,
    levels: Mapping[str, Mapping[str, float]] | None = None,
    dynamics: Mapping[str, Sequence[str]] | None = None,
    contrasts: Sequence[Contrast] = HEADLINE,
    horizons: Mapping[str, Span] | None = None,
) -> Diagnosis:
    """Tell what makes each task hard from held-out learning curves.

    Args:
        dataframe: curves, one row an evaluation: at least the columns task, view, reward_p, seed, step and return_mean.
        ranges: task to (R_min, R_max), a random agent's return and the highest possible one. For tasks not in it: the
            columns r_min and r_max; where they are empty, the benchmark's own, if it is registered.
        thresholds: when a task counts as unsolved, solved or without signal.
        definition: which definition of φ and ψ the headline follows: "calibrated" or "paper".
        levels: task and contrast to the nominal level of the score's intervals, where that is not 95 %: scores that
            were looked at repeatedly need a higher one to keep 95 % (see `lcd.statistics.sequential`).
        dynamics: task to sentences on how its views differ as environments, where that was looked at; see
            `lcd.envs.lockstep`.
        contrasts: what is asked of each task; φ and ψ always are.
        horizons: task to its effective horizon and the bounds on it; for tasks not in it what their benchmark knows.

    Returns:
        Its table has, for each task: phi and psi (scaled to 0-1 over the diagnosable tasks of the group), the unscaled
        phi_raw and psi_raw, phi_<definition> and psi_<definition> (unscaled, of every definition, whichever is the
        headline's), phi_gain (φ's gain as a difference of AUCs), auc_<condition> (mean over seeds) and
        final_<condition> (interquartile mean over seeds of the last return), phi_rank and psi_rank (1 is the hardest
        task of the group), each with _low and _high; perception_level and reward_level (how hard the task was made,
        where that is known); H, the effective horizon, where that is known, with H_low and H_high; seeds, steps,
        status, phi_status and psi_status (why a score is missing, or "ok");
        validity (the keys of the findings that concern the task, or "ok").

    Note:
        Intervals are 95 %, over seeds, by `lcd.statistics.intervals.bootstrap`, which says why not by percentiles:
        these promise too much with few seeds. One seed has no interval. Those of phi and psi are the raw ones scaled as
        the estimates are, and not clipped to 0-1. The numbers do not depend on the order of rows.
    """
    thresholds, definition = thresholds or Thresholds(), check_definition(definition)
    if not isinstance(contrasts, Sequence) or not all(isinstance(each, Contrast) for each in contrasts):
        raise InputError(f"contrasts={contrasts!r} must be a list of Contrasts (lcd.scores.contrasts).")
    all_held_out, curves, notes = _held_out(dataframe, ranges)
    own, of_family = as_trained(curves), of_points(curves)
    curves, others, points = kept(curves, own), curves[~own & ~of_family], curves[of_family]
    if len(points):
        check_weights(points)
        families = whole_families(points, curves)
        all_held_out = concatenated([all_held_out[~of_points(all_held_out)], families])
        contrasts = (*contrasts, *([FAMILY_LOSS] if len(families) else []))
    contrasts = (*HEADLINE, *dict.fromkeys(each for each in contrasts if each not in HEADLINE))
    held_out = kept(all_held_out, as_trained(all_held_out))
    solved = solved_views(all_held_out) | solved_views(held_out)
    index = CurveIndex(all_held_out)
    tasks = tasks_of(index, contrasts)
    if not tasks:
        if others.empty:
            measured_families(points, curves)  # or says why there is nothing to be told
        return Diagnosis.empty(others, points)
    evaluated = all_held_out[["benchmark", "task"]].drop_duplicates()
    spans = horizons_of(evaluated.itertuples(index=False, name=None), horizons or {})
    rows: list[dict[str, Any]] = []
    samples: dict[str, dict[tuple[str, ...], TaskSamples]] = {contrast.name: {} for contrast in contrasts}
    for key in tasks:
        row = dict(zip(KEYS, key, strict=True))
        numbers = TaskNumbers(index, row, solved[row["benchmark"]], thresholds, (levels or {}).get(key[-1], {}))
        for asked in (HEADLINE, *((each,) for each in contrasts[len(HEADLINE) :])):
            found = numbers.add(asked)
            for contrast in asked:
                samples[contrast.name][key] = found
        known = dict(zip(COLUMNS, spans.get(key[-1], UNKNOWN), strict=True))
        rows.append(row | ground_truth(key[0], key[-1]) | known | judge(numbers, contrasts, definition))
    table = pd.DataFrame(rows).reindex(columns=table_columns(contrasts, solved.values()))
    for contrast in contrasts:
        _scale(table, contrast.name)
        add_ranks(table, samples[contrast.name], GROUP, contrast, definition, thresholds.no_signal)
    scaled = table[["phi_status", "psi_status"]].isin(["single_task", "no_spread"])
    reason = table["phi_status"].where(scaled["phi_status"], table["psi_status"])
    table["status"] = table["status"].mask((table["status"] == "ok") & scaled.any(axis=1), reason)
    calibration = calibrate(table, samples[PERCEPTION.name], GROUP, thresholds.no_signal)
    findings = check_validity(table, held_out, GROUP, dynamics, thresholds)
    table["validity"] = validity_column(table, findings, GROUP)
    return Diagnosis(
        table,
        curves,
        thresholds,
        (
            *notes,
            *masks_told(sorted(map(str, held_out["benchmark"].unique()))),
            *_without_range(all_held_out),
            *_unused_views(held_out, contrasts, solved),
        ),
        definition,
        calibration,
        findings=findings,
        index=index,
        contrasts=contrasts,
        solved=solved,
        others=others,
        points=points,
        horizons=spans,
        levels=levels,
        dynamics=dynamics,
    )


def solved_views(curves: pd.DataFrame) -> dict[str, str]:
    """Benchmark → the view in which perception is out of the way: where its rewards were thinned.

    Where they were thinned in several views, or in none, it is the benchmark's own, or the most solved that is there.
    """
    curves = curves[["benchmark", "view", "reward_p"]].drop_duplicates()
    thinned = curves[curves["reward_p"] < 1]
    found: dict[str, Any] = {}
    for benchmark, rows in curves.groupby("benchmark", sort=True):
        where = set(thinned.loc[thinned["benchmark"] == benchmark, "view"].unique()) or set(rows["view"].unique())
        own = _own_solved_view(str(benchmark))
        found[str(benchmark)] = own if own in where else most_solved(sorted(where))
    return found


def _own_solved_view(benchmark: str) -> str | None:
    from lcd.envs.benchmarks import registered_benchmark

    found = registered_benchmark(benchmark)
    return None if found is None else solved_view(found)


def normalised_curves(
    dataframe: pd.DataFrame, ranges: Mapping[str, tuple[float, float]] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """The checked held-out curves of tasks as trained, with `normalised`; sentences on ranges that disagree."""
    held_out, _, notes = _held_out(dataframe, ranges)
    found = kept(held_out, as_trained(held_out) & held_out["normalised"].notna())
    if found.empty:
        raise InputError(
            "No task has a range (R_min, R_max), which is needed here: give the columns r_min and r_max, or "
            "'ranges.TASK=[R_min,R_max]'."
        )
    return found, notes


def samples_by_task(held_out: pd.DataFrame, overlap: float = Thresholds.overlap) -> dict[tuple[str, ...], TaskSamples]:
    """The values of `KEYS` → the per-seed areas of φ's and ψ's conditions."""
    index, solved = CurveIndex(held_out), solved_views(held_out)
    found = {}
    for key in tasks_of(index, HEADLINE):
        row = dict(zip(KEYS, key, strict=True))
        view = solved[row["benchmark"]]
        curves = curves_by_condition(index, row, view)
        agents = dict.fromkeys(curves, row["agent"])
        steps = dict.fromkeys(curves, common_steps(curves, agents, f"task '{row['task']}'", overlap))
        found[key] = samples_between(curves, steps, view)
    return found


def _held_out(
    dataframe: pd.DataFrame, ranges: Mapping[str, tuple[float, float]] | None
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Held-out curves, all curves, sentences."""
    curves, notes = attach_ranges(check_curves(dataframe), ranges)
    curves["normalised"] = normalised(curves)
    of_split = curves["split"] == "eval"
    held_out = kept(curves, of_split)
    if held_out.empty:
        raise InputError("The curves have no row with split 'eval': scores need held-out returns.")
    return held_out, curves, notes


def status_sentences(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What keeps a row's scores back: (φ, ψ or nothing for both, status), or the row's "ok" alone."""
    of_scores = [(sign, row[f"{score}_status"]) for score, sign in SIGNS.items()]
    further = [(sign, status) for sign, status in of_scores if status not in ("ok", row["status"])]
    return further if further and row["status"] == "ok" else [("", row["status"]), *further]


def _scale(table: pd.DataFrame, score: str) -> None:
    """Min-max a raw score over the diagnosable tasks of each group, in place.

    Others that have a score are put on the same scale, at its ends where they lie beyond.
    """
    for _, group in table.groupby(list(GROUP), sort=False):
        known, guarded = group[f"{score}_raw"].notna(), group[f"{score}_status"].isin(GUARDED)
        scored, beside = group.index[known & ~guarded], group.index[known & guarded]
        raw = table.loc[scored, f"{score}_raw"]
        if len(raw) < 2:
            table.loc[scored, f"{score}_status"] = "single_task"
        elif raw.max() - raw.min() <= ROUNDING * max(1.0, abs(raw.max())):
            table.loc[scored, f"{score}_status"] = "no_spread"
        else:
            for end in ("", "_low", "_high"):
                unscaled = table.loc[scored, f"{score}_raw{end}"]
                table.loc[scored, score + end] = (unscaled - raw.min()) / (raw.max() - raw.min())
                placed = (table.loc[beside, f"{score}_raw{end}"] - raw.min()) / (raw.max() - raw.min())
                table.loc[beside, score + end] = placed.clip(0, 1)


def _without_range(held_out: pd.DataFrame) -> list[str]:
    """A sentence on the tasks whose returns cannot be scaled, with what to do about it."""
    names = sorted(evaluated_names(held_out[held_out["normalised"].isna()]))
    if not names:
        return []
    first = f"{', '.join(names[:MOST_NAMED])}{f' and {len(names) - MOST_NAMED} more' * (len(names) > MOST_NAMED)}"
    return [
        f"Nothing tells the range of {first}: returns are told as they are, and scores that need a range have the "
        f"status no_range. Give the columns r_min and r_max, or 'ranges.{names[0]}=[R_min,R_max]'."
    ]


def _unused_views(held_out: pd.DataFrame, contrasts: Sequence[Contrast], solved: Mapping[str, str]) -> list[str]:
    used = list(dict.fromkeys(each.view for each in conditions_at(contrasts, solved.values()).values()))
    return [
        f"The view '{view}' takes no part in φ or ψ: they compare {', '.join(used)}."
        for view in sorted(set(held_out["view"].unique()) - set(used))
    ]
