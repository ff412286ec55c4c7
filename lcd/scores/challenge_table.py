"""The rows and columns of the table that a diagnosis is."""

from collections import Counter
from collections.abc import Iterable, Sequence

from lcd.curves.index import CurveIndex
from lcd.curves.names import varied_task
from lcd.scores.calibration import LEVELS
from lcd.scores.contrasts import HEADLINE, KNOB, PERCEPTION, TRAINED_ON, Condition, Contrast, all_conditions
from lcd.scores.horizons import COLUMNS
from lcd.scores.judging import ENDS
from lcd.scores.scoring import score_columns, step_columns

GROUP = ("benchmark", "agent", "frontend", "shaping")
KEYS = (*GROUP, "task")
KNOWN = (*LEVELS.values(), *COLUMNS)
"""What is known of tasks before anything is trained."""


def numeric(columns: Iterable[str]) -> list[str]:
    """Those of a table's columns that hold numbers."""
    return [name for name in columns if name not in (*KEYS, "validity") and not name.endswith("status")]


def tasks_of(index: CurveIndex, contrasts: Sequence[Contrast]) -> list[tuple[str, ...]]:
    """The rows of the table: tasks by group, but for those that were trained as a variant of another one alone."""
    trained = Counter(
        tuple(where[name] for name in KEYS)
        for where in index
        if where["trained_on"] == where["task"] and not where["stage"] and not where["context"]
    )
    bases, variants = set(), set()
    for contrast in contrasts[len(HEADLINE) :]:
        bases |= _tasks_after(index, contrast)
        for key in trained:
            base = _base(dict(zip(KEYS, key, strict=True)), contrast)
            if base is not None and base != key:
                bases.add(base)
                variants.add(key)
    return sorted({*(key for key in trained if key not in variants or trained[key] > 1), *bases})


def _tasks_after(index: CurveIndex, contrast: Contrast) -> set[tuple[str, ...]]:
    """The tasks that are evaluated where something else was trained, of a contrast that names what was trained."""
    named = {contrast.at.get(TRAINED_ON), *(contrast.values if contrast.axis == TRAINED_ON else ())} - {None}
    return {tuple(where[name] for name in KEYS) for where in index if where[TRAINED_ON] in named}


def _base(row: dict[str, str], contrast: Contrast) -> tuple[str, ...] | None:
    """The row of the table to which a task belongs as one of a contrast's variants."""
    for value in contrast.values:
        if contrast.axis in GROUP and row[contrast.axis] == value:
            return tuple((row | {contrast.axis: contrast.baseline}).values())
        if contrast.axis.startswith(KNOB) and value is not None:
            suffix = varied_task("", {contrast.axis.removeprefix(KNOB): value})
            if row["task"].endswith(suffix):
                return tuple((row | {"task": row["task"].removesuffix(suffix)}).values())
    return None


def conditions_at(contrasts: Sequence[Contrast], views: Iterable[str]) -> dict[str, Condition]:
    """The conditions of contrasts by name, for benchmarks with these solved views."""
    found: dict[str, Condition] = {}
    for view in dict.fromkeys(views) or [PERCEPTION.values[-1]]:
        found = all_conditions(contrasts, view) | found
    return found


def table_columns(contrasts: Sequence[Contrast] = HEADLINE, solved: Iterable[str] = ()) -> tuple[str, ...]:
    """Columns of a diagnosis' table, in order."""
    names, conditions = [contrast.name for contrast in contrasts], conditions_at(contrasts, solved)
    scores = (
        *names,
        *(f"{name}_raw" for name in names),
        *score_columns(contrasts),
        *(f"{name}_rank" for name in names),
    )
    measures = (*(f"auc_{name}" for name in conditions), *(f"final_{name}" for name in conditions))
    bounded = (name + end for name in (*scores, *measures) for end in ENDS)
    statuses = (*(f"{name}_status" for name in names), *(f"{name}_status" for name in step_columns(contrasts)))
    return (*KEYS, *bounded, *KNOWN, "seeds", "steps", "status", *statuses, "validity")
