"""What can be told where nobody knows the range of a task: returns as they are, their differences, and ranks."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence
from lcd.analyses.areas import tasks_of, with_interval
from lcd.analyses.levels import place_of_setting
from lcd.curves.spans import area, interval_of_agents
from lcd.curves.table import SETTING, split_curves
from lcd.scores.ranking import rank_intervals, ranks_of
from lcd.statistics.intervals import BOOTSTRAP_SEED, iqm, mean_over_seeds, replicates

Setting = tuple
"""The values of `SETTING` but for the benchmark."""
Curves = Mapping[Setting, Mapping[int, tuple[np.ndarray, np.ndarray]]]
"""Setting → seed → steps and returns."""
Means = Mapping[Setting, pd.Series]
"""Setting → seed → the mean return over the steps that all settings of the task span."""
NAMES = SETTING[1:]
NOTE = (
    "Returns as they are, on held-out copies: their mean height over training, and the last ones (interquartile mean "
    "over seeds). The difference is to the first setting of the same agent; rank 1 has the highest mean of its task. "
    "Without R_min and R_max, numbers of different tasks cannot be compared; ranks can."
)


def without_range(evidence: Evidence) -> list[Analysis]:
    """What is there to tell of tasks whose range nobody knows: returns as they are, differences, ranks."""
    curves = evidence.diagnosis.curves
    return list(raw_returns(curves)) if len(curves) and curves["normalised"].isna().any() else []


def raw_returns(curves: pd.DataFrame) -> Iterator[Analysis]:
    """The returns of tasks without a range, and how settings rank over all tasks that have them.

    Args:
        curves: Checked curves of tasks as they were trained, with the column `normalised` (NaN without a range).
    """
    held_out = curves[curves["split"] == "eval"]
    without = {key for key, _ in tasks_of(held_out[held_out["normalised"].isna()])}
    rows, means = [], {}
    for key, mine in tasks_of(held_out.assign(normalised=held_out["return_mean"])):
        by_seed = _by_seed(mine)
        means[key] = _means(by_seed, f"task '{key[1]}'")
        if key in without:
            rows += [dict(zip(("benchmark", "task"), key, strict=True)) | row for row in _rows(by_seed, means[key])]
    yield Analysis("returns", "Returns of tasks whose range is not known", pd.DataFrame(rows), (), NOTE)
    ranks = _ranks(means)
    if len(ranks) > 1:
        note = "Mean over tasks of the rank by mean return (1 is the best), of settings that all tasks have."
        yield Analysis("return_ranks", "Ranks by return", ranks, (), note)


def _by_seed(rows: pd.DataFrame) -> Curves:
    """Setting → seed → curve, of one task; plain pixels first."""
    found: dict[Setting, dict[int, tuple[np.ndarray, np.ndarray]]] = {}
    for (*setting, seed), curve in split_curves(rows, [*NAMES, "seed"]).items():
        found.setdefault(tuple(setting), {})[int(seed)] = curve
    return dict(sorted(found.items(), key=lambda item: place_of_setting(**dict(zip(NAMES, item[0], strict=True)))))


def _means(
    curves: Mapping[Setting, Mapping[int, tuple[np.ndarray, np.ndarray]]], where: str
) -> dict[Setting, pd.Series]:
    grids: dict[str, list[np.ndarray]] = {}
    for setting, seeds in curves.items():
        grids.setdefault(setting[NAMES.index("agent")], []).extend(steps for steps, _ in seeds.values())
    low, high = interval_of_agents(grids, where)
    return {
        setting: pd.Series({seed: area(*curve, low, high) for seed, curve in seeds.items()})
        for setting, seeds in curves.items()
    }


def _rows(curves: Curves, means: Means) -> Iterator[dict]:
    """A row for each setting of one task."""
    ranks = dict(zip(means, ranks_of(np.array([sample.mean() for sample in means.values()])), strict=True))
    first: dict[str, Setting] = {}
    for setting, sample in means.items():
        named = dict(zip(NAMES, setting, strict=True))
        baseline = first.setdefault(named["agent"], setting)
        last = np.array([heights[-1] for _, heights in curves[setting].values()])
        row = named | with_interval(("mean return",), {"": sample}, lambda averages: averages)
        row |= {"last return": float(iqm(last)), "seeds": float(len(sample)), "rank": float(ranks[setting])}
        difference = dict.fromkeys(("difference", "difference_low", "difference_high"), np.nan)
        if baseline != setting:
            pair = {"own": sample, "baseline": means[baseline]}
            difference = with_interval(("difference",), pair, lambda both: (both[..., 0] - both[..., 1])[..., None])
        yield row | difference


def _ranks(means: Mapping[tuple[str, str], Means]) -> pd.DataFrame:
    """The mean rank over tasks of each setting that all tasks have, with intervals over seeds: quantiles."""
    shared = [
        setting for setting in next(iter(means.values())) if all(setting in of_task for of_task in means.values())
    ]
    if len(shared) < 2:
        return pd.DataFrame()
    samples = [of[setting].sort_index() for of in means.values() for setting in shared]
    arrays = [sample.to_numpy() for sample in samples]
    seeds = [tuple(sample.index) for sample in samples]

    def mean_ranks(averages: np.ndarray) -> np.ndarray:
        by_task = averages.reshape(*averages.shape[:-1], len(means), len(shared))
        return ranks_of(by_task).mean(-2)

    estimate = np.array([mean_over_seeds(array) for array in arrays])
    drawn = replicates(arrays, seeds=seeds, rng=np.random.default_rng(BOOTSTRAP_SEED))
    low, high = rank_intervals(estimate, drawn, min(map(len, arrays)), mean_ranks)
    table = pd.DataFrame(shared, columns=list(NAMES)).assign(tasks=float(len(means)))
    return table.assign(**{"mean rank": mean_ranks(estimate), "mean rank_low": low, "mean rank_high": high})
