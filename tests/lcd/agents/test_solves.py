"""PPO solves what CleanRL and Stable-Baselines3 solve, within their published budgets, by `lcd train`'s pipeline."""

from pathlib import Path

import pandas as pd
import pytest

from lcd.agents import validate
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.store import read_status

# RL Baselines3 Zoo publishes 500 ± 0 after 100,000 steps, CleanRL 492 ± 13 after 500,000. Gymnasium calls CartPole-v1
# solved at 475.
CARTPOLE = {
    "copies": 8,
    "rollout": 128,
    "epochs": 8,
    "minibatches": 8,
    "learning_rate": 5e-4,
    "value_clip": 0.0,
    "entropy": 0.0,
}


def trained(tmp_path, task: str, steps: int, agent: dict, seeds: list[int], benchmark: str = "hardness", **more):
    """The last held-out returns of a run's seeds."""
    run_config = {
        "kind": "train",
        "benchmark": benchmark,
        "task": task,
        "knobs": {},
        "view": "state",
        "reward_p": 1.0,
        "shaping": "none",
        "frontend": {"name": "identity"},
        "agent": {"name": "ppo", **vars(validate("ppo", agent))},
        "seeds": seeds,
        "steps": steps,
        "evaluation": {"every": steps, "copies": 16, "episodes": 1},
        **more,
    }
    folder = tmp_path / "runs" / "only"
    folder.mkdir(parents=True)
    train_run(run_config, folder, {"name": "none"}, Device("cpu"))
    assert read_status(folder)["step"] >= steps
    curve = pd.read_csv(folder / "curve.csv")
    return curve[(curve.split == "eval") & (curve.step >= steps)].return_mean


def test_ppo_solves_cartpole_in_less_than_half_of_the_published_steps(tmp_path):
    returns = trained(tmp_path, "hardness/gym/CartPole-v1", 40_000, CARTPOLE, seeds=[0, 1, 2])
    assert len(returns) == 3
    assert returns.min() >= 475


def test_ppo_solves_minigrid_empty(tmp_path, monkeypatch):
    pytest.importorskip("minigrid", reason="MiniGrid is an extra")
    # The zoo's budget for MiniGrid-Empty-Random-5x5 is 100,000 steps.
    agent = {"copies": 8, "rollout": 128, "epochs": 4, "minibatches": 8, "learning_rate": 1e-3, "gae_lambda": 0.95}
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    returns = trained(tmp_path, "MiniGrid-Empty-5x5-v0", 20_000, agent, [0, 1], benchmark="worlds:MiniGrid")
    # 0.96 is the return of the shortest path.
    assert returns.min() > 0.9
