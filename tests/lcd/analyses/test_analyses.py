"""The paper's analyses on curves whose areas are known by construction."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest

from lcd.analyses import Evidence, analyse, published
from lcd.analyses.adaptive import adaptive
from lcd.analyses.against import against
from lcd.analyses.agreement import agreement
from lcd.analyses.gains import gains
from lcd.analyses.levels import final_performance, generalisation
from lcd.analyses.synergy import synergy
from lcd.analyses.taxonomy import recommendations, taxonomy
from lcd.envs.errors import InputError
from lcd.scores.diagnosis import diagnose_curves
from lcd.scores.hard import HardFrom
from lcd.statistics.hypotheses import correlation

GAMES = {
    "a": (0.20, 0.50, 0.80, 0.78, 0.77, 0.75),
    "b": (0.70, 0.72, 0.74, 0.50, 0.30, 0.10),
    "c": (0.20, 0.40, 0.60, 0.40, 0.25, 0.10),
    "d": (0.60, 0.62, 0.64, 0.60, 0.55, 0.50),
}


@pytest.fixture
def world(make_study):
    """Two agents, a front-end that closes half of the gap of hard tasks, and shaping worth 0.1 and 0.2."""

    def named(tasks, **columns):
        return make_study({f"w/{name}": areas for name, areas in tasks.items()}, 4, 0.01, benchmark="w", **columns)

    better = {name: tuple(area + 0.05 for area in areas) for name, areas in GAMES.items()}
    better["a"] = (0.25, 0.55, 0.95, *better["a"][3:])
    pixels = {"a": 0.5, "b": 0.68, "c": 0.4, "d": 0.6}
    parts = [
        named(GAMES, agent="ppo"),
        named(better, agent="ppg"),
        named({name: (area, *[None] * 5) for name, area in pixels.items()}, agent="ppo", frontend="flow"),
        named(
            {"b": (None, None, 0.94, None, None, None), "d": (None, None, 0.74, None, None, None)},
            agent="ppo",
            shaping="subgoals",
        ),
    ]
    return diagnose_curves(pd.concat(parts, ignore_index=True))


def test_classes_follow_the_threshold_and_their_probabilities_the_noise(world):
    table = taxonomy(world).table
    mine = table[table["agent"] == "ppo"].set_index("task")["class"].to_dict()
    assert mine == {"w/a": "perception", "w/b": "reward", "w/c": "both", "w/d": "neither"}
    np.testing.assert_allclose(table.filter(regex=r"^P\(").sum(axis=1), 1)
    assert (taxonomy(world, HardFrom(2.0, 2.0)).table["class"] == "neither").all()


def test_a_class_at_the_threshold_is_a_coin_toss(make_study):
    tasks = {"low": (0.8, 0.8, 0.8, 0.8, 0.8, 0.8), "mid": (0.4, 0.48, 0.48, 0.35, 0.2, 0.05)}
    tasks["high"] = (0.4, 0.6, 0.6, 0.45, 0.3, 0.1)
    table = taxonomy(diagnose_curves(make_study(tasks, 6, 0.01))).table.set_index("task")
    phi_hard = table["P(perception)"] + table["P(both)"]
    assert phi_hard["mid"] == pytest.approx(0.5, abs=0.03)
    assert phi_hard["low"] < 0.01 < 0.99 < phi_hard["high"]


def test_what_is_recommended_follows_the_class(world):
    advice = recommendations(world, taxonomy(world))
    mine = advice[(advice["agent"] == "ppo") & (advice["frontend"] == "identity") & (advice["shaping"] == "none")]
    told = mine.set_index("task")[["use agent", "use front-end"]].T.to_dict("list")
    assert told == {
        "w/a": ["ppo", "flow"],
        "w/b": ["ppg", "identity"],
        "w/c": ["ppg", "flow"],
        "w/d": ["ppo", "identity"],
    }


def test_agents_that_agree_correlate(world):
    table = agreement(world).table.set_index("score")
    raw = world.table[(world.table["frontend"] == "identity") & (world.table["shaping"] == "none")]
    sides = [raw[raw["agent"] == agent].set_index("task")["phi_raw"] for agent in ("ppo", "ppg")]
    assert table.loc["phi", "Spearman"] == pytest.approx(sides[0].corr(sides[1], method="spearman"))
    assert table.loc["phi", "Pearson"] == pytest.approx(sides[0].corr(sides[1]))
    assert (table["Spearman_low"] <= table["Spearman"]).all()
    assert agreement(diagnose_curves(world.curves[world.curves["agent"] == "ppo"])) is None


def test_synergy_is_both_less_the_sum_of_one_at_a_time(world):
    table = synergy(world.curves).table.set_index("task")
    assert table.loc["w/a", "both"] == pytest.approx(0.95 - 0.2)
    assert table.loc["w/a", "sum of parts"] == pytest.approx(0.05 + 0.6)
    assert table.loc["w/a", "synergy"] == pytest.approx(0.1)
    assert table.loc["w/a", ["helps", "sure"]].tolist() == ["more than the sum", "yes"]
    np.testing.assert_allclose(table["synergy"].drop("w/a"), 0, atol=1e-9)


def test_a_front_ends_gain_is_relative_to_pixels_and_grouped_by_phi(world):
    by_task, grouped = gains(world, "frontend")
    table = by_task.table.set_index("task")
    assert table.loc["w/a", "gain %"] == pytest.approx(150)
    assert table.loc["w/b", "gain"] == pytest.approx(-0.02)
    assert table.loc["w/a", "gain_low"] > 0 > table.loc["w/b", "gain_low"]
    assert table.loc["w/a", "p (Holm)"] >= table.loc["w/a", "p"]
    of = grouped.table.set_index("tasks of")
    assert of.loc["hard φ", "gain"] == pytest.approx((0.3 + 0.2) / 2)
    assert of.loc["easy φ", "gain"] == pytest.approx(-0.01)
    assert of.loc["all", "gain"] == pytest.approx((0.3 + 0.2 - 0.02 + 0) / 4)
    assert of.loc["all", "Spearman with φ"] > 0.7


def test_the_papers_seven_moving_games_are_a_group_of_their_own(make_study):
    easy, hard = (0.60, 0.62, 0.64, 0.60, 0.55, 0.50), (0.20, 0.50, 0.80, 0.78, 0.77, 0.75)
    games = {"chaser": easy, "starpilot": hard, "climber": hard, "maze": easy, "coinrun": hard}
    gain = {"chaser": -0.01, "starpilot": 0.3, "climber": 0.1, "maze": 0.02, "coinrun": -0.1}
    games = {f"procgen/{name}": areas for name, areas in games.items()}
    flow = {name: (areas[0] + gain[name.removeprefix("procgen/")], *[None] * 5) for name, areas in games.items()}
    named = {"benchmark": "procgen", "agent": "ppo"}
    curves = [make_study(games, 4, 0.01, **named), make_study(flow, 4, 0.01, frontend="flow", **named)]
    _, grouped = gains(diagnose_curves(pd.concat(curves)), "frontend")
    of = grouped.table.set_index("tasks of")
    means = {
        "hard φ, moving": 0.2,
        "easy φ, moving": -0.01,
        "moving": 0.13,
        "hard φ": 0.1,
        "easy φ": 0.005,
        "all": 0.062,
    }
    assert of["gain"].to_dict() == pytest.approx(means)
    assert of["n"].to_dict() == {name: float(n) for name, n in zip(means, (2, 1, 3, 3, 2, 5), strict=True)}
    assert set(of.index[of["Spearman with φ"].notna()]) == {"moving", "all"}
    assert any("over the 3 tasks with motion of their own" in sentence for sentence in grouped.says)
    assert grouped.figures[0].draw(False).get_axes()


def test_a_relative_gain_over_nothing_is_left_out(make_study):
    rows = [
        make_study({"a": (0.0, *[None] * 5)}, 3, 0.001),
        make_study({"a": (0.3, *[None] * 5)}, 3, 0.001, frontend="f"),
    ]
    (table,) = (found.table for found in gains(diagnose_curves(pd.concat(rows)), "frontend")[:1])
    assert np.isnan(table["gain %"][0])
    assert table["gain"][0] == pytest.approx(0.3)


def test_shaping_is_compared_on_the_semantic_view(world):
    by_task, grouped = gains(world, "shaping")
    assert by_task.table.set_index("task")["gain"].to_dict() == pytest.approx({"w/b": 0.2, "w/d": 0.1})
    assert (by_task.table["p (Holm)"] < 0.05).all()
    assert by_task.table["ψ"].notna().all()
    assert grouped.table.set_index("tasks of").loc["hard ψ", "gain"] == pytest.approx(0.2)


def test_final_performance_is_the_interquartile_mean_over_tasks_and_seeds(make_study):
    diagnosis = diagnose_curves(make_study({"a": (0.5,) * 6, "b": (0.1,) * 6}, 4))
    table = final_performance(diagnosis.curves).table
    # Lines end at 1.2 times their area: of .6 ×4 and .12 ×4, the middle four are two of each.
    np.testing.assert_allclose(table["IQM"], 0.36)
    np.testing.assert_allclose(table["IQM_low"], 0.36)
    np.testing.assert_allclose(table["median"], 0.36)
    np.testing.assert_allclose(table["optimality gap"], 0.64)
    # All conditions end alike: a coin toss against plain pixels, which are not compared with themselves.
    np.testing.assert_allclose(table["P(> pixels)"].dropna(), 0.5)
    assert table["P(> pixels)"].isna().sum() == 1


def test_conditions_are_compared_with_the_pixels_of_their_own_agent_on_the_same_tasks(world):
    table = final_performance(world.curves).table.set_index(["agent", "frontend", "shaping", "view", "reward_p"])
    better = table["P(> pixels)"]
    assert better["ppo", "identity", "none", "semantic", 1.0] == 1
    assert better["ppg", "identity", "none", "semantic", 1.0] == 1
    # The front-end's areas are above two tasks' pixels, below one's and equal to one's, where noise decides.
    assert 0.5 <= better["ppo", "flow", "none", "pixels", 1.0] <= 0.75
    assert table["tasks"]["ppo", "identity", "subgoals", "semantic", 1.0] == 2
    mine = [key[1:] for key in table.index if key[0] == "ppo"]
    assert mine[0] == ("identity", "none", "pixels", 1.0)
    assert [key[-1] for key in mine if key[:3] == ("identity", "none", "semantic")] == [1.0, 0.75, 0.5, 0.25]
    assert mine[-1] == ("flow", "none", "pixels", 1.0)


def test_the_gap_between_levels_is_told(make_study):
    held_out = make_study({"a": (0.4,) * 6}, 4, 0.01)
    trained = held_out.assign(split="train", return_mean=held_out["return_mean"] + 0.1)
    curves = diagnose_curves(pd.concat([held_out.assign(split="eval"), trained], ignore_index=True)).curves
    np.testing.assert_allclose(generalisation(curves).table["gap"], 0.1)
    assert generalisation(curves[curves["split"] == "eval"]) is None


def test_adapting_takes_each_tasks_own_choice(make_study):
    def of(agent, frontend, a, b):
        tasks = {"a": (a, *[None] * 5), "b": (b, *[None] * 5)}
        return make_study(tasks, 4, 0.005, benchmark="w", agent=agent, frontend=frontend)

    curves = diagnose_curves(pd.concat([of("ppo", "identity", 0.2, 0.6), of("ppo", "flow/a1b2", 0.5, 0.5)])).curves
    chosen = {"a": {"agent": "ppo", "frontend": "flow"}, "b": {"agent": "ppo", "frontend": "identity"}}
    table = adaptive(curves, chosen).table.set_index("one size")
    assert table.loc["ppo + identity", "gain"] == pytest.approx(0.15)
    assert table.loc["ppo + flow", "gain"] == pytest.approx(0.05)
    assert (table["gain_low"] > 0).all()
    assert "same seeds" in adaptive(curves, chosen, shared_seeds=True).note
    assert adaptive(curves, {"a": {"agent": "ppg", "frontend": "flow"}}) is None


def test_curves_of_other_lengths_leave_an_analysis_out_with_a_note(make_study):
    short = make_study({"a": GAMES["a"]}, 2, 0.01, frontend="flow", steps=(0, 250, 500))
    diagnosis = diagnose_curves(pd.concat([make_study({"a": GAMES["a"]}, 2, 0.01), short]))
    found, notes = analyse(Evidence(diagnosis))
    assert "frontend" not in {analysis.key for analysis in found}
    assert any("at least 90%" in note for note in notes)


def test_an_ablation_comes_first(world):
    assert analyse(Evidence(world), first="frontend")[0][0].key == "frontend"
    assert analyse(Evidence(world))[0][0].key == "taxonomy"


def test_two_studies_differ_by_what_they_do(make_study):
    one = diagnose_curves(make_study({"a": GAMES["a"], "b": GAMES["b"]}, 4, 0.005))
    other = diagnose_curves(make_study({"a": GAMES["a"], "b": (0.5, *GAMES["b"][1:])}, 4, 0.005))
    table = against(one, other).table.set_index(["task", "measure"])
    row = table.loc["b", "AUC, pixels"]
    assert row["difference"] == pytest.approx(-0.2)
    assert row["difference_low"] < -0.2 < row["difference_high"] < 0
    halves = [(row[f"{side}_high"] - row[f"{side}_low"]) / 2 for side in "AB"]
    assert row["difference_high"] - row["difference"] == pytest.approx(np.hypot(*halves))
    assert row["apart"] == "yes"
    assert table.loc["a", "AUC, pixels"]["apart"] == "no"
    with pytest.raises(InputError, match="no task in common"):
        against(one, diagnose_curves(make_study({"z": GAMES["a"]}, 2)))


def test_two_benchmarks_meet_on_one_map(make_study):
    from lcd.analyses.against import on_one_map, shares_tasks

    one, other = (
        diagnose_curves(make_study(tasks, 2)) for tasks in ({"a": GAMES["a"]}, {"z": GAMES["a"], "y": GAMES["b"]})
    )
    found = on_one_map(one, other, ("one", "other"))
    assert not shares_tasks(one, other)
    assert found.table["study"].tolist() == ["one", "other", "other"]
    raw = found.table.set_index("task")["phi_raw"]
    assert raw["a"] == raw["z"] == one.table["phi_raw"].iloc[0]
    # Of the two pairs one is a tie, which counts half.
    share = (0.5 + (raw["y"] > raw["a"])) / 2
    assert f"in {share:.0%} the one of other is the harder" in found.says[0]


def test_the_papers_outcomes_are_of_all_games():
    from lcd.envs.procgen.mask_tables import GAMES as PROCGEN

    for classes in (published.CLASSES, published.SYNERGY):
        games = [game for names in classes.values() for game in names]
        assert sorted(games) == sorted(PROCGEN)
    assert [len(games) for games in published.SYNERGY.values()] == [6, 10]
    hard = {game for name in ("perception", "both") for game in published.CLASSES[name]}
    assert {game: game in hard for game in published.FRONTEND_GAIN} == {
        "chaser": False, "leaper": False, "bigfish": False, "bossfight": False,
        "starpilot": True, "dodgeball": True, "climber": True,
    }  # fmt: skip


def test_the_papers_rank_correlation_over_three_games_is_impossible():
    without_ties = {round(correlation([1, 2, 3], order).statistic, 2) for order in permutations([1, 2, 3])}
    assert without_ties == {-1.0, -0.5, 0.5, 1.0}
    every = [correlation([1, 2, 3], values) for values in product([1, 2, 3], repeat=3)]
    reached = {round(abs(found.statistic), 2) for found in every if np.isfinite(found.statistic)}
    assert published.SHAPING_RHO not in reached
    assert min(found.p for found in every if np.isfinite(found.p)) >= 1 / 6
    seven = {round(1 - 6 * d / (7 * 48), 2) for d in range(0, 113, 2)}
    assert published.FRONTEND_RHO in seven


def test_what_was_found_on_procgen_stands_beside_the_paper(make_study):
    tasks = {"procgen/maze": GAMES["c"], "procgen/fruitbot": GAMES["d"], "procgen/plunder": GAMES["b"]}
    curves = make_study(tasks, 3, 0.01, benchmark="procgen", r_min=0, r_max=1)
    found = analyse(Evidence(diagnose_curves(curves, ranges=dict.fromkeys(tasks, (0, 1)))))[0]
    (beside,) = [analysis for analysis in found if analysis.key == "published"]
    outcome = beside.table.set_index("task")[["here", "paper"]].T.to_dict("list")
    assert outcome["procgen/maze"] == ["both", "both"]
    assert outcome["procgen/plunder"] == ["reward", "perception"]
    assert "3364.6" in beside.note
