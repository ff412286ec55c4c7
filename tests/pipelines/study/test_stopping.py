"""`stopping=auto` with made-up training: who stops when, what intervals promise, and that it goes on where it was."""

import os
import signal
import subprocess
import sys
import time
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
    expected = diagnose_curves(curves, levels=levels).table
    for again in (False, True):
        if again:
            assert cli.main(["report", str(out)]) == 0
        table = pd.read_csv(out / "diagnosis" / "challenge.csv")
        np.testing.assert_allclose(table["psi_raw_high"], expected["psi_raw_high"])
        assert table["psi_raw_high"].notna().all()
    usual = diagnose_curves(curves).table
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


THINNED, SOLVED = {("semantic", p) for p in (0.75, 0.5, 0.25)}, ("semantic", 1.0)


def seeds_by_condition(out):
    found = {}
    for run in store.Study(out).trainings():
        where = run.config["view"], run.config["reward_p"]
        found[where] = found.get(where, 0) + len(run.config["seeds"])
    return found


def test_conditions_of_a_score_that_is_sure_stop_and_the_others_go_on(tmp_path, capsys):
    out = tmp_path / "s"
    assert cli.main(arguments(out, "stopping.phi=100", "stopping.psi=1e-9")) == 0
    found = seeds_by_condition(out)
    assert found["pixels", 1.0] == found["figure_ground", 1.0] == 4
    assert {found[each] for each in THINNED} | {found[SOLVED]} <= {4, 8}
    assert max(found.values()) == 8
    told = " ".join(capsys.readouterr().out.split())
    assert f"1 go on, with {sum(count == 8 for count in found.values())} of their 6 conditions" in told
    row = pd.read_csv(out / "diagnosis" / "challenge.csv").iloc[0]
    assert row["seeds"] == 4
    assert row[["phi_raw_low", "phi_raw_high", "psi_raw_low", "psi_raw_high"]].notna().all()
    first, last = nominal_levels([4, 8], 8)
    record = store.Study(out).record["stopping"]["tasks"]["toy/easy-sight-easy-reward"]
    assert record["levels"] == {"phi": round(first, 6), "psi": round(last, 6)}
    assert record["seeds"] == {f"{view}, p={p:g}": count for (view, p), count in found.items()}
    assert "whose conditions have 4 to 8 seeds" in stopping.told(store.Study(out))
    assert cli.main(["report", str(out)]) == 0


def test_views_go_on_when_only_phi_is_unsure(tmp_path):
    assert cli.main(arguments(tmp_path / "s", "stopping.phi=1e-9", "stopping.psi=100")) == 0
    found = seeds_by_condition(tmp_path / "s")
    assert {found[each] for each in THINNED} == {4}
    assert found["pixels", 1.0] == 8


KILLED = "import fake_training, sys; fake_training.instead(); from lcd import cli; sys.exit(cli.main(sys.argv[1:]))"


def test_a_killed_command_decides_as_one_that_was_not(tmp_path):
    """Killed in the second round, in which some conditions take no part."""
    rule = ("stopping.every=2", "stopping.phi=1e-9", "stopping.psi=0.02", "launcher.workers=1")
    assert cli.main(arguments(tmp_path / "whole", *rule)) == 0
    out = tmp_path / "killed"
    words = [*arguments(out, *rule)]
    places = os.pathsep.join([HERE, str(Path(HERE).parent / "shared"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": places, fake_training.PAUSE_S: "0.2"}
    command = subprocess.Popen(
        [sys.executable, "-c", KILLED, *words], env=environment, start_new_session=True, stdout=subprocess.DEVNULL
    )
    while command.poll() is None and len(list(out.glob("runs/*"))) < 7:
        time.sleep(0.02)
    assert command.poll() is None
    os.killpg(command.pid, signal.SIGKILL)
    command.wait()
    before = {run.path.name for run in store.Study(out).trainings() if run.done}
    assert len(before) >= 6
    assert cli.main(words) == 0
    assert store.Study(out).record["stopping"] == store.Study(tmp_path / "whole").record["stopping"]
    names = [{run.path.name for run in store.Study(place).trainings()} for place in (out, tmp_path / "whole")]
    assert names[0] == names[1]
    assert len(names[0]) > 6
    tables = [pd.read_csv(place / "diagnosis" / "challenge.csv") for place in (out, tmp_path / "whole")]
    pd.testing.assert_frame_equal(*tables)


def test_a_study_of_before_has_one_level_for_both_scores(tmp_path):
    study = store.Study(tmp_path / "s", create=True)
    study.note(stopping={"most": 8, "tasks": {"a": {"seeds": 4, "level": 0.97}}})
    assert stopping.levels(study) == {"a": {"phi": 0.97, "psi": 0.97}}
    assert "1 tasks were looked at repeatedly; intervals" in stopping.told(study)


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
    with pytest.raises(InputError, match="did you mean 'class'"):
        compose("diagnose", ["stopping=auto", "stopping.until=clas"])
    with pytest.raises(InputError, match="did you mean 'pocock'"):
        compose("diagnose", ["stopping=auto", "stopping.spending=pococ"])


def test_the_request_without_rounds_is_as_it_was():
    assert set(diagnose.request(compose("diagnose", []))) == {"benchmark", "agent", "frontend", "study", "budget"}
    assert "stopping" in diagnose.request(compose("diagnose", ["stopping=auto"]))


def test_a_strangers_record_is_not_believed(tmp_path):
    study = store.Study(tmp_path / "s", create=True)
    strange = {"a": {"level": "x"}, "b": {"level": 7.0}, "c": {"levels": 3}, "d": {"levels": {"phi": [1]}}, "e": 5}
    for record in (None, [], {"tasks": 3}, {"tasks": strange}):
        study.note(stopping=record)
        assert stopping.levels(study) == {}
