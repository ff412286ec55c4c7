"""Whether an environment is what agents can step: its spaces, observations, ends, copies, seeds and splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from lcd.agents.stepping import Stepper
from lcd.envs.benchmarks import Benchmark, make_copies
from lcd.envs.errors import InputError
from lcd.pipelines.check.rows import CONTRACT, Row

COPIES, STEPS = 4, 200
CHANNELS = (1, 3, 4)
LEAST_SIDE = 9
"""Height and width of the smallest image that the usual network takes."""
SEEDS = "seeds"


def contract_rows(
    benchmark: Benchmark, task: str, views: Sequence[str], seed: int, knobs: dict[str, Any]
) -> Iterator[Row]:
    """What is wrong with a task's environments under each view and split; one row that all is well, else."""

    def make(view: str, split: str = "train", seed: int = seed) -> VectorEnv:
        return make_copies(benchmark, task, view=view, split=split, num_envs=COPIES, seed=seed, **knobs)

    found = []
    for view in views:
        for split in ("train", "eval"):
            try:
                env = make(view, split)
            except InputError as wrong:
                found.append(Row(CONTRACT, "fail", str(wrong), task=task))
                continue
            try:
                told = [*_of_spaces(env), *_of_steps(env)]
            finally:
                env.close()
            found += [Row(CONTRACT, verdict, f"under '{view}' {what}", fix, task) for verdict, what, fix in told]
    if not found:
        yield Row(CONTRACT, "pass", f"spaces, types, ends and both splits under {', '.join(views)}.", task=task)
        yield from _of_seeds(task, views[0], make)
    # The splits mostly say the same.
    yield from dict.fromkeys(found)


def _of_spaces(env: VectorEnv) -> Iterator[tuple[Any, str, str]]:
    space, actions = env.single_observation_space, env.single_action_space
    shape = tuple(space.shape or ())
    if not isinstance(actions, spaces.Discrete | spaces.MultiDiscrete | spaces.Box):
        yield "fail", f"actions are {type(actions).__name__}", "agents know Discrete, MultiDiscrete and Box"
    if isinstance(space, spaces.Box) and len(shape) == 3:
        if shape[0] in CHANNELS and shape[-1] not in CHANNELS:
            fix = "put channels last (height, width, channels): np.moveaxis(image, 0, -1)"
            yield "fail", f"images of shape {shape} have their channels first", fix
        elif space.dtype != np.uint8:
            fix = "give uint8 from 0 to 255: numbers of another type go through no convolutions"
            yield "fail", f"images are {space.dtype}", fix
        elif min(shape[:2]) < LEAST_SIDE:
            fix = (
                f"draw at least {LEAST_SIDE} x {LEAST_SIDE} pixels, or give numbers as a vector, under the view 'state'"
            )
            yield "warn", f"images of {shape[0]} x {shape[1]} are too small for the usual network", fix


def _of_steps(env: VectorEnv) -> Iterator[tuple[Any, str, str]]:
    """What a few steps show; each thing once."""
    stepper, space = Stepper(env), env.observation_space
    env.action_space.seed(0)
    shown = stepper.reset()
    found: dict[str, tuple[Any, str, str]] = {}
    if not space.contains(shown):
        found["space"] = ("fail", _outside(shown, space), "make space and observations agree in shape, type and range")
    for _ in range(STEPS):
        before, kept = shown, np.array(shown)
        step = stepper.step(env.action_space.sample())
        shown = step.observations
        if not np.array_equal(before, kept) and np.shares_memory(before, shown):
            fix = "give a copy of what is shown: an agent keeps what it saw"
            found["shared"] = ("fail", "a step writes over the observations of the step before", fix)
        for name, value in (("rewards", step.original), ("observations", shown)):
            if np.issubdtype(np.asarray(value).dtype, np.floating) and not np.isfinite(value).all():
                found[name] = (
                    "fail",
                    f"{name} are not finite",
                    "give finite numbers: a run that meets others diverges",
                )
        if np.shape(step.original) != (env.num_envs,):
            what = f"rewards have the shape {np.shape(step.original)}, and there are {env.num_envs} copies"
            found["shape"] = ("fail", what, "give one reward a copy")
        found |= _of_ends(stepper.mode, step)
    yield from found.values()


def _outside(shown: Any, space: spaces.Space) -> str:
    shown = np.asarray(shown)
    told = f"observations ({shown.dtype} of shape {shown.shape}, {shown.min():.4g} to {shown.max():.4g})"
    return (
        f"{told} are not in the observation space {space}" if len(str(space)) < 80 else f"{told} are not in their space"
    )


def _of_ends(mode: AutoresetMode, step: Any) -> dict[str, tuple[Any, str, str]]:
    found = {}
    if mode is AutoresetMode.NEXT_STEP and "final_obs" in step.infos:
        what = "autoreset_mode is NEXT_STEP, but what ended an episode comes as final_obs, as with SAME_STEP"
        found["mode"] = ("fail", what, "declare the mode that it has in metadata")
    if mode is AutoresetMode.SAME_STEP and step.truncated.any() and step.final is None:
        fix = "put it into infos['final_obs']: without it the value of what was cut off is not learned"
        found["final"] = ("warn", "the last observation of an episode that time ends is not given", fix)
    if np.any(step.terminated & step.truncated):
        fix = "say truncated only where the clock alone ended it"
        found["both"] = ("warn", "an episode is terminated and truncated at once", fix)
    return found


def _of_seeds(task: str, view: str, make: Callable[..., VectorEnv]) -> Iterator[Row]:
    """Whether seeds, copies and splits are different ones."""
    own, other, held_out = (_trace(make(view, **how)) for how in ({}, {"seed": 1 + 10**6}, {"split": "eval"}))
    same = []
    if np.array_equal(own, other):
        same.append(
            ("another seed gives the same", "draw starts, levels or noise from generators seeded by make_vec's seed")
        )
    elif all(np.array_equal(own[:, 0], own[:, copy]) for copy in range(1, own.shape[1])):
        same.append(
            ("all copies of a seed are the same", "spawn one stream a copy: np.random.SeedSequence(seed).spawn")
        )
    if np.array_equal(own, held_out):
        same.append(
            ("what is held out is what is trained", "let split='eval' draw from other streams, or have other levels")
        )
    for what, fix in same:
        yield Row(
            SEEDS,
            "warn",
            f"{what}, as far as {STEPS // 4} steps show.",
            f"{fix}; nothing, where nothing is random",
            task,
        )
    if not same:
        yield Row(SEEDS, "pass", "seeds, copies and splits are different ones.", task=task)


def _trace(env: VectorEnv) -> np.ndarray:
    """What copies see and get when all do the same, (steps, copies, numbers)."""
    try:
        stepper, found = Stepper(env), []
        env.single_action_space.seed(0)
        shown, rewards = stepper.reset(), np.zeros(env.num_envs)
        for _ in range(STEPS // 4):
            found.append(np.column_stack([np.asarray(shown, float).reshape(env.num_envs, -1), rewards]))
            step = stepper.step(np.stack([np.asarray(env.single_action_space.sample())] * env.num_envs))
            shown, rewards = step.observations, step.original
        return np.stack(found)
    finally:
        env.close()
