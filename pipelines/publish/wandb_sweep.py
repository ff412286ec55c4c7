"""`lcd wandb-sweep`: a W&B sweep whose agents train a study's runs, and what such an agent calls for each of them."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from lcd.config.wandb_schemas import WandbSweepConfig
from lcd.consoles import console_for_tables
from lcd.envs.errors import InputError, nearest
from lcd.files import outputs
from lcd.pipelines.launch.launchers import launch
from lcd.pipelines.launch.order import Call
from lcd.pipelines.publish.track import tracker_entry
from lcd.pipelines.publish.wandb_client import logged_in, unreachable, wandb_settings
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.longer import longest
from lcd.process import signals

FILE = "wandb-sweep.yaml"


def run(cfg: WandbSweepConfig) -> int:
    """Write the sweep, or train the one run that an agent names; returns the exit code."""
    if cfg.path is None:
        raise InputError("path is missing: give a study's folder.")
    study, console = store.Study(Path(cfg.path).expanduser()), console_for_tables()
    if cfg.run is not None:
        return _train(cfg, study, console)
    left = [each for each in longest(study.runs()) if each.needs_training(retry=False)]
    if not left:
        console.print(f"All runs of {study.path} are done: there is nothing to sweep.", highlight=False, soft_wrap=True)
        return 0
    for each in left:
        _refuse_waiting(study, each)
    file = Path(cfg.out).expanduser() if cfg.out else study.path / FILE
    outputs.check_file(file)
    settings = wandb_settings(tracker_entry(cfg.tracker))
    sweep = sweep_config(study, [each.path.name for each in left], settings.project, settings.entity, cfg.device)
    with outputs.drafted_file(file) as draft:
        draft.write_text(yaml.safe_dump(sweep, sort_keys=False), encoding="utf-8")
    _tell(console, "sweep", str(file))
    made = _make(sweep, settings.project, settings.entity)
    if made is None:
        _tell(console, "create", f"wandb sweep {file}")
    _tell(console, "agent", f"wandb agent {made or 'ENTITY/PROJECT/ID (what wandb sweep prints)'}")
    return 0


def sweep_config(study: store.Study, runs: list[str], project: str, entity: str | None, device: str) -> dict[str, Any]:
    """The sweep: a grid over run ids, each of which is one call of this command."""
    program = shutil.which("lcd") or "lcd"
    given = [str(study.path.resolve()), "tracker.mode=online", f"tracker.project={project}", f"device={device}"]
    given += [f"tracker.entity={entity}"] if entity else []
    return {
        "name": study.name,
        "project": project,
        **({"entity": entity} if entity else {}),
        "program": program,
        "command": [program, "wandb-sweep", *given, "${args_no_hyphens}"],
        "method": "grid",
        "metric": {"name": "eval/return_mean", "goal": "maximize"},
        "parameters": {"run": {"values": runs}},
    }


def _make(sweep: dict[str, Any], project: str, entity: str | None) -> str | None:
    """Create the sweep where a server can be reached; its path for `wandb agent`."""
    if find_spec("wandb") is None or not logged_in() or unreachable() is not None:
        return None
    import wandb

    try:
        made = wandb.sweep(sweep, project=project, entity=entity)
    except Exception as error:  # the client raises whatever its server and its own checks bring up
        print(f"The sweep is not created: {' '.join(str(error).split())[:300]}")
        return None
    return "/".join(part for part in (entity, project, made) if part)


def _refuse_waiting(study: store.Study, run: store.Run) -> None:
    """Agents take runs in any order: what others wait for has to be there before."""
    by_id = {each.path.name: each for each in study.runs()}
    for name in run.after:
        if name not in by_id or not by_id[name].done:
            raise InputError(
                f"Run {run.path.name} waits for {name}, which is not done: train that first, by "
                f"lcd wandb-sweep {study.path} run={name}."
            )


def _train(cfg: WandbSweepConfig, study: store.Study, console: Console) -> int:
    """Train one run of the study, under its lease."""
    by_id = {each.path.name: each for each in study.runs()}
    if cfg.run not in by_id:
        raise InputError(f"run={cfg.run} is no run of {study.path}: {nearest(str(cfg.run), by_id)}")
    found = by_id[cfg.run]
    if found.done:
        console.print(f"{found.label} ({cfg.run}) is done.", highlight=False, soft_wrap=True, markup=False)
        return 0
    _refuse_waiting(study, found)
    arguments = (found.kind.work, found.config, str(found.path), tracker_entry(cfg.tracker), Device(cfg.device))
    call = Call(arguments, name=found.path.name, label=found.label)
    knobs: dict[str, Any] = {"threads": cfg.launcher.threads, "grace": cfg.launcher.grace, "deadlines": cfg.deadlines}
    (outcome,) = launch("local", "lcd.pipelines.jobs.worker:do_under_lease", [call], workers=1, **knobs)
    if outcome.stopped:
        raise signals.Stopped
    if outcome.error:
        console.print(f"{found.label} failed: {outcome.error}", highlight=False, soft_wrap=True, markup=False)
        return 1
    told = "is done" if found.done else "is another hand's at the moment"
    console.print(f"{found.label} ({cfg.run}) {told}.", highlight=False, soft_wrap=True, markup=False)
    return 0


def _tell(console: Console, name: str, said: str) -> None:
    console.print(f"{name:<10} {said}", highlight=False, soft_wrap=True, markup=False)
