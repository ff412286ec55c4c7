"""Having runs done that other hands may be at: each is launched when it is free, and waited for while it is not."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

from lcd.config.schemas import DiagnoseConfig, PretrainConfig, TrainConfig
from lcd.pipelines.jobs.worker import Terms
from lcd.pipelines.launch.launchers import launch, launchers
from lcd.pipelines.launch.order import Call, Needs, waits_for
from lcd.pipelines.study import sources, store
from lcd.pipelines.study.configs import Device, TrackerEntry
from lcd.pipelines.study.hands import HELD, SILENT, Sight, Watch, refuse_odd
from lcd.pipelines.study.lease import LOG_FILE

Asked = DiagnoseConfig | PretrainConfig | TrainConfig
"""The configs of the commands that have jobs done."""
LOOK_EVERY_S, LOOK_S = 0.25, 0.005
"""Seconds between two looks at what others are at; and for each run, so that thousands are not too much for a disk."""


class Attempts:
    """The attempts at some runs by one command: one for each, unless another hand was at it.

    Args:
        cfg: the command's config.
        tracker: mirrors the runs.
        runs: those to be done, in the order in which they start.
        console: is told.

    Attributes:
        failed: the runs that failed, here or elsewhere, and why.
    """

    def __init__(self, cfg: Asked, tracker: TrackerEntry, runs: list[store.Run], console: Console):
        self.cfg, self.tracker, self.runs, self.console = cfg, tracker, runs, console
        self.failed: dict[store.Run, str] = {}
        self._before = {run: run.status["updated"] for run in runs}
        self._again = {run for run in runs if cfg.retry and (run.status["state"] == store.DIVERGED or run.lost)}
        self._watches = {run: Watch(run.path) for run in runs}
        # Of ten thousand runs nobody may look for each one among all.
        by_name = {run.path.name: run for run in runs}
        self._after = {run: [by_name[name] for name in run.after if name in by_name] for run in runs}
        self._silent: dict[store.Run, Sight] = {}
        name = cfg.launcher.name
        self._launcher = {name: sources.hashes_of(name)} if launchers.code_in(name) else {}

    def make(self, watch: Callable[[], None]) -> int:
        """Make them all; `watch` is called a few times a second. Returns how many were stopped by a signal."""
        left, told = self.runs, False
        while left:
            free = [run for run in left if self._is_free(run)]
            if stopped := self._launch(free, watch):
                return stopped
            left = [run for run in left if not self._is_over(run)]
            if left and not told:
                count = f"{len(left)} run{'s' * (len(left) > 1)}"
                self.console.print(f"Waiting for {count} that others are at.", highlight=False)
                told = True
            while left and not any(self._is_free(run) or self._is_over(run) for run in left):
                watch()
                time.sleep(LOOK_EVERY_S + LOOK_S * len(left))
        return 0

    def _launch(self, runs: list[store.Run], watch: Callable[[], None]) -> int:
        """Make calls of those of some runs that are free; how many were stopped."""
        names = {run.path.name for run in runs}
        outcomes = launch(
            self.cfg.launcher.name,
            "lcd.pipelines.jobs.worker:do_under_lease",
            [self._call(run, names) for run in runs],
            watch=watch,
            workers=self.cfg.launcher.workers,
            threads=self.cfg.launcher.threads,
            grace=self.cfg.launcher.grace,
            deadlines=self.cfg.deadlines,
            settings=self.cfg.launcher.settings,
        )
        ended = zip(runs, outcomes, strict=True)
        self.failed |= {run: outcome.error for run, outcome in ended if outcome.error is not None}
        return sum(outcome.stopped for outcome in outcomes)

    def _call(self, run: store.Run, called: set[str]) -> Call:
        """What a launcher gets of a run; what it waits for and is not called now, is done."""
        refuse_odd(run.path)
        terms = Terms(run in self._again, self._launcher, self._silent.pop(run, None))
        return Call(
            (run.kind.work, run.config, str(run.path), self.tracker, device_of(self.cfg), terms),
            log=run.path / LOG_FILE,
            name=run.path.name,
            label=run.label,
            after=tuple(name for name in run.after if name in called),
            needs=needs_of(run, self.cfg),
        )

    def _is_free(self, run: store.Run) -> bool:
        """Whether a run can be launched: nobody is at it, nor at one that it waits for."""
        state, _ = self._watches[run].look()
        if state == SILENT:
            self._silent[run] = self._watches[run].seen
        return state != HELD and not any(self._watches[other].look()[0] == HELD for other in self._after[run])

    def _is_over(self, run: store.Run) -> bool:
        """Whether a run is done or failed, by whomever."""
        if run in self.failed:
            return True
        status = run.status
        if status["state"] in (store.FAILED, store.DIVERGED) and status["updated"] != self._before[run]:
            # Another hand tried it while this command waited.
            self.failed[run] = status["error"] or ""
        elif lost := next((other for other in self._after[run] if other in self.failed), None):
            self.failed[run] = waits_for(lost.path.name, lost.label, self.failed[lost])
        return run in self.failed or run.done


def needs_of(run: store.Run, cfg: Asked) -> Needs:
    """What a run takes of a machine, as far as it is known."""
    device = device_of(cfg)
    processes = device.devices if run.kind.shared else 1
    return Needs(
        cores=processes * cfg.launcher.threads,
        memory=run.kind.least_memory(run.config),
        gpus=processes if device.accelerator in ("auto", "cuda") else 0,
        gpu_memory=run.kind.least_memory(run.config) // processes if device.accelerator in ("auto", "cuda") else 0,
    )


def device_of(cfg: Asked) -> Device:
    """Where networks are trained and by how many processes; `num_nodes` only where one run is trained."""
    return Device(cfg.device, getattr(cfg, "devices", 1), getattr(cfg, "num_nodes", 1))
