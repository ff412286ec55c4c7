"""Populations: the environments of several seeds, or points and seeds, behind one vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.envs.benchmarks import Benchmark, check_task, get_benchmark, make_copies
from lcd.envs.checks import require_whole_number
from lcd.envs.errors import InputError, nearest
from lcd.envs.families.family import Point
from lcd.envs.protocols import KnowsItsSeeds, OneHotStates, PointPopulations, Populations, RestsCopies, offers
from lcd.envs.rewards import KeepRewards
from lcd.envs.state import State, keeps_state, nest, unnest
from lcd.envs.streams import group_seeds


def make_population(
    benchmark: str | Benchmark,
    task: str,
    *,
    seeds: Sequence[int],
    copies: int,
    view: str,
    split: str,
    reward_p: float = 1.0,
    **knobs: Any,
) -> VectorEnv:
    """One vector environment of `len(seeds) * copies` copies; those of a seed lie side by side.

    It has an attribute `num_seeds`. A population gives every seed exactly what the seed would get alone.

    Args:
        benchmark: the benchmark or its name. Its own `make_population(task, *, seeds, copies, view, split, **knobs)`
            is used if it has one; else one environment a seed is stacked.
        task: one of its tasks.
        seeds: the seeds, all different.
        copies: copies a seed.
        view: one of the benchmark's views.
        split: "train" or "eval".
        reward_p: probability with which a reward is kept; at evaluation rewards are always the original ones.
        knobs: passed on to the benchmark.
    """
    benchmark, seeds = get_benchmark(benchmark), _checked(benchmark, task, seeds, copies, split)
    env = _population(benchmark, task, seeds, copies, view=view, split=split, **knobs)
    return _thinned(env, reward_p, seeds, split)


def make_points(
    benchmark: str | Benchmark,
    task: str,
    *,
    points: Sequence[Point],
    seeds: Sequence[int],
    copies: int,
    view: str,
    split: str,
    reward_p: float = 1.0,
    **knobs: Any,
) -> VectorEnv:
    """One vector environment of the populations of several points, point by point.

    Every seed of a point gets exactly what it would get where the point's features are knobs of the task.

    Args:
        benchmark: the benchmark or its name. Its own `make_points` is used if it has one; else one population a point
            is stacked.
        task: one of its tasks.
        points: the points; one without features is the task as it is.
        seeds: the seeds of each point, all different.
        copies: copies of each seed.
        view: one of the benchmark's views.
        split: "train" or "eval".
        reward_p: as `make_population` has it.
        knobs: what is the same for all points.
    """
    benchmark, seeds = get_benchmark(benchmark), _checked(benchmark, task, seeds, copies, split)
    how: dict[str, Any] = {"view": view, "split": split}
    if offers(benchmark, PointPopulations) and all(points):
        env = benchmark.make_points(task, points=points, seeds=seeds, copies=copies, **how, **knobs)
    else:
        env = SeedStack([_population(benchmark, task, seeds, copies, **how, **knobs, **point) for point in points])
    return _thinned(env, reward_p, seeds * len(points), split)


def _thinned(env: VectorEnv, reward_p: float, seeds: list[int], split: str) -> VectorEnv:
    thinned = KeepRewards(env, reward_p, seeds) if reward_p != 1 else env
    return thinned if split == "train" else env


def _population(benchmark: Benchmark, task: str, seeds: list[int], copies: int, **how: Any) -> VectorEnv:
    if offers(benchmark, Populations):
        return benchmark.make_population(task, seeds=seeds, copies=copies, **how)
    return SeedStack([make_copies(benchmark, task, num_envs=copies, seed=seed, **how) for seed in seeds])


def _checked(benchmark: str | Benchmark, task: str, seeds: Sequence[int], copies: int, split: str) -> list[int]:
    check_task(get_benchmark(benchmark), task)
    require_whole_number("copies", copies, 1)
    if split not in ("train", "eval"):
        raise InputError(f"split is {split!r}, which is none of its values; {nearest(split, ('train', 'eval'))}")
    return _checked_seeds(seeds)


def _checked_seeds(seeds: Sequence[int]) -> list[int]:
    checked = [int(seeds)] if isinstance(seeds, int | np.integer) else list(seeds)
    for seed in checked:
        require_whole_number("seeds", seed, 0)
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"seeds is {seeds}, but it must name at least one seed and none twice.")
    return [int(seed) for seed in seeds]


class SeedStack(VectorEnv):
    """Vector environments, of one seed or of as many seeds each, stepped one after the other and seen as one."""

    def __init__(self, envs: Sequence[VectorEnv]) -> None:
        """Stack environments with equal spaces and numbers of copies, in the order of seeds and points."""
        self.envs = list(envs)
        first = self.envs[0]
        for env in self.envs[1:]:
            for what in ("single_observation_space", "single_action_space", "num_envs"):
                if getattr(env, what) != getattr(first, what):
                    raise InputError(
                        f"Seeds or points whose environments differ cannot be trained together: {what} is "
                        f"{getattr(first, what)} and {getattr(env, what)}; points can be trained apart, by "
                        "study.points_per_run=1."
                    )
        self.metadata = first.metadata
        self.render_mode = first.render_mode
        self._each = first.num_seeds if offers(first, KnowsItsSeeds) else 1
        self.num_seeds = self._each * len(self.envs)
        self._resting = np.zeros(len(self.envs), dtype=bool)
        self.num_envs = first.num_envs * len(self.envs)
        self.single_observation_space = first.single_observation_space
        self.single_action_space = first.single_action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        sizes = [env.unwrapped.one_hot_sizes if offers(env.unwrapped, OneHotStates) else None for env in self.envs]
        self.one_hot_sizes = sizes[0] if len(set(sizes)) == 1 else None
        # Only what all parts can do is offered, and `keeps_state` tells whether a run can be continued exactly.
        if keeps_state(self.envs):
            self.get_state, self.set_state = self._get_state, self._set_state

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Reset all; `seed` is one seed, or one for each seed of each of the stacked environments."""
        if options is not None and "reset_mask" in options:
            return self._reset_some(options)
        self._resting[:] = False
        results = [env.reset(seed=s, options=options) for env, s in zip(self.envs, self._shared_out(seed), strict=True)]
        observations, infos = zip(*results, strict=True)
        self._observations = list(observations)
        return np.concatenate(observations), _merged(infos, self.envs[0].num_envs)

    def _shared_out(self, seed: int | Sequence[int] | None) -> list[Any]:
        """What each of the stacked environments is reset with."""
        if seed is None:
            return [None] * len(self.envs)
        seeds = group_seeds(seed, self.num_seeds)
        if self._each == 1:
            return seeds
        return [seeds[first : first + self._each] for first in range(0, len(seeds), self._each)]

    def _reset_some(self, options: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
        """Reset the copies in `reset_mask`; a part without such copies is left alone, as Gymnasium demands."""
        infos: list[dict[str, Any]] = []
        for number, mask in enumerate(np.split(np.asarray(options["reset_mask"]), len(self.envs))):
            info: dict[str, Any] = {}
            if mask.any():
                self._observations[number], info = self.envs[number].reset(options={**options, "reset_mask": mask})
            infos.append(info)
        return np.concatenate(self._observations), _merged(infos, self.envs[0].num_envs)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all."""
        parts = np.split(np.asarray(actions), len(self.envs))
        results = [
            self._unmoved(number) if self._resting[number] else self.envs[number].step(part)
            for number, part in enumerate(parts)
        ]
        *arrays, infos = zip(*results, strict=True)
        self._observations = list(arrays[0])
        observations, rewards, terminations, truncations = map(np.concatenate, arrays)
        return observations, rewards, terminations, truncations, _merged(infos, self.envs[0].num_envs)

    def rest(self, copies: np.ndarray) -> None:
        """Leave out, until the next reset, environments all of whose copies need no step."""
        for number, mine in enumerate(np.split(copies, len(self.envs))):
            self._resting[number] |= mine.all()
            if mine.any() and offers(self.envs[number], RestsCopies):
                self.envs[number].rest(mine)

    def _unmoved(self, number: int) -> tuple[Any, ...]:
        """A step of one of them in which nothing happens."""
        copies = self.envs[number].num_envs
        never = np.zeros(copies, dtype=bool)
        return self._observations[number], np.zeros(copies), never, never, {}

    def render(self) -> tuple[Any, ...] | None:
        """The pictures of all copies."""
        frames = [env.render() for env in self.envs]
        return None if frames[0] is None else tuple(f for of_seed in frames for f in of_seed)

    def close_extras(self, **kwargs: Any) -> None:
        """Close all."""
        for env in self.envs:
            env.close(**kwargs)

    def _get_state(self) -> State:
        """The states of all."""
        return {k: v for n, env in enumerate(self.envs) for k, v in nest(str(n), env.get_state()).items()}

    def _set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        for number, env in enumerate(self.envs):
            env.set_state(unnest(str(number), state))


def _alike(parts: Sequence[Any]) -> bool:
    """Whether copies have rows of one shape in all parts; points of a family may differ in what they tell."""
    return len({part.shape[1:] for part in parts if part is not None}) == 1


def _merged(infos: Sequence[dict[str, Any]], copies: int) -> dict[str, Any]:
    """One info dictionary: a key that a part does not have is filled with zeros (None for objects).

    What is not one row a copy in all of them is a list of what each has.
    """
    merged: dict[str, Any] = {}
    for key in dict.fromkeys(key for info in infos for key in info):
        parts = [info.get(key) for info in infos]
        example = next(part for part in parts if part is not None)
        if isinstance(example, dict):
            merged[key] = _merged([part or {} for part in parts], copies)
        elif isinstance(example, np.ndarray) and len(example) == copies and _alike(parts):
            blank = np.zeros_like(example) if example.dtype != object else np.full(copies, None)
            merged[key] = np.concatenate([blank if part is None else part for part in parts])
        else:
            merged[key] = parts
    return merged
