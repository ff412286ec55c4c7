"""How hard the calibration tasks are by the yardstick, and how their levels, or a diagnosis' scores, go with it.

`--scores studies/…/diagnosis/challenge.csv` adds Spearman's ρ of every definition's φ and ψ with what was measured.
"""

import argparse

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from lcd.envs.benchmarks import get_benchmark
from lcd.envs.calibration import CalibrationBenchmark
from lcd.envs.yardstick import reward_hardness, sight_hardness

VIEWS = ("pixels", "figure_ground", "semantic")
OF_REWARD = ("to learn", "samples", "steps", "rewarded", "relaxation", "blind", "random")
"""What is compared with scores; the first is the yardstick, the others stand beside it."""


def measured(benchmark: CalibrationBenchmark, seeds: int) -> pd.DataFrame:
    """A row a task: log₂ labelled frames by view, what pixels take more than labels, and the reward's numbers.

    What a blind and a random agent get is a share of the best.
    """
    rows = []
    for task, truth in benchmark.truth.items():
        frames = {f"frames, {view}": sight_hardness(benchmark, task, view, range(seeds)) for view in VIEWS}
        reward = reward_hardness(benchmark, task, range(seeds))
        levels = {"perception": truth.perception, "reward": truth.reward}
        rows.append({"task": task} | levels | frames | vars(reward) | {"to learn": reward.to_learn})
    table = pd.DataFrame(rows)
    table[["blind", "random"]] = table[["blind", "random"]].div(table["optimal"], axis=0)
    # What is never read takes at least twice the most frames that were tried.
    pixels = table["frames, pixels"].replace(np.inf, np.nan)
    table["to see"] = pixels.fillna(table["frames, pixels"].replace(np.inf, 0).max() + 1) - table["frames, semantic"]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--benchmark", default="calibration", choices=("calibration", "calibration-heldout", "calibration-drawn")
    )
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--scores", help="challenge.csv of a diagnosis of these tasks")
    options = parser.parse_args()
    table = measured(get_benchmark(options.benchmark), options.seeds)
    print(table.round(2).to_string(index=False))
    table = table.round(6)
    compared = ["perception", "reward"]
    if options.scores:
        scores = pd.read_csv(options.scores)
        named = [name for name in scores if name.startswith(("phi_", "psi_")) and name.endswith(
            ("_paper", "_calibrated", "_samples", "_gain"))]  # fmt: skip
        table, compared = table.merge(scores[["task", *named]], on="task"), [*compared, *named]
    for name in compared:
        told = [f"{kind} {spearmanr(table[name], table[kind], nan_policy='omit').statistic:5.2f}"
                for kind in ("to see", *OF_REWARD)]  # fmt: skip
        print(f"{name:<16} with {', '.join(told)}")


if __name__ == "__main__":
    main()
