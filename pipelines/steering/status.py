"""`lcd status`: how far a study is, in one screen or as JSON, whether three runs make it or ten thousand."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from lcd.config.steering_schemas import StatusConfig
from lcd.consoles import console_for_tables
from lcd.pipelines.launch.slurm_jobs import PENDING, queued
from lcd.pipelines.steering.chosen import asked, chosen, study_of
from lcd.pipelines.steering.glance import CANCELLED, DAMAGED, DIVERGED, FAILED, LEFT_TO_DO, WAITING, Glance, Seen
from lcd.pipelines.steering.screen import screen
from lcd.pipelines.steering.summary import Summary
from lcd.pipelines.study.longer import longest
from lcd.process import exits, signals

LOOKING_SHARE = 0.2
"""Most of the time of --watch that goes into looking."""


def run(cfg: StatusConfig) -> int:
    """Say how a study is; returns the exit code: 0 all done, 1 something failed, 75 something is left to do."""
    study, console = study_of(cfg), console_for_tables()
    conditions = asked(cfg)
    glance = Glance(study)
    live = cfg.watch and cfg.format == "text" and console.is_terminal
    with Live(console=console, auto_refresh=False) if live else contextlib.nullcontext() as drawing:
        while True:
            begun = time.monotonic()
            there = glance.look()
            seen = chosen(longest(there) if cfg.run is None else there, cfg)
            if drawing is not None:
                drawing.update(_text(study.path, seen, console), refresh=True)
            elif cfg.format == "text":
                console.print(_text(study.path, seen, console), soft_wrap=True)
            else:
                print(json.dumps(Summary(seen).as_json(str(study.path))), flush=True)
            if not cfg.watch or not any(each.state in LEFT_TO_DO for each in seen):
                return _exit_code(seen, bool(conditions))
            time.sleep(max(cfg.every, (time.monotonic() - begun) / LOOKING_SHARE))


def _text(study: Path, seen: Sequence[Seen], console: Console) -> Text:
    waiting = {each.name for each in seen if each.state == WAITING}
    at_slurm = {name for job, state in queued(study).items() if state == PENDING for name in job.calls}
    height = console.height if console.is_terminal else 0
    return Text("\n".join(screen(study, seen, console.width, height, len(waiting & at_slurm))))


def _exit_code(seen: Sequence[Seen], some: bool) -> int:
    """Of `some` runs that were asked for, or of all: a study that has none yet has only begun."""
    states = {each.state for each in seen}
    if states & {FAILED, DIVERGED, DAMAGED, CANCELLED}:
        return exits.FAILED
    return signals.CONTINUE_ME if states & {*LEFT_TO_DO} or not (states or some) else exits.OK
