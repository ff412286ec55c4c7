"""`lcd status`, `logs`, `cancel`, `retry` and `remove` on small studies of made-up training, and on damaged ones."""

import contextlib
import io
import json
import os
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import fake_training
import made_up_studies
import pytest
import yaml
from made_up_studies import held
from rich.cells import cell_len

from lcd import cli
from lcd.config.steering_schemas import STATES
from lcd.pipelines.steering import glance
from lcd.pipelines.steering.glance import Glance
from lcd.pipelines.steering.screen import screen
from lcd.pipelines.steering.summary import Summary
from lcd.pipelines.study import cancelling, hands, store
from lcd.pipelines.study.lease import last_entry, take

SMALL = ["study.tasks=[toy/easy-sight-easy-reward,toy/hard-sight-hard-reward]", "study.seeds=2", "study.steps=400"]
SMALL += ["study.views=[pixels,semantic]", "study.reward_p=[1]", "tracker=none", "launcher.workers=1"]
EVIL = "\x1b[31mred\x1b]0;title\x07 [bold]not bold[/bold] \u202e"


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    fake_training.instead(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("studies") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        fake_training.instead(patch)
        assert cli.main(["diagnose", *SMALL, f"out={out}"]) == 0
    return out


@pytest.fixture
def study(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "study")
    return store.Study(tmp_path / "study")


@pytest.fixture
def lcd(capsys):
    """Runs a command; its exit code and what it said."""

    def run(*words):
        capsys.readouterr()
        code = cli.main(list(map(str, words)))
        told = capsys.readouterr()
        return code, told.out + told.err

    return run


@pytest.fixture
def told(lcd):
    """What `lcd status --json` says, and its exit code."""

    def run(*words):
        code, said = lcd("status", *words, "--json")
        return code, json.loads(said)

    return run


def broken(run, state, **changes):
    with held(run.path):
        store.update_status(run.path, state=state, **changes)


def test_a_finished_study_is_all_done(study, lcd, told):
    code, said = lcd("status", study.path)
    assert code == 0
    assert "4 runs, 8 agents" in said
    assert "100 %" in said
    code, found = told(study.path)
    assert (code, found["states"]["done"], found["share"]) == (0, 4, 1.0)
    assert found["cost"]["steps"] == 4 * 2 * 400
    assert {each["view"] for each in found["each"]} == {"pixels", "semantic"}


def test_runs_are_listed_by_what_they_differ_in():
    from lcd.pipelines.steering.screen import _told_apart

    pair = ["toy/a  pixels  p=1  ppo", "toy/a  pixels  p=1  ppo  flow"]
    assert _told_apart(pair) == ["toy/a", "toy/a  flow"]
    assert _told_apart(pair[:1]) == pair[:1]
    assert _told_apart([]) == []


def test_states_reasons_and_exit_codes(study, lcd, told):
    failed, diverged, killed, at_work = study.runs()
    broken(failed, "failed", error=f"the knob {EVIL} is wrong")
    (failed.path / "log.txt").write_text("one\ntwo\n")
    broken(diverged, "diverged", error="a weight of seed 1 is not finite at step 100")
    # Killed: its status says that it runs, but nobody holds it.
    broken(killed, "running", step=100)
    broken(at_work, "running", step=100, steps_per_s=50.0, where="node7, process 12, GPU 3")
    with held(at_work.path):
        code, said = lcd("status", study.path)
        _, found = told(study.path)
    assert code == 1
    states = {each["run"]: each["state"] for each in found["each"]}
    assert [states[each.path.name] for each in (failed, diverged, killed, at_work)] == [
        *("failed", "diverged", "waiting", "running"),
    ]
    # 300 steps of 2 agents at 50 a second.
    assert next(each for each in found["each"] if each["state"] == "running")["seconds_left"] == pytest.approx(12.0)
    for words in ("1 failed", "the same command tries it again", "1 diverged", "node7:12 GPU 3", "0:12", "log.txt"):
        assert words in said, words
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "\\x1b[31mred" in said


def test_what_is_left_to_do_is_75_and_conditions_choose(study, lcd, told):
    first, *_ = study.runs()
    broken(first, "queued", step=200)
    assert lcd("status", study.path)[0] == 75
    assert "None is being trained now" in lcd("status", study.path)[1]
    code, found = told(study.path, "state=done")
    assert (code, found["runs"]) == (0, 3)
    config = yaml.safe_load((first.path / "config.yaml").read_text())
    (first.path / "config.yaml").write_text(yaml.safe_dump(config | {"reward_p": True}))
    assert told(study.path, "reward_p=1")[1]["runs"] == 3, "a stranger's nonsense meets no condition"
    (first.path / "config.yaml").write_text(yaml.safe_dump(config))
    assert told(study.path, "task=toy/easy*", "view=semantic")[1]["runs"] == 1
    assert told(study.path, "reward_p=1", "seed=[0,1]", f"run={first.path.name[:6]}")[1]["runs"] == 1
    assert told(study.path, first.path.name[:6])[1]["runs"] == 1
    code, said = lcd("status", study.path, "task=toy/esy-sight-easy-reward")
    assert (code, "did you mean 'toy/easy-sight-easy-reward'?" in said) == (2, True)
    code, said = lcd("status", study.path, "state=finished")
    assert (code, "state=finished is unknown" in said) == (2, True)


def test_a_study_that_only_began_is_not_done(tmp_path, lcd):
    store.Study(tmp_path / "new", create=True).note(x=1)
    assert lcd("status", tmp_path / "new")[0] == 75
    code, said = lcd("status", tmp_path / "nothing")
    assert (code, "is not a study's folder" in said) == (2, True)
    (tmp_path / "file").touch()
    code, said = lcd("status", tmp_path / "file")
    assert (code, f"path={tmp_path / 'file'} is a file: give a folder" in said) == (2, True)


def test_damaged_runs_are_told_of_and_nothing_hangs(study, lcd, told):
    garbage, pipe, cut, link = study.runs()
    (garbage.path / "config.yaml").write_bytes(b"\xff{[: not yaml\x1b[2J")
    (pipe.path / "status.json").unlink()
    os.mkfifo(pipe.path / "status.json")
    (cut.path / "status.json").write_text('{"state": "done", "step": 1e999')
    (link.path / "curve.csv").unlink()
    (study.path / "runs" / "loop").symlink_to(study.path / "runs" / "loop")
    (study.path / "runs" / "evil\x1b[31m").mkdir()
    (study.path / "runs" / "file").write_text("x")
    code, found = told(study.path)
    assert (code, found["states"]["damaged"], found["runs"]) == (1, 7, 7)
    code, said = lcd("status", study.path)
    assert "\x1b" not in said
    assert "7 damaged" in said
    assert "lcd verify says more" in said


def test_numbers_that_nobody_has_are_told_as_others(study, lcd, told):
    for run, status in zip(
        study.runs(), ({"step": -5}, {"steps": 10**18}, {"wall_s": 1e300}, {"steps_per_s": 1e300}), strict=True
    ):
        broken(run, "queued", **status)
    assert lcd("status", study.path)[0] == 75
    assert 0 <= told(study.path)[1]["share"] <= 1


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("number", [3, 400])
def test_one_screen_for_any_number_of_runs(tmp_path, width, number):
    states = ("done", "queued", "failed", "diverged", "done", "running")
    folders = made_up_studies.write_study(tmp_path / "study", number, states)
    at_work = [folder for folder in folders if store.read_status(folder)["state"] == "running"][:20]
    with contextlib.ExitStack() as stack:
        for folder in at_work:
            stack.enter_context(held(folder))
        lines = screen(tmp_path / "study", Glance(store.Study(tmp_path / "study")).look(), width, 0)
    assert len(lines) <= 26
    assert all(cell_len(line) <= width for line in lines if str(tmp_path) not in line)
    assert any(line.startswith("running") for line in lines) == (number > 3)


def test_what_is_left_is_told_by_what_others_like_it_took(tmp_path):
    # A whole one took 2.5 hours of two cores.
    made_up_studies.write_study(tmp_path / "study", 64, ("done", "queued"))
    summary = Summary(Glance(store.Study(tmp_path / "study")).look())
    assert summary.left.core == pytest.approx(32 * 2 * 9000.0)
    assert summary.cost["core_hours"] == pytest.approx(32 * 2 * 2.5)
    assert summary.seconds_left is None


def test_the_same_groups_as_counted_one_by_one(tmp_path):
    made_up_studies.write_study(tmp_path / "study", 100, ("done", "queued", "failed"))
    seen = Glance(store.Study(tmp_path / "study")).look()
    groups = Summary(seen).groups(5)
    assert sum(len(each.seen) for each in groups.values()) == 100
    assert set(groups) == {"ppo", "ppg"}
    for name, each in groups.items():
        assert each.states["done"] == sum(one.state == "done" and one.named["agent"] == name for one in seen)


def test_watching_ends_when_nothing_is_left(study, lcd, monkeypatch):
    first, *_ = study.runs()
    broken(first, "queued")
    monkeypatch.setattr(time, "sleep", lambda seconds: broken(first, "done"))
    code, said = lcd("status", study.path, "--watch", "every=1")
    assert code == 0
    assert said.index("1 waiting") < said.index("4 done")


def test_logs_are_text_that_commands_nothing(study, lcd):
    run, other, *_ = study.runs()
    (run.path / "log.txt").write_text(f"first\n{EVIL}\nlast\n")
    broken(run, "failed", error="it broke")
    code, said = lcd("logs", study.path, run.path.name[:8])
    assert code == 0
    assert "\x1b" not in said
    assert "failed: it broke" in said
    assert "first" not in lcd("logs", study.path, "state=failed", "lines=1")[1]
    assert "last" in lcd("logs", run.path, "lines=1")[1]
    assert lcd("logs", study.path)[0] == 2
    (other.path / "log.txt").unlink()
    os.mkfifo(other.path / "log.txt")
    code, said = lcd("logs", other.path)
    assert (code, "it is no regular file" in said) == (1, True)


def test_logs_follow_a_run_to_its_end(study, lcd):
    run, *_ = study.runs()
    (run.path / "log.txt").write_text("begun\n")
    begun = threading.Event()

    def work():
        with held(run.path):
            begun.set()
            time.sleep(1.0)
            with (run.path / "log.txt").open("a") as log:
                log.write("ended\n")

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    code, said = lcd("logs", run.path, "--follow")
    thread.join()
    assert (code, said.splitlines()[-2:]) == (0, ["begun", "ended"])


def test_cancelled_runs_stop_keep_what_they_have_and_go_on_when_retried(tmp_path, lcd, monkeypatch):
    out = tmp_path / "study"
    monkeypatch.setattr(cancelling, "LOOK_EVERY_S", 0.1)
    monkeypatch.setenv(fake_training.PAUSE_S, "1.5")

    def cancel():
        while not (out / "study.yaml").exists() or not any(
            each.state == "running" and each.status["step"] for each in Glance(store.Study(out)).look()
        ):
            time.sleep(0.05)
        with contextlib.redirect_stdout(io.StringIO()):
            codes.append(cli.main(["cancel", str(out), "wait=30"]))

    codes = []
    thread = threading.Thread(target=cancel)
    thread.start()
    code, said = lcd("diagnose", *SMALL, f"out={out}")
    thread.join()
    assert codes == [0]
    assert code == 1, said
    assert "4 of 4 runs were cancelled" in said
    states = {each.state for each in Glance(store.Study(out)).look()}
    assert states == {"cancelled"}
    monkeypatch.delenv(fake_training.PAUSE_S)
    # The same command leaves them; once they are retried it goes on from where they came to.
    assert lcd("diagnose", *SMALL, f"out={out}")[0] == 1
    reached = [run for run in store.Study(out).runs() if (run.left / "checkpoint.json").exists()]
    assert len(reached) == 1
    assert lcd("retry", out)[0] == 0
    assert lcd("status", out)[0] == 75
    assert lcd("diagnose", *SMALL, f"out={out}")[0] == 0
    assert (reached[0].path / "log.txt").read_text().count("reached 0\n") == 1


def test_retrying_lets_failed_runs_go_on_and_diverged_ones_begin_anew(study, lcd, told):
    failed, diverged, done, _ = study.runs()
    broken(failed, "failed", error="it broke", step=100)
    broken(diverged, "diverged", error="it diverged", step=100)
    assert lcd("retry", study.path, "state=failed")[0] == 0
    assert told(study.path)[1]["states"]["diverged"] == 1
    assert (failed.status["state"], failed.status["step"], failed.status["error"]) == ("queued", 100, None)
    assert lcd("retry", study.path)[0] == 0
    assert (diverged.status["state"], diverged.status["step"]) == ("queued", 0)
    assert not (diverged.left / "curve.csv").exists()
    assert (failed.left / "curve.csv").exists()
    assert done.done
    broken(done, "failed", error="it broke")
    with held(done.path):
        assert lcd("retry", study.path)[0] == 2


@pytest.fixture
def elsewhere(study, monkeypatch):
    """A hand of another machine has the first run; it beats until `dead` is set."""
    first = study.runs()[0]
    broken(first, "running", step=100)
    lease = take(hands.DISK, first.path, last_entry(hands.DISK, first.path), {"host": "node7", "machine": "another"})
    dead = threading.Event()
    threading.Thread(target=lambda: [lease.beat() for _ in iter(lambda: dead.wait(0.1), True)], daemon=True).start()
    monkeypatch.setenv(hands.LEASE_VARIABLE, "0.8")
    yield SimpleNamespace(name=first.path.name, path=first.path, dead=dead)
    dead.set()


def test_a_hand_of_another_machine_is_waited_for_and_one_that_is_dead_is_not(study, lcd, elsewhere):
    code, said = lcd("remove", study.path, elsewhere.name, "--yes")
    assert (code, "is being trained" in said, "Waiting for up to 0.8 s (LCD_LEASE_S)" in said) == (2, True, True)
    begun = time.monotonic()
    code, said = lcd("cancel", study.path, elsewhere.name, "wait=2")
    assert (code, "are at work still" in said) == (75, True)
    assert time.monotonic() - begun >= 2
    assert lcd("retry", study.path)[1].startswith("Waiting")
    assert cancelling.is_cancelled(elsewhere.path), "who is still stopping is left alone"
    elsewhere.dead.set()
    code, said = lcd("retry", study.path)
    assert (code, "1 run of" in said, cancelling.is_cancelled(elsewhere.path)) == (0, True, False)
    assert store.read_status(elsewhere.path)["state"] == "queued"


def test_a_run_of_a_dead_machine_is_removed(study, lcd, elsewhere):
    elsewhere.dead.set()
    assert lcd("remove", study.path, elsewhere.name, "--yes")[0] == 0
    assert not (elsewhere.path / "config.yaml").exists()


def test_removing_shows_asks_and_takes_only_what_lcd_wrote(study, lcd, tmp_path):
    mine, other, *rest = study.runs()
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    (mine.path / "notes.txt").write_text("mine")
    (mine.path / "checkpoints").mkdir(exist_ok=True)
    (mine.path / "checkpoints" / "kept.ckpt").symlink_to(outside)
    edited = other.path / "curve.csv"
    edited.write_text(edited.read_text() + "\n")
    words = ["remove", study.path, f"run=[{mine.path.name},{other.path.name}]"]
    code, said = lcd(*words)
    assert (code, "--yes removes them" in said, "2 runs" in said) == (2, True, True)
    assert mine.done
    code, said = lcd(*words, "--yes")
    assert code == 0
    assert {path.name for path in mine.path.rglob("*") if not path.is_dir()} == {
        "notes.txt",
        "kept.ckpt",
        "checkpoint.json",
    }
    assert {path.name for path in other.path.rglob("*")} == {"curve.csv", "checkpoint.json"}
    assert outside.read_text() == "mine"
    assert f"{edited} stays" in said
    assert [run.path for run in study.runs()] == [run.path for run in rest]
    assert lcd("status", study.path, "state=done")[0] == 0


def test_removing_refuses_what_is_at_work_or_needed_or_not_said(study, lcd):
    run, *_ = study.runs()
    assert lcd("remove", study.path, "--yes")[0] == 2
    with held(run.path):
        code, said = lcd("remove", study.path, "state=done", "--yes")
    assert (code, "is being trained" in said) == (2, True)
    assert len(study.runs()) == 4
    code, said = lcd("remove", study.path, "state=failed", "--yes")
    assert (code, "nothing is removed" in said) == (0, True)
    code, said = lcd("remove", study.path, "view=semantic", "--yes")
    assert (code, len(study.runs())) == (0, 2)
    assert (run.path / "curve.csv").exists() == (run.config["view"] == "pixels")
    # What was removed is trained again by the command that asked for it.
    assert lcd("diagnose", *SMALL, f"out={study.path}")[0] == 0
    assert lcd("remove", study.path, "all=true", "--yes")[0] == 0
    assert store.Study(study.path).runs() == []


def test_states_are_those_that_a_reader_is_told():
    told = glance.DONE, glance.RUNNING, glance.WAITING, glance.FAILED, glance.DIVERGED
    assert (*told, glance.CANCELLED, glance.DAMAGED) == STATES
