"""Training one run: all seeds of one condition, from its configuration to its held-out curve."""

import logging
import math
import warnings
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import VectorEnv
from lightning.pytorch import LightningModule, Trainer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lcd.agents import agents, validate
from lcd.agents.curriculum import CurriculumRollouts, Stage
from lcd.agents.evaluate import Evaluator, EveryTask
from lcd.agents.frozen import freeze
from lcd.agents.learner import Learner, spaces_for
from lcd.agents.rollout import Rollouts, loader
from lcd.curves import COLUMNS, PHASE
from lcd.envs.benchmarks import get_benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.hardness.benchmark import quiet
from lcd.envs.population import make_population
from lcd.frontends import record
from lcd.pipelines.diagnose import opening, train_missing
from lcd.pipelines.learn import learn_run
from lcd.pipelines.progress import label
from lcd.pipelines.record import STEP, AtomicCheckpoints, CurveFile, Recorder
from lcd.pipelines.runs import run_config_from
from lcd.pipelines.store import (
    DONE,
    RUNNING,
    Study,
    frontend_name,
    read_status,
    run_id,
    task_name,
    update_status,
)
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
    for (task, seed), rows in held_out.groupby(["task", "seed"], sort=False):
        first, last = rows.return_mean.iloc[[0, -1]]
        name = f"{task}, {seed}" if "curriculum" in run_config else str(seed)
        table.add_row(name, *(f"{x:.3g}" for x in (first, last, rows.r_min.iloc[0], rows.r_max.iloc[0])))
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
        _learn(run_config, folder, kind, config, tracker)
        return
    training, held_out = _environments(run_config, config.copies)
    training = [spaces_for(kind, env) for env in training]
    held_out = {split: [spaces_for(kind, env) for env in envs] for split, envs in held_out.items()}
    try:
        agent = build_agent(run_config, training[0])
        rollouts = build_rollouts(run_config, training, agent)
        episodes = run_config["evaluation"]["episodes"]
        evaluators = {
            split: EveryTask([Evaluator(env, rollouts.seeds, episodes) for env in envs])
            for split, envs in held_out.items()
        }
        _fit(run_config, folder, agent, rollouts, evaluators, tracker, device)
    finally:
        for env in (*training, *chain.from_iterable(held_out.values())):
            env.close()


def _learn(run_config: dict[str, Any], folder: Path, kind: type, config: Any, tracker: dict[str, Any]) -> None:
    """Let an agent that trains itself do so, seed by seed."""
    if "curriculum" in run_config:
        name = run_config["agent"]["name"]
        raise InputError(f"agent={name} learns one task: a curriculum needs agent=ppo or agent=recurrent_ppo.")

    def environments(seeds: list[int]) -> tuple[VectorEnv, dict[str, VectorEnv]]:
        training, held_out = _environments(run_config | {"seeds": seeds}, config.copies)
        return training[0], {split: envs[0] for split, envs in held_out.items()}

    learn_run(run_config, folder, kind, config, environments, _shared_columns(run_config), tracker)


def stages_of(run_config: dict[str, Any]) -> list[dict[str, Any]]:
    """What a run trains, in order: `name` (what curves call it), `task`, `knobs` and `steps`; one, or a curriculum."""
    if "curriculum" in run_config:
        return run_config["curriculum"]
    return [{"name": task_name(run_config), **{key: run_config[key] for key in ("task", "knobs", "steps")}}]


def build_agent(run_config: dict[str, Any], env: VectorEnv) -> LightningModule:
    """The agent of a run, its front-end and networks shaped by the environment's spaces."""
    name, params = _agent(run_config)
    actions = env.single_action_space
    if not isinstance(actions, Discrete | Box):
        raise InputError(
            f"task={run_config['task']} has the action space {actions}: agent={name} needs a discrete one or a box."
        )
    config = validate(name, params)
    frontend, shape = freeze(
        record.build(run_config["frontend"]),
        env.single_observation_space,
        copies=env.num_envs,
        # PPG keeps the rollouts of a whole phase.
        steps=len(run_config["seeds"]) * config.copies * config.rollout * getattr(config, "phase", 1),
        **record.use(run_config["frontend"]),
    )
    actions = int(actions.n) if isinstance(actions, Discrete) else actions
    return agents.resolve(name)(config, shape, actions, run_config["seeds"], frontend)


def build_rollouts(run_config: dict[str, Any], training: Sequence[VectorEnv], agent: LightningModule) -> Rollouts:
    """The run's training data: as many rollouts as its steps, or each stage's, need."""
    config, seeds = agent.config, run_config["seeds"]
    how = {"length": config.rollout, "gamma": config.gamma, "normalise": config.normalise_rewards}
    stages = [
        Stage(stage["name"], env, math.ceil(stage["steps"] / (config.copies * config.rollout)))
        for stage, env in zip(stages_of(run_config), training, strict=True)
    ]
    if "curriculum" in run_config:
        return CurriculumRollouts(stages, seeds, agent, **how)
    return Rollouts(stages[0].env, seeds, agent, total=stages[0].rollouts, **how)


def _environments(run_config: dict[str, Any], copies: int) -> tuple[list[VectorEnv], dict[str, list[VectorEnv]]]:
    """The training population of each stage (rewards thinned), and by their split those of each task held out."""
    stages, evaluation = stages_of(run_config), run_config["evaluation"]
    training = [_environment(run_config, stage, "train", copies) for stage in stages]
    tasks = list({stage["name"]: stage for stage in stages}.values())
    splits = {"eval": tasks}
    if evaluation.get("noise_free"):
        still = [quiet(stage["task"], stage["knobs"]) for stage in tasks]
        splits["noise_free"] = [{"task": task, "knobs": knobs} for task, knobs in still]
    held_out = {
        split: [_environment(run_config, stage, "eval", evaluation["copies"]) for stage in of_split]
        for split, of_split in splits.items()
    }
    return training, held_out


def _environment(run_config: dict[str, Any], stage: dict[str, Any], split: str, copies: int) -> VectorEnv:
    """The population of one task: with rewards thinned to train in, or held out with rewards as they are."""
    knobs = dict(stage["knobs"])
    # Only benchmarks that have shaping know the knob; it is never on in held-out copies.
    if split == "train" and run_config["shaping"] != "none":
        knobs["shaping"] = run_config["shaping"]
    return make_population(
        get_benchmark(run_config["benchmark"]),
        stage["task"],
        seeds=run_config["seeds"],
        copies=copies,
        view=run_config["view"],
        split=split,
        reward_p=run_config["reward_p"],
        **knobs,
    )


def _fit(
    run_config: dict[str, Any],
    folder: Path,
    agent: LightningModule,
    rollouts: Rollouts,
    evaluators: dict[str, EveryTask],
    tracker: dict[str, Any],
    device: dict[str, Any],
) -> None:
    """Train from where the checkpoint stands, recording as it goes."""
    checkpoint = folder / "checkpoints" / "last.ckpt"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    reached = _reached(checkpoint)
    curve = CurveFile(folder / "curve.csv", (*COLUMNS, PHASE) if "curriculum" in run_config else COLUMNS)
    earlier = curve.cut(-1 if reached is None else reached)
    update_status(folder, state=RUNNING, step=reached or 0, steps=rollouts.steps, error=None)
    tracked = open_tracker(tracker, folder, run_config, read_status(folder))
    tracked.log_rows(earlier)
    recorder = Recorder(
        rollouts,
        evaluators,
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
    """The columns that all rows of a task and seed share, in the order of the tasks, then of the seeds."""
    benchmark = get_benchmark(run_config["benchmark"])
    shared = {
        "benchmark": benchmark.name,
        "view": run_config["view"],
        "frontend": frontend_name(run_config),
        "reward_p": run_config["reward_p"],
        "shaping": run_config["shaping"],
        "agent": run_config["agent"]["name"],
    }
    rows = []
    for name, stage in {stage["name"]: stage for stage in stages_of(run_config)}.items():
        for seed in run_config["seeds"]:
            r_min, r_max = reward_range(benchmark, stage["task"], seed, stage["knobs"])
            rows.append({**shared, "task": name, "seed": seed, "r_min": r_min, "r_max": r_max})
    return rows


def _agent(run_config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The agent's name and its hyper-parameters."""
    params = dict(run_config["agent"])
    return params.pop("name"), params
