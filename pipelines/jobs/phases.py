"""Where rollouts and features are kept while a run is trained, and what is told of it before."""

import contextlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from lightning.pytorch import LightningModule

from lcd.agents import agents
from lcd.agents.phase_store import RolloutStore, StoreSize, is_mask, require_room
from lcd.agents.ppg import PPG
from lcd.agents.protocols import LearnsFromFiles
from lcd.agents.stepping import Stepper
from lcd.envs.errors import InputError
from lcd.envs.protocols import offers
from lcd.pipelines.jobs.trial import on_trial, one_of_each
from lcd.pipelines.launch.launchers import RUNS_AT_ONCE
from lcd.pipelines.study.configs import RunConfig

FOLDER = "rollouts"
PROBED_STEPS = 8


def store_size(run_config: RunConfig) -> StoreSize | None:
    """What a run keeps of a phase, by its config and by what its task shows; None if its agent is not PPG."""
    kind = agents.resolve(run_config["agent"]["name"])
    if not (isinstance(kind, type) and issubclass(kind, PPG)):
        return None
    with on_trial(run_config) as (agent, env):
        inputs = torch.stack([agent.see(observations)[1] for observations in _first_observations(env)], dim=1)
    return agent.store_size(tuple(inputs.shape[3:]), inputs.element_size(), is_mask(inputs) is not None)


def _first_observations(env: VectorEnv) -> Iterable[Any]:
    """The first observations of a population under random actions."""
    stepper = Stepper(env)
    yield stepper.reset()
    env.action_space.seed(0)
    for _ in range(PROBED_STEPS):
        yield stepper.step(env.action_space.sample()).observations


def store_sentence(run_configs: Iterable[RunConfig], together: int) -> str | None:
    """The sentence about the greatest of some runs' stores, of which some are trained together; None without one."""
    sizes = [size for each in one_of_each(run_configs) if (size := store_size(each)) is not None]
    return replace(max(sizes, key=lambda size: size.bytes), runs=together).sentence() if sizes else None


def features_sentences(run_configs: Iterable[RunConfig]) -> list[str]:
    """What is told of runs whose front-ends' features do not lie in memory, each sentence once."""
    found = []
    for run_config in one_of_each(run_configs):
        # What cannot be made is told by the run that fails of it.
        with contextlib.suppress(InputError), on_trial(run_config) as (agent, _):
            in_files = offers(agent, LearnsFromFiles)
            found.append(agent.frontend.sizes.sentence if in_files else None)
    return [*dict.fromkeys(sentence for sentence in found if sentence is not None)]


def prepare(agent: LightningModule, run_config: RunConfig, checkpoint: Path, anew: bool) -> None:
    """Say where a run's rollouts go before it is trained; each of its processes has its own."""
    if not isinstance(agent, PPG) or (size := store_size(run_config)) is None:
        return
    world = agent.ranks.world
    folder = checkpoint.parent / FOLDER / f"rank-{agent.ranks.rank}"
    runs = int(os.environ.get(RUNS_AT_ONCE, "1")) * world
    size = replace(size, copies=size.copies // world, runs=runs)
    if anew:
        shutil.rmtree(folder, ignore_errors=True)
        if size.spilled:
            require_room(folder, size.bytes)
    agent.store = RolloutStore(folder, size.spilled)


def clear(checkpoint: Path) -> None:
    """Delete the rollouts of a run that is over."""
    shutil.rmtree(checkpoint.parent / FOLDER, ignore_errors=True)
