"""The example notebook: its cells run, one after the other, and show what they should."""

import ast
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import lcd

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "diagnose.ipynb"


def shown_by(source: str, names: dict[str, Any]) -> Any:
    """What a cell shows: the value of its last line, where that is an expression, as a notebook has it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None


def test_the_notebooks_cells_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = json.loads(NOTEBOOK.read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
    assert all(not cell.get("outputs") for cell in content["cells"])
    names: dict[str, Any] = {}
    _, study, runs, table, curves, lines, scores = [shown_by(cell, names) for cell in cells]
    assert isinstance(study, lcd.Study)
    assert "toy/hard-sight-easy-reward" in study._repr_html_()
    assert set(runs["state"]) == {"done"}
    assert len(runs) == 12
    assert set(table["task"]) == {"toy/easy-sight-easy-reward", "toy/hard-sight-easy-reward"}
    assert isinstance(curves, Figure)
    assert {"φ", "ψ", "H"} <= {line[0] for line in lines}
    # Masks add .4 to .2, and .1 to .6.
    assert scores.loc["cave", "phi_raw"] > scores.loc["maze", "phi_raw"] > 0
    # The same call finds what is there.
    again = lcd.load_study("studies/notebook")
    assert again.table.equals(study.table)
