"""The commands on Procgen: view, measure, and a short training with shaping."""

import os
from importlib.util import find_spec

import numpy as np
import pytest

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.benchmarks import get_benchmark
from lcd.pipelines.jobs.measure import random_returns

pytestmark = pytest.mark.skipif(
    find_spec("procgen") is None and not os.environ.get("CI"), reason="Procgen is not installed: see the README"
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_view_draws_levels_and_moves(tmp_path, capsys):
    from PIL import Image

    assert cli.main(["view", "procgen/heist", "levels=2", "frames=3", "out=deep/heist.png"]) == 0
    assert capsys.readouterr().out.split() == ["deep/heist.png", "deep/heist.apng"]
    sheet, moving = (Image.open(tmp_path / "deep" / f"heist.{kind}") for kind in ("png", "apng"))
    assert sheet.height > 1.5 * moving.height
    assert moving.n_frames >= 2
    assert cli.main(["view", "procgen/heist", "levels=1", "frames=1", "view=pixels", "out=one.png"]) == 0
    assert Image.open(tmp_path / "one.png").width < sheet.width / 2


def test_view_refuses_what_is_not_there(capsys):
    assert cli.main(["view", "procgen/heits"]) == 2
    assert "did you mean 'procgen/heist'?" in capsys.readouterr().err


def test_measure_tells_a_random_agents_return(capsys):
    assert cli.main(["measure", "procgen-easy", "tasks=[procgen/coinrun]", "episodes=16", "copies=8"]) == 0
    told = capsys.readouterr().out
    assert "procgen/coinrun" in told
    assert "stated R_min" in told


def test_measured_returns_are_those_of_equally_many_episodes_a_copy():
    cfg = compose("measure", ["toy", "episodes=600", "copies=100"])
    toy, task = get_benchmark("toy"), "toy/easy-sight-easy-reward"
    returns = random_returns(toy, task, cfg)
    assert len(returns) == 600
    exact = toy.r_min[task](0)
    assert abs(returns.mean() - exact) < 4 * returns.std() / np.sqrt(600)


def test_shaping_is_refused_where_there_is_none(capsys):
    assert cli.main(["train", "task=toy/easy-sight-easy-reward", "shaping=subgoals"]) == 2
    assert "shaping: 'subgoals' is not in the benchmark 'toy'" in capsys.readouterr().err
    assert cli.main(["diagnose", "study.shaping=subgoals"]) == 2


def test_a_shaped_run_is_evaluated_by_the_original_reward(tmp_path):
    import pandas as pd

    words = ["task=procgen/leaper", "benchmark=procgen-easy", "view=semantic", "shaping=subgoals", "reward_p=0.5"]
    agent = ["agent.copies=4", "agent.rollout=16", "agent.epochs=1", "agent.minibatches=1", "tracker=none", "seeds=1"]
    sizes = ["steps=64", "evaluation.every=64", "evaluation.copies=2", "evaluation.episodes=1", "out=study"]
    assert cli.main(["train", *words, *agent, *sizes]) == 0
    (curve,) = tmp_path.glob("study/runs/*/curve.csv")
    rows = pd.read_csv(curve)
    assert set(rows.shaping) == {"subgoals"}
    assert (rows.r_min.iloc[0], rows.r_max.iloc[0]) == (3, 10)
    # Without shaping leaper pays 0 or 10 an episode.
    held_out = rows[rows.split == "eval"].return_mean * 2
    assert np.allclose(held_out % 10, 0)
