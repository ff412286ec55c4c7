"""What the paper of MDP Playground (Rajan et al., section 6.2) says of its discrete toy, as tests on a study's grid.

docs/mdp-playground-figures.md lists each claim with its rule. Areas are of training returns, as in the paper's bars,
unless a claim says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lcd.analyses.analysis import Analysis, Evidence
from lcd.analyses.grids import TOYS, Grid, areas, value_text
from lcd.curves.table import as_trained
from lcd.envs.errors import InputError
from lcd.statistics.confidence import ALPHA

FALLS = -0.7
"""Performance falls with a dial from this rank correlation on: the paper calls 0.7 and more a strong one."""
CLEAR = 0.1
"""A loss of at least this share is a clear one, and means that differ by no more hardly differ."""
LEARNS = 0.5
"""Who keeps at least this share still learns."""
NOISY = 2.0
"""Seeds vary much if they do by this many times as much as without the dial."""
FEWEST = 5
"""Seeds without which nothing is tested."""

Verdict = tuple[str, bool]
"""What was found, and whether the claim holds."""
Point = Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """The areas of one agent on the discrete toy.

    Attributes:
        table: rows of `lcd.analyses.grids.areas`.
        amounts: dial → its values, from the least to the most.
    """

    table: pd.DataFrame
    amounts: Mapping[str, Sequence[Any]]

    def at(self, point: Point, metric: str = "train") -> pd.Series:
        """The area of each seed at a point of the grid; dials that it does not name have their least value."""
        whole = {dial: amounts[0] for dial, amounts in self.amounts.items()} | dict(point)
        chosen = self.table[self.table["metric"] == metric]
        for dial, amount in whole.items():
            chosen = chosen[chosen[dial] == value_text(amount)]
        values = chosen.set_index("seed")["value"]
        if len(values) < FEWEST or values.index.has_duplicates:
            where = ", ".join(f"{dial} {value_text(amount)}" for dial, amount in whole.items())
            raise InputError(f"{len(values)} seeds at {where} ({metric}), at least {FEWEST} are needed")
        return values

    def most(self, dial: str) -> Point:
        """The point where this dial is turned most and no other one is."""
        return {dial: self.amounts[dial][-1]}


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Attributes:
        dials: of the grid's that it is about.
        says: the claim.
        paper: where the paper says it.
        test: what decides.
    """

    dials: tuple[str, ...]
    says: str
    paper: str
    test: Callable[[Measured], Verdict]


def greater(one: pd.Series, other: pd.Series) -> float:
    """The p-value of a one-sided Wilcoxon signed-rank test over the seeds that both have."""
    gap = (one - other).dropna()
    if len(gap) < FEWEST:
        raise InputError(f"{len(gap)} seeds in common, at least {FEWEST} are needed")
    return 1.0 if not gap.any() else float(stats.wilcoxon(gap, alternative="greater").pvalue)


def _above(found: Measured, better: tuple[Point, str], worse: tuple[Point, str]) -> Verdict:
    one, other = found.at(*better), found.at(*worse)
    p = greater(one, other)
    return f"{one.mean():.3g} > {other.mean():.3g}, p {p:.2g}", p < ALPHA


def _falls(dial: str) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        amounts = found.amounts[dial]
        means = [found.at({dial: amount}).mean() for amount in amounts]
        p = greater(found.at({}), found.at(found.most(dial)))
        r = float(stats.spearmanr(range(len(means)), means).statistic) if len(set(means)) > 1 else 0.0
        listed = ", ".join(f"{mean:.3g} ({value_text(amount)})" for mean, amount in zip(means, amounts, strict=True))
        return f"{listed}; r {r:.2f}, p {p:.2g}", p < ALPHA and r <= FALLS

    return test


def _clearly_worse(dial: str, amount: float) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        before, after = found.at({}), found.at({dial: amount})
        p, lost = greater(before, after), 1 - after.mean() / before.mean()
        return f"loses {100 * lost:.0f} %, p {p:.2g}", bool(p < ALPHA and lost >= CLEAR)

    return test


def _still_learns(dial: str, amount: float) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        kept = found.at({dial: amount}).mean() / found.at({}).mean()
        return f"keeps {100 * kept:.0f} %", bool(kept >= LEARNS)

    return test


def _spread(dial: str, amount: int) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        spreads = {each: float(found.at({dial: each}).std()) for each in found.amounts[dial]}
        if amount not in spreads:
            raise InputError(f"{dial} {amount} is not in the grid")
        least = spreads[found.amounts[dial][0]]
        told = ", ".join(f"{spread:.3g} ({value_text(each)})" for each, spread in spreads.items())
        return told, least <= min(spreads.values()) and spreads[amount] >= NOISY * least

    return test


def _hardly_matters(dial: str) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        means = {amount: float(found.at({dial: amount}).mean()) for amount in found.amounts[dial]}
        told = ", ".join(f"{mean:.3g} ({value_text(amount)})" for amount, mean in means.items())
        return told, np.ptp(list(means.values())) <= CLEAR * max(means.values())

    return test


def _better_without(dial: str) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        return _above(found, (found.most(dial), "noise_free"), (found.most(dial), "train"))

    return test


def _poor_without(dial: str) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        most, none = found.at(found.most(dial), "noise_free"), found.at({}, "noise_free")
        kept = most.mean() / none.mean()
        return f"keeps {100 * kept:.0f} %", bool(kept < LEARNS and greater(none, most) < ALPHA)

    return test


def _costs_less(cheap: str, dear: str, metric: str = "train") -> Callable[[Measured], Verdict]:
    return lambda found: _above(found, (found.most(cheap), metric), (found.most(dear), metric))


DELAY, LENGTH, MOVES, PAYS, DENSITY = DIALS = (
    "delay", "sequence_length", "transition_noise", "reward_noise", "reward_density",
)  # fmt: skip
LITTLE, SOME = 0.02, 1
"""Transition noise that is a clear handicap, and reward noise that is not."""

CLAIMS = (
    Claim((DELAY,), "Performance drops with delay.", "6.2.5, figures 9a, 19, 39", _falls(DELAY)),
    Claim((DELAY,), "Seeds vary least without delay, and very much at delay 2.", "6.2.5, figure 13", _spread(DELAY, 2)),
    Claim((LENGTH,), "Performance drops with sequence length.", "6.2.5, figures 9c, 20, 40", _falls(LENGTH)),
    Claim((DELAY, LENGTH), "Sequence length costs more than delay.", "6.2.5, figures 9a, 9c",
          _costs_less(DELAY, LENGTH)),
    Claim((MOVES,), "Performance drops with transition noise.", "6.2.4, figures 7a, 21, 37", _falls(MOVES)),
    Claim((MOVES,), "Transition noise of 0.02 is a clear handicap.", "6.2.4", _clearly_worse(MOVES, LITTLE)),
    Claim((MOVES,), "Policies trained under transition noise do better without it.", "6.2.4, figures 7b, 23",
          _better_without(MOVES)),
    Claim((PAYS,), "Performance drops with reward noise.", "6.2.4, figures 8a, 22, 38", _falls(PAYS)),
    Claim((PAYS,), "With reward noise of 1 it still learns.", "6.2.4", _still_learns(PAYS, SOME)),
    Claim((PAYS,), "Policies trained under reward noise do not do well without it.", "6.2.4, figures 8b, 24",
          _poor_without(PAYS)),
    Claim((MOVES, PAYS), "Without noise, transition noise in training has cost less than reward noise.",
          "6.2.4, figures 7b, 8b, 44", _costs_less(MOVES, PAYS, "noise_free")),
    Claim((MOVES, PAYS), "Training suffers more from transition noise of 0.02 than from reward noise of 1.", "6.2.4",
          lambda found: _above(found, ({PAYS: SOME}, "train"), ({MOVES: LITTLE}, "train"))),
    Claim((DENSITY,), "Reward density hardly matters.", "6.2.7, figures 10, 25", _hardly_matters(DENSITY)),
)  # fmt: skip


def claims_about_dials(evidence: Evidence) -> Analysis | None:
    """Does what MDP Playground's paper says of its discrete toy hold here, for each agent of a study's grid?"""
    grid = evidence.grid
    if grid is None or not set(grid.dimensions) & set(DIALS):
        return None
    rows = list(run_claims(grid, evidence.read))
    if not rows:
        return None
    tested = [row for row in rows if row["outcome"] != "not tested"]
    held = sum(row["outcome"] == "holds" for row in tested)
    # What differs from the paper comes first.
    ordered = sorted(rows, key=lambda row: ("fails", "holds", "not tested").index(row["outcome"]))
    return Analysis(
        "playground_claims",
        "MDP Playground's claims",
        pd.DataFrame(ordered),
        [f"{held} of {len(tested)} claims that could be tested hold."],
        "Areas under training curves, or noise-free ones where the claim says so; the rules are in "
        "docs/mdp-playground-figures.md. Tests are one-sided Wilcoxon signed-rank tests over seeds, each at the level "
        f"{ALPHA:g}.",
    )


def run_claims(grid: Grid, curves: pd.DataFrame) -> Iterator[dict[str, str]]:
    """A row for each agent and each claim about exactly the grid's dials: paper, found, outcome."""
    curves = curves[as_trained(curves)]
    curves = curves[curves["task"].isin(grid.tasks) & curves["agent"].isin(grid.agents)]
    table = areas(curves, grid)
    table = table[table["base"] == TOYS[0]]
    points = [place["point"] for place in grid.tasks.values()]
    amounts = {dial: _amounts([point.get(dial) for point in points]) for dial in grid.dials}
    for agent, of_agent in table.groupby("agent", sort=False):
        for claim in CLAIMS:
            if set(claim.dials) <= set(grid.dials) and all(len(each) > 1 for each in amounts.values()):
                row = {"agent": str(agent), "claim": claim.says, "paper": claim.paper}
                try:
                    found, holds = claim.test(Measured(of_agent, amounts))
                except InputError as why:
                    yield row | {"found": str(why), "outcome": "not tested"}
                else:
                    yield row | {"found": found, "outcome": "holds" if holds else "fails"}


def _amounts(values: Sequence[Any]) -> list[Any]:
    """The values of a dial from the least to the most; of what are no numbers, in the order in which they come."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        return sorted(set(numbers))
    return list({value_text(value): value for value in values}.values())
