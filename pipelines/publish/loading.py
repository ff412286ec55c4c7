"""A study, or a file of curves, as tables: what `lcd.load_study` gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcd.pipelines.publish.telling import ReportOptions, Told, tell
from lcd.pipelines.steering.glance import Glance
from lcd.pipelines.study import store

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("run", "state", "why", "kind", "benchmark", "task", "view", "reward_p", "agent", "frontend", "shaping", "seeds"),
    *("step", "steps", "steps_per_s", "wall_s"),
)


def told_of(source: Path, how: ReportOptions) -> Told:
    """What is told of a study's folder or of a file of curves; nothing is written."""
    return tell(source, study_at(source), how)


def told_of_table(name: Path, curves: pd.DataFrame, how: ReportOptions) -> Told:
    """What is told of a table of curves, with the notes of who made it."""
    from lcd.curves.table import check_curves

    return tell(name, None, how, check_curves(curves), tuple(curves.attrs.get("notes", ())))


def study_at(source: Path) -> store.Study | None:
    """The study in a folder, if it is one."""
    return store.Study(source) if source.is_dir() and (source / "study.yaml").is_file() else None


def table_of_runs(source: Path) -> pd.DataFrame:
    """A row a run of a study: what it trains, and how far it is; no rows of a file of curves."""
    import pandas as pd

    study = study_at(source)
    rows: list[dict[str, Any]] = []
    for seen in [] if study is None else Glance(study).look():
        config: Any = seen.config or {}
        seeds = config.get("seeds")
        told = {"run": seen.name, "state": seen.state, "why": seen.why, "kind": config.get("kind", ""), **seen.named}
        told |= {name: seen.status[name] for name in ("step", "steps", "steps_per_s", "wall_s")}
        rows.append(told | {"seeds": tuple(seeds) if isinstance(seeds, list) else ()})
    return pd.DataFrame(rows, columns=list(COLUMNS))
