"""Study folders: identity of runs, atomic files, locks, and what is refused."""

import json
import subprocess
import sys

import pytest

from lcd.envs.errors import InputError
from lcd.files import write_atomic
from lcd.pipelines import store


def run_config(**changes):
    return {
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
    assert store.run_id(config) == store.run_id(dict(reversed(config.items())))
    others = [run_config(view="semantic"), run_config(seeds=[1, 0]), run_config(steps=101), run_config(knobs={"a": 1})]
    assert len({store.run_id(other) for other in [config, *others]}) == 5


def test_the_same_request_is_the_same_run_and_a_new_one_extends_the_study(tmp_path):
    (first,) = store.Study(tmp_path / "s", create=True).ask({"ask": 1}, [run_config()])
    first.update(state=store.DONE, step=100)
    again = store.Study(tmp_path / "s", create=True)
    assert again.ask({"ask": 1}, [run_config()])[0].status["state"] == store.DONE
    assert again.record["requests"] == [{"ask": 1}]
    more = store.Study(tmp_path / "s")
    more.ask({"ask": 2}, [run_config(seeds=[2, 3])])
    assert more.record["requests"] == [{"ask": 1}, {"ask": 2}]
    assert {tuple(run.config["seeds"]) for run in store.Study(tmp_path / "s").runs()} == {(0, 1), (2, 3)}


@pytest.mark.parametrize("changes", [{"seeds": [1, 2]}, {"steps": 200}, {"agent": {"name": "ppo", "learning_rate": 1}}])
def test_the_same_condition_and_seed_twice_is_refused(tmp_path, changes):
    study = store.Study(tmp_path / "s", create=True)
    study.ask({}, [run_config()])
    semantic = run_config(view="semantic", **changes)
    with pytest.raises(InputError, match=r"already has seeds \[.*1\] of \(toy/a, pixels, p=1\)"):
        study.ask({"ask": 2}, [semantic, run_config(**changes)])
    assert len(study.runs()) == len(study.record["requests"]) == 1
    study.ask({"ask": 2}, [semantic])
    assert len(store.Study(tmp_path / "s").runs()) == 2


def test_folders_that_are_no_studies_are_refused(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="not empty and not a study"):
        store.Study(tmp_path / "notes", create=True)
    with pytest.raises(InputError, match="is a file"):
        store.Study(tmp_path / "file", create=True)
    with pytest.raises(InputError, match="cannot be made"):
        store.Study(tmp_path / "file" / "below", create=True)
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

    monkeypatch.setattr("lcd.files.os.fsync", broken)
    with pytest.raises(OSError, match="no space"):
        write_atomic(path, "new")
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["old"]


def test_a_lock_is_held_against_others_and_released_by_a_kill(tmp_path):
    code = "import sys, time\nfrom lcd.pipelines import store\n"
    code += "with store.run_lock(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="Another process is training"), store.run_lock(tmp_path, wait_s=0):
            pass
    finally:
        holder.kill()
        holder.wait()
    with store.run_lock(tmp_path, wait_s=5):
        pass


def test_done_is_believed_only_with_the_curve_that_the_config_asks_for(tmp_path):
    run = store.Study(tmp_path / "study", create=True).ask({}, [run_config()])[0]
    store.update_status(run.path, state=store.DONE)
    rows = "seed,split,step\n" + "".join(f"{seed},eval,0\n" for seed in run.config["seeds"])
    (run.path / "curve.csv").write_text(rows)
    assert not run.done


@pytest.mark.parametrize("content", ["requests: 5", "requests: {a: 1}", "[]"])
def test_a_strangers_study_record_may_hold_anything(tmp_path, content):
    store.Study(tmp_path, create=True)
    (tmp_path / "study.yaml").write_text(content)
    assert store.Study(tmp_path).record["requests"] == []


@pytest.mark.parametrize("content", ["seeds: 5", "seeds: [a]\ntask: b", "!!python/object/apply:os.system ['exit 1']"])
def test_a_strangers_run_config_may_hold_anything(tmp_path, content):
    study = store.Study(tmp_path, create=True)
    (tmp_path / "runs" / "odd").mkdir()
    (tmp_path / "runs" / "odd" / "config.yaml").write_text(content)
    assert study.runs() == []
    assert len(study.ask({}, [run_config()])) == 1
