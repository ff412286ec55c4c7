"""Families whose points take turns at the seeds: one agent a point, so that as many agents stand on more points.

Where every seed is on all points, each has an overall performance of its own, and how these differ says how sure their
mean is. Here it is how much each score surprises after all others, as a Gaussian process over the features has them
(`lcd.families.quadrature`): what a seed's points have in common that the others did not lead to expect is that seed's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lcd.curves.reading import group_numbers
from lcd.families.quadrature import learned, positions, surprises, with_known
from lcd.families.weights import SETTING, counting

TURN = "turn"
"""A column of curves: the seed of a point's agent, where points take turns; NaN elsewhere."""


@dataclass(frozen=True)
class Turns:
    """Whose turn it was at each point of one method, and how its scores surprise.

    Attributes:
        seeds: those that the points take turns at.
        called: what the curves of `with_turns` call the seed of each.
        of_points: (points,): the place of the point's seed among them.
        surprise: (points, points): times the scores, how far each is from what the others lead to expect.
    """

    seeds: tuple[int, ...]
    called: int
    of_points: np.ndarray
    surprise: np.ndarray

    def weights(self, distribution: np.ndarray) -> np.ndarray:
        """(seeds, points): what scores weigh in the overall performance of each seed.

        Their mean over the seeds is the distribution itself, and each seed's sum to 1. A seed whose points do better
        than the others lead to expect is as far above the mean as these points' weight says, so that Student's
        interval over the seeds is one of the mean.

        Args:
            distribution: the probability of each point.
        """
        mine = self.of_points == np.arange(len(self.seeds))[:, None]
        unexpected = np.where(mine, distribution, 0.0) @ self.surprise
        return distribution + len(self.seeds) * (unexpected - unexpected.mean(0))


def with_turns(curves: pd.DataFrame) -> pd.DataFrame:
    """Curves in which the agents of points that take turns share one seed number, with theirs in the column `TURN`.

    A method's points take turns where each has one seed, and not all have the same one. One of them, the default, may
    have more, of which the first counts; so it is of points that weigh nothing, which have no say in this.

    Args:
        curves: rows that `lcd.curves.table.of_points` chooses.
    """
    method = group_numbers(curves, ["benchmark", "task", *SETTING, "agent"])
    _, first, agent = np.unique(
        group_numbers(curves.assign(method=method), ["method", "context", "seed"]),
        return_index=True, return_inverse=True,
    )  # fmt: skip
    agents = curves.iloc[first][["context", "seed"]].assign(method=method[first], counts=counting(curves)[first])
    several = agents.duplicated(["method", "context"], keep=False)
    further = agents.duplicated(["method", "context"])
    with_more = agents[several & ~further & agents["counts"]].groupby("method").size()
    seeds = agents[~several & agents["counts"]].groupby("method")["seed"]
    takes = agents["method"].map(with_more).fillna(0).le(1) & agents["method"].map(seeds.nunique()).gt(1)
    called, turn = agents["seed"].where(~takes, agents["method"].map(seeds.min())), agents["seed"].where(takes)
    told = curves.assign(seed=called.astype(int).to_numpy()[agent], **{TURN: turn.to_numpy(float)[agent]})
    return told[~(takes & further).to_numpy()[agent]]


def one_agent_a_point(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a family without the default point's further agents, of methods whose points take turns."""
    taking = rows[rows[TURN].notna()]
    called = rows["agent"].map(dict(zip(taking["agent"], taking["seed"], strict=True)))
    return rows[called.isna() | (rows["seed"] == called)]


def turns_of(
    rows: pd.DataFrame,
    contexts: Sequence[str],
    table: np.ndarray,
    beforehand: np.ndarray | None,
    scores: Mapping[str, np.ndarray],
) -> dict[str, Turns]:
    """Method → whose turn it was at each point, of those whose points take turns.

    Args:
        rows: one an agent, with `TURN`.
        contexts: the points, in the order of the arrays.
        table: (points, features).
        beforehand: what else is known of each point, as `lcd.families.choosing.choose_points` takes it.
        scores: method → (points, seeds).
    """
    found: dict[str, Turns] = {}
    taking = [method for method in scores if rows.loc[rows["agent"] == method, TURN].notna().any()]
    if not taking:
        return found
    features = positions(with_known(table, beforehand))
    surprise = surprises(features, learned(features, np.stack([mine.mean(1) for mine in scores.values()])))
    for method in taking:
        mine = rows[rows["agent"] == method].set_index("context").loc[list(contexts)]
        # The default point may be one of them: of its agents the one counts that is called as the points' agents are.
        seeds, places = np.unique(mine[TURN].fillna(mine["seed"]).astype(int), return_inverse=True)
        found[method] = Turns(tuple(seeds.tolist()), int(mine["seed"].iloc[0]), places, surprise)
    return found
