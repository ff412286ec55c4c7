"""Agents of Stable-Baselines3 train under our evaluation and write our curves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lcd.agents import agents, validate
from lcd.agents.sb3 import adapter
from lcd.agents.stepping import EpisodeLog
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.pipelines.study.configs import Device

pytest.importorskip("stable_baselines3")
SMALL = {"learning_starts": 50, "buffer_size": 500, "policy_kwargs": {"net_arch": [16]}}


def train(folder, agent, task, params, seeds=(0,), view="state", steps=200, knobs=None):
    from dataclasses import asdict

    from lcd.pipelines.jobs.train import train_run

    folder.mkdir(exist_ok=True)
    run_config = {
        "kind": "train", "benchmark": "hardness",
        "task": task, "knobs": knobs or {}, "view": view, "frontend": {"name": "identity"},
        "reward_p": 1.0, "shaping": "none", "agent": {"name": agent} | asdict(validate(agent, params)),
        "seeds": list(seeds), "steps": steps, "evaluation": {"every": 100, "copies": 2, "episodes": 1},
    }  # fmt: skip
    quiet = {"name": "none"}
    train_run(run_config, folder, quiet, Device("cpu"))
    return pd.read_csv(folder / "curve.csv")


@pytest.mark.parametrize("name", ["dqn", "qrdqn", "a2c", "ppo", "trpo"])
def test_discrete(tmp_path, name):
    if name in ("qrdqn", "trpo"):
        pytest.importorskip("sb3_contrib")
    few = SMALL | {"policy_kwargs": {"net_arch": [16], "n_quantiles": 10}}
    params = {"dqn": SMALL, "qrdqn": few, "a2c": {}, "ppo": {"n_steps": 100, "batch_size": 50}}
    curve = train(
        tmp_path,
        f"sb3/{name}",
        "hardness/discrete:delay=1",
        {"params": params.get(name, {"n_steps": 100, "batch_size": 50})},
    )
    held_out = curve[curve["split"] == "eval"]
    assert held_out["step"].tolist() == [0, 100, 200]
    assert (held_out["agent"] == f"sb3/{name}").all()
    assert (tmp_path / "checkpoints" / "seed-0.ckpt").is_file()


@pytest.mark.parametrize("name", ["sac", "td3", "ddpg"])
def test_continuous(tmp_path, name, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    curve = train(tmp_path, f"sb3/{name}", "hardness/continuous:target_radius=1", {"params": SMALL}, steps=100)
    assert curve[curve["split"] == "eval"]["step"].tolist() == [0, 100]
    # The library makes a folder for its logs wherever temporary files go.
    assert [*(tmp_path / "tmp").glob("SB3-*")] == []


def test_small_images_and_several_discrete_actions(tmp_path):
    task = "hardness/discrete:irrelevant_features=true"
    curve = train(tmp_path, "sb3/dqn", task, {"params": SMALL}, view="semantic", steps=100, knobs={"image_size": 20})
    assert len(curve[curve["split"] == "eval"]) == 2


def test_seeds_are_trained_alone_and_finished_ones_are_kept(tmp_path):
    arguments = ("sb3/dqn", "hardness/discrete", {"params": SMALL})
    both = train(tmp_path / "a", *arguments, seeds=(0, 1)).drop(columns="wall_s")
    alone = train(tmp_path / "b", *arguments, seeds=(1,)).drop(columns="wall_s")
    assert both[both["seed"] == 1].reset_index(drop=True).equals(alone)
    file = tmp_path / "a" / "curve.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if ",1,eval,200," not in line))
    before = (tmp_path / "a" / "checkpoints" / "seed-0.ckpt").stat().st_mtime_ns
    again = train(tmp_path / "a", *arguments, seeds=(0, 1)).drop(columns="wall_s")
    assert again.equals(both)
    assert (tmp_path / "a" / "checkpoints" / "seed-0.ckpt").stat().st_mtime_ns == before
    # Killed between a seed's last rows and its checkpoint.
    (tmp_path / "a" / "checkpoints" / "seed-1.ckpt").unlink()
    assert train(tmp_path / "a", *arguments, seeds=(0, 1)).drop(columns="wall_s").equals(both)
    assert (tmp_path / "a" / "checkpoints" / "seed-1.ckpt").is_file()


def test_the_adapter_tells_how_episodes_end():
    env = HardnessDiscreteVectorEnv(4, horizon=5, terminal_state_density=0.0)
    vec = adapter(env, EpisodeLog(1, 4), [0])
    vec.reset()
    for _ in range(5):
        _, rewards, dones, infos = vec.step(np.zeros(4, int))
    assert dones.all()
    assert rewards.dtype == np.float32
    assert all(i["TimeLimit.truncated"] and i["terminal_observation"].shape == (8,) for i in infos)


def test_mistakes(tmp_path):
    with pytest.raises(InputError, match="learning_rat"):
        train(tmp_path, "sb3/dqn", "hardness/discrete", {"params": {"learning_rat": 1}})
    with pytest.raises(InputError, match="DQN"):
        train(tmp_path, "sb3/dqn", "hardness/continuous", {})
    assert "sb3/trpo" in agents.names()
