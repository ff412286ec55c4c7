"""W&B's own client against a recorder of its protocol on this machine: what arrives, across a kill and a resume."""

import json
import signal
import warnings

import pytest
import yaml
from fork_server import interpret
from small_runs import waiting_run
from wandb_server import ENTITY, Recorder

from lcd import cli
from lcd.envs.errors import InputError
from lcd.pipelines.publish import sync, track, wandb_client, wandb_sweep
from lcd.pipelines.study import store

wandb = pytest.importorskip("wandb", reason="wandb is not installed")
ONLINE = {"name": "wandb", "settings": {"mode": "online"}}
CONFIG = {
    "kind": "train", "benchmark": "toy", "task": "toy/a", "knobs": {}, "view": "pixels", "reward_p": 0.5,
    "agent": {"name": "ppo", "clip": 0.1}, "frontend": {"name": "identity"}, "shaping": "none", "seeds": [0, 1],
    "steps": 300,
}  # fmt: skip
KILLED = """
import os, signal, sys, time
from pathlib import Path
import yaml
from lcd.pipelines.publish import track
from lcd.pipelines.study import store

folder, told = Path(sys.argv[1]), yaml.safe_load(sys.argv[2])
tracker = {"name": "wandb", "settings": {"mode": "online"}}
mirror = track.open_tracker(tracker, folder, told["config"], store.read_status(folder))
mirror.log(told["rows"], told["scalars"])
time.sleep(told["pause"])
os.kill(os.getpid(), signal.SIGKILL)
"""


def rows(*steps):
    return [
        {"step": step, "split": "eval", "seed": seed, "return_mean": step + seed, "episodes": 4}
        for step in steps
        for seed in (0, 1)
    ]


def scalars(*steps):
    return [{"step": str(step), "seed": str(seed), "kl": "0.25", "wall_s": "2"} for step in steps for seed in (0, 1)]


@pytest.fixture
def server(monkeypatch, tmp_path):
    (tmp_path / "home").mkdir()
    recorder = Recorder()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WANDB_BASE_URL", recorder.url)
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    wandb.teardown()
    yield recorder
    recorder.close()
    wandb.teardown()


@pytest.fixture
def little_patience(monkeypatch):
    monkeypatch.setitem(wandb_client.QUIET, "init_timeout", 2.0)
    monkeypatch.setitem(wandb_client.QUIET, "finish_timeout", 2.0)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "mystudy" / "runs" / "abc"
    path.mkdir(parents=True)
    return path


def opened(folder):
    return track.open_tracker(ONLINE, folder, CONFIG, store.read_status(folder))


def steps_of(recorder, folder):
    return [row["env_step"] for row in recorder.history(store.read_status(folder)["wandb_id"])]


def test_each_step_arrives_once_across_a_kill_and_a_resume(server, folder):
    told = {"config": CONFIG, "rows": rows(0, 100, 200), "scalars": scalars(50, 100, 150, 200), "pause": 1.0}
    assert interpret(KILLED, str(folder), json.dumps(told)).wait() == -signal.SIGKILL
    # Of what was logged, some may not have arrived: the resumed run goes on from what the server has.
    resumed = opened(folder)
    resumed.log(rows(0, 100, 200), scalars(50, 100, 150, 200))
    resumed.log(rows(300), scalars(250, 300))
    resumed.finish({"best": 3})
    assert steps_of(server, folder) == [0, 50, 100, 150, 200, 250, 300]
    run = server.runs[store.read_status(folder)["wandb_id"]]
    assert list(server.runs) == [store.read_status(folder)["wandb_id"]]
    last = server.history(store.read_status(folder)["wandb_id"])[-1]
    assert (last["eval/return_mean"], last["eval/return_mean/seed_1"]) == (300.5, 301)
    assert (last["learning/kl"], last["learning/kl/seed_0"], last["machine/wall_s"]) == (0.25, 0.25, 2)
    assert (run["group"], run["job_type"]) == ("mystudy", "train")
    assert {"toy", "pixels", "p=0.5", "ppo", "identity"} <= set(run["tags"])
    config = {key: entry["value"] for key, entry in json.loads(run["config"]).items()}
    flat = {"view": "pixels", "reward_p": 0.5, "agent": "ppo", "agent.clip": 0.1, "frontend": "identity"}
    assert flat.items() <= config.items()
    assert run["state"] == "finished"


def test_what_did_not_arrive_is_sent_again(server, folder):
    first = opened(folder)
    first.log(rows(0, 100), [])
    first.finish({})
    name = store.read_status(folder)["wandb_id"]
    lost = server.runs[name]["history"].popitem()
    assert json.loads(server.runs[name]["summary"])["env_step"] == 100, "the summary may be ahead of the history"
    assert json.loads(lost[1])["env_step"] == 100
    again = opened(folder)
    again.log(rows(0, 100, 200), [])
    again.finish({})
    assert steps_of(server, folder) == [0, 100, 200]


def test_artifacts_are_asked_for_with_what_they_are_made_of(server, folder):
    weights = folder / "flow.pt"
    weights.write_bytes(b"weights")
    mirror = opened(folder)
    mirror.log(rows(0), [])
    mirror.log_file("frontend-weights", weights, {"sha256": "1" * 64})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the recorder does not take files
        mirror.finish({})
    asked = json.dumps(server.artifacts)
    assert "frontend-weights" in asked
    assert "1" * 64 in asked


@pytest.mark.usefixtures("little_patience")
@pytest.mark.parametrize("mode", ["fails", "hangs", "garbage"])
def test_a_server_that_misbehaves_from_the_start_leaves_an_offline_copy(server, folder, mode):
    server.mode = mode
    with pytest.warns(UserWarning, match="W&B is mirrored offline") as told:
        mirror = opened(folder)
    mirror.log(rows(0, 100), [])
    mirror.finish({})
    assert len(told) == 1
    assert len(wandb_client.offline_folders(folder)) == 1
    assert store.read_status(folder)["mirrored_step"] == 100


@pytest.mark.usefixtures("little_patience")
@pytest.mark.parametrize("mode", ["fails", "garbage"])
def test_a_server_that_breaks_in_the_middle_stops_nothing(server, folder, mode):
    mirror = opened(folder)
    mirror.log(rows(0), [])
    server.mode = mode
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mirror.log(rows(100), [])
        mirror.finish({})
    assert len([each for each in told if "W&B" in str(each.message)]) <= 1
    assert list((folder / "wandb").rglob("*.wandb")), "what was not uploaded is on the disk"


def test_offline_runs_are_uploaded_once(server, tmp_path, capsys):
    study = store.Study(tmp_path / "mystudy", create=True)
    with study.at_work():
        study.ask({"train": {}}, [])
    folder = study.diagnosis_dir
    folder.mkdir()
    run = wandb_client.start(wandb_client.WandbSettings(), folder, "abc123", group="mystudy")
    run.log({"env_step": 0, "eval/return_mean": 1.0})
    wandb_client.finish(run, folder)
    assert sync.run(sync.SyncConfig(path=str(study.path))) == 0
    assert [row["eval/return_mean"] for row in server.history("abc123")] == [1.0]
    assert sync.run(sync.SyncConfig(path=str(study.path))) == 0
    assert "Nothing of" in capsys.readouterr().out.replace("\n", " ")


def test_what_lies_outside_of_a_study_is_neither_uploaded_nor_replaced(server, tmp_path):
    """A stranger's links are where the client's files would be."""
    theirs = tmp_path / "victim" / "offline-run-20260101_000000-precious"
    theirs.mkdir(parents=True)
    (theirs / "run-precious.wandb").write_text("gold")
    folder = tmp_path / "run"
    (folder / "wandb").mkdir(parents=True)
    (folder / "wandb" / theirs.name).symlink_to(theirs)
    assert wandb_client.offline_folders(folder) == []
    (folder / "wandb" / theirs.name).unlink()
    (folder / "wandb").rmdir()
    (folder / "wandb").symlink_to(theirs.parent)
    assert wandb_client.offline_folders(folder) == []
    assert wandb_client.discard_unsynced(folder)
    with pytest.raises(InputError, match="wandb is a link: nothing is written there; remove it"):
        wandb_client.start(wandb_client.WandbSettings(), folder, "abc123")
    assert [path.name for path in theirs.parent.iterdir()] == [theirs.name]
    assert (theirs / "run-precious.wandb").read_text() == "gold"


def test_a_sweep_takes_no_place_of_another_file(tmp_path, capsys):
    waiting_run(tmp_path / "study")
    mine = tmp_path / "mine.txt"
    mine.write_text("my thesis")
    words = ["wandb-sweep", str(tmp_path / "study"), "device=cpu"]
    for out in (mine, tmp_path / "study" / "study.yaml", tmp_path):
        assert cli.main([*words, f"out={out}"]) == 2
    assert mine.read_text() == "my thesis"
    assert "created" in yaml.safe_load((tmp_path / "study" / "study.yaml").read_text())
    for _ in range(2):
        assert cli.main([*words, f"out={tmp_path / 'new' / 'sweep.yaml'}"]) == 0
    assert yaml.safe_load((tmp_path / "new" / "sweep.yaml").read_text())["method"] == "grid"


def test_a_sweep_is_made_and_its_agents_would_take_our_runs(server, tmp_path):
    study = store.Study(tmp_path / "mystudy", create=True)
    made = wandb_sweep.sweep_config(study, ["a1", "b2"], "lcd", ENTITY, "cpu")
    assert wandb_sweep._make(made, "lcd", ENTITY) == f"{ENTITY}/lcd/swp1"
    (asked,) = server.sweeps
    sent = yaml.safe_load(asked["config"])
    assert sent["parameters"]["run"]["values"] == ["a1", "b2"]
    assert sent["command"][1:3] == ["wandb-sweep", str(study.path.resolve())]
    assert sent["command"][-1] == "${args_no_hyphens}"
