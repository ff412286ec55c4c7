"""What binds a run's files to it: seals, what a report makes of broken ones, and what `lcd verify` finds."""

import errno
import json
import os
import shutil
from pathlib import Path

import fake_training
import pandas as pd
import pytest
import torch
import yaml

from lcd import cli
from lcd.envs.errors import InputError
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import determinism, quarantine, store
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.devices import check_device
from lcd.pipelines.study.hands import DISK
from lcd.pipelines.study.lease import last_entry, take

SMALL = ["study.tasks=[toy/easy-sight-easy-reward,toy/hard-sight-hard-reward]", "study.seeds=2", "study.steps=400"]
SMALL += ["study.views=[pixels,semantic]", "study.reward_p=[1]"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("studies") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        fake_training.instead(patch)
        assert cli.main(["diagnose", *SMALL, f"out={out}", "tracker=none", "launcher.workers=2"]) == 0
    return out


@pytest.fixture
def study(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "study")
    return store.Study(tmp_path / "study")


def edited(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def rewritten(run):
    rows = pd.read_csv(run.path / "curve.csv")
    rows["return_mean"] = rows["return_mean"] + 0.001
    rows.to_csv(run.path / "curve.csv", index=False)


def cut_out(run):
    lines = (run.path / "curve.csv").read_text().splitlines(keepends=True)
    (run.path / "curve.csv").write_text("".join(lines[:3] + lines[4:]))


def another_config(run):
    edited(run.path / "config.yaml", "steps: 400", "steps: 300")


def lost(run):
    (run.path / "curve.csv").unlink()


def never_ending(run):
    (run.path / "curve.csv").unlink()
    (run.path / "curve.csv").symlink_to("/dev/zero")


def of_another_benchmark(run):
    edited(run.path / "config.yaml", "benchmark: toy", "benchmark: nobodys:code")


FAULTS = {
    never_ending: "curve.csv cannot be read (it is no regular file)",
    of_another_benchmark: "config.yaml is not the one",
    rewritten: "curve.csv has been changed since the run was done",
    cut_out: "curve.csv has been changed since the run was done",
    lost: "curve.csv cannot be read",
    another_config: "config.yaml is not the one",
}


@pytest.mark.parametrize("break_it", FAULTS, ids=lambda function: function.__name__)
def test_a_run_whose_files_do_not_match_is_left_out_and_named(study, break_it, capsys):
    first, *others = study.runs()
    break_it(first)
    first, *others = study.runs()
    assert FAULTS[break_it] in quarantine.fault_of(first)
    assert not any(quarantine.fault_of(other) for other in others)
    assert cli.main(["verify", str(study.path)]) == 1
    told = capsys.readouterr().out
    assert told.count(f"wrong {first.path.name}") == 1
    assert FAULTS[break_it] in told


@pytest.mark.parametrize("break_it", [rewritten, of_another_benchmark], ids=lambda function: function.__name__)
def test_a_report_leaves_out_a_run_that_cannot_be_believed(study, break_it, capsys):
    first = study.runs()[0]
    break_it(first)
    assert cli.main(["report", str(study.path)]) == 0
    told = capsys.readouterr().out
    assert f"(run {first.path.name}), is left out. It is invalid: its {FAULTS[break_it]}" in told


def test_a_whole_study_is_found_whole_and_left_as_it_is(study, capsys):
    before = {path: path.read_bytes() for path in study.path.rglob("*") if path.is_file()}
    assert cli.main(["verify", str(study.path)]) == 0
    told = capsys.readouterr().out
    assert "4 runs: 4 done, 4 of them sealed." in told
    assert told.splitlines()[-1] == f"Nothing is wrong with {study.path}."
    assert before == {path: path.read_bytes() for path in study.path.rglob("*") if path.is_file()}


def test_a_study_of_before_there_were_seals_is_accepted_and_named(study, capsys):
    for run in study.runs():
        status = json.loads((run.path / "status.json").read_text())
        del status["seal"]
        (run.path / "status.json").write_text(json.dumps(status))
    assert cli.main(["verify", str(study.path)]) == 0
    assert capsys.readouterr().out.count("it is not sealed") == 4
    assert cli.main(["report", str(study.path)]) == 0
    assert "4 of 4 runs are not sealed" in capsys.readouterr().out


def test_what_else_is_not_true_is_one_line_each(study, capsys):
    first, second, third, fourth, *_ = study.runs()
    first.update(state=store.RUNNING)
    (second.path / "status.json").write_text('{"state": "do')
    (third.path / "checkpoints").mkdir()
    (third.path / "checkpoints" / "last.ckpt").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    fourth.update(seal=fourth.status["seal"] | {"checkpoints/last.ckpt": "0"})
    (study.path / "runs" / "odd").mkdir()
    edited(study.diagnosis_dir / "challenge.csv", "0.", "1.")
    assert cli.main(["verify", str(study.path)]) == 1
    told = capsys.readouterr().out
    for run, said in [
        (first, "says that it is being trained, but no process does"),
        (second, "status.json is cut off"),
        (third, "last.ckpt cannot be loaded as data only"),
        (fourth, "last.ckpt is gone since the run was done"),
    ]:
        (line,) = [line for line in told.splitlines() if run.path.name in line]
        assert said in line
    assert "odd: there is no readable config.yaml" in told
    assert "diagnosis/challenge.csv is not what the curves give now" in told


def test_a_lease_that_is_a_pipe_is_not_waited_for(study, capsys):
    run = study.runs()[0]
    run.update(state=store.RUNNING)
    (run.path / "leases").mkdir(exist_ok=True)
    os.mkfifo(run.path / "leases" / "000099")
    assert cli.main(["verify", str(study.path)]) in (0, 1)
    assert "whether it is cannot be told" in capsys.readouterr().out


def test_weights_of_a_front_end_are_compared(study, tmp_path, capsys):
    weights = tmp_path / "flow.pt"
    weights.write_bytes(b"new")
    run = study.runs()[0]
    frontend = {"name": "identity", "weights": {"file": str(weights), "sha256": "0"}}
    (run.path / "config.yaml").write_text(yaml.safe_dump(run.config | {"frontend": frontend}))
    assert cli.main(["verify", str(study.path)]) == 1
    assert f"frontend.weights={weights} has changed since" in capsys.readouterr().out


def test_a_run_goes_on_only_from_rows_that_it_wrote(tmp_path):
    agent = {"name": "ppo", "copies": 4, "rollout": 25, "epochs": 1, "minibatches": 2}
    config = {
        "kind": "train", "benchmark": "toy", "task": "toy/easy-sight-easy-reward", "knobs": {}, "view": "semantic",
        "frontend": {"name": "identity"}, "reward_p": 1.0, "shaping": "none", "agent": agent, "seeds": [0],
        "steps": 200, "evaluation": {"every": 100, "copies": 2, "episodes": 1},
    }  # fmt: skip
    arguments = (config, tmp_path, {"name": "none"}, Device("auto"))
    train_run(*arguments)
    status = store.read_status(tmp_path)
    assert set(status["seal"]) == {"curve.csv", "checkpoints/last.ckpt"}
    assert status["device"] == ("cuda" if torch.cuda.is_available() else "cpu")
    train_run(*arguments)
    assert store.read_status(tmp_path)["seal"] == status["seal"]
    curve = (tmp_path / "curve.csv").read_text().splitlines(keepends=True)
    cells = curve[2].split(",")
    cells[curve[0].split(",").index("return_mean")] = "0.125"
    wrong = "".join([*curve[:2], ",".join(cells), *curve[3:]])
    (tmp_path / "curve.csv").write_text(wrong)
    with pytest.raises(InputError, match="is not what the run wrote before it was stopped"):
        train_run(*arguments)
    assert (tmp_path / "curve.csv").read_text() == wrong


@pytest.mark.parametrize(
    ("device", "gpus", "sentence"),
    [
        (Device("cuda", 8), 0, r"device=cuda, but .* \(it has: cpu\)"),
        (Device("cuda"), 0, "device=cuda, but"),
        (Device("mps"), 0, "device=mps, but"),
        (Device("cuda", 8), 2, "devices=8, but this machine has 2 GPUs"),
        (Device("auto", 8), 2, "devices=8, but this machine has 2 GPUs"),
        (Device("auto", 8), 0, None),
        (Device("cpu", 8), 2, None),
        (Device("cuda", 2), 2, None),
    ],
)
def test_a_device_that_is_not_there_is_refused(monkeypatch, device, gpus, sentence):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    if sentence is None:
        check_device(device)
    else:
        with pytest.raises(InputError, match=sentence):
            check_device(device)


def test_a_refused_device_leaves_nothing_behind(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    words = ["task=toy/easy-sight-easy-reward", "device=cuda", "devices=2", f"out={tmp_path / 'study'}"]
    assert cli.main(["train", *words]) == 2
    assert "give device=auto" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


CHANCE = """
import gymnasium, numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

class One(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0, 1, (1,), np.float32), gymnasium.spaces.Discrete(2)
    def __init__(self, rng, lucky):
        self.rng, self.lucky = rng, lucky
    def reset(self, *, seed=None, options=None):
        return self.rng.random(1, np.float32), {}
    def step(self, action):
        pay = np.random.random() if self.lucky else float(action)
        return self.rng.random(1, np.float32), pay, self.rng.random() < 0.2, False, {}

class Seeded:
    name, tasks, views, lucky = "chance", ("chance/a",), ("pixels",), False
    r_min, r_max = {"chance/a": 0.0}, {"chance/a": 1.0}
    def make_vec(self, task, *, view, split, num_envs, seed, **knobs):
        streams = np.random.default_rng([seed, split == "eval"]).spawn(num_envs)
        made = [lambda rng=rng: One(rng, self.lucky) for rng in streams]
        return SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP)

class Lucky(Seeded):
    lucky = True
"""


def test_a_benchmark_that_ignores_its_seed_is_refused(tmp_path, monkeypatch):
    (tmp_path / "chance_worlds.py").write_text(CHANCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    config = {"kind": "train", "task": "chance/a", "knobs": {}, "view": "pixels", "shaping": "none", "seeds": [3]}
    config |= {"steps": 9}
    told = r"Lucky is left to chance: chance/a \(view=pixels, split=train\) has other rewards each time"
    determinism.refuse_chance([Job(config | {"benchmark": "chance_worlds:Seeded"})])
    with pytest.raises(InputError, match=told):
        determinism.refuse_chance([Job(config | {"benchmark": "chance_worlds:Lucky"})])


def test_our_own_benchmarks_are_not_probed(monkeypatch):
    monkeypatch.setattr(determinism, "launch", None)
    determinism.refuse_chance([Job({"kind": "train", "benchmark": name}) for name in ("toy", "procgen")])


def kept_from_reading(monkeypatch, refused):
    """Let files fail to open as they do for a user who may not read them; root may read all."""

    def opened(path, *how, **options):
        if refused in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return open(path, *how, **options)

    monkeypatch.setattr("lcd.files.atomic.open", opened, raising=False)


@pytest.mark.parametrize("name", ["curve.csv", "last.ckpt"])
def test_files_that_may_not_be_read_are_named_each_and_the_rest_is_checked(study, name, monkeypatch, capsys):
    for run in study.runs():
        (run.path / "checkpoints").mkdir(exist_ok=True)
        torch.save({}, run.path / "checkpoints" / "last.ckpt")
        store.finish(run.path)
    kept_from_reading(monkeypatch, name)
    (study.path / "runs" / "stranger").mkdir()
    assert cli.main(["verify", str(study.path)]) == 1
    told = capsys.readouterr().out
    assert (
        sum(f"{name} cannot be read (Permission denied)" in line and " p=1 " in line for line in told.splitlines()) == 4
    )
    assert "wrong stranger" in told


def test_that_a_run_is_not_trained_is_not_said_where_it_cannot_be_known(study, capsys):
    store.update_status(study.runs()[0].path, state=store.RUNNING)

    elsewhere = {"host": "node7", "pid": 1, "started": "1", "machine": "another"}
    assert take(DISK, study.runs()[0].path, last_entry(DISK, study.runs()[0].path), elsewhere)
    cli.main(["verify", str(study.path)])
    told = capsys.readouterr().out
    assert "whether it is cannot be told" in told
    assert "no process does" not in told


def test_runs_that_may_not_be_listed_are_not_taken_for_none(study, monkeypatch, capsys):
    listdir = os.listdir

    def refused(path="."):
        if path == study.path / "runs":
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return listdir(path)

    monkeypatch.setattr(store.os, "listdir", refused)
    for command in ("verify", "report"):
        assert cli.main([command, str(study.path)]) == 1
        assert f"Permission denied at {study.path}/runs" in capsys.readouterr().err


def test_a_run_that_diverged_is_counted_and_named(study, capsys):
    store.update_status(study.runs()[0].path, state=store.DIVERGED, error="a loss is nan")
    assert cli.main(["verify", str(study.path)]) == 1
    told = capsys.readouterr().out
    assert "it diverged (a loss is nan)" in told
    assert "4 runs: 3 done, 3 of them sealed, 1 diverged." in told


def test_a_report_names_a_run_without_a_readable_config(study, capsys):
    first = study.runs()[0].path
    (first / "config.yaml").write_bytes(b"\0")
    assert cli.main(["report", str(study.path)]) == 0
    sentence = f"runs/{first.name} is left out: there is no readable config.yaml"
    assert sentence in capsys.readouterr().out
    assert sentence in (study.diagnosis_dir / "diagnosis.json").read_text()
