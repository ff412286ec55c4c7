"""Agents of Stable-Baselines3 train under our evaluation and write our curves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from lcd import cli
from lcd.agents import agents, validate
from lcd.agents.ppo import PPO
from lcd.agents.sb3 import adapter, load_algorithm
from lcd.agents.stepping import EpisodeLog
from lcd.config.budgets import read
from lcd.envs.errors import InputError
from lcd.envs.hardness.continuous import HardnessContinuousVectorEnv
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


def noise_on_actions(name, **params):
    """What was added to the policy's actions in training without updates, after the random ones."""
    known = read("agent", name)["params"] | {"learning_starts": 1, "gradient_steps": 0} | params
    env = HardnessContinuousVectorEnv(1, action_space_max=2.0)
    taken, step = [], env.step
    env.step = lambda actions: taken.append(actions) or step(actions)
    agent = agents.resolve(name)(validate(name, {"params": known}), env, [0])
    agent.learn(2000, 2000, lambda step: None)
    agent.model.replay_buffer.pos = len(taken)
    seen = agent.model.replay_buffer.observations[: len(taken), 0]
    return ((np.concatenate(taken) - agent.model.predict(seen, deterministic=True)[0]) / 2)[1:]


def test_deterministic_agents_explore_as_the_papers():
    assert noise_on_actions("sb3/td3").std() == pytest.approx(0.1, rel=0.05)
    assert noise_on_actions("sb3/td3", action_noise=0.05).std() == pytest.approx(0.05, rel=0.05)
    assert np.abs(noise_on_actions("sb3/td3", action_noise=None)).max() < 1e-6
    wandering = noise_on_actions("sb3/ddpg")
    # It is at zero when an episode begins, of which it has hundreds of steps.
    assert wandering.std() == pytest.approx(0.04 / np.sqrt(1 - 0.85**2), rel=0.15)
    assert np.corrcoef(wandering[1:, 0], wandering[:-1, 0])[0, 1] == pytest.approx(0.85, abs=0.05)


@pytest.mark.parametrize("noise", [-0.1, "loud", True, float("nan"), {"sigma": 1}, {"sigma": 0.1, "theta": 2}])
def test_noise_that_is_none_is_refused_in_a_sentence(noise):
    with pytest.raises(InputError, match=r"agent\.params\.action_noise=.* should be a number of at least 0, or"):
        validate("sb3/ddpg", {"params": {"action_noise": noise}})


def test_a_list_for_noise_is_refused_in_that_sentence_whatever_the_settings_hold(capsys):
    """DDPG's is a set of keys, with which a list cannot be merged."""
    line = ["train", "task=hardness/continuous", "view=state", "agent=sb3/ddpg", "agent.params.action_noise=[0.1]"]
    assert cli.main(line) == 2
    told = capsys.readouterr().err
    assert "agent.params.action_noise=[0.1] should be a number of at least 0, or {sigma: a number of" in told


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


def test_with_its_settings_our_ppo_learns_from_a_rollout_what_the_librarys_does():
    from stable_baselines3.common.logger import Logger

    # One minibatch an epoch, so that nothing depends on how either shuffles.
    steps, epochs = 64, 4
    known = {key: value for key, value in read("agent", "ppo_sb3").items() if key != "name"}
    ours = PPO(validate("ppo", known | {"rollout": steps, "minibatches": 1}), (4,), 2, [0, 7], nn.Identity())
    theirs = load_algorithm("stable_baselines3:PPO")(
        "MlpPolicy", "CartPole-v1", n_steps=steps, batch_size=steps, n_epochs=epochs, device="cpu"
    )
    theirs.set_logger(Logger(None, []))
    named = {"policy_net": "actor.encoder.layers", "value_net": "critic.encoder.layers"}
    renamed = {f"mlp_extractor.{here}": there for here, there in named.items()}
    renamed |= {"action_net": "actor.policy", "value_net": "critic.value"}
    pairs = {}
    for name, weight in theirs.policy.named_parameters():
        part = next(part for part in renamed if name.startswith(part))
        pairs[renamed[part] + name.removeprefix(part)] = weight
    assert sorted(pairs) == sorted(ours.networks.names)
    with torch.no_grad():
        for name, weight in zip(ours.networks.names, ours.networks.weights, strict=True):
            pairs[name].copy_(weight[1])

    rng = np.random.default_rng(2)
    shapes = {"inputs": (4,), "log_probs": (), "advantages": (), "values": (), "targets": ()}
    batch = {name: rng.normal(size=(2, steps, *shape)).astype(np.float32) for name, shape in shapes.items()}
    batch["log_probs"] = np.log(rng.uniform(0.3, 0.7, (2, steps))).astype(np.float32)
    batch |= {"actions": rng.integers(2, size=(2, steps)), "weights": np.ones((2, steps), np.float32)}
    kept = theirs.rollout_buffer
    columns = {"observations": "inputs", "values": "values", "log_probs": "log_probs", "advantages": "advantages"}
    for column, name in {**columns, "returns": "targets"}.items():
        setattr(kept, column, batch[name][1][:, None].copy())
    kept.actions, kept.full, kept.pos = batch["actions"][1].reshape(steps, 1, 1).astype(np.float32), True, steps
    theirs.train()

    optimizer = ours.configure_optimizers()
    for _ in range(epochs):
        optimizer.zero_grad()
        tensors = {name: torch.from_numpy(values) for name, values in batch.items()}
        ours.loss(ours.prepare(tensors))["total"].sum().backward()
        ours.networks.clip_gradients(ours.config.max_grad_norm)
        optimizer.step()
    for name, weight in zip(ours.networks.names, ours.networks.weights, strict=True):
        assert torch.allclose(weight[1], pairs[name], atol=1e-5), name
