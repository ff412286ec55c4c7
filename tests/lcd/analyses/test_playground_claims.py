"""The claims of MDP Playground's paper: which curves they hold on, and which not."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lcd.analyses.grids import Grid
from lcd.analyses.playground_claims import claims_about_dials, run_claims
from lcd.curves.table import check_curves


def curves(levels, spreads=None, seeds=20):
    """Flat curves around a level for each point of the grid, (split, level) where splits differ."""
    rng, rows = np.random.default_rng(0), []
    for number, (task, level) in enumerate(levels.items()):
        of_splits = level if isinstance(level, dict) else dict.fromkeys(("train", "eval", "noise_free"), level)
        for seed, off in enumerate(rng.normal(0, (spreads or [1] * len(levels))[number], seeds)):
            shared = {"agent": "a", "seed": seed, "view": "state", "frontend": "identity", "reward_p": 1.0}
            shared |= {"task": task, "shaping": "none", "length_mean": 7.0}
            for split, height in of_splits.items():
                rows += [{**shared, "split": split, "step": step, "return_mean": height + off} for step in (0, 100)]
    return check_curves(pd.DataFrame(rows))


def grid_of(points):
    tasks = {task: {"base": "hardness/discrete", "point": point} for task, point in points.items()}
    return Grid("g", list(next(iter(points.values()))), tasks, ["a"], {}, False, [])


def outcomes(points, levels, **more):
    return {row["claim"]: row["outcome"] for row in run_claims(grid_of(points), curves(levels, **more))}


DELAYS = {f"t{delay}": {"delay": delay} for delay in (0, 2, 8)}


@pytest.mark.parametrize(
    ("heights", "spreads", "drops", "varies"),
    [
        ([80, 50, 20], [1, 5, 3], "holds", "holds"),
        ([80, 20, 50], [1, 5, 3], "fails", "holds"),
        ([20, 50, 80], [1, 1, 9], "fails", "fails"),
        ([80, 50, 20], [9, 20, 3], "holds", "fails"),
    ],
)
def test_performance_drops_with_delay_and_seeds_vary(heights, spreads, drops, varies):
    found = outcomes(DELAYS, dict(zip(DELAYS, heights, strict=True)), spreads=spreads)
    assert list(found.values()) == [drops, varies]


@pytest.mark.parametrize(("sequences", "outcome"), [(20, "holds"), (60, "fails")])
def test_what_costs_more_is_asked_of_two_dials_turned_alone(sequences, outcome):
    points = {f"t{d}{n}": {"delay": d, "sequence_length": n} for d in (0, 8) for n in (1, 4)}
    found = outcomes(points, {"t01": 90, "t81": 50, "t04": sequences, "t84": 5})
    assert found["Sequence length costs more than delay."] == outcome


def test_noise_of_transitions_hurts_training_and_noise_of_rewards_what_is_learned():
    points = {f"t{t}{r}": {"transition_noise": t, "reward_noise": r} for t in (0, 0.02, 0.25) for r in (0, 1, 25)}
    levels = {task: {"train": 10, "noise_free": 10} for task in points}
    levels |= {"t00": {"train": 90, "noise_free": 90}, "t0.020": {"train": 60, "noise_free": 85}}
    levels |= {"t0.250": {"train": 20, "noise_free": 70}, "t01": {"train": 80, "noise_free": 80}}
    levels |= {"t025": {"train": 15, "noise_free": 15}}
    found = outcomes(points, levels)
    assert len(found) == 8
    assert set(found.values()) == {"holds"}
    levels["t0.020"]["train"], levels["t025"]["noise_free"] = 85, 75
    fails = {claim for claim, outcome in outcomes(points, levels).items() if outcome == "fails"}
    assert fails == {
        "Transition noise of 0.02 is a clear handicap.",
        "Policies trained under reward noise do not do well without it.",
        "Without noise, transition noise in training has cost less than reward noise.",
        "Training suffers more from transition noise of 0.02 than from reward noise of 1.",
    }


def test_what_differs_comes_first_and_too_few_seeds_are_not_tested():
    points = {f"t{density}": {"reward_density": density} for density in (0.25, 0.75)}
    few = outcomes(points, {"t0.25": 80, "t0.75": 80}, seeds=4)
    assert list(few.values()) == ["not tested"]
    evidence = SimpleNamespace(grid=grid_of(points), read=curves({"t0.25": 80, "t0.75": 60}))
    made = claims_about_dials(evidence)
    assert made.table["outcome"].tolist() == ["fails"]
    assert made.says == ["0 of 1 claims that could be tested hold."]
    assert claims_about_dials(SimpleNamespace(grid=None)) is None
