"""`lcd measure` keeps what it measured, and `lcd report` takes it as it is."""

import pandas as pd
from curve_sets import study

from lcd import cli
from lcd.envs.benchmarks import get_benchmark, reward_range

TASK = "toy/easy-sight-easy-reward"


def test_a_random_agents_returns_are_kept_and_used_without_copying_numbers(tmp_path, capsys):
    out = tmp_path / "measured"
    words = ["benchmark=toy", f"tasks=[{TASK}]", "episodes=256", "seed=3", f"out={out}"]
    assert cli.main(["measure", *words]) == 0
    (row,) = pd.read_csv(out / "ranges.csv").to_dict("records")
    exact, best = reward_range(get_benchmark("toy"), TASK, 3)
    # The toy's random return is known by dynamic programming: the mean lies within four of its standard errors.
    assert abs(row["r_min"] - exact) < 4 * row["standard_error"]
    assert row["r_min_low"] < row["r_min"] < row["r_min_high"]
    assert (row["r_max"], row["stated_r_min"], row["episodes"]) == (best, exact, 256)

    curves = tmp_path / "curves.csv"
    areas = (0.30, 0.50, 0.80, 0.78, 0.77, 0.75)
    study({TASK: areas}, 2, 0.01, benchmark="toy", agent="ppo", r_min=exact, r_max=best).to_csv(curves)
    found = {}
    for name, words in {"stated": [], "measured": [f"ranges={out / 'ranges.csv'}"]}.items():
        assert cli.main(["report", str(curves), f"out={tmp_path / name}", *words]) == 0
        found[name] = pd.read_csv(tmp_path / name / "challenge.csv").loc[0, "auc_pixels"]
    height = exact + found["stated"] * (best - exact)
    assert abs(found["measured"] - (height - row["r_min"]) / (best - row["r_min"])) < 1e-9
    assert found["measured"] != found["stated"]
    capsys.readouterr()
    assert cli.main(["report", str(curves), f"out={tmp_path / 'no'}", "ranges=mesured"]) == 2
    assert "ranges=mesured cannot be read" in capsys.readouterr().err
