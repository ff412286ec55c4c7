"""`lcd retry`: runs that failed, diverged or were cancelled wait again for the next command that asks for them."""

from __future__ import annotations

from lcd.config.steering_schemas import RetryConfig
from lcd.consoles import console_for_tables
from lcd.envs.errors import InputError
from lcd.pipelines.steering.chosen import chosen, counted, study_of, tell_of_waiting
from lcd.pipelines.steering.glance import CANCELLED, DIVERGED, FAILED, RUNNING, Glance, Seen
from lcd.pipelines.study import store
from lcd.pipelines.study.cancelling import is_cancelled, let_go_on
from lcd.pipelines.study.hands import Sight, free_to_take
from lcd.process import exits

AGAIN = (FAILED, DIVERGED, CANCELLED)


def run(cfg: RetryConfig) -> int:
    """Let the chosen ones go on, or begin anew; returns the exit code."""
    study, console = study_of(cfg), console_for_tables()
    seen = chosen(Glance(study).look(), cfg)
    # The machine of a hand that never stopped may be gone.
    stopping = [each.folder for each in seen if each.state == RUNNING and is_cancelled(each.folder)]
    silent = free_to_take(stopping, lambda: tell_of_waiting(console))
    found = [each for each in seen if each.state in AGAIN or each.folder in silent]
    for each in found:
        _let_go_on(each, cfg.anew, silent.get(each.folder))
    if not found:
        console.print(f"Nothing of {study.path} failed, diverged or was cancelled.", highlight=False, soft_wrap=True)
        return exits.OK
    told = f"{counted(len(found), study.path)} waiting again, for a command that asks for it."
    console.print(told, highlight=False, soft_wrap=True, markup=False)
    return exits.OK


def _let_go_on(seen: Seen, anew: bool, silent: Sight | None) -> None:
    """Make a run wait again; one that diverged would end the same way if it did not begin anew."""
    if seen.config is None:
        raise InputError(f"{seen.folder} has no config.yaml that can be read: 'lcd verify' says why.")
    run = store.Run(seen.config, seen.folder)
    anew = anew or run.status["state"] == store.DIVERGED
    fresh = {"steps": run.config["steps"]} if anew else {}
    if not run.mark(anew=anew, silent=silent, state=store.QUEUED, error=None, **fresh):
        raise InputError(f"The run {seen.name} ({seen.label}) is being trained: wait for it, or 'lcd cancel' it.")
    let_go_on(seen.folder)
