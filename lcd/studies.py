"""LCD from Python: train and diagnose (`diagnose`), look at what is there (`load_study`), take in others' logs.

What these do is `lcd.pipelines`', which is imported when they are called.
"""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcd.config.carried_out import carry_out
from lcd.config.compose import compose
from lcd.config.overrides import as_words
from lcd.config.registries import analyses
from lcd.envs.errors import InputError, nearest
from lcd.process.children import resolve
from lcd.scores.hard import HardFrom

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from lcd.analyses import Analysis
    from lcd.report.challenge_cards import Card
    from lcd.scores.diagnosis import Diagnosis

PLANE, CURVES = "plane", "curves"
TABLE = "curves"
"""What a study is called that is a table."""
DIAGNOSE = "diagnose"


@dataclass(frozen=True)
class Study:
    """What a study has found, or what curves of anybody's say.

    Attributes:
        path: its folder, or the file of curves; "curves" of a table.
        runs: a row a run: what it trains and how far it is; empty of a file of curves.
        curves: a row an evaluation, of the runs that are finished.
        diagnosis: the scores, with their intervals, statuses and findings.
        analyses: what else the curves say.
        threshold: from where on a scaled score is hard.
    """

    path: Path
    runs: pd.DataFrame = field(repr=False)
    curves: pd.DataFrame = field(repr=False)
    diagnosis: Diagnosis = field(repr=False)
    analyses: tuple[Analysis, ...] = field(default=(), repr=False)
    threshold: HardFrom = field(default_factory=HardFrom, repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """A row a task: φ, ψ, their intervals, areas and statuses; see `lcd.diagnose_curves`."""
        return self.diagnosis.table

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader should know, what keeps scores from being trusted first."""
        found = self.diagnosis
        return (*found.cautions, *(sentence for _, sentence in found.warnings), *found.notes)

    @property
    def cards(self) -> list[Card]:
        """A challenge card a task: everything that LCD can measure, or what would measure it."""
        from lcd.report.challenge_cards import cards_of

        return cards_of(self.diagnosis, self.analyses)

    def analysis(self, key: str) -> Analysis:
        """One of the analyses: its table, sentences and note.

        Args:
            key: its own, which names its files, or the name that `lcd list analyses` has of it.
        """
        found = {each.made_by: each for each in reversed(self.analyses)} | {each.key: each for each in self.analyses}
        if key not in found:
            keys = [each.key for each in self.analyses]
            if key in analyses.names() or ":" not in key:
                raise InputError(f"analysis {key!r} is not among those that the curves allow: {nearest(key, keys)}")
            raise InputError(
                f"analysis {key!r} is no installed one, and these alone are made here: lcd report "
                f"{self.path} 'analyses=[all,{key}]' makes it, too, and so does Python, by the function itself: "
                f"{key.partition(':')[2]}(lcd.analyses.Evidence(study.diagnosis))."
            )
        return found[key]

    def plot(
        self,
        what: str = PLANE,
        *,
        task: str | None = None,
        agent: str | None = None,
        frontend: str | None = None,
        shaping: str | None = None,
        benchmark: str | None = None,
    ) -> Figure:
        """Draw the φ-ψ plane, or the learning curves of a task.

        Args:
            what: "plane" or "curves".
            task: whose curves; may be left out where there is one.
            agent: whose, where several were trained.
            frontend: through which, where several were.
            shaping: under which, where several were.
            benchmark: of which, where tasks are of several.

        Returns:
            A figure of matplotlib's, which notebooks show and `figure.savefig` keeps.
        """
        from lcd.report.curve_figures import draw_curves
        from lcd.report.curve_lines import task_curves
        from lcd.report.figures import shown_in_notebooks
        from lcd.report.plane_figures import challenge_plane
        from lcd.scores.challenge_table import GROUP

        if what not in (PLANE, CURVES):
            raise InputError(f"what={what!r} cannot be drawn: {nearest(str(what), (PLANE, CURVES))}")
        rows = self.table
        group = {"agent": agent, "frontend": frontend, "shaping": shaping, "benchmark": benchmark}
        for key, wanted in group.items():
            rows = _only(rows, key, wanted)
        if what == CURVES:
            row = _only(rows, "task", task)
            if len(row) > 1:
                key = next(name for name in ("task", *group) if row[name].nunique() > 1)
                raise InputError(f"{key} is missing: {nearest('', dict.fromkeys(row[key]))}")
            return shown_in_notebooks(draw_curves(task_curves(self.diagnosis, row.iloc[0])))
        if task is not None:
            raise InputError(f"task={task!r}: the plane has all tasks; leave it out, or draw what='curves'.")
        groups = [group for _, group in rows.groupby(list(GROUP), sort=False)]
        return shown_in_notebooks(challenge_plane(groups[0], False, self.threshold))

    def _repr_html_(self) -> str:
        from lcd.report.in_notebooks import study_html

        return study_html(self.diagnosis, self.path.name, self.threshold, self.analyses)


def _only(rows: pd.DataFrame, column: str, wanted: str | None) -> pd.DataFrame:
    found = rows if wanted is None else rows[rows[column] == wanted]
    if found.empty:
        raise InputError(f"{column}={wanted!r} has no scores: {nearest(str(wanted), dict.fromkeys(rows[column]))}")
    return found


def load_study(
    path: str | Path | pd.DataFrame,
    *,
    definition: str | None = None,
    threshold: Any = 0.5,
    ranges: str | Mapping[str, Any] | None = None,
) -> Study:
    """What a study's folder, a CSV or Parquet file of curves, or a table of these says; nothing is written.

    Args:
        path: the folder or file, or curves such as `import_curves` gives.
        definition: of the headline's φ and ψ, "calibrated" or "paper"; None: the one that the study was diagnosed by,
            else "calibrated".
        threshold: from where on a scaled score is hard: a number, "median", "largest-gap", or one for each score.
        ranges: task to (R_min, R_max), a file of these, or "measured", as `lcd report ranges=` takes them.
    """
    import pandas as pd

    from lcd.scores.contrasts import check_definition

    if not isinstance(path, str | Path | pd.DataFrame):
        raise InputError(
            f"path={path!r} must be a study's folder, a CSV or Parquet file of curves, or a table of them."
        )
    hard = HardFrom.parse("threshold", threshold)
    given = {task: _plain_pair(pair) for task, pair in ranges.items()} if isinstance(ranges, Mapping) else ranges
    options = resolve("lcd.pipelines.publish.telling:ReportOptions")
    how = options(None if definition is None else check_definition(definition), hard, ranges=given)
    if isinstance(path, str | Path):
        source = Path(path).expanduser()
        told = resolve("lcd.pipelines.publish.loading:told_of")(source, how)
    else:
        source = Path(TABLE)
        told = resolve("lcd.pipelines.publish.loading:told_of_table")(source, path, how)
    runs = resolve("lcd.pipelines.publish.loading:table_of_runs")(source)
    return Study(source, runs, told.finished.curves, told.diagnosis, tuple(told.analyses), hard)


def _plain_pair(pair: Any) -> Any:
    """A range as files hold one: numpy's numbers as Python's."""
    if isinstance(pair, str) or not isinstance(pair, Iterable):
        return pair
    return [float(each) if isinstance(each, Real) and not isinstance(each, bool) else each for each in pair]


def diagnose(benchmark: Any = "toy", *, quiet: bool = False, **keys: Any) -> Study:
    """Train what a diagnosis needs, say what makes each task hard, and load it: `lcd diagnose` from Python.

    A study that is there is gone on with: the same call gives the same numbers, at once.

    Args:
        benchmark: a registered one, `module:object`, or a class or object that a module defines.
        quiet: print nothing; notebooks show progress otherwise.
        keys: those of `lcd diagnose --help`; what has keys of its own is a mapping: `study={"seeds": 3}`.

    Returns:
        The study.

    Raises:
        InputError: for every mistake, before anything is trained.
    """
    said = {key: _named(key, value) for key, value in {"benchmark": benchmark, **keys}.items()}
    config = compose(DIAGNOSE, as_words(DIAGNOSE, said))
    if config.dry_run:
        raise InputError("dry_run=True tells what a study costs and makes none: give lcd diagnose --dry-run.")
    with contextlib.redirect_stdout(io.StringIO()) if quiet else contextlib.nullcontext():
        carry_out(config, "lcd.pipelines.study.diagnose:run")
    path = resolve("lcd.pipelines.study.diagnose:default_out")(config)
    return load_study(path, definition=config.definition, threshold=config.study.threshold)


def _named(key: str, value: Any) -> Any:
    """A class, function or object as `module:object`, which other processes can import; all else as it is."""
    if isinstance(value, str | int | float | Mapping | list | tuple | Path) or value is None:
        return value
    name = value.__qualname__ if isinstance(value, type) or inspect.isfunction(value) else ""
    module = inspect.getmodule(value)
    if not name and module is None:
        module = inspect.getmodule(type(value))
        found = [name for name, each in vars(module).items() if each is value] if module else []
        name = found[0] if found else ""
    if module is None or not name.isidentifier() or module.__name__ == "__main__":
        raise InputError(
            f"{key}={value!r} is not defined at the top of a module that can be imported, as other processes have to: "
            "put it into a file of its own and give that one, or its 'module:object'."
        )
    return f"{module.__name__}:{name}"


def import_curves(
    path: str | Path,
    map: str | Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    folders: str | None = None,
    names: Mapping[str, Any] | None = None,
    grid: str | float = "auto",
    least: float = 0.5,
) -> pd.DataFrame:
    """Curves of anybody's logs, for `lcd.diagnose_curves`: `lcd import` from Python.

    What a reader should know of how they were made is in `curves.attrs["notes"]`.

    Args:
        path: a folder of logs, one file, or `wandb:entity/project/group`.
        map: column of curves to its source (`config.KEY`, `history.KEY`, `path.NAME`, a constant), or a YAML file.
        format: of the logs; None: as found.
        folders: how the runs' folders are called, such as "{task}/{view}/p{reward_p}/seed_{seed}".
        names: column → what logs call a value → what it is called here.
        grid: steps over which returns are averaged; 0: as they are; "auto": of single episodes alone.
        least: share of the longest curve's steps without which a curve is left out.
    """
    imported = resolve("lcd.pipelines.importing.import_curves:imported")
    found = imported(path, map, kind=format, folders=folders, names=names, grid=grid, least=least)
    found.curves.attrs["notes"] = found.notes
    return found.curves
