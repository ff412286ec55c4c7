"""`lcd cancel`: stop runs wherever they are trained, by a mark in their folders that whoever works on them looks at."""

from __future__ import annotations

import time
from collections.abc import Sequence

from lcd.config.steering_schemas import CancelConfig
from lcd.consoles import console_for_tables
from lcd.pipelines.launch.slurm_jobs import cancel_queued
from lcd.pipelines.steering.chosen import chosen, counted, study_of
from lcd.pipelines.steering.glance import LEFT_TO_DO, RUNNING, Glance, Seen
from lcd.pipelines.study.cancelling import LOOK_EVERY_S, SENTENCE, cancel
from lcd.pipelines.study.hands import HELD, Watch
from lcd.process import exits, signals


def run(cfg: CancelConfig) -> int:
    """Cancel what is at work or waits; returns the exit code: 75 where some that were waited for have not stopped."""
    study, console = study_of(cfg), console_for_tables()
    seen = Glance(study).look()
    found = [each for each in chosen(seen, cfg) if each.state in LEFT_TO_DO]
    for each in found:
        cancel(each.folder)
    wanted = {each.name for each in seen if each.state in LEFT_TO_DO} - {each.name for each in found}
    jobs = cancel_queued(study.path, lambda name: name not in wanted, SENTENCE) if found else 0
    at_work = [each for each in found if each.state == RUNNING]
    told = f"{counted(len(found), study.path)} cancelled" if found else f"Nothing of {study.path} is at work or waits"
    of_slurm = f", and {jobs} of their jobs were taken out of Slurm's queue" if jobs else ""
    console.print(f"{told}{of_slurm}.", highlight=False, soft_wrap=True, markup=False)
    if found:
        console.print("'lcd retry' lets them go on from where they came to.", highlight=False)
    if at_work and cfg.wait:
        at_work = _still_at_work(at_work, cfg.wait)
    if at_work:
        told = (
            f"{len(at_work)} of them are at work still: they keep a checkpoint and stop within seconds, or when their"
        )
        console.print(f"{told} evaluation's step ends.", highlight=False, soft_wrap=True)
    return signals.CONTINUE_ME if at_work and cfg.wait else exits.OK


def _still_at_work(runs: Sequence[Seen], seconds: float) -> list[Seen]:
    """Those of some runs that somebody works on after so many seconds."""
    end, watches = time.monotonic() + seconds, {each.folder: Watch(each.folder) for each in runs}
    left = list(runs)
    while (left := [each for each in left if watches[each.folder].look()[0] == HELD]) and time.monotonic() < end:
        time.sleep(min(LOOK_EVERY_S, 0.5))
    return left
