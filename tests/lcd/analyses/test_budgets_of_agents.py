"""Agents that were trained for other numbers of steps, wherever they meet (the paper: PPO 200M, PPG 100M)."""

import numpy as np
import pandas as pd
import pytest

from lcd.analyses.adaptive import adaptive
from lcd.analyses.raw_returns import raw_returns
from lcd.analyses.synergy import synergy
from lcd.curves.spans import interval_of_agents
from lcd.envs.errors import InputError
from lcd.scores.contrasts import HEADLINE, MEMORY_GAIN
from lcd.scores.diagnosis import diagnose_curves

GRID = (0, 250, 500, 1000)
GAMES = {"a": (0.20, 0.50, 0.80, 0.78, 0.77, 0.75), "b": (0.70, 0.72, 0.74, 0.50, 0.30, 0.10)}


def up_to(curves, last):
    """Curves of make_study, which are evaluated at `last`, as if they had been trained no longer."""
    return curves[curves["step"] <= last]


def test_agents_of_other_budgets_are_compared_over_the_steps_that_both_have(make_study):
    longer = make_study({"a": GAMES["a"], "b": GAMES["b"]}, 3, 0.01, agent="ppo", steps=GRID)
    shorter = up_to(make_study({"a": GAMES["b"], "b": GAMES["a"]}, 3, 0.01, agent="ppg", steps=GRID), 500)
    both = synergy(diagnose_curves(pd.concat([longer, shorter])).curves)
    alike = synergy(diagnose_curves(pd.concat([up_to(longer, 500), shorter])).curves)
    pd.testing.assert_frame_equal(both.table, alike.table)
    assert "the first 500." in both.note
    assert "budgets" not in alike.note


def test_adapting_over_agents_of_other_budgets_counts_the_steps_that_all_have(make_study):
    def of(agent, a, b, last):
        tasks = {"a": (a, *[None] * 5), "b": (b, *[None] * 5)}
        curves = make_study(tasks, 4, 0.005, benchmark="w", agent=agent, frontend="identity", steps=GRID)
        return up_to(curves, last)

    def found(last):
        curves = diagnose_curves(pd.concat([of("ppo", 0.2, 0.6, last), of("ppg", 0.5, 0.5, 500)])).curves
        return adaptive(curves, {task: {"agent": agent, "frontend": "identity"} for task, agent in chosen.items()})

    chosen = {"a": "ppg", "b": "ppo"}
    pd.testing.assert_frame_equal(found(1000).table, found(500).table)
    assert "the first 500." in found(1000).note


def test_contrasts_over_agents_and_returns_without_a_range_count_the_steps_that_all_have(make_study):
    asked = (*HEADLINE, MEMORY_GAIN)
    longer = make_study({"a": GAMES["a"]}, 3, 0.01, agent="ppo", steps=GRID)
    shorter = up_to(make_study({"a": GAMES["b"]}, 3, 0.01, agent="recurrent_ppo", steps=GRID), 500)
    gained, returns = [], []
    for curves in (longer, up_to(longer, 500)):
        together = pd.concat([curves, shorter])
        table = diagnose_curves(together, contrasts=asked).table.set_index("agent")
        gained.append(table.loc["ppo", ["memory_gain_raw", "memory_gain_raw_low", "memory_gain_raw_high"]])
        returns.append(next(raw_returns(diagnose_curves(together.drop(columns=["r_min", "r_max"])).curves)).table)
    assert np.isfinite(gained[0].astype(float)).all()
    pd.testing.assert_series_equal(*gained)
    columns = ["agent", "view", "mean return"]
    pd.testing.assert_frame_equal(*(table[columns] for table in returns))


def test_an_agents_own_curves_still_have_to_be_of_one_length():
    whole, half = np.array([0, 1000]), np.array([0, 500])
    assert interval_of_agents({"ppo": [whole, whole], "ppg": [half]}, "task 'a'") == (0, 500)
    with pytest.raises(InputError, match="task 'a' by 'ppo' have 50% of their steps in common"):
        interval_of_agents({"ppo": [whole, half], "ppg": [half]}, "task 'a'")
    with pytest.raises(InputError, match="by 'ppg' end at step 500, before those by 'late' begin"):
        interval_of_agents({"ppg": [half], "late": [whole + 600]}, "task 'a'")
