"""Scores and analyses as files: CSV and JSON always, Markdown and LaTeX on request."""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from lcd.analyses import Analysis
from lcd.analyses.analysis import shown_columns, told
from lcd.diagnosis import Diagnosis
from lcd.files import write_atomic

FORMATS = ("markdown", "latex")
ENDINGS = {"markdown": "md", "latex": "tex"}
SCORES = ("task", "agent", "phi", "psi", "phi_raw", "psi_raw", "phi_gain", "seeds", "status")
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "φ": r"$\phi$", "ψ": r"$\psi$", "−": "$-$", "–": "--",
    "<": "$<$", ">": "$>$",
}  # fmt: skip


def save_tables(
    folder: Path, diagnosis: Diagnosis, analyses: Sequence[Analysis], formats: Iterable[str] = ()
) -> list[Path]:
    """Write each analysis' table as CSV and all of them as JSON; all tables and the scores in further formats."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {analysis.key: _plain(analysis) for analysis in analyses}
    files = {folder / "analyses.json": json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"}
    for analysis in analyses:
        files[folder / f"{analysis.key}.csv"] = analysis.table.to_csv(index=False, lineterminator="\n")
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
    rows = [[told(row, name) for name in names] for _, row in table.iterrows()]
    lines = [names, ["---"] * len(names), *rows]
    return f"**{title}**\n\n" + "".join(f"| {' | '.join(map(_markdown_cell, line))} |\n" for line in lines)


def latex(table: pd.DataFrame, title: str) -> str:
    """A table for LaTeX, with rules of the package booktabs."""
    names = shown_columns(table)
    rows = [[told(row, name) for name in names] for _, row in table.iterrows()]
    numeric = [not isinstance(table[name].iloc[0], str) if len(table) else False for name in names]
    lines = [rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numeric)}}}", r"\toprule"]
    lines += [" & ".join(map(_latex_cell, names)) + r" \\", r"\midrule"]
    lines += [" & ".join(map(_latex_cell, row)) + r" \\" for row in rows]
    return f"% {' '.join(title.split())}\n" + "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _markdown_cell(text: object) -> str:
    """What a name holds must not end a cell or become markup."""
    found = str(text)
    for sign in ("\\", "`", "*", "_", "[", "<", "|"):
        found = found.replace(sign, "\\" + sign) if sign != "<" else found.replace("<", "&lt;")
    return found.replace("\\[", "[") if found[:1].isdigit() or found[:1] in "−–" else found


def _latex_cell(text: object) -> str:
    return "".join(LATEX.get(letter, letter) for letter in str(text))


def _plain(analysis: Analysis) -> dict[str, object]:
    rows = [{key: _number(value) for key, value in row.items()} for row in analysis.table.to_dict("records")]
    return {"title": analysis.title, "says": list(analysis.says), "note": analysis.note, "rows": rows}


def _number(value: object) -> object:
    if isinstance(value, str) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else None
