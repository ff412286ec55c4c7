"""Areas under the curves of chosen conditions, and statistics of them with intervals over seeds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lcd.curves.table import area, common_interval, split_curves
from lcd.statistics.intervals import bootstrap, mean_over_seeds

Condition = Mapping[str, object]
Statistic = Callable[[np.ndarray], np.ndarray]


def rows_where(curves: pd.DataFrame, split: str = "eval", **wanted: Any) -> pd.DataFrame:
    """The rows of one split whose columns have the wanted values."""
    chosen = curves["split"] == split
    for name, value in wanted.items():
        chosen &= np.isclose(curves[name], value) if name == "reward_p" else curves[name] == value
    return curves[chosen]


def seed_areas(
    curves: pd.DataFrame, conditions: Mapping[str, Condition], split: str = "eval"
) -> dict[str, pd.Series] | None:
    """Each condition's AUC by seed, over the steps that all of the conditions span.

    Args:
        curves: curves of one task, with the column `normalised`.
        conditions: name to the values of columns that choose the condition's rows.

    Returns:
        None where one of the conditions was not trained.
    """
    found = {name: split_curves(rows_where(curves, split, **wanted), ["seed"]) for name, wanted in conditions.items()}
    if not all(found.values()):
        return None
    grids = [steps for seeds in found.values() for steps, _ in seeds.values()]
    low, high = common_interval(grids, f"task '{curves['task'].iloc[0]}'")
    return {
        name: pd.Series({key[0]: area(*curve, low, high) for key, curve in seeds.items()})
        for name, seeds in found.items()
    }


def final_returns(rows: pd.DataFrame) -> pd.Series:
    """The last normalised return of each seed of one condition."""
    return pd.Series({key[0]: heights[-1] for key, (_, heights) in split_curves(rows, ["seed"]).items()}, dtype=float)


def with_interval(names: Sequence[str], samples: Mapping[str, pd.Series], statistic: Statistic) -> dict[str, float]:
    """Statistics of the samples' averages, each with `_low` and `_high`.

    Args:
        names: of what `statistic` makes of averages (..., samples), in order.
    """
    arrays = [sample.sort_index().to_numpy() for sample in samples.values()]
    paired = len({tuple(sample.sort_index().index) for sample in samples.values()}) == 1
    estimate = statistic(np.array([mean_over_seeds(array) for array in arrays]))
    low, high = bootstrap(arrays, statistic, paired=paired)
    return {
        name + end: float(values[place])
        for place, name in enumerate(names)
        for end, values in (("", estimate), ("_low", low), ("_high", high))
    }


def tasks_of(curves: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """The curves of each (benchmark, task), one after the other."""
    yield from curves.groupby(["benchmark", "task"], sort=True)
