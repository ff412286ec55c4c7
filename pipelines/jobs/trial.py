"""Agents of runs as they will be, made beside one copy of the environment to be looked at before training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gymnasium.vector import VectorEnv

from lcd.agents import agents
from lcd.agents.learner import Learner, spaces_for
from lcd.envs.errors import InputError
from lcd.pipelines.jobs.build import build_agent, build_environment
from lcd.pipelines.study.configs import RunConfig, population
from lcd.pipelines.study.evaluated import stages_of


def likeness(run_config: RunConfig) -> str:
    """What runs have in common that show, encode and learn alike, whatever their tasks."""
    return str([run_config["view"], run_config["frontend"], run_config["agent"], population(run_config)])


def one_of_each(run_configs: Iterable[RunConfig]) -> list[RunConfig]:
    """One of the runs that are alike, the first: later tasks are often larger, and may take minutes to make."""
    found: dict[str, RunConfig] = {}
    for each in run_configs:
        found.setdefault(likeness(each), each)
    return [*found.values()]


@contextmanager
def on_trial(run_config: RunConfig) -> Iterator[tuple[Any, VectorEnv]]:
    """The agent of a run, and one copy a seed of its environment.

    Raises:
        InputError: where the agent trains itself, or cannot be made.
    """
    name = run_config["agent"]["name"]
    kind = agents.resolve(name)
    if isinstance(kind, type) and issubclass(kind, Learner):
        raise InputError(f"agent={name} trains itself.")
    env = spaces_for(kind, build_environment(run_config, stages_of(run_config)[0], "train", copies=1))
    try:
        yield build_agent(run_config, env), env
    finally:
        env.close()
