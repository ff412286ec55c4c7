"""lcd pretrain: from a command to a front-end file, through kills and mistakes."""

import os
import shutil
import signal

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from fork_server import interpret
from rich.console import Console

from lcd import cli, frontends
from lcd.config.compose import compose
from lcd.envs.benchmarks import get_benchmark
from lcd.frontends.flow.file import read
from lcd.pipelines.jobs.build import build_agent
from lcd.pipelines.jobs.pretraining import pretrain_run, record_missing_videos
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.kinds.pretrain import WEIGHTS_FILE
from lcd.pipelines.publish.pretrained import publish
from lcd.pipelines.study.configs import Device, run_id
from lcd.pipelines.study.encoders import pretraining_from
from lcd.pipelines.study.runs import run_config_from as train_config_from
from lcd.pipelines.study.store import Study
from lcd.process import signals

TASK = "toy/hard-sight-easy-reward"
FPN = "pretraining.decoder=fpn"
GROUPED = ["pretraining.encoder=groups"]
COMMAND = ["pretrain", "benchmark=toy", f"tasks=[{TASK}]", "budget=smoke", "tracker=none"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def folder(out):
    (run,) = Study(out).runs()
    return run.path


def curve(out):
    return pd.read_csv(folder(out) / "curve.csv").drop(columns="wall_s")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One pretraining, start to end."""
    out = tmp_path_factory.mktemp("pretrained") / "study"
    assert cli.main([*COMMAND, f"out={out}"]) == 0
    return out


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """One of an encoder of groups."""
    out = tmp_path_factory.mktemp("pretrained") / "study"
    assert cli.main([*COMMAND, *GROUPED, f"out={out}"]) == 0
    return out


def test_a_command_gives_a_front_end(trained, capsys):
    file = folder(trained) / WEIGHTS_FILE
    front_end = frontends.make("flow", weights=str(file))
    assert front_end(torch.zeros(2, 20, 20, 3, dtype=torch.uint8)).shape == (2, 19, 20, 20)
    found = read(file)
    assert found.provenance["run"] == yaml.safe_load((folder(trained) / "config.yaml").read_text())
    assert found.data_hash == front_end.data_hash
    rows = curve(trained)
    held_out = rows[rows.split == "eval"]
    assert held_out.step.tolist() == [0, 3, 6]
    assert held_out.loss.iloc[0] == pytest.approx(held_out.static_loss.iloc[0]), "it begins by moving nothing"
    assert held_out.speed.iloc[0] == 0 < held_out.speed.iloc[-1]
    assert rows[rows.split == "train"].step.tolist() == [3, 6]
    pictures = sorted(path.name for path in (folder(trained) / "pictures").iterdir())
    assert pictures == [f"step-{step:06d}.png" for step in (0, 3, 6)]
    before = file.stat().st_mtime_ns
    assert cli.main([*COMMAND, f"out={trained}"]) == 0
    assert file.stat().st_mtime_ns == before, "the same request is the same run"
    assert "Use it: frontend=flow frontend.weights=" in capsys.readouterr().out


def test_an_encoder_of_groups_is_a_front_end_too(grouped):
    file = folder(grouped) / WEIGHTS_FILE
    front_end = frontends.make("flow", weights=str(file))
    seen = front_end(torch.zeros(2, 20, 20, 3, dtype=torch.uint8))
    assert seen.shape == (2, 19, 20, 20)
    torch.testing.assert_close(seen[:, 3:].sum(1), torch.full((2, 20, 20), 2.0))
    twin = front_end.untrained_twin()
    assert twin.config == front_end.config == read(file).config
    held_out = curve(grouped).query("split == 'eval'")
    assert held_out.step.tolist() == [0, 3, 6]
    assert held_out.static_loss.between(0.2, 0.62).all()
    assert len(list((folder(grouped) / "pictures").iterdir())) == 3


def test_an_agent_learns_from_what_the_front_end_sees(trained):
    line = [f"task={TASK}", "view=pixels", "frontend=flow", f"frontend.weights='{folder(trained) / WEIGHTS_FILE}'"]
    config = train_config_from(compose("train", [*line, "seeds=2"]))
    env = get_benchmark("toy").make_vec(TASK, view="pixels", split="train", num_envs=4, seed=0)
    agent = build_agent(config, env)
    observations, _ = env.reset(seed=0)
    actions, _, values = agent.act(agent.encode(observations), torch.rand(2, 2))
    assert actions.shape == values.shape == (2, 2)
    env.close()


def test_a_lost_file_is_written_again_without_learning_anew(trained):
    file = folder(trained) / WEIGHTS_FILE
    before, rows = read(file).model, curve(trained)
    file.unlink()
    assert cli.main([*COMMAND, f"out={trained}"]) == 0
    after = read(file).model
    assert all(torch.equal(before[name], after[name]) for name in before)
    pd.testing.assert_frame_equal(curve(trained), rows)


def prepared(out, *more):
    """A study whose videos are filmed and whose run is not begun."""
    config = pretraining_from(compose("pretrain", [*COMMAND[1:], *more]))
    study = Study(out, create=True)
    (made,) = study.ask({"pretrain": config}, [Job(config)])
    record_missing_videos(config["videos"], study.path / "videos" / config["videos"]["folder"])
    return made


@pytest.mark.parametrize(
    ("sent", "status", "whole", "more"),
    [
        ("SIGKILL", -signal.SIGKILL, "trained", ()),
        ("SIGTERM", signals.CONTINUE_ME, "trained", ()),
        ("SIGKILL", -signal.SIGKILL, "grouped", GROUPED),
    ],
)
def test_a_killed_run_ends_as_if_it_had_not_been(tmp_path, request, sent, status, whole, more):
    trained = request.getfixturevalue(whole)
    made = prepared(tmp_path / "killed", *more)
    program = (
        "import sys, os, signal, yaml\n"
        "from lcd.process import signals\n"
        "from lcd.pipelines.jobs import checkpoint as files, pretraining, record\n"
        "from lcd.pipelines.study.configs import Device\n"
        "record.CHECKPOINT_EVERY_S, record.CHECKPOINT_SHARE = 0, 1\n"
        "save = files.AtomicCheckpoints.save_checkpoint\n"
        "def killed(self, checkpoint, path, storage_options=None):\n"
        "    save(self, checkpoint, path, storage_options)\n"
        "    if checkpoint[record.STEP] == 4:\n"
        f"        os.kill(os.getpid(), signal.{sent})\n"
        "files.AtomicCheckpoints.save_checkpoint = killed\n"
        f"config = yaml.safe_load(open({str(made.path / 'config.yaml')!r}))\n"
        "signals.handle_stop_signals()\n"
        "try:\n"
        f"    pretraining.pretrain_run(config, {str(made.path)!r}, {{'name': 'none'}}, Device('cpu'))\n"
        "except signals.Stopped:\n"
        "    sys.exit(signals.CONTINUE_ME)\n"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = interpret(program, environment=environment, piped=True)
    told, _ = ended.communicate()
    assert ended.returncode == status, told
    assert not (made.path / WEIGHTS_FILE).exists()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        pretrain_run(made.config, made.path, {"name": "none"}, Device("cpu"))
    finally:
        torch.set_num_threads(threads)
    pd.testing.assert_frame_equal(curve(tmp_path / "killed"), curve(trained))
    mine, whole = (read(folder(out) / WEIGHTS_FILE).model for out in (tmp_path / "killed", trained))
    assert all(torch.equal(mine[name], whole[name]) for name in whole)


def test_an_unreadable_checkpoint_is_left_for_a_new_start(tmp_path, trained):
    made = prepared(tmp_path / "cut")
    (made.path / "checkpoints").mkdir()
    (made.path / "checkpoints" / "last.ckpt").write_bytes(b"half of it")
    with pytest.warns(UserWarning, match="unreadable: training it anew"):
        pretrain_run(made.config, made.path, {"name": "none"}, Device("cpu"))
    assert made.done
    assert curve(tmp_path / "cut").step.tolist() == curve(trained).step.tolist()


def test_pictures_are_mirrored_offline(tmp_path):
    pytest.importorskip("wandb")
    line = [part for part in COMMAND if part != "tracker=none"]
    assert cli.main([*line, "tracker=wandb", "out=mirrored"]) == 0
    media = list((folder("mirrored") / "wandb").glob("offline-run-*/files/media/images/pictures/*.png"))
    assert len(media) == 3


def test_a_trained_policy_films(tmp_path, capsys):
    trained = ["train", f"task={TASK}", "steps=64", "seeds=2", "agent.copies=2", "agent.rollout=16", "tracker=none"]
    trained += ["agent.minibatches=1", "agent.epochs=1", "evaluation.copies=2", "out=agents"]
    assert cli.main(trained) == 0
    (run,) = Study("agents").runs()
    filmed = [prepared(tmp_path / "films", f"policy={place}") for place in ("agents", run.path)]
    assert filmed[0].path == filmed[1].path, "a run is the same policy however it is named"
    (videos,) = (tmp_path / "films" / "videos").iterdir()
    at_random = prepared(tmp_path / "others").config["videos"]["folder"]
    assert at_random != videos.name == filmed[0].config["videos"]["folder"]
    capsys.readouterr()
    assert cli.main([*COMMAND[:2], "tasks=[toy/easy-sight-easy-reward]", *COMMAND[3:], "policy=agents"]) == 2
    assert "has no run of toy/easy-sight-easy-reward on view=pixels" in capsys.readouterr().err
    assert cli.main([*COMMAND, "policy=nowhere"]) == 2
    assert "neither a run's folder nor a study's" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("frontend=identity", "frontend=identity cannot be pretrained"),
        ("frontend.weights=x.pt", "makes a file of weights and takes none"),
        ("pretraining.loss.sim=1", "pretraining.loss.sim is not a key"),
        ("pretraining.sizes.widht=3", "pretraining.sizes.widht is not a key"),
        ("pretraining.loss.mse=0", "give one of them a weight"),
        ("frontend.widht=3", "did you mean 'width'"),
        ("pretraining.videos.gap=4", "too much for pretraining.videos.length=4: 2 frames that far apart"),
        ("pretraining.encoder=slots", "pretraining.encoder=slots"),
        ("pretraining.learning_rate=0", "must be a number above 0"),
        ("view=state", "view: 'state' is not in the benchmark 'toy'"),
        ("tasks=[toy/none]", "tasks: 'toy/none' is not in the benchmark"),
        ("pretraining.decoder=transformer", "pretraining.decoder=transformer"),
        ("budget=huge", "budget=huge is unknown"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(change, told, capsys, tmp_path):
    assert cli.main([*COMMAND, change, "out=never"]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("frontend.maps=7", "frontend.maps=7 must be even"),
        ("frontend.stem=1", "frontend.stem=1 is for the paper's networks"),
        ("pretraining.sizes.stem=1", "frontend.stem=1 is for the paper's networks"),
        ("pretraining.decoder=fpn", "pretraining.decoder=fpn is for the paper's networks"),
        ("pretraining.loss.ssim=0.85", "pretraining.loss.ssim=0.85 is for the paper's networks"),
        ("pretraining.videos.gap=2", "too much for pretraining.videos.length=4: 3 frames that far apart"),
        ("frontend.encoder_kind=slots", "one of recurrent, groups"),
    ],
)
def test_mistakes_with_groups_are_told_before_anything_is_written(change, told, capsys, tmp_path):
    assert cli.main([*COMMAND, *GROUPED, change, "out=never"]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("budget", ["smoke", "cpu", "paper"])
def test_groups_are_a_choice_under_any_budget(budget):
    groups, recurrent = (
        pretraining_from(compose("pretrain", [*COMMAND[1:3], f"budget={budget}", f"pretraining.encoder={encoder}"]))
        for encoder in ("groups", "recurrent")
    )
    assert groups["frontend"]["encoder_kind"] == "groups"
    assert groups["videos"]["frames"] == 3
    assert "encoder_kind" not in recurrent["frontend"]
    assert "frames" not in recurrent["videos"]


def test_what_ran_before_there_were_groups_keeps_its_run_id():
    """Ids as they were before the encoder could be chosen."""
    for budget, wanted in (("paper", "1d902e3bf022"), ("smoke", "3093c4fd6b86")):
        assert run_id(pretraining_from(compose("pretrain", [*COMMAND[1:3], f"budget={budget}"]))) == wanted
    line = [f"task={TASK}", "view=pixels", "frontend=flow", "frontend.weights=untrained"]
    for kind in ([], ["frontend.encoder_kind=recurrent"], ["frontend.encoder_kind=null"]):
        assert run_id(train_config_from(compose("train", [*line, *kind]))) == "0c204ea45f79"
    assert run_id(train_config_from(compose("train", [*line, "frontend.encoder_kind=groups"]))) != "0c204ea45f79"


def test_where_nothing_moves_it_is_said(grouped, tmp_path, capsys):
    shutil.copytree(grouped, tmp_path / "still")
    path = folder(tmp_path / "still") / "curve.csv"
    pd.read_csv(path).assign(speed=0.0).to_csv(path, index=False)
    told = f"Nothing is seen to move by itself in the held-out videos of {TASK}"
    for out, said in ((grouped, False), (tmp_path / "still", True)):
        (made,) = Study(out).runs()
        publish(made, Console(width=200))
        assert (told in capsys.readouterr().out) == said


def test_the_papers_settings():
    cfg = compose("pretrain", ["budget=paper"])
    config = pretraining_from(cfg)
    games = ["chaser", "leaper", "dodgeball", "climber", "bossfight", "starpilot", "bigfish"]
    assert config["videos"]["tasks"] == [f"procgen/{game}" for game in games]
    assert len(games) * config["videos"]["count"] == 14_000
    assert (config["batch"], config["steps"], config["learning_rate"]) == (4, 50_000, 1e-4)
    assert config["frontend"]["width"] == 64
    assert config["loss"] == {"mse": 1.0, "l1": 0.0, "ssim": 0.0, "smoothness": 0.0, "occlusion": False}
    other = pretraining_from(compose("pretrain", ["budget=paper", "frontend.width=32"]))
    assert other["frontend"]["width"] == 32
    assert run_id(other) != run_id(config)


def test_the_other_decoder_is_another_run_and_an_agents_front_end_is_as_with_the_first(tmp_path):
    plain, other = (pretraining_from(compose("pretrain", [*COMMAND[1:4], *more])) for more in ([], [FPN]))
    assert other["frontend"] == plain["frontend"] | {"decoder_kind": "fpn"}
    assert run_id(plain) != run_id(other)
    assert cli.main([*COMMAND, FPN, "out=study", "pretraining.iterations=2", "pretraining.every=2"]) == 0
    file = folder(tmp_path / "study") / WEIGHTS_FILE
    assert read(file).config.decoder_kind == "fpn"
    front_end = frontends.make("flow", weights=str(file))
    assert front_end(torch.zeros(2, 20, 20, 3, dtype=torch.uint8)).shape == (2, 19, 20, 20)


def test_a_study_of_videos_is_no_diagnosis(trained, capsys):
    assert cli.main(["report", str(trained)]) == 0
    assert str(folder(trained) / WEIGHTS_FILE) in capsys.readouterr().out.replace("\n", "")
    page = (folder(trained) / "report.html").read_text()
    assert "What the front-end sees in toy" in page
    assert TASK in page
    assert not (trained / "diagnosis").exists()


def test_maps_are_measured_while_they_are_learned(tmp_path, monkeypatch):
    from lcd.pipelines.jobs import pretraining

    def table(front_end):
        maps = front_end.maps(torch.zeros(1, 20, 20, 3, dtype=torch.uint8))
        assert not front_end.training
        return pd.DataFrame({"game": ["a"], "mean": [float(maps.mean())]})

    monkeypatch.setattr(pretraining, "objectness_tables", lambda run_config: {"objectness": table})
    made = prepared(tmp_path / "measured")
    pretrain_run(made.config, made.path, {"name": "none"}, Device("cpu"))
    found = pd.read_csv(made.path / "objectness.csv")
    assert found.step.tolist() == [0, 3, 6]
    assert np.isfinite(found["mean"]).all()
