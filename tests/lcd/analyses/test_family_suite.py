"""Ranks over every choice of one point of each of several tasks."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from family_curves import NAMES, family_curves, scores, told

from lcd.families import standings


def test_too_many_choices_cost_no_family_its_tables(monkeypatch):
    monkeypatch.setattr(standings, "MOST_CHOICES", 10)
    frames = [family_curves(task, NAMES, scores(0.4, 0.6)) for task in ("cart", "pole")]
    found = told(pd.concat(frames))
    assert {"families", "families-2"} <= found.keys()
    assert "families-suite" not in found
    assert any("No ranks over choices: There are " in sentence for sentence in found["families"].says)


def test_ranks_over_choices_of_one_point_a_task():
    frames = [family_curves(task, NAMES, scores(0.4, 0.6)) for task in ("cart", "swing")]
    found = told(pd.concat(frames))
    shares = found["families-suite"].table.set_index("agent")
    assert "144 choices" in found["families-suite"].note
    assert shares.loc["b", "rank 1 %"] > 90
    assert shares.loc["a", "rank 1 %"] + shares.loc["b", "rank 1 %"] == pytest.approx(100)
    assert {"families", "families-2"} <= found.keys()


SUITE = ("families/pendulum", "families/half-cheetah", "families/mountain-car")
METHODS = ("ppo", "trpo", "sac[tau=0.01]", "td3")


def brute_force(tasks: list[np.ndarray]) -> np.ndarray:
    """(methods, ranks) in percent, choice by choice."""
    counts = np.zeros((len(tasks[0]), len(tasks[0])))
    for places in product(*(range(each.shape[1]) for each in tasks)):
        total = sum(each[:, place] for each, place in zip(tasks, places, strict=True))
        for rank, method in enumerate(np.argsort(-total)):
            counts[method, rank] += 1
    return 100 * counts / counts.sum(1, keepdims=True)


def of_three(rng: np.random.Generator, ranges: bool) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Curves of three families, and the scores that they end with; the range of cheetahs is not known unless asked."""
    frames, ends = [], {}
    for task in SUITE:
        ends[task] = rng.uniform(size=(4, 5))
        finals = {m: np.tile(e[:, None], 2) for m, e in zip(METHODS, ends[task], strict=True)}
        frame = family_curves(task, [f"size={k}" for k in range(5)], finals, {m: np.full(2, 0.5) for m in METHODS})
        if task == SUITE[1] and not ranges:
            frame = frame.assign(r_min=np.nan, r_max=np.nan)
        frames.append(frame)
    return pd.concat(frames), ends


@pytest.mark.parametrize("ranges", [True, False])
def test_the_papers_suite_stands_beside_the_papers_table(ranges):
    frame, ends = of_three(np.random.default_rng(5), ranges)
    found = told(frame)["families-suite"]
    table = found.table.set_index("agent")
    if not ranges:  # returns of an unknown range go from 0 to 1 over what was found
        cheetahs = ends[SUITE[1]]
        ends[SUITE[1]] = (cheetahs - cheetahs.min()) / np.ptp(cheetahs)
        assert "Nobody knows the range of families/half-cheetah" in found.note
    expected = brute_force(list(ends.values()))
    for method, shares in zip(("ppo", "trpo", "sac", "td3"), expected, strict=True):
        assert table.loc[method, [f"rank {rank} %" for rank in range(1, 5)]].tolist() == pytest.approx(shares)
    assert table["paper's rank 1 %"].to_dict() == {"ppo": 18.75, "sac": 42.56, "td3": 12.46, "trpo": 26.23}
    papers = table[[f"paper's rank {rank} %" for rank in range(1, 5)]].to_numpy()
    assert papers.sum(0) == pytest.approx([100] * 4, abs=0.02)  # but for rounding somebody has each rank
    assert "125 choices" in found.note


def test_another_suite_has_no_column_of_the_paper():
    frame, _ = of_three(np.random.default_rng(5), True)
    two = frame[frame["task"] != SUITE[2]]
    assert not any("paper" in str(name) for name in told(two)["families-suite"].table)
    fewer = frame[frame["agent"] != "td3"]
    assert not any("paper" in str(name) for name in told(fewer)["families-suite"].table)


def test_two_settings_of_one_method_are_two_methods():
    agents = dict(zip(("ppo[gamma=0.9]", "ppo[gamma=0.99]"), scores(0.4, 0.6).values(), strict=True))
    frame = pd.concat([family_curves(task, NAMES, agents) for task in ("cart", "swing")])
    assert set(told(frame)["families-suite"].table["agent"]) == set(agents)
