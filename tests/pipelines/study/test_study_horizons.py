"""`lcd horizon STUDY`: the effective horizon of what a study trained, as its report reads it."""

import csv

import pandas as pd
import pytest

from lcd import cli
from lcd.envs.errors import InputError
from lcd.pipelines.study import study_horizons

SMALL = ["tracker=none", "device=cpu", "launcher.workers=1"]


def test_a_studys_graphs_have_the_horizons_of_their_depths(tmp_path, capsys, monkeypatch):
    """A tree of depth d and branching b asks for d more decisions among b + 1 actions than one of depth 0."""
    monkeypatch.setenv("COLUMNS", "120")
    study, out = tmp_path / "graphs", tmp_path / "found"
    asked = ["study=horizon/ctgraph", "budget=smoke", *SMALL]
    assert cli.main(["diagnose", *asked, f"out={study}", "study.reward_p=[1.0]"]) == 0
    assert cli.main(["horizon", str(study), f"out={out}", "timesteps=1e5"]) == 0
    with (out / "horizons.csv").open() as file:
        found = {row["task"]: (float(row["h"]), int(row["states"])) for row in csv.DictReader(file)}
    names = [f"ctgraph/depth-1[graph_shape.b=2,graph_shape.d={depth}]" for depth in (1, 2)]
    assert list(found) == names
    assert [found[name][0] for name in names] == [2.0, 4.0]
    assert cli.main(["report", str(study), f"horizons={out / 'horizons.csv'}"]) == 0
    told = capsys.readouterr().out
    assert "Solved exactly" in told
    table = pd.read_csv(study / "diagnosis" / "tables" / "solved.csv")
    assert dict(zip(table["task"], table["H"], strict=True)) == {names[0]: 2.0, names[1]: 4.0}


def test_knobs_of_a_study_are_refused(tmp_path, capsys):
    (tmp_path / "study.yaml").write_text("requests: []\n")
    assert cli.main(["horizon", str(tmp_path), "knobs.a=1"]) == cli.MISTAKE
    assert "its runs have theirs" in capsys.readouterr().err
    assert cli.main(["horizon", str(tmp_path)]) == cli.MISTAKE
    assert "has no task" in capsys.readouterr().err


def test_what_a_study_leaves_to_chance_is_told_with_the_way_on():
    config = {"benchmark": "toy", "task": "toy/easy-sight-easy-reward", "seeds": [0], "knobs": {}}
    with pytest.raises(InputError, match=r"has to be 0\. A study's tasks .* as study=horizon/toys does, or give"):
        study_horizons._tables(config)
