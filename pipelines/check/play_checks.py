"""What play tells before anything learns: R_min, whether the blind score, how long episodes are, what γ suits."""

from __future__ import annotations

import math
import time
from itertools import product
from typing import Any

import numpy as np
from gymnasium import spaces

from lcd.agents.stepping import Stepper
from lcd.envs.benchmarks import BENCHMARKS, Benchmark, make_copies, reward_range
from lcd.envs.gym_names import PREFIX
from lcd.pipelines.check.random_play import Episodes, Moments, episodes_of
from lcd.pipelines.check.rows import Row

RANGE, BLIND, EPISODES, BUDGET, GAMMA = "R_min, R_max", "blind agents", "episodes", "budget", "γ"
ERRORS = 3.0
"""Standard errors beyond which two means differ."""
BLIND_WARNS, BLIND_FAILS = 0.1, 0.8
"""What always doing the same may get of what lies between a random and the best agent."""
MOST_BEYOND = 0.1
"""Share of random episodes that may be better than the best mean."""
MOST_CONSTANTS, COPIES_OF_EACH = 18, 6
ENOUGH_REWARDS = 30
"""Rewarded episodes of random play that a budget should hold: with fewer there is nothing to begin from."""
FEWEST_EPISODES = 30
GAMMAS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
SEES = 4.0
"""How many times 1/(1 − γ) a reward may be away: what comes then weighs e⁻⁴, two hundredths."""


def _mean(values: np.ndarray) -> tuple[float, float]:
    """A mean and its standard error; NaN where there is none."""
    if not len(values):
        return math.nan, math.nan
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def range_row(benchmark: Benchmark, task: str, episodes: Episodes, seed: int, knobs: dict[str, Any]) -> Row:
    """A random agent's mean return beside what is said to be R_min, and R_max."""
    low, high = reward_range(benchmark, task, seed, knobs)
    mean, error = _mean(episodes.returns)
    if math.isnan(mean):
        return Row(RANGE, "warn", f"R_min is said to be {low:.4g}, and no episode of random play ended.", "", task)
    told = f"a random agent gets {mean:.4g} ± {error:.2g} ({len(episodes.returns)} episodes)"
    beyond = float(np.mean(episodes.returns > high + 1e-6 * max(1, abs(high))))
    if beyond > MOST_BEYOND:
        fix = "say the best mean return that is possible: scores beyond it are nonsense"
        return Row(RANGE, "fail", f"{told}, {beyond:.0%} of them more than R_max = {high:.4g}.", fix, task)
    if low >= high:
        fix = f"r_min['{task}'] = {mean:.3g}"
        return Row(RANGE, "fail", f"R_min = {low:.4g} is not below R_max = {high:.4g}.", fix, task)
    if math.isnan(low) or math.isnan(high):
        lacking = " and ".join(name for name, value in (("R_min", low), ("R_max", high)) if math.isnan(value))
        told += (
            f"; {lacking} {'are' if 'and' in lacking else 'is'} not known: returns are told as they are, and no scores."
        )
        return Row(RANGE, "warn", told, _range_given(benchmark, task, mean if math.isnan(low) else low, high), task)
    # A bounded share of the range does not move scores, however sure one is of it.
    if abs(mean - low) > max(ERRORS * error, 0.02 * (high - low)) and not episodes.unfinished:
        fix = f"r_min['{task}'] = {mean:.3g}, or lcd measure for more episodes"
        return Row(RANGE, "warn", f"{told}, and R_min is said to be {low:.4g} (R_max {high:.4g}).", fix, task)
    return Row(RANGE, "pass", f"{told}; R_min {low:.4g}, R_max {high:.4g}.", task=task)


def _range_given(benchmark: Benchmark, task: str, low: float, high: float) -> str:
    """How to say a range that is not known: in the benchmark's file where it is the user's, else to the report."""
    if benchmark.name.startswith(PREFIX) or BENCHMARKS.is_built_in(benchmark.name):
        most = "R_MAX" if math.isnan(high) else f"{high:.4g}"
        fix = f"lcd report STUDY 'ranges.{task}=[{low:.3g},{most}]'"
        return f"{fix}, R_MAX being the best return that is possible" if math.isnan(high) else fix
    return f"r_min['{task}'] = {low:.3g}, and R_max the best that is possible, if anybody knows it"


def blind_row(
    benchmark: Benchmark, task: str, view: str, episodes: Episodes, *, seed: int, patience: float, knobs: dict[str, Any]
) -> Row:
    """What the best agent that always does the same gets, between a random one and the best."""
    random, _ = _mean(episodes.returns)
    names, mine = constant_play(
        benchmark, task, view, seed=seed, steps=8 * _longest(episodes), patience=patience, knobs=knobs
    )
    means = [_mean(found.returns) for found in mine]
    if math.isnan(random) or all(math.isnan(mean) for mean, _ in means):
        return Row(BLIND, "not judged", "no episode ended.", task=task)
    best = max(range(len(means)), key=lambda n: -math.inf if math.isnan(means[n][0]) else means[n][0])
    mean, error = means[best]
    high = reward_range(benchmark, task, seed, knobs)[1]
    of = "the best possible" if math.isfinite(high) else "the best episode of random play"
    most = high if math.isfinite(high) else float(max(episodes.returns.max(), mean))
    share = (mean - random) / (most - random) if most > random else 0.0
    told = f"always {names[best]} gets {mean:.4g}, a random agent {random:.4g}, {of} is {most:.4g}"
    if share < BLIND_WARNS or mean - ERRORS * (0.0 if math.isnan(error) else error) <= random:
        return Row(BLIND, "pass", f"{told}.", task=task)
    fix = "let what must be done depend on what is seen: else views, and so φ, cannot matter"
    return Row(
        BLIND, "fail" if share >= BLIND_FAILS else "warn", f"{told}: {share:.0%} of it is had blindly.", fix, task
    )


def _longest(episodes: Episodes) -> int:
    return int(episodes.lengths.max()) if len(episodes.lengths) else 256


def constant_play(
    benchmark: Benchmark, task: str, view: str, *, seed: int, steps: int, patience: float, knobs: dict[str, Any]
) -> tuple[list[str], list[Episodes]]:
    """What copies that always do the same get: the names of the actions, and the episodes of each."""
    probe = make_copies(benchmark, task, view=view, split="train", num_envs=1, seed=seed, **knobs)
    space = probe.single_action_space
    probe.close()
    constants = _constants(space, seed)
    count = len(constants) * COPIES_OF_EACH
    env = make_copies(benchmark, task, view=view, split="train", num_envs=count, seed=seed, **knobs)
    try:
        actions = np.repeat(np.stack(constants), COPIES_OF_EACH, axis=0).astype(space.dtype)
        stepper, end, columns = Stepper(env), time.perf_counter() + patience, []
        stepper.reset()
        counted = np.zeros(count, int)
        for _ in range(steps):
            step = stepper.step(actions)
            columns.append((step.original * step.valid, step.dones & step.valid))
            counted += step.dones & step.valid
            if time.perf_counter() > end or counted.min() >= 8:
                break
    finally:
        env.close()
    rewards, ended = (np.stack(part).reshape(len(columns), len(constants), -1) for part in zip(*columns, strict=True))
    names = [np.array2string(np.asarray(each), precision=2, threshold=6) for each in constants]
    return names, [episodes_of(rewards[:, n], ended[:, n]) for n in range(len(constants))]


def _constants(space: spaces.Space, seed: int) -> list[np.ndarray]:
    """All actions of a small space; of a large one some, of a continuous one its corners' ends, its middle and some."""
    rng = np.random.default_rng(seed)
    if isinstance(space, spaces.Discrete):
        every = np.arange(space.start, space.start + space.n)
        return list(every if len(every) <= MOST_CONSTANTS else rng.permutation(every)[:MOST_CONSTANTS])
    space.seed(seed)
    if isinstance(space, spaces.MultiDiscrete):
        if np.prod(space.nvec) <= MOST_CONSTANTS:
            return [np.array(each) + space.start for each in product(*(range(n) for n in space.nvec))]
        return [space.sample() for _ in range(MOST_CONSTANTS)]
    assert isinstance(space, spaces.Box)
    low, high = np.clip(space.low, -1e3, 1e3), np.clip(space.high, -1e3, 1e3)
    return [low, (low + high) / 2, high, *(np.clip(space.sample(), low, high) for _ in range(5))]


def episode_row(task: str, episodes: Episodes, played: int, asked: int, evaluation: dict[str, Any], steps: int) -> Row:
    """How long episodes are, beside what is trained and evaluated.

    Args:
        played: steps of a copy that were looked at.
        asked: how many it would have been with time and memory for it.
    """
    if not len(episodes.lengths):
        told = f"no episode ended within {played:,} steps of a copy"
        fix = "give it a limit of steps (Gymnasium's TimeLimit): an evaluation waits for the ends of its episodes"
        if played < asked:
            why = f"{told}; for {asked:,} there was no time (patience=), or no memory for the pictures."
            return Row(EPISODES, "warn", why, f"where nothing ends them, {fix}", task)
        return Row(EPISODES, "fail", f"{told}.", fix, task)
    mean, longest = episodes.lengths.mean(), int(episodes.lengths.max())
    told = f"{mean:.3g} steps at random, {longest} at most"
    if longest == 1:
        return Row(EPISODES, "pass", "of a single step: a bandit.", task=task)
    evaluated = evaluation["copies"] * evaluation["episodes"] * mean
    if evaluated > 2 * evaluation["every"] and evaluated * (steps / evaluation["every"]) > steps:
        told += f"; an evaluation takes about {evaluated:,.0f} steps, and one is made every {evaluation['every']:,}"
        fix = f"study.evaluation.every={_round(2 * evaluated)}, or fewer copies (study.evaluation.copies=)"
        return Row(EPISODES, "warn", f"{told}.", fix, task)
    if steps / mean < FEWEST_EPISODES:
        fix = f"study.steps={_round(FEWEST_EPISODES * mean)} or more"
        return Row(EPISODES, "warn", f"{told}: only {steps / mean:.1f} in {steps:,} steps.", fix, task)
    return Row(EPISODES, "pass", f"{told}.", task=task)


def budget_row(task: str, moments: Moments, episodes: Episodes, steps: int) -> Row:
    """Whether random play meets rewards within the steps that are trained."""
    if not len(episodes.lengths):
        return Row(BUDGET, "not judged", "no episode ended.", task=task)
    share, length = episodes.paid.mean(), episodes.lengths.mean()
    if not episodes.paid.any():
        # Three over their number is the most that a share can be of which none was seen (95 %).
        most = 3 / len(episodes.paid) * steps / length
        if most < ENOUGH_REWARDS or moments.valid.sum() >= steps:
            told = f"random play was paid in none of {len(episodes.paid)} episodes"
            told += f": in {steps:,} steps in {most:.0f} at most."
            fix = "more steps (study.steps=), a nearer start, or extra rewards in training (shaping)"
            return Row(BUDGET, "warn", told, fix, task)
        told = f"no reward in {len(episodes.paid)} episodes of random play, too few to say."
        return Row(BUDGET, "not judged", told, task=task)
    expected = share * steps / length
    times = f"about {expected:,.0f} times" if expected >= 1 else "fewer than once"
    told = f"random play is paid in {share:.0%} of episodes, so {times} in a seed's {steps:,} steps"
    if expected < ENOUGH_REWARDS:
        fix = f"study.steps={_round(ENOUGH_REWARDS * length / share)} or more, or extra rewards in training (shaping)"
        return Row(BUDGET, "warn", f"{told}.", fix, task)
    return Row(BUDGET, "pass", f"{told}.", task=task)


def gamma_row(task: str, moments: Moments, episodes: Episodes, gamma: float | None) -> Row:
    """Whether γ sees as far as rewards are away."""
    if gamma is None or not len(episodes.lengths):
        told = "the agent has none." if gamma is None else "no episode ended."
        return Row(GAMMA, "not judged", told, task=task)
    times = moments.times_of_pay()
    away = float(np.median(times)) if len(times) else float(episodes.lengths.mean())
    what = (
        f"rewards come {away:.0f} steps after a start (the median)" if len(times) else f"episodes take {away:.0f} steps"
    )
    told = f"{what}, where γ = {gamma:g} weighs them {gamma**away:.2g}"
    if gamma < 1 and away > SEES / (1 - gamma):
        right = next((each for each in GAMMAS if away <= 1 / (1 - each)), GAMMAS[-1])
        return Row(GAMMA, "warn", f"{told}.", f"agent.gamma={right}", task)
    return Row(GAMMA, "pass", f"{told}.", task=task)


def _round(steps: float) -> int:
    """A number of steps with two digits, upwards."""
    unit = 10 ** max(math.floor(math.log10(max(steps, 1))) - 1, 0)
    return math.ceil(steps / unit) * unit
