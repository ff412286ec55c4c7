"""From learning curves to what makes each task hard: φ (perception), ψ (reward) and how sure they are."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lcd.calibration import calibrate, ground_truth
from lcd.curves import attach_ranges, check_curves
from lcd.definitions import DEFINITIONS, REWARDS, Definition, get_definition
from lcd.envs.errors import InputError
from lcd.files import write_atomic
from lcd.left_out import STATES, LeftOut
from lcd.ranks import add_ranks
from lcd.scoring import CONDITIONS, SCORES, TaskSamples, curves_by_condition, samples_between, span
from lcd.statistics import LEVEL, METHOD, RESAMPLES, bootstrap, iqm

GROUP = ("benchmark", "agent", "frontend", "shaping")
VIEWS = ("pixels", "figure_ground", "semantic")
ROUNDING = 1e-9  # what floating point may add to an area must not decide a status
STATUSES = {
    "ok": "scored",
    "floor": "unsolved under every condition: not diagnosable at this budget",
    "no_pixels_signal": "nothing learned from pixels: the gain is told as a difference, φ left out",
    "ceiling": "solved at once under every condition: easy",
    "single_task": "the only diagnosable task: there is nothing to scale its score against",
    "no_spread": "all tasks score the same: there is nothing to scale by",
    "missing_view": "not trained on all three views: φ needs pixels, figure_ground and semantic",
    "missing_p": "not trained at every reward p: ψ needs 1, 0.75, 0.5 and 0.25 on the semantic view",
    **STATES,
}


@dataclass(frozen=True)
class Thresholds:
    """Where a task stops being diagnosable, in normalised return.

    Parameters
    ----------
    floor
        A task whose every condition has a mean AUC of at most this is unsolved.
    ceiling
        A task whose every condition has a mean AUC of at least this is solved at once.
    no_signal
        An AUC on pixels of at most this (the ε of the definitions) cannot be divided by.
    overlap
        Least share of the steps that the curves of a task must have in common.
    """

    floor: float = 0.05
    ceiling: float = 0.95
    no_signal: float = 0.01
    overlap: float = 0.9


@dataclass(frozen=True)
class Diagnosis:
    """Scores of every task, and the curves they were computed from.

    Parameters
    ----------
    table
        One row a task of a (benchmark, agent, front-end, shaping) group; see `diagnose_curves`.
    curves
        The checked curves, with the range used in `r_min`, `r_max` and the return under it in `normalised`;
        empty when the diagnosis was read back from JSON.
    thresholds
        What the statuses were decided by.
    notes
        Sentences about the curves that a reader should know.
    definition
        Which of `lcd.definitions.DEFINITIONS` the columns phi, psi, phi_raw and psi_raw follow.
    calibration
        Definition → measure (phi_recovery, psi_recovery, phi_crosstalk, psi_crosstalk) → value, low, high; empty where
        the tasks' true hardness is not known. See `lcd.calibration.calibrate`.
    cost
        What the curves took, as `lcd.pipelines.cost.spent` tells it; empty where nobody knows.
    left_out
        The study's runs that have no part in it; see `lcd.marking.mark`.
    """

    table: pd.DataFrame
    curves: pd.DataFrame = field(repr=False)
    thresholds: Thresholds = Thresholds()
    notes: tuple[str, ...] = ()
    definition: str = "paper"
    calibration: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()

    @classmethod
    def empty(cls) -> "Diagnosis":
        """No task at all: what is left when all curves are of curricula."""
        return cls(pd.DataFrame(columns=list(table_columns())), pd.DataFrame())

    def to_json(self) -> str:
        """The diagnosis without its curves, as strict JSON: what is not a number is null."""
        content = {
            "definition": self.definition,
            "definitions": {name: definition.formula for name, definition in DEFINITIONS.items()},
            "interval": {"level": LEVEL, "method": METHOD, "resamples": RESAMPLES, "unit": "seed"},
            "thresholds": asdict(self.thresholds),
            "notes": list(self.notes),
            "calibration": self.calibration,
            "cost": self.cost,
            "left_out": [asdict(each) for each in self.left_out],
            "tasks": [{key: _plain(value) for key, value in row.items()} for row in self.table.to_dict("records")],
        }
        return json.dumps(_strict(content), indent=2, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Diagnosis":
        """Read back what `to_json` wrote; the curves are left empty."""
        content = json.loads(text)
        table = pd.DataFrame(content["tasks"], columns=list(table_columns()))
        table = table.astype(dict.fromkeys(numeric_columns(), float) | {"seeds": int})
        told = {key: content.get(key, {}) for key in ("calibration", "cost")}
        told["left_out"] = tuple(LeftOut(**each) for each in content.get("left_out", []))
        thresholds = Thresholds(**content["thresholds"])
        return cls(table, pd.DataFrame(), thresholds, tuple(content["notes"]), content["definition"], **told)

    def save(self, folder: str | Path) -> dict[str, Path]:
        """Write `diagnosis.json` and `challenge.csv` into a folder, each whole or not at all."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = {"json": folder / "diagnosis.json", "csv": folder / "challenge.csv"}
        write_atomic(paths["json"], self.to_json() + "\n")
        write_atomic(paths["csv"], self.table.to_csv(index=False, lineterminator="\n"))
        return paths


def diagnose_curves(
    dataframe: pd.DataFrame,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    thresholds: Thresholds | None = None,
    definition: str = "paper",
    levels: Mapping[str, float] | None = None,
) -> Diagnosis:
    """Tell what makes each task hard from held-out learning curves.

    Parameters
    ----------
    dataframe
        Curves, one row an evaluation: at least the columns task, view, reward_p, seed, step and return_mean.
    ranges
        Task to (R_min, R_max), a random agent's return and the highest possible one. For tasks not in it: the
        benchmark's own where the benchmark is registered, else the columns r_min and r_max.
    thresholds
        When a task counts as unsolved, solved or without signal.
    definition
        Which definition of φ and ψ the headline follows: "paper" or "calibrated".
    levels
        Task to the nominal level of its intervals, where that is not 95 %: tasks that were looked at repeatedly need
        a higher one to keep 95 % (see `lcd.sequential`).

    Returns
    -------
    Diagnosis
        Its table has, for each task: phi and psi (scaled to 0-1 over the diagnosable tasks of the group), the
        unscaled phi_raw and psi_raw, phi_<definition> and psi_<definition> (unscaled, of every definition, whichever
        is the headline's), phi_gain (φ's gain as a difference of AUCs), auc_<condition> (mean over
        seeds) and final_<condition> (interquartile mean over seeds of the last return), phi_rank and psi_rank (1 is
        the hardest task of the group), each with _low and _high; perception_level and reward_level (how hard the
        task was made, where that is known); seeds, steps, status, phi_status and psi_status (why a score is
        missing, or "ok").

    Notes
    -----
    Intervals are 95 %, over seeds, by `lcd.statistics.bootstrap`, which says why not by percentiles: these
    promise too much with few seeds. One seed has no interval. Those of phi and psi are the raw ones scaled as
    the estimates are, and not clipped to 0-1. The numbers do not depend on the order of rows.
    """
    thresholds, chosen = thresholds or Thresholds(), get_definition(definition)
    held_out, curves, notes = _held_out(dataframe, ranges)
    keys = [*GROUP, "task"]
    rows, samples = [], {}
    for key, of_task in held_out.groupby(keys, sort=True):
        found, samples[key] = _diagnose_task(of_task, key[-1], thresholds, chosen, (levels or {}).get(key[-1], LEVEL))
        rows.append(dict(zip(keys, key, strict=True)) | ground_truth(key[0], key[-1]) | found)
    table = pd.DataFrame(rows)
    for score in ("phi", "psi"):
        _scale(table, score)
    add_ranks(table, samples, GROUP, chosen, thresholds.no_signal)
    scaled = table[["phi_status", "psi_status"]].isin(["single_task", "no_spread"])
    reason = table["phi_status"].where(scaled["phi_status"], table["psi_status"])
    table["status"] = table["status"].mask((table["status"] == "ok") & scaled.any(axis=1), reason)
    calibration = calibrate(table, samples, GROUP, thresholds.no_signal)
    notes = (*notes, *_unused_views(held_out))
    return Diagnosis(table[list(table_columns())], curves, thresholds, notes, chosen.name, calibration)


def normalised_curves(
    dataframe: pd.DataFrame, ranges: Mapping[str, tuple[float, float]] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """The checked held-out curves with their column `normalised`, and sentences on ranges that disagree."""
    held_out, _, notes = _held_out(dataframe, ranges)
    return held_out, notes


def _held_out(
    dataframe: pd.DataFrame, ranges: Mapping[str, tuple[float, float]] | None
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Held-out curves, all curves, sentences."""
    curves, notes = attach_ranges(check_curves(dataframe), ranges)
    curves["normalised"] = (curves["return_mean"] - curves["r_min"]) / (curves["r_max"] - curves["r_min"])
    held_out = curves[curves["split"] == "eval"]
    if held_out.empty:
        raise InputError("The curves have no row with split 'eval': scores need held-out returns.")
    return held_out, curves, notes


def numeric_columns() -> tuple[str, ...]:
    """Columns of the table that hold numbers."""
    scores = ("phi", "psi", "phi_raw", "psi_raw", *SCORES, "phi_rank", "psi_rank")
    measures = (*(f"auc_{name}" for name in CONDITIONS), *(f"final_{name}" for name in CONDITIONS))
    bounded = (name + end for name in (*scores, *measures) for end in ("", "_low", "_high"))
    return (*bounded, "perception_level", "reward_level", "seeds", "steps")


def table_columns() -> tuple[str, ...]:
    """Columns of the table, in order."""
    return (*GROUP, "task", *numeric_columns(), "status", "phi_status", "psi_status")


def _diagnose_task(
    rows: pd.DataFrame, task: str, thresholds: Thresholds, definition: Definition, level: float
) -> tuple[dict, TaskSamples]:
    """Unscaled scores of one task, and the per-seed areas that they come from."""
    curves = curves_by_condition(rows)
    names = list(curves)
    numbers = dict.fromkeys(numeric_columns(), math.nan) | {"seeds": 0}
    for known in ("perception_level", "reward_level"):
        numbers.pop(known)
    samples = TaskSamples((), (), ())
    if names:
        low, high = span(curves, f"task '{task}'", thresholds.overlap)
        samples = samples_between(curves, low, high)
        finals = [np.array([np.interp(high, *curve) for curve in curves[name].values()]) for name in names]
        estimate, interval = samples.intervals(thresholds.no_signal, level)
        numbers |= _columns([*(f"auc_{name}" for name in names), *SCORES], estimate, *interval)
        spread = bootstrap(finals, lambda averages: averages, paired=samples.paired, aggregate=iqm, level=level)
        numbers |= _columns([f"final_{name}" for name in names], [iqm(final) for final in finals], *spread)
        numbers |= {"seeds": samples.count, "steps": high}
    return _judge(numbers, names, thresholds, definition), samples


def _columns(names: list[str], *ends: Any) -> dict[str, float]:
    """Estimates, lower and upper bounds as columns of the table."""
    return {
        name + end: float(values[index])
        for end, values in zip(("", "_low", "_high"), ends, strict=True)
        for index, name in enumerate(names)
    }


def _judge(numbers: dict, names: list[str], thresholds: Thresholds, definition: Definition) -> dict:
    """Add the statuses, and take back the scores that they rule out."""
    means = [numbers[f"auc_{name}"] for name in names]
    statuses = {each.name: _statuses(numbers, names, thresholds, each) for each in DEFINITIONS.values()}
    for name, of_scores in statuses.items():
        for score, reason in zip(("phi", "psi"), of_scores, strict=True):
            if reason != "ok":
                numbers |= {f"{score}_{name}{end}": math.nan for end in ("", "_low", "_high")}
    for score in ("phi", "psi"):
        numbers |= {f"{score}_raw{end}": numbers[f"{score}_{definition.name}{end}"] for end in ("", "_low", "_high")}
    phi, psi = statuses[definition.name]
    status = "missing_view" if (phi, psi) == ("missing_view", "missing_p") else "ok"
    if _unsolved(means, thresholds):
        status = "floor"
    elif definition.divides_by_pixels and numbers["auc_pixels"] <= thresholds.no_signal + ROUNDING:
        status = "no_pixels_signal"
    elif means and min(means) >= thresholds.ceiling - ROUNDING:
        status = "ceiling"
    return numbers | {"status": status, "phi_status": phi, "psi_status": psi}


def _statuses(numbers: dict, names: list[str], thresholds: Thresholds, definition: Definition) -> tuple[str, str]:
    """Why a definition has no φ and no ψ, or "ok"."""
    phi = "ok" if set(VIEWS) <= set(names) else "missing_view"
    psi = "ok" if set(REWARDS) <= set(names) else "missing_p"
    floor = _unsolved([numbers[f"auc_{name}"] for name in names], thresholds)
    if definition.divides_by_pixels:
        if floor:
            return "floor", "floor"
        if phi == "ok" and numbers["auc_pixels"] <= thresholds.no_signal + ROUNDING:
            phi = "no_pixels_signal"
    elif phi == "ok" and numbers["auc_figure_ground"] + numbers["auc_semantic"] <= 2 * thresholds.floor + ROUNDING:
        # Nothing is learned that pixels could lose a share of; a ψ that counts what is missing has no such limit.
        phi = "floor"
    return phi, psi


def _unsolved(means: list[float], thresholds: Thresholds) -> bool:
    return bool(means) and max(means) <= thresholds.floor + ROUNDING


def _scale(table: pd.DataFrame, score: str) -> None:
    """Min-max a raw score over the diagnosable tasks of each group, in place."""
    for _, group in table.groupby(list(GROUP), sort=False):
        scored = group.index[group[f"{score}_raw"].notna()]
        raw = table.loc[scored, f"{score}_raw"]
        if len(raw) < 2:
            table.loc[scored, f"{score}_status"] = "single_task"
        elif raw.max() - raw.min() <= ROUNDING * max(1.0, abs(raw.max())):
            table.loc[scored, f"{score}_status"] = "no_spread"
        else:
            for end in ("", "_low", "_high"):
                unscaled = table.loc[scored, f"{score}_raw{end}"]
                table.loc[scored, score + end] = (unscaled - raw.min()) / (raw.max() - raw.min())


def _unused_views(held_out: pd.DataFrame) -> list[str]:
    unused = sorted(set(held_out["view"]) - set(VIEWS))
    return [f"The view '{view}' takes no part in φ or ψ: they compare {', '.join(VIEWS)}." for view in unused]


def _strict(value: Any) -> Any:
    """Nested content that strict JSON can hold."""
    if isinstance(value, dict):
        return {key: _strict(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(each) for each in value]
    return value if isinstance(value, bool | None) else _plain(value)


def _plain(value):
    """A value that strict JSON can hold."""
    if isinstance(value, str):
        return value
    value = float(value)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
