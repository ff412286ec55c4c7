"""Areas under the curves of chosen conditions, and statistics of them with intervals over seeds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lcd.curves.spans import area, interval_of_agents
from lcd.curves.table import split_curves
from lcd.statistics.intervals import bootstrap, mean_over_seeds

Condition = Mapping[str, object]
Statistic = Callable[[np.ndarray], np.ndarray]


def rows_where(curves: pd.DataFrame, split: str = "eval", **wanted: Any) -> pd.DataFrame:
    """The rows of one split whose columns have the wanted values."""
    chosen = curves["split"] == split
    for name, value in wanted.items():
        chosen &= np.isclose(curves[name], value) if name == "reward_p" else curves[name] == value
    return curves[chosen]


class SeedAreas(dict[str, pd.Series]):
    """Condition to its AUC by seed.

    Attributes:
        last: the step up to which all conditions are compared.
        cut: whether some agent was trained for longer than that.
    """

    def __init__(self, areas: Mapping[str, pd.Series], last: float, cut: bool) -> None:
        super().__init__(areas)
        self.last, self.cut = last, cut


def seed_areas(curves: pd.DataFrame, conditions: Mapping[str, Condition], split: str = "eval") -> SeedAreas | None:
    """Each condition's AUC by seed, over the steps that all of the conditions span.

    Agents may have other budgets than each other: then the one with the least steps says how far.

    Args:
        curves: curves of one task, with the column `normalised`.
        conditions: name to the values of columns that choose the condition's rows.

    Returns:
        None where one of the conditions was not trained.
    """
    found = {name: split_curves(rows_where(curves, split, **wanted), ["seed"]) for name, wanted in conditions.items()}
    if not all(found.values()):
        return None
    grids: dict[str, list[np.ndarray]] = {}
    for name, seeds in found.items():
        grids.setdefault(str(conditions[name].get("agent", "")), []).extend(steps for steps, _ in seeds.values())
    low, high = interval_of_agents(grids, f"task '{curves['task'].iloc[0]}'")
    areas = {
        name: pd.Series({key[0]: area(*curve, low, high) for key, curve in seeds.items()})
        for name, seeds in found.items()
    }
    ends = [min(steps[-1] for steps in mine) for mine in grids.values()]
    return SeedAreas(areas, high, max(ends) > high)


def cut_sentence(areas: Iterable[SeedAreas]) -> str:
    """That agents with other budgets were compared over the steps that all of them have, or nothing."""
    lasts = sorted({each.last for each in areas if each.cut})
    if not lasts:
        return ""
    steps = f"{lasts[0]:,.0f}" if len(lasts) == 1 else f"{lasts[0]:,.0f} to {lasts[-1]:,.0f}"
    return f" Agents have budgets of their own: areas are over the steps that all of them have, the first {steps}."


def final_returns(rows: pd.DataFrame) -> pd.Series:
    """The last normalised return of each seed of one condition."""
    return pd.Series({key[0]: heights[-1] for key, (_, heights) in split_curves(rows, ["seed"]).items()}, dtype=float)


def with_interval(names: Sequence[str], samples: Mapping[str, pd.Series], statistic: Statistic) -> dict[str, float]:
    """Statistics of the samples' averages, each with `_low` and `_high`.

    Args:
        names: of what `statistic` makes of averages (..., samples), in order.
    """
    arrays = [sample.sort_index().to_numpy() for sample in samples.values()]
    seeds = [tuple(sample.sort_index().index) for sample in samples.values()]
    estimate = statistic(np.array([mean_over_seeds(array) for array in arrays]))
    low, high = bootstrap(arrays, statistic, seeds=seeds)
    return {
        name + end: float(values[place])
        for place, name in enumerate(names)
        for end, values in (("", estimate), ("_low", low), ("_high", high))
    }


def tasks_of(curves: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """The curves of each (benchmark, task), one after the other."""
    yield from curves.groupby(["benchmark", "task"], sort=True)
