"""How hard the calibration tasks are by the yardstick, and how their levels, or a diagnosis' scores, go with it.

`--scores studies/…/diagnosis/challenge.csv` adds Spearman's ρ of every definition's φ and ψ with what was measured,
with Fisher's 95 % interval over tasks. Of drawn tasks the numbers are those that are kept.
"""

import argparse

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from lcd.envs.benchmarks import get_benchmark
from lcd.envs.calibration import CalibrationBenchmark
from lcd.envs.drawn_tasks import kept_rows
from lcd.envs.yardstick import reward_hardness, sight_hardness

BENCHMARKS = ("calibration", "calibration-heldout", "calibration-drawn")
VIEWS = ("pixels", "figure_ground", "semantic")
KINDS = ("to_see", "to_see_more_than_solved", "to_learn", "samples", "steps", "rewarded", "relaxation")
"""What is compared with scores; `to_see` and `to_learn` are the yardstick, the others stand beside it."""


def measured(benchmark: CalibrationBenchmark, seeds: int) -> pd.DataFrame:
    """A row a task: log₂ labelled frames by view, what pixels take more than labels, and the reward's numbers."""
    rows = []
    for task, truth in benchmark.truth.items():
        frames = {f"frames_{view}": sight_hardness(benchmark, task, view, range(seeds)) for view in VIEWS}
        reward = reward_hardness(benchmark, task, range(seeds))
        levels = {"perception": truth.perception, "reward": truth.reward}
        rows.append({"task": task} | levels | frames | vars(reward) | {"to_learn": reward.to_learn})
    table = pd.DataFrame(rows)
    # What is never read takes at least twice the most frames that were tried.
    pixels = table["frames_pixels"].replace(np.inf, np.nan)
    table["frames_pixels"] = pixels.fillna(pixels.max() + 1)
    table["to_see"] = table["frames_pixels"] - table["frames_semantic"]
    return table


def kept() -> pd.DataFrame:
    """The same of drawn tasks, as it was measured once."""
    table = pd.DataFrame(kept_rows()).drop(columns=["sight", "reward"])
    table = table.astype({name: float for name in table if name != "task"})
    return table.assign(perception=table["to_see"], reward=table["to_learn"])


def told(ours: pd.Series, theirs: pd.Series) -> str:
    """Spearman's ρ and Fisher's interval."""
    known = ours.notna() & theirs.notna()
    value, count = spearmanr(ours[known], theirs[known]).statistic, int(known.sum())
    # Spearman's z has a variance of about 1.06 / (n - 3) (Fieller, Hartley and Pearson 1957).
    low, high = np.tanh(
        np.arctanh(np.clip(value, -0.999999, 0.999999)) + np.array([-1, 1]) * 1.96 * np.sqrt(1.06 / (count - 3))
    )
    return f"{value:5.2f} [{low:5.2f}, {high:5.2f}] of {count}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", default="calibration", choices=BENCHMARKS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--scores", help="challenge.csv of a diagnosis of these tasks")
    options = parser.parse_args()
    drawn = options.benchmark == "calibration-drawn"
    table = kept() if drawn else measured(get_benchmark(options.benchmark), options.seeds)
    table["to_see_more_than_solved"] = table["frames_pixels"] - table[["frames_figure_ground", "frames_semantic"]].mean(
        axis=1
    )
    table = table.round(6)
    print(table.round(2).to_string(index=False))
    compared = ["perception", "reward"]
    if options.scores:
        scores = pd.read_csv(options.scores)
        named = [name for name in scores if name.startswith(("phi_", "psi_")) and name.endswith(
            ("_paper", "_calibrated", "_samples", "_gain"))]  # fmt: skip
        table, compared = table.merge(scores[["task", *named]], on="task"), [*compared, *named]
    for name in compared:
        for kind in (each for each in KINDS if table[each].nunique() > 1):
            print(f"{name:<16} with {kind:<24} {told(table[name], table[kind])}")


if __name__ == "__main__":
    main()
