"""Training one run by an agent that trains itself: the same folder, status and curve as any other run's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from lcd.agents.evaluate import EveryTask
from lcd.agents.learner import Learner, spaces_for
from lcd.curves.table import COLUMNS
from lcd.envs.errors import InputError
from lcd.files.atomic import make_folder
from lcd.pipelines.jobs.build import build_environments, build_evaluators, measured_besides, shared_columns
from lcd.pipelines.jobs.checkpoint import CURVE, kept_curve, save
from lcd.pipelines.jobs.record import CurveFile, require_finite_returns
from lcd.pipelines.kinds.train import promise
from lcd.pipelines.publish.track import open_tracker
from lcd.pipelines.study.configs import RunConfig, TrackerEntry, population
from lcd.pipelines.study.members import Member, alone, checkpoint_of, members_of, seeds_of, trained_by
from lcd.pipelines.study.promise import wrong_in
from lcd.pipelines.study.store import RUNNING, finish, read_status, update_status

REPORT_EVERY_S = 0.5


def learn_run(
    run_config: RunConfig,
    folder: Path,
    learner: type[Learner],
    config: Any,
    tracker: TrackerEntry,
) -> None:
    """Train one run to its end. What is kept of a run that was stopped is its finished members.

    Args:
        run_config: the run's.
        folder: the run's.
        learner: the agent's class.
        config: its hyper-parameters.
        tracker: the tracker's configuration.
    """
    if run_config["frontend"]["name"] != "identity":
        raise InputError(
            f"frontend={run_config['frontend']['name']} cannot be used with agent={run_config['agent']['name']}, which "
            "has no place for one: give frontend=identity."
        )
    curve = CurveFile(folder / "curve.csv", (*COLUMNS, *measured_besides(run_config)))
    whole = _finished(curve, run_config) if learner.one_by_one else {}
    kept = [row for rows in whole.values() for row in rows]
    curve.cut(-1)
    curve.append(kept)
    tracked = open_tracker(tracker, folder, run_config, read_status(folder))
    device = str(learner.device)
    update_status(folder, state=RUNNING, step=0, steps=run_config["steps"], device=device, error=None)
    tracked.log_rows(kept)
    parts = {"last.ckpt": run_config}
    if learner.one_by_one:
        left = [member for member in members_of(run_config) if member not in whole]
        parts = {checkpoint_of(run_config, member): alone(run_config, member) for member in left}
    make_folder(folder / "checkpoints")
    started = time.perf_counter()
    step = run_config["steps"]
    for checkpoint, part in parts.items():
        step = _Session(part, folder, curve, tracked.log_rows, started).train(learner, config, checkpoint)
    wall = round(time.perf_counter() - started, 3)
    tracked.finish({"steps": step, "wall_s": wall})
    finish(folder, step=step, steps=step, wall_s=wall)


def _finished(curve: CurveFile, run_config: RunConfig) -> dict[Member, list[dict[str, str]]]:
    """The rows of the members whose curves are whole and whose checkpoints are there."""
    rows_of: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in curve.cut(1 << 62):
        rows_of.setdefault((row["trained_on"], row["seed"]), []).append(row)
    whole = {}
    for member in members_of(run_config):
        rows = rows_of.get((trained_by(run_config, member), str(member.seed)), [])
        checkpoint = curve.path.parent / "checkpoints" / checkpoint_of(run_config, member)
        if checkpoint.is_file() and not wrong_in(rows, promise(alone(run_config, member))):
            curve.refuse_others(rows, kept_curve(checkpoint))
            whole[member] = rows
    return whole


class _Session:
    """Trains some of a run's members, or all, and writes down what comes of it; `run_config` is of these alone."""

    def __init__(
        self,
        run_config: RunConfig,
        folder: Path,
        curve: CurveFile,
        mirror: Callable[[list[dict[str, Any]]], None],
        started: float,
    ):
        self.run_config, self.folder, self.curve = run_config, folder, curve
        self.mirror, self.started, self.reported = mirror, started, 0.0
        self.shared, self.members = shared_columns(run_config), population(run_config)

    def train(self, kind: type[Learner], config: Any, checkpoint: str) -> int:
        """Train them; returns the last step."""
        trained, held_out = build_environments(self.run_config, config.copies)
        training = spaces_for(kind, trained[0])
        evaluation = self.run_config["evaluation"]
        try:
            learner = kind(config, training, seeds_of(self.run_config))
            played = {split: [spaces_for(kind, env) for env in envs] for split, envs in held_out.items()}
            evaluators = build_evaluators(self.run_config, played)
            self.last = 0
            self.rows: list[dict[str, Any]] = []
            learner.learn(
                self.run_config["steps"], evaluation["every"], lambda step: self._record(learner, evaluators, step)
            )
            self._save(learner, checkpoint)
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
            update_status(self.folder, step=step, wall_s=wall, steps_per_s=step * self.members / max(wall, 1e-9))

    def _save(self, learner: Learner, checkpoint: str) -> None:
        content = {**learner.state_dict(), CURVE: self.curve.digest_of(self.rows)}
        save(content, self.folder / "checkpoints" / checkpoint)
