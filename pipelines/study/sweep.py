"""`lcd sweep`: dimensions of hardness over a grid × agents × seeds, and the figures that the paper draws of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from rich.console import Console
from rich.table import Table

from lcd.config.compose import seed_list, show
from lcd.config.schemas import ExperimentConfig, SweepConfig
from lcd.envs.errors import InputError, nearest
from lcd.files import outputs
from lcd.files.atomic import write_atomic
from lcd.files.spreadsheets import csv_text
from lcd.pipelines.kinds.kind import TRAIN, Job
from lcd.pipelines.study import needs, store
from lcd.pipelines.study.configs import AgentEntry, canonical
from lcd.pipelines.study.quarantine import Finished, sort_out
from lcd.pipelines.study.sources import with_source

RESULTS = "sweep"


def run(cfg: SweepConfig) -> int:
    """Train what the experiment still lacks, then draw it; returns the exit code."""
    from lcd.pipelines.study.training import check_trainable, opening, train_missing

    experiment = quickened(cfg.experiment) if cfg.quick else cfg.experiment
    console = Console()
    jobs = expand(experiment)
    check_trainable(cfg, jobs)
    study = store.Study(cfg.out or default_out(experiment, cfg.quick), create=True)
    with study.lock():
        outputs.check(study.path / RESULTS, RESULTS)
        wanted = study.ask({"experiment": asdict(experiment)}, jobs)
        console.print(opening(study, wanted), highlight=False, soft_wrap=True, markup=False)
        trained = all(each.done for each in wanted) or train_missing(cfg, study, wanted, console)
        publish(experiment, sort_out(wanted, str(study.path)), study.path / RESULTS, console)
    return 0 if trained else 1


def default_out(experiment: ExperimentConfig, quick: bool) -> Path:
    """A folder that the same request always gets."""
    import hashlib

    digest = hashlib.sha256(canonical(asdict(experiment)).encode()).hexdigest()[:6]
    return Path("studies") / f"sweep-{experiment.name}{'-quick' if quick else ''}-{digest}"


def quickened(experiment: ExperimentConfig) -> ExperimentConfig:
    """The experiment as its `quick` section changes it."""
    changes = dict(experiment.quick)
    known = set(asdict(experiment)) - {"quick", "name"}
    for key in changes:
        if key not in known:
            raise InputError(
                f"experiment.quick.{key} is no key of an experiment: choose from {', '.join(sorted(known))}."
            )
    if not changes:
        raise InputError(f"quick=true, but the experiment {experiment.name} has no quick variant.")
    evaluation = replace(experiment.evaluation, **changes.pop("evaluation", {}))
    return replace(experiment, evaluation=evaluation, **changes)


def expand(experiment: ExperimentConfig) -> list[Job]:
    """The run configs of an experiment, in the order base, agent, point of the grid, part of the seeds."""
    from lcd.envs.hardness.benchmark import HARDNESS, check_base, knob_order
    from lcd.envs.hardness.task_names import task_name

    runs = []
    for base, agent in product(experiment.bases, experiment.agents):
        check_base(base)
        own = _of_base(experiment, base)
        order = knob_order(base)
        _check_grid(own["grid"], own["knobs"], order, base)
        params = _agent(agent, own["agent_params"].get(agent, {}))
        views = HARDNESS.views_of(task_name(base, {}, order))
        evaluation = asdict(experiment.evaluation) | ({"noise_free": True} if experiment.noise_free else {})
        for point in points(own["grid"]):
            for seeds in _parts(own["seeds"], experiment.seeds_per_run if agent.startswith("sb3/") else 0):
                made = with_source(
                    {
                        "kind": TRAIN,
                        "benchmark": "hardness",
                        "task": task_name(base, point, order),
                        "knobs": dict(own["knobs"]),
                        "view": experiment.view if experiment.view in views else views[0],
                        "frontend": {"name": "identity"},
                        "reward_p": 1.0,
                        "shaping": "none",
                        "agent": params,
                        "seeds": seeds,
                        "steps": _steps(own["steps"], agent),
                        "evaluation": evaluation,
                    }
                )
                needs.check_run(made)
                runs.append(Job(made))
    return runs


def points(grid: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Every combination of the grid's values."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _of_base(experiment: ExperimentConfig, base: str) -> dict[str, Any]:
    """Grid, seeds, steps, knobs and agents' parameters, as `of` changes them for a base or for its kind ("atari")."""
    own = {key: getattr(experiment, key) for key in ("grid", "seeds", "steps", "knobs", "agent_params")}
    for name in (base.partition("/")[0], base):
        own |= experiment.of.get(name, {})
    return own


def _check_grid(grid: Mapping[str, Any], knobs: Mapping[str, Any], order: list[str], base: str) -> None:
    if len(grid) not in (1, 2):
        raise InputError(f"experiment.grid varies {len(grid)} dimensions: give one or two.")
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"experiment.grid.{key}={show(values)} must be a list of values.")
    for key in [*grid, *knobs]:
        if key not in order:
            raise InputError(f"'{key}' is no dimension of {base}; {nearest(key, order)}")


def _steps(steps: Any, agent: str) -> int:
    if isinstance(steps, Mapping):
        steps = steps.get(agent, steps.get("default"))
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise InputError(
            f"experiment.steps={show(steps)} must be a number of steps, or one for each agent and `default`."
        )
    return steps


def _parts(seeds: Any, size: int) -> list[list[int]]:
    """The seeds in parts that are runs of their own, so that several workers can share them."""
    every = seed_list("experiment.seeds", seeds)
    return [every[first : first + size] for first in range(0, len(every), size)] if size else [every]


def _agent(name: str, params: Mapping[str, Any]) -> AgentEntry:
    """An agent's config file, changed by `params`, with all defaults written down."""
    from importlib import resources

    from lcd import agents

    file = resources.files("lcd.configs") / "agent" / f"{name}.yaml"
    own = yaml.safe_load(file.read_text("utf-8")) if file.is_file() else {"name": name}
    own = {key: value for key, value in own.items() if key != "name"} | dict(params)
    return {"name": name} | asdict(agents.validate(name, own))


def publish(experiment: ExperimentConfig, finished: Finished, folder: Path, console: Console) -> None:
    """Write tables and figures of the finished runs, and print what they say."""
    from lcd.analyses import grids as sweep
    from lcd.report.grid_figures import draw

    dimensions, curves = list(experiment.grid), finished.curves
    table = sweep.areas(curves, dimensions, experiment.knobs, experiment.normalise)
    summary = sweep.summarise(table, dimensions)
    tables = {"areas": table, "summary": summary}
    console.print(_printed(summary, dimensions))
    finished.print_left_out(console)
    if finished.left_out:
        console.print("Correlations and tests compare all runs, and are left out.", highlight=False)
    elif len(set(summary["base"])) > 1 and len(dimensions) == 1:
        tables["correlations"] = sweep.correlations(summary, dimensions)
        console.print(_frame(tables["correlations"], "Spearman's rank correlation of toy and complex environments"))
    if experiment.tests and not finished.left_out:
        tables["tests"] = sweep.run_tests(table, experiment.tests, dimensions)
        console.print(_frame(tables["tests"], "One-sided Wilcoxon tests over seeds"))
    with outputs.drafted(folder, RESULTS) as draft:
        for name, found in tables.items():
            write_atomic(draft / f"{name}.csv", csv_text(found))
        files = draw(summary, curves, dimensions, draft / "figures", experiment.name)
    for name in ("areas", "summary"):
        console.print(f"{name:<10} {folder / name}.csv", highlight=False, soft_wrap=True, markup=False)
    console.print(
        f"figures    {folder / 'figures'} ({len(files)} files)", highlight=False, soft_wrap=True, markup=False
    )


def _printed(summary: pd.DataFrame, dimensions: list[str]) -> Table:
    wide = summary.pivot_table(index=["base", "agent", *dimensions], columns="metric", values="mean", sort=False)
    return _frame(wide.reset_index(), "Mean area under the curve over seeds")


def _frame(frame: pd.DataFrame, title: str) -> Table:
    table = Table(*map(str, frame.columns), title=title, title_justify="left", box=None)
    for row in frame.itertuples(index=False):
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row))
    return table
