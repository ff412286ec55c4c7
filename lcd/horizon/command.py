"""`lcd horizon`: the effective horizon of whatever can be written down as tables."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from lcd.config.schemas import HorizonConfig
from lcd.envs.errors import InputError
from lcd.files import outputs
from lcd.files.atomic import write_atomic
from lcd.horizon import tables
from lcd.horizon.analysis import Settings, analyse
from lcd.horizon.named_mdps import SUFFIX, find


def run(cfg: HorizonConfig) -> int:
    """Analyse the MDPs that are named and print what is found; returns the exit code."""
    if cfg.mdp is None:
        raise InputError("mdp is missing: give an .npz file, module:object, or a task such as ctgraph/ct-fo-b1.")
    settings = Settings(
        cfg.discount, cfg.tolerance, cfg.timesteps, cfg.runs, cfg.confidence, cfg.most_k, cfg.seed
    )  # fmt: skip
    out = None if cfg.out is None else Path(cfg.out).expanduser()
    inputs = [Path(cfg.mdp).expanduser()] if cfg.mdp.endswith(SUFFIX) else []
    if out is not None:
        outputs.check_file(out, inputs)
    results = []
    with Console(stderr=True).status("making the tables") as status:
        for mdp in find(cfg.mdp, cfg.knobs, cfg.seed, cfg.horizon, cfg.sticky):
            results.append(analyse(mdp, settings, lambda doing, name=mdp.name: status.update(f"{name}: {doing}")))
    console = Console()
    console.print(tables.one(results[0], settings) if len(results) == 1 else tables.several(results))
    if out is not None:
        content = {"settings": vars(settings), "mdps": [result.plain() for result in results]}
        with outputs.drafted_file(out, inputs) as draft:
            write_atomic(draft, json.dumps(content, indent=1, allow_nan=False) + "\n")
        console.print(f"all of it  {out}", highlight=False, soft_wrap=True, markup=False)
    return 0
