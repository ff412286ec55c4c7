"""`stopping=auto` with made-up training: who stops when, what intervals promise, and that it goes on where it was."""

from pathlib import Path

import fake_training
import numpy as np
import pandas as pd
import pytest

from lcd import cli
from lcd.config.compose import compose
from lcd.curves.table import read_curves
from lcd.envs.errors import InputError
from lcd.pipelines.study import diagnose, stopping, store
from lcd.scores.diagnosis import diagnose_curves
from lcd.statistics.sequential import nominal_levels

HERE = str(Path(__file__).parents[1])
TASKS = "study.tasks=[toy/easy-sight-easy-reward]"


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    fake_training.instead(monkeypatch)
    # The page's figures take longer than all the rest, and nothing here looks at them.
    monkeypatch.setattr("lcd.report.page.write_report", lambda folder, *_, **__: Path(folder) / "report.html")


def arguments(out, *more):
    fixed = [
        "study.seeds=8",
        "study.steps=400",
        "tracker=none",
        "launcher.workers=2",
        "stopping=auto",
        "definition=calibrated",
        "stopping.every=4",
    ]
    return ["diagnose", TASKS, *fixed, f"out={out}", *more]


def seeds_by_task(out):
    found = {}
    for run in store.Study(out).runs():
        found.setdefault(run.config["task"], set()).update(run.config["seeds"])
    return found


def test_certain_tasks_stop_after_the_first_round_and_uncertain_ones_go_to_the_end(tmp_path, capsys):
    assert cli.main(arguments(tmp_path / "soon", "stopping.phi=100", "stopping.psi=100")) == 0
    assert "After 4 of at most 8 seeds certain enough" in capsys.readouterr().out
    assert all(seeds == {0, 1, 2, 3} for seeds in seeds_by_task(tmp_path / "soon").values())
    assert cli.main(arguments(tmp_path / "late", "stopping.phi=1e-9", "stopping.psi=1e-9")) == 0
    assert all(seeds == set(range(8)) for seeds in seeds_by_task(tmp_path / "late").values())
    runs = store.Study(tmp_path / "late").runs()
    assert sorted({tuple(run.config["seeds"]) for run in runs}) == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_the_reports_intervals_are_those_of_the_look(tmp_path):
    out = tmp_path / "s"
    assert cli.main(arguments(out, "stopping.phi=100", "stopping.psi=100")) == 0
    level = nominal_levels([4, 8], 8)[0]
    assert level > 0.95
    curves = read_curves(out)
    levels = {task: dict.fromkeys(("phi", "psi"), round(level, 6)) for task in curves["task"].unique()}
    expected = diagnose_curves(curves, levels=levels, definition="calibrated").table
    for again in (False, True):
        if again:
            assert cli.main(["report", str(out), "definition=calibrated"]) == 0
        table = pd.read_csv(out / "diagnosis" / "challenge.csv")
        np.testing.assert_allclose(table["psi_raw_high"], expected["psi_raw_high"])
        assert table["psi_raw_high"].notna().all()
    usual = diagnose_curves(curves, definition="calibrated").table
    assert (expected["psi_raw_high"] > usual["psi_raw_high"]).all()


def test_an_interrupted_study_decides_the_same_again(tmp_path, monkeypatch):
    out = tmp_path / "s"
    rule = ("stopping.phi=0.2", "stopping.psi=0.01")
    monkeypatch.setenv(fake_training.FAIL_ON, "figure_ground")
    assert cli.main(arguments(out, *rule)) == 1
    monkeypatch.delenv(fake_training.FAIL_ON)
    assert cli.main(arguments(out, *rule)) == 0
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/curve.csv")}
    record = store.Study(out).record["stopping"]
    assert cli.main(arguments(out, *rule)) == 0
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("runs/*/curve.csv")}
    assert store.Study(out).record["stopping"] == record
    assert cli.main(arguments(tmp_path / "whole", *rule)) == 0
    assert store.Study(tmp_path / "whole").record["stopping"] == record


def test_a_score_that_a_task_lacks_keeps_nobody_waiting():
    rule = compose("diagnose", ["stopping=auto"]).stopping
    ends = {f"{score}_raw_{end}": value for score in ("phi", "psi") for end, value in (("low", 0.0), ("high", 0.02))}
    assert stopping.is_narrow_enough(pd.Series(ends), rule)
    assert stopping.is_narrow_enough(pd.Series(ends | {"phi_raw_low": np.nan}), rule)
    assert not stopping.is_narrow_enough(pd.Series(ends | {"psi_raw_high": 0.5}), rule)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["stopping.phi=0"], "stopping.phi=0.0 must be above 0"),
        (["stopping.alpha=1"], "must lie between 0 and 1"),
        (["study.seeds=3"], "less than stopping.first=4"),
    ],
)
def test_mistakes_are_one_sentence(overrides, sentence):
    with pytest.raises(InputError, match=sentence):
        stopping.check(compose("diagnose", ["stopping=auto", *overrides]))
    with pytest.raises(InputError, match="did you mean 'pocock'"):
        compose("diagnose", ["stopping=auto", "stopping.spending=pococ"])


def test_the_request_without_rounds_is_as_it_was():
    assert set(diagnose.request(compose("diagnose", []))) == {"benchmark", "agent", "frontend", "study", "budget"}
    assert "stopping" in diagnose.request(compose("diagnose", ["stopping=auto"]))


def test_a_strangers_record_is_not_believed(tmp_path):
    study = store.Study(tmp_path / "s", create=True)
    for record in (None, [], {"tasks": 3}, {"tasks": {"a": {"level": "x"}, "b": {"level": 7.0}}}):
        study.note(stopping=record)
        assert stopping.levels(study) == {}
