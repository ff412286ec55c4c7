"""Training one run: all seeds of one condition, from its configuration to its held-out curve."""

import logging
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import VectorEnv
from lightning.pytorch import LightningModule, Trainer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lcd import frontends
from lcd.agents import agents, validate
from lcd.agents.evaluate import Evaluator
from lcd.agents.learner import Learner, spaces_for
from lcd.agents.rollout import Rollouts, loader
from lcd.envs.benchmarks import get_benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.hardness.benchmark import quiet
from lcd.envs.population import make_population
from lcd.pipelines.diagnose import opening, train_missing
from lcd.pipelines.learn import learn_run
from lcd.pipelines.progress import label
from lcd.pipelines.record import STEP, AtomicCheckpoints, CurveFile, Recorder
from lcd.pipelines.runs import run_config_from
from lcd.pipelines.store import DONE, RUNNING, Study, read_status, run_id, task_name, update_status
from lcd.pipelines.track import open_tracker
from lcd.schemas import TrainConfig

PARTS = {STEP, "state_dict", "optimizer_states", "loops", "callbacks", "pytorch-lightning_version"}
"""What a checkpoint must hold to be continued."""

logger = logging.getLogger(__name__)


def run(cfg: TrainConfig) -> int:
    """`lcd train`: one run, in a study of its own unless `out` names another; returns the exit code."""
    console = Console()
    run_config = run_config_from(cfg)
    study = Study(cfg.out or default_out(run_config), create=True)
    with study.lock():
        (made,) = study.ask({"train": run_config}, [run_config])
        console.print(opening(study, [made]), highlight=False, soft_wrap=True, markup=False)
        if not made.done and any(outcome.error for outcome in train_missing(cfg, study, [made], console)):
            return 1
    console.print(_summary(run_config, made.path), highlight=False)
    for name, file in {"curve": "curve.csv", "checkpoint": "checkpoints/last.ckpt"}.items():
        console.print(f"{name:<10} {made.path / file}", highlight=False, soft_wrap=True, markup=False)
    return 0


def default_out(run_config: dict[str, Any]) -> Path:
    """A folder that the same request always gets."""
    task = "".join(c if c.isalnum() or c in "-_." else "-" for c in run_config["task"])
    return Path("studies") / f"train-{task}-{run_id(run_config)[:6]}"


def _summary(run_config: dict[str, Any], folder: Path) -> Table:
    """The held-out return of each seed before and after training, beside what there is to reach."""
    curve = pd.read_csv(folder / "curve.csv")
    held_out = curve[curve.split == "eval"]
    table = Table(
        "seed",
        "first return",
        "last return",
        "random",
        "best",
        title=Text(label(run_config)),
        title_justify="left",
        box=None,
    )
    for seed, rows in held_out.groupby("seed"):
        first, last = rows.return_mean.iloc[[0, -1]]
        table.add_row(str(seed), *(f"{x:.3g}" for x in (first, last, rows.r_min.iloc[0], rows.r_max.iloc[0])))
    return table


def train_run(run_config: dict[str, Any], run_dir: str | Path, tracker: dict[str, Any], device: dict[str, Any]) -> None:
    """Train one run to its end, from its checkpoint if it has one.

    Args:
        run_config: the condition, the protocol and the seeds: what the run's id is the hash of.
        run_dir: the run's folder in its study.
        tracker: the tracker's configuration.
        device: Lightning's `accelerator`.
    """
    folder = Path(run_dir)
    name, params = _agent(run_config)
    config, kind = validate(name, params), agents.resolve(name)
    if isinstance(kind, type) and issubclass(kind, Learner):
        learn_run(
            run_config,
            folder,
            kind,
            config,
            lambda seeds: _environments(run_config | {"seeds": seeds}, config.copies),
            _shared_columns(run_config),
            tracker,
        )
        return
    training, held_out = _environments(run_config, config.copies)
    training, held_out = spaces_for(kind, training), {split: spaces_for(kind, env) for split, env in held_out.items()}
    try:
        agent = build_agent(run_config, training)
        rollouts = build_rollouts(run_config, training, agent)
        _fit(run_config, folder, agent, rollouts, held_out, tracker, device)
    finally:
        for env in (training, *held_out.values()):
            env.close()


def build_agent(run_config: dict[str, Any], env: VectorEnv) -> LightningModule:
    """The agent of a run, its front-end and networks shaped by the environment's spaces."""
    name, params = _agent(run_config)
    actions = env.single_action_space
    if not isinstance(actions, Discrete | Box):
        raise InputError(
            f"task={run_config['task']} has the action space {actions}: agent={name} needs a discrete one or a box."
        )
    knobs = dict(run_config["frontend"])
    frontend = frontends.make(knobs.pop("name"), **knobs)
    space = env.single_observation_space
    with torch.no_grad():
        features = frontend(torch.from_numpy(np.zeros((1, *space.shape), space.dtype)))
    actions = int(actions.n) if isinstance(actions, Discrete) else actions
    return agents.resolve(name)(validate(name, params), features.shape[1:], actions, run_config["seeds"], frontend)


def build_rollouts(run_config: dict[str, Any], env: VectorEnv, agent: LightningModule) -> Rollouts:
    """The run's training data: as many rollouts as its steps need."""
    config = agent.config
    total = math.ceil(run_config["steps"] / (config.copies * config.rollout))
    return Rollouts(env, run_config["seeds"], agent, config.rollout, total, config.gamma, config.normalise_rewards)


def _environments(run_config: dict[str, Any], copies: int) -> tuple[VectorEnv, dict[str, VectorEnv]]:
    """The training population (rewards thinned), and by their split those that are held out (rewards as they are)."""
    benchmark = get_benchmark(run_config["benchmark"])
    task, view, knobs = run_config["task"], run_config["view"], run_config["knobs"]
    common = {"seeds": run_config["seeds"], "view": view, **knobs}
    # Only benchmarks that have shaping know the knob; it is never on in held-out copies.
    extra = {} if run_config["shaping"] == "none" else {"shaping": run_config["shaping"]}
    thinned = {"reward_p": run_config["reward_p"], **common, **extra}
    training = make_population(benchmark, task, copies=copies, split="train", **thinned)
    shared = {"copies": run_config["evaluation"]["copies"], "split": "eval"}
    held_out = {"eval": make_population(benchmark, task, **shared, **common)}
    if run_config["evaluation"].get("noise_free"):
        task, knobs = quiet(task, knobs)
        common = {"seeds": run_config["seeds"], "view": view, **knobs}
        held_out["noise_free"] = make_population(benchmark, task, **shared, **common)
    return training, held_out


def _fit(
    run_config: dict[str, Any],
    folder: Path,
    agent: LightningModule,
    rollouts: Rollouts,
    held_out: dict[str, VectorEnv],
    tracker: dict[str, Any],
    device: dict[str, Any],
) -> None:
    """Train from where the checkpoint stands, recording as it goes."""
    checkpoint = folder / "checkpoints" / "last.ckpt"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    reached = _reached(checkpoint)
    curve = CurveFile(folder / "curve.csv")
    earlier = curve.cut(-1 if reached is None else reached)
    update_status(folder, state=RUNNING, step=reached or 0, steps=rollouts.steps, error=None)
    tracked = open_tracker(tracker, folder, run_config, read_status(folder))
    tracked.log_rows(earlier)
    recorder = Recorder(
        rollouts,
        {s: Evaluator(env, rollouts.seeds, run_config["evaluation"]["episodes"]) for s, env in held_out.items()},
        run_config["evaluation"]["every"],
        _shared_columns(run_config),
        curve,
        checkpoint,
        report=lambda **progress: update_status(folder, **progress),
        mirror=tracked.log_rows,
    )
    if reached is None or reached < rollouts.steps:
        precision = getattr(agent.config, "precision", "32-true")
        trainer = _trainer(tracked.logger, recorder, {**device, "precision": precision})
        resumed = None if reached is None else checkpoint
        trainer.fit(agent, loader(rollouts), ckpt_path=resumed, weights_only=True)
    tracked.finish({"steps": rollouts.steps, "wall_s": read_status(folder)["wall_s"]})
    update_status(folder, state=DONE, step=rollouts.steps)


def _trainer(logger: Any, recorder: Recorder, device: dict[str, Any]) -> Trainer:
    # Lightning's advice is for users of Lightning: about workers, eval mode and its own services.
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning.pytorch")
    return Trainer(
        max_epochs=1,
        logger=logger,
        callbacks=[recorder],
        plugins=[AtomicCheckpoints()],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        devices=1,
        **device,
    )


def _reached(checkpoint: Path) -> int | None:
    """The step of a run's checkpoint, None without one that can be read."""
    try:
        content = torch.load(checkpoint, map_location="cpu", weights_only=True)
        if set(content) >= PARTS:
            return int(content[STEP])
        error: Exception = KeyError(*PARTS - set(content))
    except FileNotFoundError:
        return None
    except Exception as unreadable:
        error = unreadable
    warnings.warn(f"{checkpoint.name} of run {checkpoint.parts[-3]} is unreadable: training it anew.", stacklevel=2)
    logger.debug("unreadable checkpoint", exc_info=error)
    return None


def _shared_columns(run_config: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns that all rows of a seed share, in the order of the seeds."""
    benchmark, task = get_benchmark(run_config["benchmark"]), run_config["task"]
    shared = {
        "benchmark": benchmark.name,
        "task": task_name(run_config),
        "view": run_config["view"],
        "frontend": run_config["frontend"]["name"],
        "reward_p": run_config["reward_p"],
        "shaping": run_config["shaping"],
        "agent": run_config["agent"]["name"],
    }
    rows = []
    for seed in run_config["seeds"]:
        r_min, r_max = reward_range(benchmark, task, seed, run_config["knobs"])
        rows.append({**shared, "seed": seed, "r_min": r_min, "r_max": r_max})
    return rows


def _agent(run_config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The agent's name and its hyper-parameters."""
    params = dict(run_config["agent"])
    return params.pop("name"), params
