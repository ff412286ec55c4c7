"""`lcd power` on curves made up."""

import pandas as pd
import pytest
from curve_sets import TASKS, study

from lcd import cli


@pytest.fixture
def curves(tmp_path):
    path = tmp_path / "curves.csv"
    study(TASKS, seeds=5, noise=0.05).to_csv(path, index=False)
    return path


def test_the_table_names_pairs_and_the_file_has_all(curves, tmp_path, capsys):
    out = tmp_path / "pairs.csv"
    assert cli.main(["power", str(curves), "most=2", f"out={out}", "definition=calibrated"]) == 0
    told = capsys.readouterr().out
    assert "the 2 hardest of 6 pairs" in told
    assert "with its 5 seeds" in told
    pairs = pd.read_csv(out)
    assert len(pairs) == 2 * 6
    apart = pairs.set_index(["score", "task", "other"])["seeds_needed"]
    assert apart["phi", "toy/easy", "toy/reward"] > apart["phi", "toy/easy", "toy/perception"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "path is missing"),
        (["CURVES", "power=1"], "power=1.0 must lie between 0 and 1"),
        (["CURVES", "definition=papre"], "did you mean 'paper'"),
        (["nowhere.csv"], "nothing at 'nowhere.csv'"),
    ],
)
def test_mistakes_are_one_sentence(curves, arguments, sentence, capsys):
    assert cli.main(["power", *(str(curves) if each == "CURVES" else each for each in arguments)]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_one_task_has_nobody_to_be_told_apart_from(tmp_path, capsys):
    path = tmp_path / "one.csv"
    study({"toy/a": TASKS["toy/easy"]}, seeds=3).to_csv(path, index=False)
    assert cli.main(["power", str(path)]) == 2
    assert "no two tasks" in capsys.readouterr().err
