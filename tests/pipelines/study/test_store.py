"""Study folders: identity of runs, atomic files, locks, and what is refused."""

import errno
import json
import os
import stat
import subprocess
import sys

import pytest
import yaml

from lcd.envs.errors import InputError
from lcd.files.atomic import make_folder, write_atomic
from lcd.files.ledger import Disk
from lcd.pipelines.jobs.worker import do_under_lease
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import hands, store
from lcd.pipelines.study.configs import Device, run_id
from lcd.pipelines.study.lease import STATUS_FILE
from lcd.pipelines.study.remembered import REVISIONS
from lcd.process.children import describe
from lcd.process.exits import system_refusal


def run_config(**changes):
    return {
        "kind": "train",
        "benchmark": "toy",
        "task": "toy/a",
        "knobs": {},
        "view": "pixels",
        "frontend": {"name": "identity"},
        "reward_p": 1.0,
        "shaping": "none",
        "agent": {"name": "ppo", "learning_rate": 1e-5},
        "seeds": [0, 1],
        "steps": 100,
        "evaluation": {"every": 10, "copies": 1, "episodes": 1},
    } | changes


def test_a_run_id_depends_on_content_not_on_order():
    config = run_config()
    assert run_id(config) == run_id(dict(reversed(config.items())))
    others = [run_config(view="semantic"), run_config(seeds=[1, 0]), run_config(steps=101), run_config(knobs={"a": 1})]
    assert len({run_id(other) for other in [config, *others]}) == 5


def test_the_same_request_is_the_same_run_and_a_new_one_extends_the_study(tmp_path):
    (first,) = store.Study(tmp_path / "s", create=True).ask({"ask": 1}, map(Job, [run_config()]))
    first.update(state=store.DONE, step=100)
    again = store.Study(tmp_path / "s", create=True)
    assert again.ask({"ask": 1}, map(Job, [run_config()]))[0].status["state"] == store.DONE
    assert again.record["requests"] == [{"ask": 1}]
    more = store.Study(tmp_path / "s")
    more.ask({"ask": 2}, map(Job, [run_config(seeds=[2, 3])]))
    assert more.record["requests"] == [{"ask": 1}, {"ask": 2}]
    assert {tuple(run.config["seeds"]) for run in store.Study(tmp_path / "s").runs()} == {(0, 1), (2, 3)}


@pytest.mark.parametrize("changes", [{"seeds": [1, 2]}, {"steps": 50}, {"agent": {"name": "ppo", "learning_rate": 1}}])
def test_the_same_condition_and_seed_twice_is_refused(tmp_path, changes):
    study = store.Study(tmp_path / "s", create=True)
    study.ask({}, map(Job, [run_config()]))
    semantic = run_config(view="semantic", **changes)
    with pytest.raises(InputError, match=r"already has seeds \[.*1\] of \(toy/a  pixels  p=1  ppo\)"):
        study.ask({"ask": 2}, map(Job, [semantic, run_config(**changes)]))
    assert len(study.runs()) == len(study.record["requests"]) == 1
    study.ask({"ask": 2}, map(Job, [semantic]))
    assert len(store.Study(tmp_path / "s").runs()) == 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"steps": 50}, "steps=100 there, 50 asked for"),
        ({"seeds": [0, 1, 2]}, r"seeds=\[0, 1\] there, \[0, 1, 2\] asked for"),
        ({"agent": {"name": "ppo"}}, r"agent.learning_rate=1e-05 there, nothing asked for"),
        ({"steps": 200, "seeds": [1]}, r"seeds=\[0, 1\] there, \[1\] asked for; steps=100 there, 200 asked for\."),
    ],
)
def test_a_run_that_differs_is_refused_with_the_difference(tmp_path, changes, told):
    study = store.Study(tmp_path / "s", create=True)
    study.ask({}, map(Job, [run_config()]))
    with pytest.raises(InputError, match=told):
        study.ask({"ask": 2}, map(Job, [run_config(**changes)]))


def test_folders_that_are_no_studies_are_refused(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="not empty and not a study"):
        store.Study(tmp_path / "notes", create=True)
    with pytest.raises(InputError, match="is a file"):
        store.Study(tmp_path / "file", create=True)
    with (
        pytest.raises(InputError, match="cannot be made"),
        store.Study(tmp_path / "file" / "below", create=True).at_work(),
    ):
        pass
    with pytest.raises(InputError, match="not a study's folder"):
        store.Study(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    store.Study(tmp_path / "empty", create=True)


def test_a_study_killed_while_it_was_made_is_made_again(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / ".study.yaml.x1").write_text("reque")
    assert store.Study(tmp_path, create=True).record["requests"] == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        '{"state": "do',
        "[]",
        '{"state": "odd"}',
        "\x00",
        '{"state": "done", "step": null}',
        '{"state": "running", "step": "x"}',
        '{"state": "running", "steps": []}',
    ],
)
def test_a_broken_status_counts_as_none(tmp_path, content):
    (tmp_path / "status.json").write_text(content)
    assert store.read_status(tmp_path) == store.STATUS
    store.update_status(tmp_path, step=3)
    assert json.loads((tmp_path / "status.json").read_text())["step"] == 3


def test_an_atomic_write_that_fails_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "x"
    write_atomic(path, "old")

    def broken(*_):
        raise OSError("no space")

    monkeypatch.setattr("lcd.files.atomic.os.fsync", broken)
    with pytest.raises(OSError, match="no space"):
        write_atomic(path, "new")
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["old"]


def test_an_error_of_the_disk_names_the_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left") as told:
            write_atomic(tmp_path / "status.json", "x")
    assert f"at {tmp_path / 'status.json'}: what was written before is whole" in system_refusal(told.value)
    (tmp_path / "curve.csv").mkdir()
    with pytest.raises(IsADirectoryError) as told:
        write_atomic(tmp_path / "curve.csv", "x")
    for sentence in (system_refusal(told.value), describe(told.value)):
        assert f"{tmp_path / 'curve.csv'} is a folder where a file should be: move it away" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["curve.csv"]


def test_a_file_and_its_name_are_on_the_disk_when_it_is_written(tmp_path, monkeypatch):
    """A power cut can undo what is not: the content before the rename, the folder after it."""
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("lcd.files.atomic.os.fsync", lambda handle: done.append(kind(handle)) or fsync(handle))
    monkeypatch.setattr("lcd.files.atomic.os.replace", lambda *paths: done.append("renamed") or replace(*paths))

    def kind(handle):
        return "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"

    write_atomic(tmp_path / "x", "content")
    assert done == ["file", "renamed", "folder"]
    done.clear()
    make_folder(tmp_path / "a" / "b")
    assert done == ["folder", "folder"]


def test_what_a_killed_process_left_half_written_is_deleted(tmp_path, monkeypatch):
    """By whoever works there an hour later; what only looks like it, a user's own, stays, and what was just written."""
    study = store.Study(tmp_path / "s", create=True)
    (run,) = study.ask({}, map(Job, [run_config()]))
    for folder in (study.path, study.path / "videos" / "x", run.path / "checkpoints"):
        folder.mkdir(parents=True, exist_ok=True)
    left = [study.path / ".study.yaml.a1b2.partial", study.path / "videos" / "x" / ".task.bin.a1b2.partial"]
    of_run = [run.path / ".status.json.a1b2.partial", run.path / "checkpoints" / ".last.ckpt.a1b2.partial"]
    mine = [study.path / "notes.partial", run.path / ".notes"]
    fresh = study.path / ".study.yaml.c3d4.partial"
    for path in (*left, *of_run, *mine, fresh):
        path.write_text("half")
        if path != fresh:
            os.utime(path, (1, 1))
    with study.at_work():
        assert not any(path.exists() for path in left)
        assert all(path.exists() for path in (*of_run, *mine, fresh))
        monkeypatch.setattr("lcd.pipelines.jobs.worker.resolve", lambda _: lambda *_: None)
        with pytest.raises(RuntimeError, match="before the run was done"):
            do_under_lease("x:y", run.config, str(run.path), {}, Device("cpu"))
    assert [path.name for path in run.left.rglob("*.partial")] == []


def test_a_lease_is_held_against_others_and_taken_over_after_a_kill(tmp_path):
    code = "import sys, time\nfrom pathlib import Path\nfrom lcd.pipelines.study import hands\n"
    code += "lease, _ = hands.acquire(Path(sys.argv[1]))\nwith hands.holding(lease):\n"
    code += "    print('held', flush=True)\n    time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        assert hands.acquire(tmp_path) is None
    finally:
        holder.kill()
        holder.wait()
    lease, still = hands.acquire(tmp_path)
    assert (lease.number, still) == (2, True)


def test_done_is_believed_only_with_the_curve_that_the_config_asks_for(tmp_path):
    run = store.Study(tmp_path / "study", create=True).ask({}, map(Job, [run_config()]))[0]
    store.update_status(run.path, state=store.DONE)
    rows = "seed,split,step\n" + "".join(f"{seed},eval,0\n" for seed in run.config["seeds"])
    (run.path / "curve.csv").write_text(rows)
    assert not run.done


def test_a_study_killed_before_its_first_run_is_whole_goes_on(tmp_path, monkeypatch):
    plain = Disk.create

    def killed(disk, path, content):
        if path.name == STATUS_FILE:
            raise KeyboardInterrupt
        return plain(disk, path, content)

    job = Job(run_config())
    with monkeypatch.context() as patch:
        patch.setattr(Disk, "create", killed)
        with pytest.raises(KeyboardInterrupt), store.Study(tmp_path, create=True).at_work():
            store.Study(tmp_path, create=True).ask({"asked": 1}, [job])
    assert any((tmp_path / "runs").iterdir())
    study = store.Study(tmp_path, create=True)
    with study.at_work():
        (run,) = study.ask({"asked": 1}, [job])
    assert (run.path / "config.yaml").is_file()


@pytest.mark.parametrize("content", ["requests: 5", "requests: {a: 1}", "[]"])
def test_a_strangers_study_record_may_hold_anything(tmp_path, content):
    store.Study(tmp_path, create=True)
    (tmp_path / "study.yaml").write_text(content)
    assert store.Study(tmp_path).record["requests"] == []


@pytest.mark.parametrize("content", ["seeds: 5", "seeds: [a]\ntask: b", "!!python/object/apply:os.system ['exit 1']"])
def test_a_strangers_run_config_may_hold_anything(tmp_path, content):
    study = store.Study(tmp_path, create=True)
    (tmp_path / "runs" / "odd").mkdir(parents=True)
    (tmp_path / "runs" / "odd" / "config.yaml").write_text(content)
    assert study.runs() == []
    assert len(study.ask({}, map(Job, [run_config()]))) == 1


def refuse(study, *configs, trained=False):
    """Ask for runs, maybe train them, and be refused."""

    def work():
        with study.at_work():
            for run in study.ask({"ask": len(configs)}, map(Job, configs)):
                if trained:
                    (run.path / "curve.csv").write_text("seed,split,step\n0,eval,0")
            raise InputError("refused")

    with pytest.raises(InputError, match="refused"):
        work()


@pytest.mark.parametrize("text", ["12:30:45", "[]", "created: once\nmine: 1\n", "requests: 7 # what?\n"])
def test_a_refused_request_leaves_a_strange_record_as_it_was(tmp_path, text):
    (tmp_path / "study.yaml").write_text(text)
    refuse(store.Study(tmp_path, create=True), run_config())
    assert (tmp_path / "study.yaml").read_text() == text


def test_a_refused_request_leaves_nothing_behind(tmp_path):
    """Neither a new study's folder, nor a run or a request in an old one."""
    study = store.Study(tmp_path / "deep" / "s", create=True)
    assert not (tmp_path / "deep").exists()
    refuse(study, run_config())
    assert list(tmp_path.iterdir()) == []
    with study.at_work():
        study.ask({"ask": 1}, map(Job, [run_config()]))

    def files():
        return {
            path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*") if REVISIONS not in path.parts
        }

    before = files()
    refuse(study, run_config(), run_config(view="semantic"))
    assert files() == before


def test_what_was_trained_outlives_a_refusal(tmp_path):
    study = store.Study(tmp_path / "s", create=True)
    refuse(study, run_config(), trained=True)
    again = store.Study(tmp_path / "s")
    assert [each.config for each in again.runs()] == [run_config()]
    assert again.record["requests"] == [{"ask": 1}]


@pytest.mark.parametrize(
    "changes",
    [{"view": ["a", "a"]}, {"reward_p": "x"}, {"shaping": None}, {"agent": {"name": ["a"]}}, {"frontend": {"name": 3}},
     {"agent": {"name": "ppo", "label": {"a": 1}}}, {"evaluation": [1]}],
)  # fmt: skip
def test_a_run_whose_condition_is_no_text_is_no_run(tmp_path, changes):
    study = store.Study(tmp_path, create=True)
    folder = tmp_path / "runs" / "odd"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(run_config()))
    assert len(study.runs()) == 1
    (folder / "config.yaml").write_text(yaml.safe_dump({**run_config(), **changes}))
    assert study.runs() == []
