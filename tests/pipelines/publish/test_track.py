"""Trackers: what W&B holds after a run, a kill, a resume; and that nothing it does stops training."""

import socket
import sys
from pathlib import Path

import pandas as pd
import pytest

from lcd.envs.errors import InputError
from lcd.pipelines.publish import track, track_diagnosis, wandb_client, wandb_names
from lcd.pipelines.study import store
from lcd.scores.diagnosis import Diagnosis

wandb = pytest.importorskip("wandb", reason="wandb is not installed")
OFFLINE = {"name": "wandb", "settings": {"mode": "offline", "project": "lcd", "entity": None}}
ONLINE = {"name": "wandb", "settings": {"mode": "online"}}
CONFIG = {
    "kind": "train",
    "benchmark": "toy",
    "task": "toy/a",
    "knobs": {},
    "view": "pixels",
    "reward_p": 0.5,
    "agent": {"name": "ppo"},
    "frontend": {"name": "identity"},
    "shaping": "none",
    "seeds": [0, 1],
    "steps": 300,
}
BLOCK = 32768


def rows(*steps):
    return [
        {"step": step, "split": split, "seed": seed, "return_mean": str(step + seed), "episodes": 4}
        for step in steps
        for seed in (0, 1)
        for split in ("eval", "train")
    ]


def records(path):
    """The records of an offline run's file: a LevelDB log of protocol buffers."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, position, parts = path.read_bytes(), 7, b""
    while position + 7 <= len(data):
        room = BLOCK - position % BLOCK
        if room < 7:
            position += room
            continue
        length, kind = int.from_bytes(data[position + 4 : position + 6], "little"), data[position + 6]
        parts = (parts if kind in (3, 4) else b"") + data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):
            record = Record()
            record.ParseFromString(parts)
            yield record


def read_back(folder):
    """History, config and summary of all offline folders of a run, in the order they were made."""
    import json

    history, config, summary, group = [], {}, {}, None
    for path in wandb_client.offline_folders(folder):
        (file,) = path.glob("*.wandb")
        for record in records(file):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                group = (record.run.run_group, record.run.job_type, record.run.run_id)
                config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
            elif kind == "history":
                history.append({"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item})
            elif kind == "summary":
                items = record.summary.update
                summary |= {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in items}
    return history, config, summary, group


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "mystudy" / "runs" / "abc"
    path.mkdir(parents=True)
    return path


def opened(folder, tracker=OFFLINE):
    return track.open_tracker(tracker, folder, CONFIG, store.read_status(folder))


def test_a_run_is_mirrored_and_read_back(folder, capfd):
    tracker = opened(folder)
    tracker.log_rows(rows(0, 100))
    tracker.logger.log_metrics({"loss": 1.0}, step=7)
    tracker.finish({"best": 3})
    history, config, summary, group = read_back(folder)
    curve = [row for row in history if "env_step" in row]
    assert [row["env_step"] for row in curve] == [0, 100]
    assert curve[1]["eval/return_mean/seed_1"] == 101
    assert curve[1]["train/return_mean"] == 100.5
    flat = {"benchmark": "toy", "task": "toy/a", "view": "pixels", "reward_p": 0.5, "agent": "ppo", "agent.name": "ppo"}
    assert {key: config[key] for key in flat} == flat
    assert (config["frontend"], config["study"], config["run_id"]) == ("identity", "mystudy", "abc")
    assert summary["best"] == 3
    assert group == ("mystudy", "train", store.read_status(folder)["wandb_id"])
    assert store.read_status(folder)["mirrored_step"] == 100
    told = "".join(capfd.readouterr())
    assert "wandb" not in told.lower()


def test_a_resumed_run_is_whole_and_does_not_overlap_itself(folder):
    killed = opened(folder)
    killed.log_rows(rows(0, 100, 200))
    killed.run.finish(exit_code=1)
    resumed = opened(folder)
    resumed.log_rows(rows(0, 100, 200))
    resumed.log_rows(rows(200, 300))
    resumed.finish({})
    history, *_ = read_back(folder)
    assert [row["env_step"] for row in history if "env_step" in row] == [0, 100, 200, 300]
    assert len(wandb_client.offline_folders(folder)) == 1


def test_a_synced_folder_is_kept_and_not_repeated(folder):
    first = opened(folder)
    first.log_rows(rows(0, 100))
    first.finish({})
    (synced,) = wandb_client.offline_folders(folder)
    next(synced.glob("*.wandb")).with_suffix(".wandb.synced").touch()
    second = opened(folder)
    second.log_rows(rows(0, 100, 200))
    second.finish({})
    history, *_, group = read_back(folder)
    assert [row["env_step"] for row in history if "env_step" in row] == [0, 100, 200]
    assert synced.exists()
    assert group[2] == store.read_status(folder)["wandb_id"]


def test_wandb_failing_is_one_warning_and_nothing_more(folder, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no\nservice")

    monkeypatch.setattr(wandb, "init", broken)
    with pytest.warns(UserWarning, match="W&B is left out from here on: RuntimeError: no service") as told:
        tracker = opened(folder)
    tracker.log_rows(rows(0))
    tracker.finish({})
    assert len(told) == 1
    assert tracker.logger is False
    assert store.read_status(folder)["mirrored_step"] == -1


def test_wandb_failing_in_the_middle_does_not_count_rows_as_mirrored(folder):
    tracker = opened(folder)
    tracker.log_rows(rows(0))
    tracker.run.finish()
    with pytest.warns(UserWarning, match="W&B is left out"):
        tracker.log_rows(rows(100))
    tracker.log_rows(rows(200))
    assert store.read_status(folder)["mirrored_step"] == 0
    with pytest.warns(UserWarning, match="W&B is left out"):
        tracker.logger.log_metrics({"loss": 1.0})


def test_wandb_missing_is_a_warning(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.warns(UserWarning, match="W&B is left out"):
        tracker = opened(folder)
    tracker.finish({})


@pytest.mark.parametrize("tracker", [{"name": "none"}, {"name": "wandb", "settings": {"mode": "disabled"}}])
def test_no_tracker_leaves_nothing(folder, tracker):
    opened_one = opened(folder, tracker)
    opened_one.log_rows(rows(0))
    opened_one.finish({})
    assert opened_one.logger is False
    assert not list(folder.iterdir())


def test_an_unknown_tracker_is_a_mistake(folder):
    with pytest.raises(InputError, match="wandb"):
        opened(folder, {"name": "wandbb"})


def test_a_diagnosis_is_mirrored_with_table_and_images(tmp_path):
    from matplotlib.figure import Figure

    study = store.Study(tmp_path / "mystudy", create=True)
    study.diagnosis_dir.mkdir(parents=True)
    figure = tmp_path / "plane.png"
    Figure().savefig(figure)
    table = pd.DataFrame({"task": ["toy/a", "toy/b"], "phi": [0.5, None], "psi": [1.0, 0.0], "status": ["ok", "floor"]})
    table["benchmark"] = "toy"
    for _ in range(2):
        track_diagnosis.log_diagnosis(OFFLINE, study, Diagnosis(table, pd.DataFrame()), [figure])
    history, _, summary, group = read_back(study.diagnosis_dir)
    assert len(wandb_client.offline_folders(study.diagnosis_dir)) == 1
    (row,) = history
    assert {key.split("/")[0] for key in row} >= {"challenge", "figures"}
    assert summary["toy/a/phi"] == 0.5
    assert group == ("mystudy", "diagnosis", study.record["wandb_id"])
    (file,) = wandb_client.offline_folders(study.diagnosis_dir)[0].glob("*.wandb")
    assert [list(each.run.tags) for each in records(file) if each.WhichOneof("record_type") == "run"] == [["toy"]]
    files = {path.suffix for path in wandb_client.offline_folders(study.diagnosis_dir)[0].rglob("*") if path.is_file()}
    assert {".png", ".json"} <= files
    assert store.Study(Path(study.path)).record["wandb_id"] == study.record["wandb_id"]


def test_a_study_has_one_summary_run_that_a_report_can_be_made_of(tmp_path):
    import io
    import json

    from PIL import Image

    from lcd.analyses import Analysis
    from lcd.scores.diagnosis import diagnose_curves

    rows = [
        {"task": task, "view": view, "reward_p": p, "seed": seed, "step": step, "return_mean": level, "r_min": 0.0}
        | {"r_max": 1.0}
        for task, low in (("a/x", 0.1), ("a/y", 0.4))
        for view, p, level in (
            ("pixels", 1.0, low), ("figure_ground", 1.0, 0.5), ("semantic", 1.0, 0.7), ("semantic", 0.75, 0.6),
            ("semantic", 0.5, 0.5 - low), ("semantic", 0.25, low / 4),
        )
        for seed in (0, 1)
        for step in (0, 100)
    ]  # fmt: skip
    diagnosis = diagnose_curves(pd.DataFrame(rows))
    outcome = Analysis("synergy", "Synergy", pd.DataFrame({"task": ["a/x"], "gain": [0.25]}), ["It helps."])
    image = io.BytesIO()
    Image.new("RGB", (8, 8)).save(image, format="PNG")
    study = store.Study(tmp_path / "mystudy", create=True)
    study.diagnosis_dir.mkdir(parents=True)
    track_diagnosis.log_diagnosis(OFFLINE, study, diagnosis, [], [outcome], {"a/x": {"pixels": image.getvalue()}})
    history, _, summary, group = read_back(study.diagnosis_dir)
    assert group[1] == "diagnosis"
    assert len(wandb_client.offline_folders(study.diagnosis_dir)) == 1
    logged = set(history[0])
    for name in ("challenge", "tables/synergy", "curves", "views/a/x/pixels"):
        assert any(key.startswith(name) for key in logged), name
    for name in ("plane", "phi", "psi"):
        assert any(f"charts/{name}" in key for key in logged), name
    assert summary["a/x/phi"] == 1.0
    assert summary["says/synergy"] == "It helps."
    (folder,) = wandb_client.offline_folders(study.diagnosis_dir)
    tables = [json.loads(path.read_text()) for path in folder.rglob("*.table.json")]
    curves = next(table for table in tables if "return_normalised" in table["columns"])
    assert len(curves["data"]) == 2 * 6 * 2
    plane = next(table for table in tables if table["columns"] == ["task", "phi", "psi"])
    assert {row[0] for row in plane["data"]} == {"a/x", "a/y"}


def test_tasks_of_a_curriculum_are_told_apart():
    rows = [
        {"split": "eval", "trained_on": "c", "task": task, "stage": "a", "seed": seed, "return_mean": value + seed}
        for task, value in (("a", 1.0), ("b", 5.0))
        for seed in (0, 1)
    ]
    found = wandb_names.metrics(rows)
    assert (found["eval/a/return_mean"], found["eval/b/return_mean"]) == (1.5, 5.5)
    assert found["eval/b/return_mean/seed_1"] == 6.0


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """Nobody is logged in, and no service can be reached."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "home" / ".netrc"))
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    for name in ("WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    wandb.teardown()
    yield tmp_path
    wandb.teardown()


def test_online_without_a_login_is_told_before_training_and_kept_offline(nobody, folder, capfd):
    tracker, told = track.usable(ONLINE)
    assert "tracker.mode=online needs a login" in told
    assert "wandb" not in "".join(capfd.readouterr()).lower()
    mirror = opened(folder, tracker)
    mirror.log_rows(rows(0, 100))
    mirror.finish({})
    history, *_ = read_back(folder)
    assert [row["env_step"] for row in history if "env_step" in row] == [0, 100]
    assert track.usable(OFFLINE) == (OFFLINE, None)


def test_with_a_key_online_stays_online(nobody, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    wandb.teardown()
    monkeypatch.setattr(track, "unreachable", lambda: None)
    assert track.usable(ONLINE) == (ONLINE, None)


def test_a_server_is_reachable_where_it_listens(nobody, monkeypatch):
    assert wandb_client.unreachable() == "127.0.0.1:9: Connection refused"
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        wandb.teardown()
        assert wandb_client.unreachable() is None


def test_with_a_key_but_without_the_server_the_mirror_is_offline_from_the_start(nobody, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    wandb.teardown()
    tracker, told = track.usable(ONLINE)
    assert tracker["settings"]["mode"] == "offline"
    assert "which cannot be reached (127.0.0.1:9: Connection refused)" in told


def test_a_service_that_cannot_be_reached_leaves_an_offline_copy(nobody, folder, monkeypatch):
    really = wandb.init

    given = []

    def unreachable(**fields):
        given.append(fields["id"])
        if fields["mode"] == "online":
            raise wandb.errors.CommError("no route")
        return really(**fields)

    monkeypatch.setattr(wandb, "init", unreachable)
    with pytest.warns(UserWarning, match="mirrored offline: CommError: no route"):
        mirror = opened(folder, ONLINE)
    assert len(set(given)) == 2, "W&B's service may hold the first id"
    mirror.log_rows(rows(0, 100))
    mirror.finish({})
    history, *_ = read_back(folder)
    assert [row["env_step"] for row in history if "env_step" in row] == [0, 100]
