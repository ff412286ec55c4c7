"""`lcd horizon`: the effective horizon of whatever can be written down as tables."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from rich.console import Console
from rich.table import Table

from lcd.config.schemas import HorizonConfig
from lcd.consoles import console_for_tables
from lcd.envs.benchmarks import BENCHMARKS
from lcd.envs.errors import InputError
from lcd.envs.streams import seed_sequence
from lcd.files import outputs
from lcd.files.atomic import write_atomic
from lcd.horizon import tables
from lcd.horizon.analysis import Settings, analyse, plain
from lcd.horizon.named_mdps import SUFFIX, find
from lcd.horizon.simulated import Simulated, Simulator, estimate


def run(cfg: HorizonConfig) -> int:
    """Analyse the MDPs that are named and print what is found; returns the exit code."""
    if cfg.mdp is None:
        raise InputError(
            "mdp is missing: give an .npz file, module:object, a benchmark, a study's folder, or a task such as "
            "ctgraph/ct-fo-b1."
        )
    settings = settings_of(cfg)
    if cfg.mdp in BENCHMARKS.names():
        from lcd.horizon import whole

        return whole.run(cfg.mdp, whole.tasks_of(cfg), cfg, settings)
    for key in ("tasks", "save", "bridge"):
        if getattr(cfg, key):
            raise InputError(f"{key} is {getattr(cfg, key)}, but mdp={cfg.mdp} is no benchmark: leave it out.")
    out = None if cfg.out is None else Path(cfg.out).expanduser()
    inputs = [Path(cfg.mdp).expanduser()] if cfg.mdp.endswith(SUFFIX) else []
    if out is not None:
        outputs.check_file(out, inputs)
    content: dict[str, Any] = {"settings": vars(settings)}
    shown: list[Table | str]
    console = console_for_tables(emoji=False)
    with Console(stderr=True).status("making the tables") as status:
        found = find(cfg.mdp, cfg.knobs, cfg.seed, cfg.horizon, cfg.sticky, cfg.copies)
        if isinstance(found, VectorEnv):
            status.update("running GORP on the simulator")
            played = _played(found, cfg, settings)
            shown, content["simulated"] = [tables.simulated(played), tables.simulated_summary(played)], plain(played)
        else:
            results = [analyse(mdp, settings, lambda doing: status.update(doing)) for mdp in found]
            shown = [tables.one(results[0], settings) if len(results) == 1 else tables.several(results)]
            content["mdps"] = [result.plain() for result in results]
    for part in shown:
        console.print(part, highlight=False, soft_wrap=isinstance(part, str), markup=False)
    if out is not None:
        with outputs.drafted_file(out, inputs) as draft:
            write_atomic(draft, json.dumps(content, indent=1, allow_nan=False) + "\n")
        console.print(f"all of it  {out}", highlight=False, soft_wrap=True, markup=False)
    return 0


def settings_of(cfg: HorizonConfig) -> Settings:
    """How MDPs are looked at."""
    return Settings(**{field.name: getattr(cfg, field.name) for field in fields(Settings)})


def _played(env: VectorEnv, cfg: HorizonConfig, settings: Settings) -> Simulated:
    """Run GORP on a simulator."""
    try:
        if cfg.horizon is None:
            raise InputError(f"horizon is missing: mdp={cfg.mdp} has no tables that say its steps; give horizon=….")
        if cfg.sticky:
            raise InputError(f"sticky is {cfg.sticky}, but mdp={cfg.mdp} is played as it is: leave it out.")
        rng = np.random.default_rng(seed_sequence(settings.seed, "gorp"))
        simulator = Simulator(env, str(cfg.mdp), cfg.horizon, settings.discount, rng)
        return estimate(simulator, cfg.simulated, settings.most_k)
    finally:
        env.close()
