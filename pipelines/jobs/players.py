"""Who plays while videos are recorded: a random policy, or an agent that was trained before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from lcd.agents.memory import begin_episodes, forget
from lcd.agents.protocols import draws_of
from lcd.agents.rollout import commands, uniforms
from lcd.agents.stepping import Step
from lcd.envs.errors import InputError, nearest
from lcd.envs.streams import seed_sequence
from lcd.files.atomic import sha256_of
from lcd.files.reading import read_yaml
from lcd.frontends.entry import WeightsFile
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import RANDOM, RunConfig
from lcd.pipelines.study.inputs import take_inputs


class Policy(Protocol):
    """Acts in all copies of an environment."""

    def begin(self, copies: int) -> None:
        """New episodes start everywhere."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """What the environment is told."""

    def stepped(self, step: Step) -> None:
        """What came of it."""


class RandomPolicy:
    """Samples the action space.

    Args:
        env: whose actions.
        seed: of its own stream.
    """

    def __init__(self, env: VectorEnv, seed: int):
        self.space = env.action_space
        self.space.seed(int(seed_sequence(seed, "exploration").generate_state(1)[0]))

    def begin(self, copies: int) -> None:
        """Nothing to remember."""

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        return self.space.sample()

    def stepped(self, step: Step) -> None:
        """Nothing to remember."""


class TrainedPolicy:
    """A run's agents, each seed's in its share of the copies, with actions sampled.

    Args:
        agent: the agent with its trained parameters.
        seed: of the actions' stream.
    """

    def __init__(self, agent: Any, seed: int):
        self.agent, self.seed, self.steps = agent, seed, 0

    def begin(self, copies: int) -> None:
        """New episodes start everywhere."""
        self.copies = copies // len(self.agent.seeds)
        forget(self.agent, self.copies)

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        each = (self.copies, *draws_of(self.agent))
        streams = range(len(self.agent.seeds))
        draws = torch.cat([uniforms([self.seed], "exploration", self.steps, index, shape=each) for index in streams])
        self.steps += 1
        actions, _, _ = self.agent.act(self.agent.encode(observations), draws.to(self.agent.device))
        return commands(self.agent, actions)

    def stepped(self, step: Step) -> None:
        """Episodes that ended are forgotten."""
        begin_episodes(self.agent, step)


def trained_runs(folder: str, tasks: Sequence[str], view: str) -> dict[str, store.Training]:
    """The run whose agent plays each task.

    Args:
        folder: a run's, which plays its own task, or a study's.
    """
    path = Path(folder).expanduser()
    if (path / "study.yaml").is_file():
        runs = store.Study(path).trainings()
    elif (path / "config.yaml").is_file():
        runs = [
            run for run in store.Study(path.resolve().parents[1]).trainings() if run.path.name == path.resolve().name
        ]
    else:
        runs = []
    if not runs:
        raise InputError(f"policy={folder} is neither a run's folder nor a study's: give one, or {RANDOM}.")
    fitting = {run.config["task"]: run for run in runs if _plays(run.config, view)}
    for task in tasks:
        if task not in fitting:
            raise InputError(
                f"policy={folder} has no run of {task} on view={view}: {nearest(task, fitting)}"
                if fitting
                else f"policy={folder} has no run on view={view}: give another view, or another policy."
            )
    return {task: fitting[task] for task in tasks}


def _plays(config: RunConfig, view: str) -> bool:
    return config["view"] == view and not config["knobs"] and "points" not in config


def load_policy(player: WeightsFile, env: VectorEnv, seed: int) -> TrainedPolicy:
    """The agent of a run, from its checkpoint."""
    from lcd.agents import agents
    from lcd.agents.learner import spaces_for
    from lcd.pipelines.jobs.build import build_agent

    checkpoint = Path(player["file"])
    folder = checkpoint.parents[1]
    try:
        if sha256_of(checkpoint) != player["sha256"]:
            raise InputError(f"policy: {checkpoint} has changed since it was named: give the same command again.")
        asked: RunConfig = read_yaml(folder / "config.yaml")
        config, _ = take_inputs(asked, folder.parent)
        content = torch.load(checkpoint, map_location="cpu", weights_only=True)
        name = config["agent"]["name"]
        agent = build_agent(config, spaces_for(agents.resolve(name), env))
        agent.load_state_dict(content["state_dict"])
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"policy: {checkpoint} holds no agent that can play ({type(error).__name__}): train it again."
        ) from None
    return TrainedPolicy(agent.eval(), seed)
