"""Scores and analyses as files: CSV and JSON always, Markdown and LaTeX on request."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lcd.analyses import Analysis
from lcd.analyses.analysis import cell_text, shown_columns
from lcd.files.atomic import write_atomic
from lcd.files.spreadsheets import csv_text
from lcd.scores.diagnosis import Diagnosis

FORMATS = ("markdown", "latex")
ENDINGS = {"markdown": "md", "latex": "tex"}
SCORES = ("task", "agent", "phi", "psi", "phi_raw", "psi_raw", "phi_gain", "seeds", "status", "validity")
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "φ": r"$\phi$", "ψ": r"$\psi$", "−": "$-$", "–": "--",
    "<": "$<$", ">": "$>$",
}  # fmt: skip
LATEX_OPTIONS = {"[": "{[}", "]": "{]}", "*": "{*}"}
"""What a row that begins with it would give to the end of the row before."""
MARKDOWN = {sign: f"\\{sign}" for sign in "\\`*_[]|~"} | {"&": "&amp;", "<": "&lt;", ":": "&#58;", "@": "&#64;"}
"""What makes markup, cells, entities, or links of what looks like an address."""


def save_tables(
    folder: Path, diagnosis: Diagnosis, analyses: Sequence[Analysis], formats: Iterable[str] = ()
) -> list[Path]:
    """Write each analysis' table as CSV and all of them as JSON; all tables and the scores in further formats."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {analysis.key: _plain(analysis) for analysis in analyses}
    files = {folder / "analyses.json": json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"}
    for analysis in analyses:
        files |= {folder / f"{name}.csv": csv_text(table) for name, table in analysis.files.items()}
        files[folder / f"{analysis.key}.csv"] = csv_text(analysis.table)
    named = [("scores", "Scores", scores(diagnosis)), *((a.key, a.title, a.table) for a in analyses)]
    for kind in formats:
        write = {"markdown": markdown, "latex": latex}[kind]
        for key, title, table in named:
            files[folder / f"{key}.{ENDINGS[kind]}"] = write(table, title)
    for path, text in files.items():
        write_atomic(path, text)
    return list(files)


def scores(diagnosis: Diagnosis) -> pd.DataFrame:
    """The columns of a diagnosis that a paper's table has."""
    table = diagnosis.table
    wanted = [name + end for name in SCORES for end in ("", "_low", "_high") if name + end in table]
    table = table[wanted]
    return table.drop(columns="agent") if table["agent"].nunique() < 2 else table


def markdown(table: pd.DataFrame, title: str) -> str:
    """A table in GitHub's Markdown."""
    names = shown_columns(table)
    lines = [list(map(_markdown, names)), ["---"] * len(names), *_cells(table, names, _markdown, {"<": "&lt;"})]
    return f"**{_markdown(title)}**\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex(table: pd.DataFrame, title: str) -> str:
    """A table for LaTeX, with rules of the package booktabs."""
    names = shown_columns(table)
    numeric = [not isinstance(table[name].iloc[0], str) if len(table) else False for name in names]
    lines = [rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numeric)}}}", r"\toprule"]
    lines += [" & ".join(map(_latex, names)) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in _cells(table, names, _latex, LATEX)]
    return f"% {' '.join(title.split())}\n" + "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _cells(
    table: pd.DataFrame, names: Sequence[str], name: Callable[[str], str], signs: Mapping[str, str]
) -> Iterator[list[str]]:
    """The cells row by row: texts are names, which must not become markup; of numbers only some signs are replaced."""
    for _, row in table.iterrows():
        yield [
            name(cell_text(row, column)) if isinstance(row[column], str) else _replaced(cell_text(row, column), signs)
            for column in names
        ]


def _markdown(name: object) -> str:
    return _replaced(" ".join(str(name).split()), MARKDOWN).replace("www.", "www&#46;")


def _latex(name: object) -> str:
    return _replaced(" ".join(str(name).split()), LATEX | LATEX_OPTIONS)


def _replaced(text: str, signs: Mapping[str, str]) -> str:
    return "".join(signs.get(letter, letter) for letter in text)


def _plain(analysis: Analysis) -> dict[str, object]:
    rows = [{key: _number(value) for key, value in row.items()} for row in analysis.table.to_dict("records")]
    return {"title": analysis.title, "says": list(analysis.says), "note": analysis.note, "rows": rows}


def _number(value: Any) -> Any:
    if isinstance(value, str) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else None
