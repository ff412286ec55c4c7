"""All that is said of one MDP: its size, its returns, k, m, H, how often chance is optimal, bounds, time and memory."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lcd.envs.checks import require_whole_knob
from lcd.envs.errors import InputError
from lcd.envs.streams import seed_sequence
from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon.bounds import Bound, upper_bound
from lcd.horizon.exact import solve
from lcd.horizon.gorp import Gorp, timesteps
from lcd.horizon.layers import Layers, require_room
from lcd.horizon.search import Horizon, Search
from lcd.horizon.solvable import Solvable, least_k
from lcd.horizon.sticky import StochasticHorizon, solve_sticky
from lcd.horizon.ties import Ties
from lcd.process.exits import printable

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How an MDP is looked at.

    Attributes:
        discount: γ while planning; returns are told, and policies judged, without discount.
        tolerance: relative difference up to which Q-values are tied; None: what rounding of the rewards asks for.
        timesteps: most timesteps of one run of GORP, counted as T² · A^k · m; 0: GORP is not run.
        runs: most runs of GORP for one (k, m).
        confidence: of the bounds on m.
        most_k: the greatest k that is tried; None: the horizon, or as far as `solvable.MOST_WORK` goes.
        seed: of GORP's random actions.
        up_to: where no (k, m) succeeds within the timesteps, an H up to which is looked on; None: no further.
        most_steps: simulated steps of all runs of GORP after which that looking ends.
    """

    discount: float = 0.99
    tolerance: float | None = None
    timesteps: float = 1e7
    runs: int = 400
    confidence: float = 0.95
    most_k: int | None = None
    seed: int = 0
    up_to: float | None = None
    most_steps: float = 1e10

    def __post_init__(self) -> None:
        if not 0 < self.discount <= 1:
            raise InputError(f"discount is {self.discount}, but must be a number above 0 and at most 1.")
        if self.tolerance is not None and not 0 <= self.tolerance < 1:
            raise InputError(f"tolerance is {self.tolerance}, but must be a number from 0 to below 1, or null.")
        if not 0.5 < self.confidence < 1:
            raise InputError(
                f"confidence is {self.confidence}, but must be a number between 0.5 and 1: nothing sampled is certain."
            )
        for key, least in (("runs", 1), ("most_k", 1), ("seed", 0)):
            if getattr(self, key) is not None:
                require_whole_knob(self, key, least)
        if self.up_to is not None and not 0 < self.up_to <= 100:
            raise InputError(
                f"up_to is {self.up_to}, but must be an effective horizon above 0 and at most 100, or null."
            )
        if not 0 < self.most_steps <= 1e15:
            raise InputError(f"most_steps is {self.most_steps}, but must be a number above 0 and at most 1e15.")
        if not 0 <= self.timesteps <= 1e12:
            raise InputError(f"timesteps is {self.timesteps}, but must be a number of timesteps from 0 to 1e12.")


@dataclass(frozen=True)
class Result:
    """What was found of one MDP.

    Attributes:
        name: the MDP's name.
        states: how many states it has.
        actions: how many actions.
        steps: its horizon T.
        sticky: its probability of repeating an action.
        optimal_return: J*, undiscounted.
        random_return: the mean return of random actions.
        solvable: the least k for which it is k-QVI-solvable.
        discount_agrees: is every optimal policy for the planning discount optimal without one?
        p_opt: probability that random actions are optimal; None with sticky actions.
        horizon: the effective horizon as GORP shows it; None with sticky actions, or where GORP was not run.
        bound: an upper bound on the effective horizon.
        stochastic: the stochastic effective horizon, with sticky actions.
        seconds: what the analysis took.
        memory: the most memory that the process held so far, in bytes.
    """

    name: str
    states: int
    actions: int
    steps: int
    sticky: float
    optimal_return: float
    random_return: float
    solvable: Solvable
    discount_agrees: bool
    p_opt: float | None
    horizon: Horizon | None
    bound: Bound | None
    stochastic: StochasticHorizon | None
    seconds: float
    memory: int

    @property
    def random_timesteps(self) -> float | None:
        """T · log 2 / p_opt: timesteps of random actions after which the best episode seen is optimal half the time."""
        if self.p_opt is None:
            return None
        return self.steps * math.log(2) / self.p_opt if self.p_opt > 0 else math.inf

    @property
    def gorp_timesteps(self) -> float | None:
        """Timesteps that GORP takes with the k and m of the effective horizon, T² · A^H."""
        if self.horizon is None or self.horizon.k is None or self.horizon.m is None:
            return None
        return timesteps(self.steps, self.actions, self.horizon.k, self.horizon.m)

    def plain(self) -> dict[str, Any]:
        """Everything as plain data, for JSON: what is no finite number is None."""
        timesteps_of = {"random_timesteps": self.random_timesteps, "gorp_timesteps": self.gorp_timesteps}
        return {**plain(self), **_finite(timesteps_of)}


def analyse(mdp: TabularMDP, settings: Settings | None = None, progress: Progress | None = None) -> Result:
    """Analyse an MDP exactly, and run GORP on it.

    Args:
        mdp: the MDP; with sticky actions everything that is exact, but no GORP, which is for deterministic ones.
        settings: how.
        progress: told of which MDP what is being done.
    """
    settings, began = settings or Settings(), time.perf_counter()

    def tell(doing: str) -> None:
        if progress is not None:
            progress(f"{printable(mdp.name)}: {doing}")

    ties = Ties.of(mdp, settings.tolerance)
    if mdp.sticky > 0:
        tell("solving it with sticky actions")
        solved = solve_sticky(mdp, ties, settings.discount, settings.most_k)
        return Result(
            *_about(mdp), solved.optimal_return, solved.random_return, solved.solvable, solved.discount_agrees,
            None, None, None, solved.horizon, time.perf_counter() - began, _most_memory(),
        )  # fmt: skip
    layers = Layers(mdp)
    require_room(mdp, layers.entries)
    tell("solving it")
    exact = solve(layers, ties, settings.discount)
    tell("looking for k")
    solvable = least_k(layers, ties, exact, settings.most_k, lambda k: tell(f"looking for k, {k} of {mdp.horizon}"))
    tell("bounding its effective horizon")
    bound = upper_bound(layers, ties, exact)
    horizon = None
    if settings.timesteps:
        tell("running GORP")
        rng = np.random.default_rng(seed_sequence(settings.seed, "gorp"))
        gorp = Gorp(layers, exact, ties, rng)
        how = {key: getattr(settings, key) for key in ("runs", "confidence", "most_k", "up_to", "most_steps")}
        horizon = Search(gorp, settings.timesteps, **how).horizon()
    return Result(
        *_about(mdp), exact.optimal_return, exact.random_return, solvable, exact.discount_agrees, exact.p_opt, horizon,
        bound, None, time.perf_counter() - began, _most_memory(),
    )  # fmt: skip


def _about(mdp: TabularMDP) -> tuple[str, int, int, int, float]:
    return mdp.name, mdp.num_states, mdp.num_actions, mdp.horizon, mdp.sticky


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def plain(found: Any) -> dict[str, Any]:
    """A dataclass as plain data, for JSON: what is no finite number is None."""
    return _finite(asdict(found))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
