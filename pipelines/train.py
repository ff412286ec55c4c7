"""Training one run: all seeds of one condition, from its configuration to its held-out curve."""

import logging
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Discrete
from gymnasium.vector import VectorEnv
from lightning.pytorch import LightningModule, Trainer

from lcd import frontends
from lcd.agents import agents, validate
from lcd.agents.evaluate import Evaluator
from lcd.agents.rollout import Rollouts, loader
from lcd.envs.benchmarks import get_benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.population import make_population
from lcd.pipelines.record import AtomicCheckpoints, CurveFile, Recorder

CHECKPOINT_EVERY_S = 5.0


def train_run(
    run_config: dict[str, Any], run_dir: str | Path, tracker: dict[str, Any], device: dict[str, Any]
) -> None:
    """Train one run to its end, from its checkpoint if it has one.

    Args:
        run_config: the condition, the protocol and the seeds: what the run's id is the hash of.
        run_dir: the run's folder in its study.
        tracker: the tracker's configuration.
        device: Lightning's `accelerator` and `precision`.
    """
    folder = Path(run_dir)
    config = validate(*_agent(run_config))
    training, held_out = _environments(run_config, config.copies)
    try:
        agent = build_agent(run_config, training)
        rollouts = build_rollouts(run_config, training, agent)
        _fit(run_config, folder, agent, rollouts, held_out, tracker, device)
    finally:
        training.close()
        held_out.close()


def build_agent(run_config: dict[str, Any], env: VectorEnv) -> LightningModule:
    """The agent of a run, its front-end and networks shaped by the environment's spaces."""
    name, params = _agent(run_config)
    if not isinstance(env.single_action_space, Discrete):
        raise InputError(
            f"task={run_config['task']} has the action space {env.single_action_space}: "
            f"agent={name} needs a discrete one."
        )
    knobs = dict(run_config["frontend"])
    frontend = frontends.make(knobs.pop("name"), **knobs)
    space = env.single_observation_space
    with torch.no_grad():
        features = frontend(torch.from_numpy(np.zeros((1, *space.shape), space.dtype)))
    actions = int(env.single_action_space.n)
    return agents.resolve(name)(
        validate(name, params), features.shape[1:], actions, run_config["seeds"], frontend
    )


def build_rollouts(run_config: dict[str, Any], env: VectorEnv, agent: LightningModule) -> Rollouts:
    """The run's training data: as many rollouts as its steps need."""
    config = agent.config
    total = math.ceil(run_config["steps"] / (config.copies * config.rollout))
    return Rollouts(
        env, run_config["seeds"], agent, config.rollout, total, config.gamma, config.normalise_rewards
    )


def _environments(run_config: dict[str, Any], copies: int) -> tuple[VectorEnv, VectorEnv]:
    """The training population (rewards thinned) and the held-out one (rewards as they are)."""
    benchmark = get_benchmark(run_config["benchmark"])
    task, view, knobs = run_config["task"], run_config["view"], run_config["knobs"]
    common = {"seeds": run_config["seeds"], "view": view, **knobs}
    training = make_population(
        benchmark, task, copies=copies, split="train", reward_p=run_config["reward_p"], **common
    )
    held_out = make_population(
        benchmark, task, copies=run_config["evaluation"]["copies"], split="eval", **common
    )
    return training, held_out


def _fit(
    run_config: dict[str, Any],
    folder: Path,
    agent: LightningModule,
    rollouts: Rollouts,
    held_out: VectorEnv,
    tracker: dict[str, Any],
    device: dict[str, Any],
) -> None:
    from lcd.pipelines.store import Run
    from lcd.pipelines.track import open_tracker

    run = Run(folder)
    checkpoint = folder / "checkpoints" / "last.ckpt"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    reached = _reached(checkpoint)
    curve = CurveFile(folder / "curve.csv")
    earlier = curve.cut(reached if reached is not None else -1)
    tracked = open_tracker(tracker, folder, run_config, run)
    tracked.log_rows(earlier)
    run.update(state="running", step=reached or 0, steps=rollouts.total * rollouts.length * rollouts.copies)
    recorder = Recorder(
        rollouts,
        Evaluator(held_out, run_config["seeds"], run_config["evaluation"]["episodes"]),
        run_config["evaluation"]["every"],
        _row(run_config),
        curve,
        checkpoint,
        CHECKPOINT_EVERY_S,
        report=lambda step, rate, wall: run.update(step=step, steps_per_s=rate, wall_s=wall),
        mirror=tracked.log_rows,
    )
    if reached is None or reached < rollouts.total * rollouts.length * rollouts.copies:
        with _quiet():
            trainer = Trainer(
                max_epochs=1,
                logger=tracked.logger,
                callbacks=[recorder],
                plugins=[AtomicCheckpoints()],
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                devices=1,
                **device,
            )
            path = checkpoint if reached is not None else None
            trainer.fit(agent, loader(rollouts), ckpt_path=path, weights_only=True)
    tracked.finish(run.summary())
    run.update(state="done")
