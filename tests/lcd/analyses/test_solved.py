"""Which tasks are solved exactly, and after how many steps: by hand, of made-up curves."""

import numpy as np
import pandas as pd
import pytest

from lcd import cli
from lcd.analyses import Evidence
from lcd.analyses.solved import solved
from lcd.report.figures import draw_svg
from lcd.scores.diagnosis import diagnose_curves

STEPS = (0, 1000, 2000, 3000)
HORIZONS = {"easy": (3.0, 3.0, 3.0), "long": (9.5, 9.0, 10.0), "far": (np.nan, 12.0, 30.0)}


def curves(returns, std=0.0):
    """task, agent → the returns of each seed at the steps; the best there is is 2."""
    rows = [
        {"task": task, "agent": agent, "seed": seed, "step": step, "return_mean": value}
        for (task, agent), seeds in returns.items()
        for seed, values in enumerate(seeds)
        for step, value in zip(STEPS, values, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(view="state", reward_p=1.0, return_std=std, r_min=-1.0, r_max=2.0)


RETURNS = {
    ("easy", "ppo[rollout=8]"): [[0, 1, 2, 2], [0, 2, 0, 0], [0, 0, 0, 0]],
    ("easy", "ppo[rollout=64]"): [[0, 2, 2, 2], [0, 0, 0, 2], [0, 0, 2, 1]],
    ("long", "ppo[rollout=8]"): [[0, 1, 1, 1], [0, 0, 0, 2 + 1e-9], [1, 1, 1, 1]],
    ("long", "ppo[rollout=64]"): [[0, 1, 1, 1], [0, 0, 0, 1.999], [1, 1, 1, 1]],
    ("far", "ppo[rollout=8]"): [[0, 1, 1, 1]] * 3,
    ("far", "ppo[rollout=64]"): [[0, 1, 1, 1]] * 3,
    ("easy", "dqn"): [[0, 0, 0, 0]] * 3,
}


@pytest.fixture
def found():
    return solved(Evidence(diagnose_curves(curves(RETURNS), horizons=HORIZONS)))


def test_n_is_the_median_of_the_best_setting(found):
    table = found.table.set_index(["agent", "task"])
    assert table["solved"].to_dict() == {
        ("dqn", "easy"): False, ("ppo", "easy"): True, ("ppo", "far"): False, ("ppo", "long"): True,
    }  # fmt: skip
    # Medians over seeds: 2,000 steps (2,000, 1,000, never) and 2,000 (1,000, 3,000, 2,000).
    assert table.loc[("ppo", "easy"), ["N", "seeds solved", "settings", "H"]].tolist() == [2000, "5 of 6", 2, "3.0"]
    # One seed of three has solved it: it counts as solved, and half of them did not come so far.
    assert np.isnan(table.loc[("ppo", "long"), "N"])
    assert table.loc[("ppo", "far"), "H"] == "≥ 12.0"


def test_sentences_count_what_the_bounds_decide(found):
    assert "ppo solves 2 of 3 tasks exactly: 1 of 1 with H < 8, 1 of 2 with H ≥ 8." in found.says
    assert any("solved less often" in sentence for sentence in found.says)
    assert "dqn solves 0 of 1 tasks exactly: 0 of 1 with H < 8." in found.says


def test_views_of_one_task_are_not_several_tasks():
    both = [curves(RETURNS), curves({("easy", "ppo"): [[0, 0, 0, 2]]}).assign(view="pixels")]
    says = solved(Evidence(diagnose_curves(pd.concat(both), horizons=HORIZONS))).says
    assert "ppo state solves 2 of 3 tasks exactly: 1 of 1 with H < 8, 1 of 2 with H ≥ 8." in says
    assert "ppo pixels solves 1 of 1 tasks exactly: 1 of 1 with H < 8." in says


def test_a_mean_that_only_looks_like_the_best_is_none():
    """Episodes that differ cannot all have the best return."""
    alone = {("easy", "ppo"): [[0, 2, 2, 2]]}
    made = solved(Evidence(diagnose_curves(curves(alone, std=0.5), horizons=HORIZONS)))
    assert not made.table["solved"].any()


def test_steps_are_ranked_against_the_horizon():
    """N is 1,000 at H = 3, 2,000 at 9.5 and 3,000 at 12 or more: the same order."""
    returns = {("easy", "dqn"): [[0, 2, 2, 2]], ("long", "dqn"): [[0, 0, 2, 2]], ("far", "dqn"): [[0, 0, 0, 2]]}
    says = solved(Evidence(diagnose_curves(curves(returns), horizons=HORIZONS))).says
    assert len(says) == 2
    assert "that are solved take more steps, ρ = 1.00" in says[1]


def test_a_task_with_a_changed_knob_is_told_beside_it():
    """Its own H is unknown, so it counts for no share of H."""
    varied = {("long", "ppo"): [[0, 1, 1, 1]], ("long[left=4]", "ppo"): [[0, 0, 2, 2]], ("odd[a=1]", "ppo"): [[2] * 4]}
    made = solved(Evidence(diagnose_curves(curves(varied), horizons=HORIZONS)))
    assert made.table[["task", "solved", "N", "H"]].fillna(0).values.tolist() == [
        ["long", False, 0, "9.5"], ["long[left=4]", True, 2000, "–"],
    ]  # fmt: skip
    assert made.says[0] == "ppo solves 0 of 1 tasks exactly: 0 of 1 with H ≥ 8."
    assert made.says[1:] == ["With left=4 ppo solves 1 of 1 exactly."]
    assert b"not solved" in draw_svg(made.figures[0].draw(False))


def test_a_changed_knob_has_a_horizon_of_its_own():
    """Solved at H = 2 and 3, not at 9.5 and 12: both ranks are those of H, ρ = -2/√5 with ties."""
    returns = {("long", "ppo"): [[0, 1, 1, 1]], ("far", "ppo"): [[0, 1, 1, 1]],
               ("long[left=4]", "ppo"): [[0, 0, 2, 2]], ("far[left=4]", "ppo"): [[0, 0, 0, 2]]}  # fmt: skip
    near = {"long[left=4]": (2.0, 1.5, 2.5), "far[left=4]": (3.0, 3.0, 3.0)}
    made = solved(Evidence(diagnose_curves(curves(returns), horizons=HORIZONS | near)))
    assert made.table.set_index("task")["H"].to_dict() == {
        "far": "≥ 12.0", "far[left=4]": "3.0", "long": "9.5", "long[left=4]": "2.0",
    }  # fmt: skip
    assert made.says[0] == "ppo solves 2 of 4 tasks exactly: 2 of 2 with H < 8, 0 of 2 with H ≥ 8."
    assert made.says[1] == "With left=4 ppo solves 2 of 2 exactly."
    assert "solved less often, ρ = -0.89" in made.says[2]
    # Of a grid every task has knobs, and none is told as another's variant.
    grid = {task: each for task, each in returns.items() if "[" in task[0]}
    assert len(solved(Evidence(diagnose_curves(curves(grid), horizons=near))).says) == 1


def test_a_report_takes_the_horizons_of_changed_knobs_from_a_file(tmp_path):
    varied = {("long", "ppo"): [[0, 1, 1, 1]], ("long[a=1,left=4]", "ppo"): [[0, 0, 2, 2]]}
    curves(varied).to_csv(tmp_path / "curves.csv", index=False)
    (tmp_path / "h.csv").write_text('task,h,h_low,h_high\nlong,9.5,9,10\n"long[a=1,left=4]",2,1.5,2.5\n')
    out = tmp_path / "report"
    asked = [str(tmp_path / "curves.csv"), f"horizons={tmp_path / 'h.csv'}", "analyses=[solved]", "sections=[]"]
    assert cli.main(["report", *asked, f"out={out}"]) == 0
    told = pd.read_csv(out / "tables" / "solved.csv").set_index("task")
    assert told["H"].to_dict() == {"long": 9.5, "long[a=1,left=4]": 2.0}
    assert told["solved"].to_dict() == {"long": False, "long[a=1,left=4]": True}


def test_nothing_is_told_where_no_horizon_is_known():
    assert solved(Evidence(diagnose_curves(curves(RETURNS)))) is None


@pytest.mark.parametrize("narrow", [False, True])
def test_the_figure_is_drawn(found, narrow):
    assert b"not solved" in draw_svg(found.figures[0].draw(narrow))
