"""Views in lockstep: whether all views of a task are one task, which gives the same rewards for the same actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lcd.envs.benchmarks import Benchmark, check_task, get_benchmark
from lcd.envs.streams import seed_sequence

SIGNALS = ("rewards", "terminations", "truncations")


@dataclass(frozen=True)
class ViewComparison:
    """What stepping the views of a task with the same seed and actions found.

    Attributes:
        replays: whether the same view gives the same twice; without that a difference says nothing of the views.
        differences: a sentence for each view that is another task than the first one; empty where all agree.
    """

    replays: bool
    differences: tuple[str, ...] = ()


def compare_views(
    benchmark: str | Benchmark,
    task: str,
    *,
    views: Sequence[str] | None = None,
    seed: int = 0,
    copies: int = 2,
    steps: int = 64,
    split: str = "train",
    **knobs: Any,
) -> ViewComparison:
    """Step every view of a task with the same seed and random actions, and compare rewards, ends and time-outs.

    Args:
        benchmark: the benchmark or its name.
        task: one of its tasks.
        views: the views to compare, the first with each other one; None means all of the benchmark's.
        seed: of the environments and of the actions.
        copies: copies of the environment.
        steps: how many steps of each copy.
        split: "train" or "eval".
        knobs: passed on to the benchmark.
    """
    benchmark = get_benchmark(benchmark)
    check_task(benchmark, task)
    first, *others = benchmark.views if views is None else views
    settings = {"seed": seed, "num_envs": copies, "split": split, **knobs}

    def play(view: str) -> tuple[np.ndarray, ...]:
        env = benchmark.make_vec(task, view=view, **settings)
        try:
            return _played(env, seed, steps)
        finally:
            env.close()

    reference = play(first)
    found = {view: _difference(reference, play(view)) for view in others}
    # An environment that does not give the same twice differs from itself as well; making it anew takes time.
    if any(found.values()) and _difference(reference, play(first)):
        return ViewComparison(replays=False)
    return ViewComparison(
        True,
        tuple(
            f"under the view '{view}' the same seed and actions give other {what[1]} than under '{first}' (from step "
            f"{what[0]} on), so that its curves are of another task: give what a view draws at random a generator of "
            "its own, and change nothing but observations."
            for view, what in found.items()
            if what is not None
        ),
    )


def _played(env: Any, seed: int, steps: int) -> tuple[np.ndarray, ...]:
    """Rewards, terminations and truncations, (steps, copies) each, and the actions that they answer."""
    env.action_space.seed(int(seed_sequence(seed, "exploration").generate_state(1)[0]))
    env.reset()
    seen: list[tuple[Any, ...]] = []
    for _ in range(steps):
        actions = env.action_space.sample()
        _, *signals, _ = env.step(actions)
        seen.append((*(np.array(signal, float) for signal in signals), np.array(actions, float)))
    return tuple(np.stack(values) for values in zip(*seen, strict=True))


def _difference(reference: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> tuple[int, str] | None:
    """The first step (from 1) at which two plays differ, and in what."""
    if reference[-1].shape != other[-1].shape or not np.array_equal(reference[-1], other[-1]):
        return 1, "actions to choose from"
    found = []
    for name, values, others in zip(SIGNALS, reference, other, strict=False):
        unequal = ~np.isclose(values, others, equal_nan=True).all(axis=1)
        if unequal.any():
            found.append((int(unequal.argmax()) + 1, name))
    return min(found, default=None)
