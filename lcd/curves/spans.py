"""The steps over which curves are compared, and the areas under them."""

from collections.abc import Mapping, Sequence

import numpy as np

from lcd.envs.errors import InputError


def common_interval(grids: list[np.ndarray], where: str, overlap: float = 0.9) -> tuple[float, float]:
    """The steps that all curves span.

    Args:
        grids: each curve's steps, in order.
        where: what these are the curves of, for an error's sentence.
        overlap: the least share of the steps spanned by any that all must span.
    """
    if min(len(grid) for grid in grids) < 2:
        raise InputError(
            f"A curve of {where} has one evaluation only: an area needs at least two (is a run unfinished?)."
        )
    first, last = [grid[0] for grid in grids], [grid[-1] for grid in grids]
    low, high = max(first), min(last)
    share = max(high - low, 0.0) / (max(last) - min(first))
    if share < overlap:
        raise InputError(
            f"The curves of {where} have {share:.0%} of their steps in common (shortest end {high:g}, "
            f"longest {max(last):g}): at least {overlap:.0%} is needed (is a run unfinished?)."
        )
    return low, high


def interval_of_agents(
    grids: Mapping[str, Sequence[np.ndarray]], where: str, overlap: float = 0.9
) -> tuple[float, float]:
    """The steps that the curves of all agents span, whose budgets may differ.

    An agent's own curves must be of about the same length; the agent with the least steps says how far all are
    compared.

    Args:
        grids: agent to the steps of each of its curves, in order.
        where: what these are the curves of, for an error's sentence.
        overlap: as of `common_interval`, for each agent.
    """
    if len(grids) == 1:
        return common_interval(list(*grids.values()), where, overlap)
    spans = {agent: common_interval(list(mine), f"{where} by '{agent}'", overlap) for agent, mine in grids.items()}
    low, high = max(first for first, _ in spans.values()), min(last for _, last in spans.values())
    if low >= high:
        shortest, latest = min(spans, key=lambda name: spans[name][1]), max(spans, key=lambda name: spans[name][0])
        raise InputError(
            f"The curves of {where} by '{shortest}' end at step {high:g}, before those by '{latest}' begin ({low:g}): "
            "agents are compared over steps that all of them have."
        )
    return low, high


def area(steps: np.ndarray, values: np.ndarray, low: float, high: float) -> float:
    """Mean height of a piecewise-linear curve between two steps within its span; exact."""
    inside = (steps > low) & (steps < high)
    grid = np.concatenate([[low], steps[inside], [high]])
    heights = np.interp(grid, steps, values)
    return float(np.sum(np.diff(grid) * (heights[1:] + heights[:-1]) / 2) / (high - low))
