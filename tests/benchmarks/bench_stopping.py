"""What `stopping=auto` saves, and how often its intervals miss: by simulation, and on the seeds of a finished study.

The simulation draws seeds with known truth as bench_coverage.py does. Of a study, the seeds that it has are taken for
the population: trials draw from them with replacement, and the truth is the score of all of them together.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lcd.curves.table import read_curves
from lcd.scores.contrasts import DEFINITIONS, HEADLINE, all_conditions
from lcd.scores.diagnosis import normalised_curves, samples_by_task
from lcd.scores.scoring import TaskSamples, score_columns
from lcd.statistics.sequential import SPENDING, looks, nominal_levels

sys.path.insert(0, str(Path(__file__).parent))
from bench_coverage import LEAST, populations

SAMPLES = TaskSamples(tuple(all_conditions(HEADLINE, "semantic")), (np.zeros(1),) * 6, ((0,),) * 6, "semantic")
RESAMPLES = 300


def scores(averages: np.ndarray, definition: str) -> np.ndarray:
    """Mean AUCs (…, conditions) → φ and ψ."""
    found = SAMPLES.scores(averages, LEAST)
    return np.stack([found[..., score_columns().index(f"{score}_{definition}")] for score in ("phi", "psi")], axis=-1)


def stopped(
    seeds: np.ndarray, definition: str, rule: argparse.Namespace, levels: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Of trials (trials, seeds, conditions): seeds used, and the interval (2, trials, scores) at the stop."""
    used = np.zeros(len(seeds), dtype=int)
    interval = np.full((2, len(seeds), 2), np.nan)
    for count, level in zip(looks(rule.first, rule.every, rule.most), levels, strict=True):
        open_ = used == 0
        so_far = seeds[open_, :count]
        drawn = scores(so_far[:, rng.integers(count, size=(RESAMPLES, count - 1))].mean(2), definition)
        estimate, half = scores(so_far.mean(1), definition), stdtrit(count - 1, 0.5 + level / 2) * drawn.std(1)
        narrow = (half <= [rule.phi, rule.psi]).all(1) | (count == rule.most)
        rows = np.flatnonzero(open_)[narrow]
        used[rows] = count
        interval[:, rows] = estimate[narrow] - half[narrow], estimate[narrow] + half[narrow]
    return used, interval


def measure(draw, truth: np.ndarray, definition: str, rule: argparse.Namespace, trials: int) -> list[dict]:
    """A row for each way of spending the error, for looking without correction, and for the full grid."""
    counts = looks(rule.first, rule.every, rule.most)
    ways = {name: nominal_levels(counts, rule.most, rule.alpha, name) for name in SPENDING}
    ways["uncorrected"] = np.full(len(counts), 1 - rule.alpha)
    rows = []
    for name, levels in ways.items():
        rng = np.random.default_rng(5)
        used, (low, high) = stopped(draw(rng, trials, rule.most), definition, rule, levels, rng)
        missed = ((truth < low) | (high < truth)).mean(0)
        rows.append({"looks": name, "seeds": used.mean(), "saved": 1 - used.mean() / rule.most,
                     "phi_missed": missed[0], "psi_missed": missed[1]})  # fmt: skip
    rng, fixed = np.random.default_rng(5), argparse.Namespace(**vars(rule) | {"first": rule.most})
    used, (low, high) = stopped(draw(rng, trials, rule.most), definition, fixed, np.array([1 - rule.alpha]), rng)
    missed = ((truth < low) | (high < truth)).mean(0)
    return [*rows, {"looks": "full grid", "seeds": rule.most, "saved": 0.0,
                    "phi_missed": missed[0], "psi_missed": missed[1]}]  # fmt: skip


def of_study(folder: str) -> dict[str, np.ndarray]:
    """Task → the AUCs of its seeds, (seeds, conditions)."""
    held_out, _ = normalised_curves(read_curves(folder))
    return {key[-1]: np.stack(samples.areas, axis=1) for key, samples in samples_by_task(held_out).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", help="a finished study's folder")
    parser.add_argument("--trials", type=int, default=2000)
    for name, value in (("first", 4), ("every", 2), ("most", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in (("phi", 0.2), ("psi", 0.1), ("alpha", 0.05)):
        parser.add_argument(f"--{name}", type=float, default=value)
    parser.add_argument("--out", help="a CSV file")
    rule = parser.parse_args()
    rows = []
    for definition in DEFINITIONS:
        for name in ("normal", "beta", "skewed"):
            means, draw = populations()[name]
            found = measure(draw, scores(means, definition), definition, rule, rule.trials)
            rows += [{"definition": definition, "where": name, **row} for row in found]
        for task, areas in of_study(rule.study).items() if rule.study else ():

            def resample(rng, trials, count, areas=areas):
                return areas[rng.integers(len(areas), size=(trials, count))]

            found = measure(resample, scores(areas.mean(0), definition), definition, rule, max(rule.trials // 10, 100))
            rows += [{"definition": definition, "where": task, **row} for row in found]
    table = pd.DataFrame(rows)
    table.insert(2, "of", np.where(table["where"].str.contains("/"), "study", "simulation"))
    numbers = ["seeds", "saved", "phi_missed", "psi_missed"]
    print(table.groupby(["definition", "of", "looks"], sort=False)[numbers].mean().round(3).to_string())
    if rule.out:
        table.to_csv(rule.out, index=False)


if __name__ == "__main__":
    main()
