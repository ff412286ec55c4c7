"""Training one run by an agent that trains itself: the same folder, status and curve as any other run's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from gymnasium.vector import VectorEnv

from lcd.agents.evaluate import EveryTask
from lcd.agents.learner import Learner, spaces_for
from lcd.envs.errors import InputError
from lcd.files.atomic import make_folder
from lcd.pipelines.jobs.build import build_evaluators
from lcd.pipelines.jobs.checkpoint import CURVE, kept_curve, save
from lcd.pipelines.jobs.record import CurveFile, require_finite_returns
from lcd.pipelines.kinds.train import promise
from lcd.pipelines.publish.track import open_tracker
from lcd.pipelines.study.configs import RunConfig, TrackerEntry
from lcd.pipelines.study.promise import wrong_in
from lcd.pipelines.study.store import RUNNING, finish, read_status, update_status

REPORT_EVERY_S = 0.5

Environments = Callable[[list[int]], tuple[VectorEnv, dict[str, list[VectorEnv]]]]
"""The seeds -> the training population, and those on which is evaluated, by the split that their rows get."""


def learn_run(
    run_config: RunConfig,
    folder: Path,
    learner: type[Learner],
    config: Any,
    environments: Environments,
    columns: Mapping[str, list[dict[str, Any]]],
    tracker: TrackerEntry,
) -> None:
    """Train one run to its end. What is kept of a run that was stopped is its finished seeds.

    Args:
        run_config: the run's.
        folder: the run's.
        learner: the agent's class.
        config: its hyper-parameters.
        environments: makes the populations.
        columns: for each split those that all rows of a seed share, in the order of the seeds.
        tracker: the tracker's configuration.
    """
    if run_config["frontend"]["name"] != "identity":
        raise InputError(
            f"frontend={run_config['frontend']['name']} cannot be used with agent={run_config['agent']['name']}, which "
            "has no place for one: give frontend=identity."
        )
    seeds = run_config["seeds"]
    curve = CurveFile(folder / "curve.csv")
    kept = _finished(curve, run_config) if learner.one_by_one else curve.cut(-1)
    tracked = open_tracker(tracker, folder, run_config, read_status(folder))
    device = str(learner.device)
    update_status(folder, state=RUNNING, step=0, steps=run_config["steps"], device=device, error=None)
    tracked.log_rows(kept)
    done = {int(row["seed"]) for row in kept}
    groups = [[seed] for seed in seeds if seed not in done] if learner.one_by_one else [seeds]
    make_folder(folder / "checkpoints")
    started = time.perf_counter()
    step = run_config["steps"]
    for group in groups:
        shared = {split: [row for row in rows if row["seed"] in group] for split, rows in columns.items()}
        session = _Session(run_config, folder, curve, shared, tracked.log_rows, started, len(seeds) - len(group))
        step = session.train(learner, config, group, environments)
    wall = round(time.perf_counter() - started, 3)
    tracked.finish({"steps": step, "wall_s": wall})
    finish(folder, step=step, steps=step, wall_s=wall)


def _finished(curve: CurveFile, run_config: RunConfig) -> list[dict[str, str]]:
    """The rows of the seeds whose curves are whole and whose checkpoints are there; all others are cut off."""
    rows = curve.cut(1 << 62)
    whole = []
    for seed in run_config["seeds"]:
        of_seed = [row for row in rows if row["seed"] == str(seed)]
        checkpoint = curve.path.parent / "checkpoints" / f"seed-{seed}.ckpt"
        if checkpoint.is_file() and not wrong_in(of_seed, promise({**run_config, "seeds": [seed]})):
            curve.refuse_others(of_seed, kept_curve(checkpoint))
            whole += of_seed
    curve.cut(-1)
    curve.append(whole)
    return whole


class _Session:
    """Trains one group of seeds and writes down what comes of it."""

    def __init__(
        self,
        run_config: RunConfig,
        folder: Path,
        curve: CurveFile,
        shared: Mapping[str, list[dict[str, Any]]],
        mirror: Callable[[list[dict[str, Any]]], None],
        started: float,
        earlier: int,
    ):
        self.run_config, self.folder, self.curve, self.shared = run_config, folder, curve, shared
        self.mirror, self.started, self.reported = mirror, started, 0.0
        self.earlier = earlier

    def train(self, kind: type[Learner], config: Any, seeds: list[int], environments: Environments) -> int:
        """Train these seeds; returns the last step."""
        training, held_out = environments(seeds)
        training = spaces_for(kind, training)
        evaluation = self.run_config["evaluation"]
        try:
            learner = kind(config, training, seeds)
            played = {split: [spaces_for(kind, env) for env in envs] for split, envs in held_out.items()}
            evaluators = build_evaluators(self.run_config, played, seeds)
            self.last, self.seeds = 0, len(seeds)
            self.rows: list[dict[str, Any]] = []
            learner.learn(
                self.run_config["steps"], evaluation["every"], lambda step: self._record(learner, evaluators, step)
            )
            self._save(learner, seeds)
        finally:
            for env in (training, *chain.from_iterable(held_out.values())):
                env.close()
        return self.last

    def _record(self, learner: Learner, evaluators: dict[str, EveryTask], step: int) -> None:
        learner.require_finite(step)
        found: dict[str, Sequence[Mapping[str, float] | None]]
        found = {split: evaluator(learner, step) for split, evaluator in evaluators.items()}
        found["train"] = learner.log.pop()
        wall = time.perf_counter() - self.started
        rows = [
            {**row, "split": split, "step": step, "wall_s": round(wall, 3), **statistics}
            for split, columns in found.items()
            for row, statistics in zip(self.shared[split], columns, strict=True)
            if statistics is not None
        ]
        require_finite_returns(rows)
        self.curve.append(rows)
        self.rows += rows
        self.mirror(rows)
        self.last = step
        if wall - self.reported >= REPORT_EVERY_S:
            self.reported = wall
            update_status(self.folder, step=step, wall_s=wall, steps_per_s=step * self.seeds / max(wall, 1e-9))

    def _save(self, learner: Learner, seeds: list[int]) -> None:
        name = "last" if len(seeds) > 1 else f"seed-{seeds[0]}"
        content = {**learner.state_dict(), CURVE: self.curve.digest_of(self.rows)}
        save(content, self.folder / "checkpoints" / f"{name}.ckpt")
