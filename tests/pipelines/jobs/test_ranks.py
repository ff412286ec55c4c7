"""Several processes against one process that holds all of their environments and minibatches."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import ranked
import torch
from fitting import fit
from gymnasium.vector import VectorEnv
from small_runs import toy_run

from lcd.agents.ranks import ALONE, Ranks
from lcd.agents.rollout import Rollouts
from lcd.config.compose import compose
from lcd.curves.table import read_curves
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.envs.population import make_population
from lcd.pipelines.jobs.build import build_agent
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.devices import check_share
from lcd.pipelines.study.store import read_status

TWO = Device("cpu", 2)
NONE = {"name": "none"}


@pytest.fixture(autouse=True)
def importable(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    monkeypatch.setenv(ranked.FOLDER, str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def run_config(**changes):
    sizes = {"copies": 4, "rollout": 20, "epochs": 2, "minibatches": 2}
    agent = {"name": "ranked:WatchingPPO", **sizes, **changes.pop("agent", {})}
    evaluation = {"every": 160, "copies": 2, "episodes": 1}
    return toy_run(agent, steps=400, evaluation=evaluation) | changes


class Side(VectorEnv):
    """Populations of the same seeds side by side: of each seed the copies of the first, then those of the second."""

    def __init__(self, envs, seeds):
        self.envs, self.seeds = envs, seeds
        self.metadata = envs[0].metadata
        self.single_observation_space = envs[0].single_observation_space
        self.single_action_space = envs[0].single_action_space
        self.num_envs = sum(env.num_envs for env in envs)

    def reset(self, *, seed=None, options=None):
        starts = [None, *(Ranks(rank, len(self.envs)).seeds(self.seeds) for rank in range(1, len(self.envs)))]
        results = [env.reset(seed=start) for env, start in zip(self.envs, starts, strict=True)]
        return self._joined([observations for observations, _ in results]), {}

    def step(self, actions):
        shares = np.split(np.asarray(actions).reshape(len(self.seeds), -1), len(self.envs), axis=1)
        results = [env.step(share.reshape(-1)) for env, share in zip(self.envs, shares, strict=True)]
        *arrays, infos = zip(*results, strict=True)
        known = {key: self._joined([info[key] for info in infos]) for key in ("original_reward",)}
        if any("final_obs" in info for info in infos):
            known["final_obs"] = self._joined(
                [info.get("final_obs", seen) for info, seen in zip(infos, arrays[0], strict=True)]
            )
        return *(self._joined(parts) for parts in arrays), known

    def _joined(self, parts):
        by_seed = [part.reshape(len(self.seeds), -1, *part.shape[1:]) for part in parts]
        joined = np.concatenate(by_seed, axis=1)
        return joined.reshape(-1, *joined.shape[2:])


def draws_of_ranks(monkeypatch):
    """Let a process that is alone draw what two ranks draw, side by side."""
    from lcd.agents import rollout

    single = rollout.uniforms

    def side_by_side(seeds, *stream, shape):
        time, copies, *rest = shape
        each = (time, copies // 2, *rest)
        parts = [single(seeds, *stream, *Ranks(rank, 2).branch, shape=each) for rank in range(2)]
        return torch.cat(parts, dim=2)

    monkeypatch.setattr(rollout, "uniforms", side_by_side)


def one_process(config, monkeypatch):
    """The same training by one process; returns what it saw in each iteration."""
    seeds, copies = config["seeds"], config["agent"]["copies"]
    draws_of_ranks(monkeypatch)
    envs = [
        make_population(
            get_benchmark("toy"),
            config["task"],
            seeds=seeds,
            copies=copies // 2,
            view=config["view"],
            split="train",
            reward_p=config["reward_p"],
        )
        for _ in range(2)
    ]
    env = Side(envs, seeds)
    agent = build_agent(config, env)
    whole_of(agent, copies)
    length = agent.config.rollout
    rollouts = Rollouts(env, seeds, agent, length, config["steps"] // (length * copies), agent.config.gamma, True)
    fit(agent, rollouts)


def whole_of(agent, copies):
    """Let minibatches be those of two ranks, joined; samples lie by time (or rollout) and then by copy, or by copy."""
    plain = agent.shuffles
    recurrent = hasattr(agent.config, "memory")

    def joined(samples, *passes):
        half = copies // 2
        parts = []
        for rank in range(2):
            agent.ranks = Ranks(rank, 2)
            local = plain(samples // 2, *passes)
            agent.ranks = ALONE
            time, copy = (local // half, local % half) if not recurrent else (0, local)
            parts.append(time * copies * (not recurrent) + rank * half + copy)
        return torch.cat(parts, dim=2)

    agent.shuffles = joined


def seen(folder, rank):
    files = sorted(folder.glob(f"{rank}-*.pt"), key=lambda path: int(path.stem.split("-")[1]))
    return [torch.load(path) for path in files]


@pytest.mark.parametrize(
    ("seeds", "agent"),
    [
        ([3], {}),
        ([3, 8], {"normalise_advantages": "rollout"}),
        ([3, 8], {"name": "ranked:WatchingRecurrentPPO"}),
        ([3, 8], {"name": "ranked:WatchingPPG", "phase": 2, "auxiliary_epochs": 2, "adam_eps": 1e-5}),
    ],
)
def test_two_processes_are_one_that_holds_the_environments_of_both(tmp_path, monkeypatch, seeds, agent):
    config = run_config(seeds=seeds, agent=agent)
    run = tmp_path / "run"
    run.mkdir()
    train_run(config, run, NONE, TWO)
    first, second = seen(tmp_path, 0), seen(tmp_path, 1)
    one_process(config, monkeypatch)
    alone = seen(tmp_path, 0)
    assert len(alone) == len(first) == len(second) == 400 // 80
    for ours, theirs, whole in zip(first, second, alone, strict=True):
        for name in whole["losses"]:
            assert torch.equal(ours["losses"][name], theirs["losses"][name])
            torch.testing.assert_close(ours["losses"][name], whole["losses"][name], rtol=1e-4, atol=1e-5)
        rewards = torch.cat([ours["rewards"], theirs["rewards"]], dim=2)
        torch.testing.assert_close(rewards, whole["rewards"], rtol=1e-5, atol=1e-6)
        assert not torch.equal(ours["rewards"], theirs["rewards"])
        for part in ("gradients", "weights"):
            for mine, other, together in zip(ours[part], theirs[part], whole[part], strict=True):
                assert torch.equal(mine, other), "the ranks have drifted apart"
                torch.testing.assert_close(mine, together, rtol=1e-4, atol=2e-5)


def test_all_ranks_count(tmp_path):
    """400 steps of a seed on 4 copies, two a rank: of episodes of 20 steps, 20 end."""
    train_run(run_config(), tmp_path, NONE, TWO)
    curve = pd.read_csv(tmp_path / "curve.csv")
    assert curve[curve.split == "train"].groupby("seed").episodes.sum().tolist() == [20, 20]
    assert sorted(set(curve[curve.split == "eval"].step)) == [0, 160, 320, 400]
    assert read_status(tmp_path)["state"] == "done"


@pytest.mark.parametrize("end", ["die", "fail"])
def test_a_rank_that_ends_early_is_the_runs_error_and_the_run_goes_on_later(tmp_path, monkeypatch, end):
    from lcd.pipelines.jobs import record

    monkeypatch.setenv("LCD_TEST_END", end)
    monkeypatch.setattr(record, "CHECKPOINT_EVERY_S", 0.0)
    monkeypatch.setattr(record, "CHECKPOINT_SHARE", 1.0)
    config = run_config(agent={"name": "ppo"})
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    train_run(config, tmp_path / "whole", NONE, TWO)
    told = r"process 2 of 2: it died with signal 6" if end == "die" else r"process 2 of 2: ValueError: told to"
    with pytest.raises(RuntimeError, match=told):
        ranked.train_dying(config, tmp_path / "broken", NONE, TWO)
    checkpoint = torch.load(tmp_path / "broken" / "checkpoints" / "last.ckpt", weights_only=True)
    assert checkpoint["lcd_step"] == 160
    assert len(checkpoint["loops"]["fit_loop"]["state_dict"]["combined_loader"][0]["ranks"]) == 2
    with pytest.raises(InputError, match="begun by 2 processes"):
        train_run(config, tmp_path / "broken", NONE, Device("cpu"))
    train_run(config, tmp_path / "broken", NONE, TWO)
    expected, found = (
        read_curves(tmp_path / name / "curve.csv").drop(columns="wall_s") for name in ("whole", "broken")
    )
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_what_cannot_be_shared_is_one_sentence():
    agent = {"copies": 8, "rollout": 16, "minibatches": 4}
    check_share("ppo", agent, TWO)
    for name, params, device, said in [
        ("ppo", agent | {"copies": 9, "minibatches": 1}, TWO, "agent.copies=9 must be divisible by the 2 processes"),
        ("ppo", agent | {"minibatches": 128}, TWO, "gives each process 4 of agent.copies=8: agent.minibatches=128"),
        ("recurrent_ppo", agent | {"minibatches": 8}, TWO, "a divisor of copies"),
        ("tabular/sarsa", {"copies": 8}, TWO, "devices=1"),
        ("ppo", agent, Device("cpu", 2, 3), "the 6 processes of devices=2 num_nodes=3"),
        ("ppo", agent, Device("mps", 2), "device=cpu"),
    ]:
        with pytest.raises(InputError, match=re.escape(said)):
            check_share(name, params, device)
    with pytest.raises(InputError, match="devices=0"):
        compose("train", ["task=toy/easy-sight-easy-reward", "devices=0"])
