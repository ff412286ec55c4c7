"""Do 95 % intervals hold 95 %? Seeds with known truth, intervals by several methods, and how often they hold it.

A seed's AUCs of the six conditions are drawn from a population whose means, and so whose scores, are known. The
house's interval (estimate ± t × the bootstrap's standard error) is compared with the percentile bootstrap, BCa and
bootstrap-t. Scores at their boundary, and populations in which single seeds fail altogether, are told apart from the
others, because no method holds there with five seeds.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import ndtr, ndtri, stdtrit

from lcd.scores.contrasts import HEADLINE, REWARD, all_conditions
from lcd.scores.scoring import TaskSamples, samples_between, score_columns

COUNTS = (5, 10, 20)
LEAST = 0.01
MEANS = np.array([0.35, 0.6, 0.8, 0.72, 0.6, 0.4])
EASY = np.array([0.8, 0.8, 0.8, 0.8, 0.8, 0.8])
STATISTICS = ("auc", "phi_paper", "psi_paper", "phi_calibrated", "psi_calibrated")
SAMPLES = TaskSamples(tuple(all_conditions(HEADLINE, "semantic")), (np.zeros(1),) * 6, ((0,),) * 6, "semantic")
NOMINAL, LEAST_KEPT, MOST_KEPT = 0.95, 0.93, 0.97

Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def populations() -> dict[str, tuple[np.ndarray, Draw]]:
    """Name → true means, and a function that draws seeds (trials, seeds, conditions)."""

    def normal(rng: np.random.Generator, trials: int, count: int, means: np.ndarray = MEANS) -> np.ndarray:
        shared = rng.normal(0, 0.05, (trials, count, 1))
        return means + shared + rng.normal(0, 0.07, (trials, count, 6))

    def beta(rng: np.random.Generator, trials: int, count: int) -> np.ndarray:
        return rng.beta(MEANS * 15, (1 - MEANS) * 15, (trials, count, 6))

    def skewed(rng: np.random.Generator, trials: int, count: int) -> np.ndarray:
        # Mean 0, deviation .1, skewness .9: a tail of seeds that learn late.
        return MEANS - 0.1 * (rng.gamma(5, 1, (trials, count, 6)) - 5) / np.sqrt(5)

    def equal(rng: np.random.Generator, trials: int, count: int) -> np.ndarray:
        return normal(rng, trials, count, EASY)

    def failing(rng: np.random.Generator, trials: int, count: int) -> np.ndarray:
        alive = rng.random((trials, count, 1)) > 0.2
        return normal(rng, trials, count) * alive

    return {
        "normal": (MEANS, normal),
        "beta": (MEANS, beta),
        "skewed": (MEANS, skewed),
        "boundary: no hardness": (EASY, equal),
        "one seed in five fails": (0.8 * MEANS, failing),
    }


def measured(study: str) -> tuple[np.ndarray, Draw]:
    """A population like the seeds of a study: every task's deviations from its means, pooled, skewness and all."""
    from lcd.curves.table import read_curves
    from lcd.scores.diagnosis import normalised_curves, samples_by_task

    held_out, _ = normalised_curves(read_curves(study))
    residuals = []
    for samples in samples_by_task(held_out).values():
        areas = np.stack(samples.areas, axis=1)
        residuals.append((areas - areas.mean(0)) * np.sqrt(len(areas) / (len(areas) - 1)))
    pool = np.concatenate(residuals)
    pool -= pool.mean(0)

    def draw(rng: np.random.Generator, trials: int, count: int) -> np.ndarray:
        return MEANS + pool[rng.integers(len(pool), size=(trials, count))]

    return MEANS, draw


def statistics(averages: np.ndarray) -> np.ndarray:
    """Mean AUCs (…, conditions) → `STATISTICS`."""
    scores = SAMPLES.scores(averages, LEAST)
    chosen = [scores[..., score_columns().index(name)] for name in STATISTICS[1:]]
    return np.stack([averages[..., 0], *chosen], axis=-1)


def house(seeds: np.ndarray, rng: np.random.Generator, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """Estimate ± t × the spread over resamples of n - 1 of n seeds."""
    estimate, drawn = statistics(seeds.mean(1)), statistics(_drawn(seeds, rng, resamples, seeds.shape[1] - 1))
    half = stdtrit(seeds.shape[1] - 1, 0.975) * drawn.std(1)
    return estimate - half, estimate + half


def percentile(seeds: np.ndarray, rng: np.random.Generator, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles over resamples."""
    drawn = statistics(_drawn(seeds, rng, resamples, seeds.shape[1]))
    return tuple(np.quantile(drawn, [0.025, 0.975], axis=1))


def bca(seeds: np.ndarray, rng: np.random.Generator, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles moved for bias and acceleration (Efron 1987)."""
    estimate, drawn = statistics(seeds.mean(1)), statistics(_drawn(seeds, rng, resamples, seeds.shape[1]))
    count = seeds.shape[1]
    without = statistics((seeds.sum(1, keepdims=True) - seeds) / (count - 1))
    deviation = without.mean(1, keepdims=True) - without
    cubes, squares = (deviation**3).sum(1), (deviation**2).sum(1)
    acceleration = cubes / (6 * np.maximum(squares, 1e-300) ** 1.5)
    below = (drawn < estimate[:, None]).mean(1)
    bias = ndtri(np.clip(below, 0.5 / resamples, 1 - 0.5 / resamples))
    ends = []
    for z in ndtri([0.025, 0.975]):
        share = ndtr(bias + (bias + z) / (1 - acceleration * (bias + z)))
        ordered = np.sort(drawn, axis=1)
        place = np.clip((share * resamples).astype(int), 0, resamples - 1)
        ends.append(np.take_along_axis(ordered, place[:, None], axis=1)[:, 0])
    return ends[0], ends[1]


def bootstrap_t(seeds: np.ndarray, rng: np.random.Generator, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the studentised statistic, its standard error by the jackknife."""
    estimate, count = statistics(seeds.mean(1)), seeds.shape[1]
    index = rng.integers(count, size=(resamples, count))
    chosen = seeds[:, index]
    ratio = (statistics(chosen.mean(2)) - estimate[:, None]) / np.maximum(_jackknife(chosen), 1e-12)
    error = _jackknife(seeds)
    low, high = np.quantile(ratio, [0.025, 0.975], axis=1)
    return estimate - high * error, estimate - low * error


METHODS = {"t × bootstrap SE": house, "percentile": percentile, "BCa": bca, "bootstrap-t": bootstrap_t}


def _jackknife(seeds: np.ndarray) -> np.ndarray:
    """Standard errors of `STATISTICS` of (…, seeds, conditions)."""
    count = seeds.shape[-2]
    without = statistics((seeds.sum(-2, keepdims=True) - seeds) / (count - 1))
    return np.sqrt((count - 1) * without.var(-2))


def _drawn(seeds: np.ndarray, rng: np.random.Generator, resamples: int, size: int) -> np.ndarray:
    """Means (trials, resamples, conditions) of so many drawn seeds."""
    return seeds[:, rng.integers(seeds.shape[1], size=(resamples, size))].mean(2)


def coverage(
    found: dict[str, tuple[np.ndarray, Draw]], trials: int, resamples: int, methods: tuple[str, ...] = tuple(METHODS)
) -> Iterator[dict[str, object]]:
    """A row for every population, number of seeds, method and statistic: the share of intervals that hold the truth."""
    for name, (means, draw) in found.items():
        truth = statistics(means)
        for count in COUNTS:
            hits = {method: np.zeros(len(STATISTICS)) for method in methods}
            width = {method: np.zeros(len(STATISTICS)) for method in methods}
            rng = np.random.default_rng([7, count])
            for _ in range(0, trials, 100):
                seeds = draw(rng, 100, count)
                for method in methods:
                    low, high = METHODS[method](seeds, rng, resamples)
                    hits[method] += ((low <= truth) & (truth <= high)).sum(0)
                    width[method] += np.median(high - low, axis=0)
            done = 100 * -(-trials // 100)
            for method in methods:
                for place, statistic in enumerate(STATISTICS):
                    kept = hits[method][place] / done
                    yield {"population": name, "seeds": count, "method": method, "statistic": statistic,
                           "kept": kept, "width": width[method][place] * 100 / done}  # fmt: skip


def samples_coverage(trials: int) -> Iterator[dict[str, object]]:
    """How often intervals of a factor in steps hold a planted shift: seeds learn late or early, returns are noisy.

    A population has the doublings of steps at p = .25 (a shift), the evaluations, their noise, and how much seeds'
    times (in doublings) and heights differ.
    """
    cases = {
        "usual": (2.0, 30, 0.03, 0.4, 0.03),
        "no shift": (0.0, 30, 0.03, 0.4, 0.03),
        "few evaluations": (2.0, 8, 0.03, 0.4, 0.03),
        "noisy": (2.0, 30, 0.12, 0.8, 0.1),
        "cut off by the budget": (3.5, 30, 0.03, 0.4, 0.03),
        "never learned": (8.0, 30, 0.03, 0.4, 0.03),
    }
    for name, (shift, evaluations, noise, late, height) in cases.items():
        steps = np.linspace(0, 1e5, evaluations + 1)
        for count in COUNTS[:2]:
            rng = np.random.default_rng([11, count])
            held, bounds, open_above, estimates = 0, 0, 0, []
            for _ in range(trials):
                curves = {}
                for p in REWARD.values:
                    at = 11.5 + shift * np.log(p) / np.log(REWARD.values[-1]) + rng.normal(0, late, (count, 1))
                    with np.errstate(divide="ignore"):
                        heights = rng.normal(0.8, height, (count, 1)) / (1 + np.exp(-1.2 * (np.log2(steps) - at)))
                    noisy = heights + rng.normal(0, noise, heights.shape)
                    named = "semantic" if p == 1 else f"p{p:g}"
                    curves[named] = {seed: (steps, noisy[seed]) for seed in range(count)}
                samples = samples_between(curves, dict.fromkeys(curves, (0.0, steps[-1])), "semantic", (REWARD,))
                ((found, interval),) = samples.shift_intervals().values()
                held += bool(interval.low <= shift <= interval.high)
                bounds += bool(found.open == 1)
                open_above += bool(np.isinf(interval.high))
                estimates.append(float(found.value))
            yield {"population": name, "shift": shift, "seeds": count, "kept": held / trials,
                   "mean": np.mean(estimates), "sd": np.std(estimates), "at least": bounds / trials,
                   "no upper end": open_above / trials}  # fmt: skip


def figure(table: pd.DataFrame) -> Figure:
    """Coverage by number of seeds: a panel for each population and statistic, a line for each method."""
    names, drawn = list(dict.fromkeys(table["population"])), Figure(layout="constrained")
    drawn.set_size_inches(2.2 * len(STATISTICS), 1.9 * len(names))
    styles = dict(zip(METHODS, ("o-", "s--", "^:", "v-."), strict=True))
    colours = dict(zip(METHODS, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True))
    panels = drawn.subplots(len(names), len(STATISTICS), sharex=True, sharey=True, squeeze=False)
    for (name, statistic), rows in table.groupby(["population", "statistic"], sort=False):
        axes = panels[names.index(name), STATISTICS.index(statistic)]
        axes.axhspan(LEAST_KEPT, MOST_KEPT, color="0.9")
        for method, of_method in rows.groupby("method", sort=False):
            axes.plot(
                of_method["seeds"], of_method["kept"], styles[method], color=colours[method], ms=3, lw=1, label=method
            )
        axes.set_xticks(COUNTS)
        axes.set_ylim(0.6, 1)
        axes.set_title(f"{statistic}, {name}", fontsize=7)
        axes.tick_params(labelsize=7)
    panels[0, 0].legend(fontsize=6, frameon=False, loc="lower right")
    drawn.supxlabel("seeds", fontsize=8)
    drawn.supylabel("share of 95 % intervals that hold the truth", fontsize=8)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--study", help="a study's folder: adds a population like its seeds")
    parser.add_argument("--out", help="folder for coverage.csv, coverage.png and coverage.svg")
    parser.add_argument("--samples", action="store_true", help="factors in steps alone, by planted shifts")
    options = parser.parse_args()
    if options.samples:
        print(pd.DataFrame(samples_coverage(options.trials)).round(3).to_string(index=False))
        return
    found = populations() | ({"measured": measured(options.study)} if options.study else {})
    table = pd.DataFrame(coverage(found, options.trials, options.resamples))
    wide = table.pivot_table("kept", ["population", "method", "seeds"], "statistic", sort=False)[list(STATISTICS)]
    print(wide.round(3).to_string())
    if options.out:
        folder = Path(options.out)
        folder.mkdir(parents=True, exist_ok=True)
        table.to_csv(folder / "coverage.csv", index=False)
        for ending in ("png", "svg"):
            figure(table).savefig(folder / f"coverage.{ending}", dpi=110)


if __name__ == "__main__":
    main()
