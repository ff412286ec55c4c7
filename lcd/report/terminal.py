"""Scores and analyses as tables for a terminal."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from lcd.analyses.analysis import Analysis, cell_text
from lcd.analyses.transfer import Transfer
from lcd.report.asked import is_asked_by, statuses_of
from lcd.scores.challenge_table import GROUP
from lcd.scores.contrasts import HEADLINE, PERCEPTION, REWARD, Contrast
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.factors import factor_text
from lcd.scores.scoring import factor_columns
from lcd.scores.validity import ERROR, withheld

NARROW_NAME = 22
LONG_HEAD = 30
NOTHING, LOGARITHM = "–", "log₂"
MOST_ROWS = 24
MOST_LETTERS = 24
"""Of a cell in one line of a terminal; longer ones are folded."""
WIDE = (
    "AUC without",
    "AUC with",
    "final gain",
    "seeds",
    "benchmark",
    "median",
    "optimality gap",
    "P(both)",
    "P(perception)",
    "P(reward)",
    "P(neither)",
)


def terminal_table(diagnosis: Diagnosis, width: int = 120) -> Table:
    """The scores as a table for a terminal of that many columns; under 118, intervals go below their scores."""
    narrow = width < 118
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    # The status has spaces to be wrapped at, a name has none.
    longest = max(map(len, diagnosis.table["task"]))
    table.add_column("task", overflow="fold", min_width=min(longest, NARROW_NAME if narrow else 32))
    asked = _trained_contrasts(diagnosis)
    factors = factor_columns(asked, diagnosis.definition)
    for contrast in asked:
        scaled = "" if contrast in HEADLINE else ", steps" if contrast.name in factors else ", raw"
        table.add_column(Text(f"{contrast.sign}{scaled} [95 %]"), no_wrap=True)
    areas = [each for each in _area_columns(diagnosis, asked) if each.trained(diagnosis)]
    # A long head below 118 columns would leave the others no room.
    heads = [each.head.replace(": ", "\n" if narrow and len(each.head) > LONG_HEAD else " ") for each in areas]
    for head in ("\n".join(heads),) if narrow else heads:
        table.add_column(Text(head), no_wrap=True)
    table.add_column("status", min_width=8, max_width=9)
    views = ", ".join(PERCEPTION.label(view).replace(" ", "-") for view in PERCEPTION.values)
    starred = f"* {views}; " if any("*" in head for head in heads) else ""
    table.caption = Text(f"{starred}95 % intervals over seeds", style="dim")
    groups = list(diagnosis.table.groupby(list(GROUP), sort=False))
    for key, rows in groups:
        if len(groups) > 1:
            table.add_section()
            table.add_row(Text(" · ".join(key), style="bold"))
        for _, row in rows.iterrows():
            table.add_row(*_terminal_row(row, asked, factors, areas, narrow))
    return table


def validity_text(diagnosis: Diagnosis) -> Text | None:
    """What keeps scores from being trusted, as it stands above all tables; None where nothing does."""
    if not diagnosis.findings:
        return None
    kinds = {ERROR: ("Class withheld: ", "bold red")}
    lines = []
    for severity, sentence in diagnosis.warnings:
        kind, style = kinds.get(severity, ("Warning: ", "yellow"))
        lines.append(Text.assemble((kind, style), sentence))
    return Text("\n").join(lines)


def transfer_table(transfer: Transfer) -> Table:
    """A curriculum's matrix and measures as a table for a terminal."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("after the stage")
    for task in transfer.tasks:
        table.add_column(Text(task), overflow="fold")
    for name, returns in zip(("before training", *transfer.stages), transfer.matrix, strict=True):
        table.add_row(Text(name), *(two_decimals(value) for value in returns))
    found = (
        f"{name} {two_decimals(values[0])}" for name, values in transfer.measures.items() if math.isfinite(values[0])
    )
    table.caption = Text(f"{', '.join(found) or 'no_range'}; means over {len(transfer.returns)} seeds", style="dim")
    return table


def analysis_table(analysis: Analysis, width: int = 120) -> Table:
    """An analysis as a table for a terminal; its longest ones are cut, because the report has them whole.

    Factors are not told a second time as logarithms, nor are columns without any number.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title=Text(analysis.title))
    table.title_justify = "left"
    table.min_width = min(width, len(analysis.title))
    shown = [name for name in analysis.columns() if name not in WIDE or name in ("n",)]
    rows = analysis.table
    kept = {"task", "tasks of", *(name for name in shown if f"{name}_low" in rows and rows[name].notna().any())}
    shown = [name for name in shown if len(shown) < 8 or analysis.table[name].nunique() > 1 or name in kept]
    cells = {name: [cell_text(row, name) for _, row in rows.head(MOST_ROWS).iterrows()] for name in shown}
    cells = {name: column for name, column in cells.items() if {*column} - {NOTHING} or not column}
    cells = {name: column for name, column in cells.items() if not name.startswith(LOGARITHM)}
    shown = list(cells)
    fitting = _that_fit(cells, width)
    for name in fitting:
        broken = len(name) > max(map(len, cells[name]), default=0)
        table.add_column(Text(name.replace(" ", "\n") if broken else name), overflow="fold")
    for line in zip(*(cells[name] for name in fitting), strict=True):
        table.add_row(*map(Text, line))
    left = len(analysis.table) - MOST_ROWS
    lines = [*analysis.says, *([f"{left} more rows are in the report."] if left > 0 else [])]
    if len(fitting) < len(shown):
        lines.append(f"More columns are in the report: {', '.join(shown[len(fitting) :])}.")
    table.caption = Text("\n".join(lines), style="dim") if lines else None
    table.caption_justify = "left"
    return table


def _that_fit(cells: dict[str, list[str]], width: int) -> list[str]:
    """The first columns that a terminal of that width has room for without breaking numbers; at least two."""
    fitting: list[str] = []
    taken = 2  # a column costs its padding and what is drawn between columns
    for name, column in cells.items():
        longest = max(map(len, [*column, *name.split()]), default=0)
        taken += 2 + min(longest, MOST_LETTERS)
        if taken > width and len(fitting) >= 2:
            break
        fitting.append(name)
    return fitting


def two_decimals(value: float) -> str:
    """Two decimals, and no minus before what rounds to zero."""
    return f"{round(float(value), 2) + 0.0:.2f}"


def _trained_contrasts(diagnosis: Diagnosis) -> list[Contrast]:
    """The contrasts that some task was trained for; φ and ψ where there are none."""
    found = [each for each in diagnosis.contrasts if is_asked_by(each, diagnosis, diagnosis.table)]
    return found or list(HEADLINE)


class _Areas(NamedTuple):
    """A column of areas: those of a contrast's conditions that no column before it has."""

    head: str
    conditions: dict[str, tuple[str, ...]]
    """Benchmark → names of conditions."""

    def trained(self, diagnosis: Diagnosis) -> bool:
        columns = [f"auc_{name}" for names in self.conditions.values() for name in names]
        return bool(diagnosis.table[[name for name in columns if name in diagnosis.table]].notna().any(axis=None))


def _area_columns(diagnosis: Diagnosis, asked: Sequence[Contrast]) -> list[_Areas]:
    found: list[_Areas] = []
    shown: set[str] = set()
    for contrast in asked:
        names = {
            benchmark: tuple(each.name for each in diagnosis.conditions_of(contrast, benchmark))
            for benchmark in diagnosis.solved
        }
        first = 0 if any(of[0] not in shown for of in names.values()) else 1
        values = [f"{v:g}" if isinstance(v, float) else str(v) or contrast.label(v) for v in contrast.values[first:]]
        amounts = " ".join(value.removeprefix("0") or "0" for value in values)
        head = {PERCEPTION: "AUC by view*", REWARD: f"p {amounts}"}.get(contrast, f"AUC, {contrast.name}: {amounts}")
        found.append(_Areas(head, {benchmark: of[first:] for benchmark, of in names.items()}))
        shown |= {name for of in names.values() for name in of}
    return found


def _terminal_row(
    row: pd.Series, asked: Sequence[Contrast], factors: Mapping[str, str], columns: list[_Areas], narrow: bool
) -> list[Text]:
    def score(name: str) -> Text:
        if not np.isfinite(row[name]):
            # One task alone has nothing to be scaled against, but raw scores.
            raw = f"{name}_raw"
            return Text("–") if raw not in row or not np.isfinite(row[raw]) else Text("raw ") + score(raw)
        if not np.isfinite(row[f"{name}_low"]):
            return Text(two_decimals(row[name]))
        bounds = f"[{two_decimals(row[f'{name}_low'])}, {two_decimals(row[f'{name}_high'])}]"
        return Text(f"{two_decimals(row[name])}{chr(10) if narrow else ' '}{bounds}")

    def raw(contrast: Contrast) -> Text:
        if contrast.name not in factors:
            return score(contrast.name if contrast in HEADLINE else f"{contrast.name}_raw")
        return Text(factor_text(row, factors[contrast.name]).replace(" [", "\n[" if narrow else " ["))

    def areas(names: tuple[str, ...]) -> Text:
        values = [row[f"auc_{name}"] for name in names]
        return Text(" ".join("  – " if math.isnan(value) else two_decimals(value) for value in values))

    cells = [areas(column.conditions[row["benchmark"]]) for column in columns]
    cells = [Text("\n").join(cells)] if narrow else cells
    # From Text, not markup, because names come from files.
    name = "\n".join(textwrap.wrap(row["task"], NARROW_NAME)) if narrow else row["task"]
    scores = [raw(each) for each in asked]
    judged = statuses_of(row, [] if {*asked} & {*HEADLINE} else asked)
    states = [f"{sign} {status}".strip().replace("_", " ") for sign, status in judged]
    if withheld(row["validity"]):
        states = [*(state for state in states if state != "ok"), "class withheld"]
    return [Text(name), *scores, *cells, Text("\n".join(states))]
