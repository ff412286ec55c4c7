"""Which runs of a study are finished and believed, and which are left out of what is told of it, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from lcd.curves.names import evaluated_name
from lcd.envs.errors import InputError, Unfinished
from lcd.files.atomic import sha256_of
from lcd.pipelines.kinds.kind import CURVE_FILE
from lcd.pipelines.study import longer, store
from lcd.pipelines.study.configs import condition, run_id, task_name
from lcd.pipelines.study.family_written import default_as_point
from lcd.pipelines.study.members import points_of
from lcd.pipelines.study.point_weights import weighed
from lcd.scores.left_out import LeftOut, told_points

if TYPE_CHECKING:
    import pandas as pd

NOT_DONE = "not done"
LONGEST_REASON = 500


@dataclass(frozen=True)
class Finished:
    """What there is to be told of.

    Attributes:
        curves: those of the runs that are finished.
        left_out: the runs that failed or diverged, or whose curves are not what their configs promise, and points of
            runs that diverged.
        waiting: how many runs are still to be trained.
        runs: how many there are.
        unsealed: how many finished ones have no hashes to be compared with.
        growing: how many of them are asked for with more steps, too, which are not all done.
    """

    curves: pd.DataFrame
    left_out: tuple[LeftOut, ...] = ()
    waiting: int = 0
    runs: int = 0
    unsealed: int = 0
    growing: int = 0

    @property
    def note(self) -> str:
        """What is to be known of runs that go on; "" where none does."""
        told = f"{self.growing} runs are" if self.growing > 1 else "1 run is"
        shorter = "until all of those are done, what is told is of the shorter ones."
        return f"{told} asked for with more steps, too: {shorter}" if self.growing else ""

    def print_left_out(self, console: Console, each: bool = True) -> None:
        """Print how many runs are left out, and, of `each`, why."""
        runs = [each for each in self.left_out if not each.part]
        if runs or self.waiting:
            number = len(runs) + self.waiting
            counts = _counts(runs, self.waiting)
            console.print(f"{number} of {self.runs} runs left out: {counts}.", highlight=False)
        if self.unsealed:
            told = f"{self.unsealed} of {self.runs} runs are not sealed (trained by an earlier LCD): taken as they are."
            console.print(told, highlight=False, soft_wrap=True)
        if self.note and each:
            console.print(f"Note: {self.note}", highlight=False, soft_wrap=True)
        for left_out in self.left_out if each else ():
            console.print(f"Note: {left_out.sentence}", highlight=False, soft_wrap=True, markup=False)


def read_finished(source: Path, study: store.Study | None) -> Finished:
    """The curves at `source`; of a study those of its finished runs, because half a curve has another area.

    Where the study chose points of a family, they have the column `weight`.
    """
    from lcd.curves.table import read_curves

    if study is None:
        return Finished(read_curves(source))
    finished = sort_out(study.trainings(), str(study.path))
    return replace(finished, curves=_with_default_points(weighed(finished.curves, study.record), study))


def _with_default_points(curves: pd.DataFrame, study: store.Study) -> pd.DataFrame:
    """Curves of a study, with the default's rows a second time where a family that it wrote has it as a point."""
    from lcd.curves.reading import concatenated
    from lcd.curves.table import as_trained

    requests = [each.get("study") for each in study.record["requests"] if isinstance(each, dict)]
    written = [each["family"] for each in requests if isinstance(each, dict) and each.get("family")]
    names = {
        (task_name(run.config), name)
        for run in (study.trainings() if written else ())
        for asked in written
        if (default := points_of(run.config).get("")) and (name := default_as_point(asked, run.config["task"], default))
    }
    own, parts = as_trained(curves) if names else None, [curves]
    for task, name in sorted(names):
        rows = curves[own & np.asarray(curves["task"] == task)]
        again = {"context": name, "trained_on": evaluated_name(task, name)}
        parts.append(rows.assign(**again).astype(dict.fromkeys(again, "category")))
    return concatenated(parts) if len(parts) > 1 else curves


def sort_out(runs: Iterable[store.Training], name: str) -> Finished:
    """The curves of the runs that are finished, and why others are left out.

    Args:
        name: what holds the runs, for the sentence where none of them is finished.
    """
    from lcd.curves.reading import concatenated

    wrong: dict[store.Training, tuple[str, str]] = {}
    short: list[store.Training] = []
    waiting = unsealed = 0
    benchmarks: dict[str, str] = {}
    told_of, growing = _of_one_length(list(runs))

    def believed() -> Iterator[pd.DataFrame]:
        nonlocal waiting, unsealed
        for run in told_of:
            found = _judged(run)
            if found is None:
                waiting += 1
            elif isinstance(found, tuple):
                wrong[run] = found
            else:
                short.extend([run] if run.lost else [])
                unsealed += not run.status["seal"]
                benchmarks[run.config["benchmark"]] = found["benchmark"].iloc[0]
                yield found

    curves, count = concatenated(believed()), len(told_of)
    named = {run: benchmarks.get(run.config["benchmark"], run.config["benchmark"]) for run in (*wrong, *short)}
    left_out = tuple(_left_out(run, named[run], *why) for run, why in wrong.items())
    left_out += tuple(each for run in short for each in _points_left_out(run, named[run]))
    if curves.empty:
        first = f" The first: {left_out[0].sentence}" if left_out else ""
        counts = f" ({_counts(left_out, waiting)})" if count else ""
        raise Unfinished(f"No run of {name} is finished{counts}: there is nothing to tell yet.{first}")
    return Finished(curves, left_out, waiting, count, unsealed, growing)


def _of_one_length(runs: list[store.Training]) -> tuple[list[store.Training], int]:
    """Of runs that there are for several numbers of steps the ones that are told of; how many are not the longest."""
    lengths = longer.lengths(runs)
    done = [run for each in lengths for run in each if run.status["state"] == store.DONE]
    several, told = {run.path for each in lengths for run in each}, longer.finished_of(lengths, done)
    growing = sum(run is not each[-1] for run, each in zip(told, lengths, strict=True))
    kept = {run.path for run in told}
    return [run for run in runs if run.path not in several or run.path in kept], growing


def fault_of(run: store.Run) -> str | None:
    """Why a run's curve cannot be believed, in a sentence; None where nothing speaks against it.

    It reads the config, the status and the curve; `lcd verify` looks at the rest. A run that was done before there were
    seals, or is not done yet, has none to compare the curve with.
    """
    try:
        own = run_id(run.config)
    except (TypeError, ValueError):
        own = None
    if own != run.path.name:
        return "its config.yaml is not the one that its folder is named after: put it back, or move the folder away"
    status = run.status
    if status["state"] != store.DONE or not status["seal"] or run.kind.promise is None:
        return None
    anew = f"put it back as it was, or move {run.path} away and the same command trains the run anew"
    curve = run.path / CURVE_FILE
    try:
        if sha256_of(curve) == status["seal"].get(CURVE_FILE):
            return None
    except OSError as error:
        return f"its {CURVE_FILE} cannot be read ({error.strerror}): {anew}"
    return f"its {CURVE_FILE} has been changed since the run was done: {anew}"


def _judged(run: store.Run) -> pd.DataFrame | tuple[str, str] | None:
    """A run's curve; or the state for which it is left out, and why; or None if it is still to be trained."""
    from lcd.curves.table import read_curves

    status = run.status
    if status["state"] in (store.FAILED, store.DIVERGED):
        return status["state"], status["error"] or "its status does not say why"
    if status["state"] != store.DONE:
        return None
    if fault := fault_of(run):
        return "invalid", fault
    if wrong := run.broken_promise():
        return "invalid", f"its {wrong}"
    try:
        curves = read_curves(run.path / "curve.csv")
    except InputError as mistake:
        return "invalid", str(mistake)
    # Half a curve has another area.
    kept = curves[~curves["trained_on"].isin(list(run.lost))] if run.lost else curves
    return (store.DIVERGED, told_points(run.lost)) if kept.empty else kept


def _left_out(run: store.Training, benchmark: str, state: str, reason: str) -> LeftOut:
    named = condition(run.config) | {"benchmark": benchmark}
    # Of such runs φ and ψ have nothing.
    aside = "curriculum" in run.config or "" not in points_of(run.config)
    if aside and "points" in run.config:
        named["task"] = evaluated_name(named["task"], f"{len(run.config['points'])} points")
    return LeftOut(**named, run=run.path.name, state=state, reason=_plain(reason), aside=aside)


def _points_left_out(run: store.Training, benchmark: str) -> list[LeftOut]:
    """The points that a run went on without: the task as it is by itself, as it has a part in φ and ψ."""
    named = condition(run.config) | {"benchmark": benchmark}
    task, points = named["task"], points_of(run.config)
    lost = {point: why for point in points if (why := run.lost.get(evaluated_name(task, point))) is not None}
    found = {task: lost.pop("")} if "" in lost else {}
    if lost:
        found[evaluated_name(task, f"{len(lost)} of {len(points)} points")] = told_points(lost)
    named_as: dict[str, Any] = {**named, "run": run.path.name, "state": store.DIVERGED, "part": True}
    return [
        LeftOut(**{**named_as, "task": name}, reason=_plain(reason), aside=name != task)
        for name, reason in found.items()
    ]


def _plain(reason: str) -> str:
    """A stranger's status.json may hold anything, and terminals obey what cannot be seen."""
    return "".join(letter if letter.isprintable() else " " for letter in reason)[:LONGEST_REASON]


def _counts(left_out: Iterable[LeftOut], waiting: int) -> str:
    counts = Counter(each.state for each in left_out) + Counter({NOT_DONE: waiting})
    return ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))
