"""Areas, intervals, rank correlations and tests against closed forms and the paper's tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lcd.analyses.grids import Grid, areas, correlations, rank_correlation, run_tests, settings_in_places, summarise
from lcd.envs.errors import InputError
from lcd.report.grid_figures import named, seed_curves


def curves(slopes, agent="a", seeds=6, base="discrete"):
    """Training and held-out curves that rise from 0 along a slope for each amount of delay."""
    rows = []
    for delay, slope in slopes.items():
        for seed in range(seeds):
            for step in (0, 50, 100):
                shared = {"task": f"hardness/{base}:delay={delay}", "agent": agent, "seed": seed, "step": step}
                shared |= {"view": "state", "frontend": "identity", "reward_p": 1.0, "shaping": "none"}
                value = slope * step + 0.1 * seed
                rows += [{**shared, "split": s, "return_mean": value, "length_mean": 7.0} for s in ("train", "eval")]
    return pd.DataFrame(rows)


def table_of(*made, normalise=False):
    """The areas of a study over delays."""
    found = pd.concat(made)
    places = {task: task.removeprefix("hardness/").split(":delay=") for task in found["task"].unique()}
    tasks = {
        task: {"base": f"hardness/{base}", "point": {"delay": int(delay)}} for task, (base, delay) in places.items()
    }
    return areas(found, Grid("g", ["delay"], tasks, ["a"], {}, normalise, []))


def test_areas_are_mean_heights_brought_to_one_scale():
    table = table_of(curves({0: 0.1, 4: 0.2}), normalise=True)
    held_out = table[table["metric"] == "eval"].set_index(["delay", "seed"])["value"]
    assert held_out["0", 2] == pytest.approx(0.1 * 50 + 0.2)
    assert held_out["4", 2] == pytest.approx((0.2 * 50 + 0.2) * 100 / 96)
    assert (table[table["metric"] == "length"]["value"] == 7).all()


def test_settings_of_agents_are_dimensions_beside_knobs():
    found = pd.concat(
        curves({0: slope, 4: slope / 2}, agent=f"a[width={width}]") for width, slope in ((8, 0.1), (32, 0.4))
    )
    places = {f"hardness/discrete:delay={n}": {"base": "hardness/discrete", "point": {"delay": n}} for n in (0, 4)}
    settings = {f"a[width={n}]": {"agent": "a", "point": {"agent.width": str(n)}} for n in (8, 32)}
    grid = Grid("g", ["agent.width", "delay"], places, [*settings], {}, False, [], settings)
    table = areas(*reversed(settings_in_places(grid, found)))
    assert set(table["agent"]) == {"a"}
    held_out = table[table["metric"] == "eval"].set_index(["agent.width", "delay", "seed"])["value"]
    assert held_out["8", "4", 1] == pytest.approx(0.05 * 50 + 0.1)
    assert held_out["32", "0", 2] == pytest.approx(0.4 * 50 + 0.2)
    assert list(dict.fromkeys(table["agent.width"])) == ["8", "32"]
    assert grid.dials == ["delay"]


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        ("a2c", "a2c (for A3C)"),
        ("a2c_mdp_playground[entropy=0.2]", "a2c_mdp_playground[entropy=0.2] (for A3C)"),
        ("sb3/a2c[params.ent_coef=0.1]", "sb3/a2c[params.ent_coef=0.1] (for A3C)"),
        ("sb3/qrdqn[params.tau=0.9]", "sb3/qrdqn[params.tau=0.9] (for Rainbow)"),
        ("rainbow[noisy=false]", "rainbow[noisy=false]"),
        ("sb3/dqn", "sb3/dqn"),
    ],
)
def test_stand_ins_for_the_papers_agents_say_so_whatever_their_settings(agent, shown):
    assert named(agent) == shown


def test_curves_seed_by_seed_have_a_panel_for_each_agent_and_amount():
    found = pd.concat(curves({0: 0.1, 4: 0.2}, agent=agent, seeds=3) for agent in ("dqn", "sb3/a2c"))
    mine = {f"hardness/discrete:delay={delay}": str(delay) for delay in (0, 4)}
    panels = {axis.get_title(): len(axis.lines) for axis in seed_curves(found, mine, "delay", "it").axes}
    names = ("dqn", "sb3/a2c (for A3C)")
    assert panels == {f"{name}\ndelay = {delay}": 3 for name in names for delay in (0, 4)}


def test_intervals_have_the_level_of_all_comparisons():
    table = table_of(curves(dict.fromkeys(range(5), 0.1), seeds=30))
    summary = summarise(table, ["delay"])
    assert np.allclose(summary["level"], 1 - 0.05 / 10)
    row = summary[summary["metric"] == "eval"].iloc[0]
    student = stats.t.ppf(1 - 0.05 / 20, 29) * row["std"] / np.sqrt(30)
    assert row["high"] - row["mean"] == pytest.approx(student, rel=0.05)


# (r, p) of five amounts, as the paper's tables 2 to 4 print them (it cuts the third decimal off, or rounds it).
@pytest.mark.parametrize(
    ("order", "r", "p"),
    [
        ((1, 2, 3, 5, 4), 0.9, 0.037),
        ((1, 3, 2, 5, 4), 0.8, 0.104),
        ((2, 1, 4, 5, 3), 0.6, 0.284),
        ((3, 1, 4, 2, 5), 0.5, 0.391),
        ((3, 2, 1, 5, 4), 0.5, 0.391),
        ((2, 3, 4, 1, 5), 0.4, 0.504),
        ((2, 3, 1, 5, 4), 0.6, 0.284),
        ((2, 3, 1, 4, 5), 0.7, 0.188),
        ((1, 2, 3, 4, 5), 1.0, 0.0),
    ],
)
def test_rank_correlations_are_the_papers(order, r, p):
    found = rank_correlation([1, 2, 3, 4, 5], order)
    assert found[0] == pytest.approx(r)
    assert found[1] == pytest.approx(p, abs=1.1e-3)


def test_toy_and_complex_are_compared_amount_by_amount():
    toy, game = curves({0: 0.3, 1: 0.2, 2: 0.1}), curves({0: 3.0, 1: 1.0, 2: 2.0}, base="atari/Qbert")
    summary = summarise(table_of(toy, game), ["delay"])
    assert correlations(summary, ["delay"]).to_dict("records") == [
        {"environment": "atari/Qbert", "agent": "a", "r": pytest.approx(0.5), "pvalue": pytest.approx(2 / 3)}
    ]


def test_one_sided_tests():
    table = table_of(curves({0: 0.3, 8: 0.1}))
    claim = {"claim": "falls", "agent": "a", "greater": {"delay": 0}, "less": {"delay": 8}}
    found = run_tests(table, [claim, {**claim, "greater": {"delay": 8}, "less": {"delay": 0}}], ["delay"])
    assert found["holds"].tolist() == [True, False]
    assert found["p"].iloc[0] == pytest.approx(1 / 2**6)
    with pytest.raises(InputError, match="falls"):
        run_tests(table_of(curves({0: 0.3, 8: 0.1}, seeds=3)), [claim], ["delay"])
