"""What is found of MDPs, as tables for a terminal."""

from __future__ import annotations

import math

from rich import box
from rich.table import Table
from rich.text import Text

from lcd.horizon.analysis import Result, Settings
from lcd.horizon.simulated import Simulated
from lcd.process.exits import printable
from lcd.process.limits import readable_size

NONE = "–"


def one(result: Result, settings: Settings) -> Table:
    """A row for each thing that is said of one MDP."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_header=False, title_justify="left")
    table.add_column(style="dim")
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    sticky = f", sticky actions {result.sticky:g}" if result.sticky else ""
    size = f"{result.states:,} × {result.actions}, T = {result.steps}"
    rows = [
        ("states × actions", size, f"{printable(result.name)}{sticky}"),
        ("J*", number(result.optimal_return), "the best undiscounted return"),
        ("random", number(result.random_return), "the mean return of random actions"),
        ("k", least(result), f"steps of look-ahead that are enough, γ = {settings.discount:g}"),
        ("optimum", "agrees" if result.discount_agrees else "differs", "policies that are best with γ, and without"),
    ]
    rows += _of_chance(result) if result.sticky else _of_certainty(result)
    if result.horizon is not None:
        share = f"{settings.confidence:.0%}"
        rows += [
            ("GORP's k, m", pair(result), f"succeed half the time; bounds at {share}"),
            ("H", effective(result), f"effective horizon, between {span(result)}"),
            ("GORP", number(result.gorp_timesteps), "timesteps, T² · A^H"),
        ]
    rows.append(("time, memory", f"{result.seconds:.1f} s", readable_size(result.memory)))
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _of_certainty(result: Result) -> list[tuple[str, str, str]]:
    """What is said of a deterministic MDP alone."""
    return [
        ("p_opt", number(result.p_opt), "how often random actions are optimal"),
        ("random guessing", number(result.random_timesteps), "timesteps, T · log 2 / p_opt"),
        ("H, at most", NONE if result.bound is None else f"{result.bound.h:.2f}", "by the tables alone"),
    ]


def _of_chance(result: Result) -> list[tuple[str, str, str]]:
    """What is said of a stochastic one alone."""
    if result.stochastic is None:
        return [("H̄", NONE, "no k solves it")]
    k, gap = result.stochastic.k, result.stochastic.gap
    return [("H̄", f"{result.stochastic.h:.2f}", f"stochastic effective horizon: k = {k} and a gap of {gap:.3g}")]


def several(results: list[Result]) -> Table:
    """A row for each MDP."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("MDP", overflow="fold")
    for head in ("S", "A", "T", "J*", "random", "k", "k, m of GORP", "H", "H between", "H ≤", "p_opt", "s"):
        table.add_column(head, justify="right")
    for found in results:
        bound = NONE if found.bound is None else f"{found.bound.h:.1f}"
        table.add_row(
            Text(printable(found.name)), f"{found.states:,}", str(found.actions), str(found.steps),
            number(found.optimal_return), number(found.random_return), least(found), pair(found), effective(found),
            span(found), bound,
            number(found.p_opt), f"{found.seconds:.1f}",
        )  # fmt: skip
    return table


def simulated(found: Simulated) -> Table:
    """GORP's tries on a simulator."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for head in ("k", "m", "k + log_A m", "runs", "reach the best return"):
        table.add_column(head, justify="right")
    for each in found.tries:
        table.add_row(str(each.k), f"{each.m:,}", f"{each.h:.2f}", str(each.runs), f"{each.won / each.runs:.0%}")
    return table


def simulated_summary(found: Simulated) -> str:
    """What follows of GORP's tries on a simulator."""
    about = f"{printable(found.name)}: {found.actions} actions, T = {found.steps}, {found.simulated:,} steps; "
    if not found.tries:
        return f"{about}all episodes had the return {number(found.best_return)}, which says nothing of H."
    high = "?" if found.high is None else f"{found.high:.2f}"
    h = f"≥ {found.low:.2f}" if found.h is None else f"= {found.h:.2f}"
    best = number(found.best_return)
    return f"{about}H {h}, between {found.low:.2f} and {high}, for the best return that was seen, {best}."


def number(value: float | None) -> str:
    """A number in few digits."""
    if value is None:
        return NONE
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def least(result: Result) -> str:
    """The least k, or more than were tried, or none."""
    if result.solvable.k is not None:
        return str(result.solvable.k)
    return "none" if result.solvable.tried >= result.steps else f"> {result.solvable.tried}"


def pair(result: Result) -> str:
    """The k and m of the effective horizon."""
    if result.horizon is None or result.horizon.m is None:
        return NONE
    best = next(each for each in result.horizon.tried if each.k == result.horizon.k)
    high = "?" if best.high is None else f"{best.high:,}"
    return f"{best.k}, {best.m:,} ({best.low:,}–{high})"


def effective(result: Result) -> str:
    """The effective horizon, or from where on it must lie; of stochastic MDPs theirs."""
    if result.stochastic is not None:
        return f"H̄ {result.stochastic.h:.2f}"
    if result.horizon is None:
        return NONE
    return f"≥ {result.horizon.low:.2f}" if result.horizon.h is None else f"{result.horizon.h:.2f}"


def span(result: Result) -> str:
    """Between what the effective horizon lies, GORP's certain successes and the tables' bound taken together."""
    if result.horizon is None:
        return NONE
    bound = None if result.bound is None else result.bound.h
    highs = [each for each in (result.horizon.high, bound) if each is not None]
    return f"{result.horizon.low:.2f} and {min(highs):.2f}" if highs else f"{result.horizon.low:.2f} and ?"
