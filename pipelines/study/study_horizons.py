"""`lcd horizon`: of a study's tasks, as they were trained; of anything else it is `lcd.horizon.command`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from lcd.config.schemas import HorizonConfig
from lcd.curves.names import varied_task
from lcd.envs.benchmarks import registered_benchmark
from lcd.envs.errors import InputError
from lcd.envs.protocols import Tabular, offers
from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon import command
from lcd.pipelines.study.configs import RunConfig


def run(cfg: HorizonConfig) -> int:
    """Analyse what `mdp` names and print what is found; returns the exit code."""
    folder = None if cfg.mdp is None else Path(cfg.mdp).expanduser()
    if folder is None or not (folder / "study.yaml").is_file():
        return command.run(cfg)
    from lcd.horizon import whole
    from lcd.pipelines.study.store import Study

    if cfg.knobs:
        raise InputError(f"knobs has '{next(iter(cfg.knobs))}', but mdp={cfg.mdp} is a study: its runs have theirs.")
    study = Study(folder)
    configs = {varied_task(run.config["task"], run.config["knobs"]): run.config for run in study.trainings()}
    named = [whole.Named(name, partial(_tables, config)) for name, config in sorted(configs.items())]
    return whole.run(study.name, named, cfg, command.settings_of(cfg))


def _tables(config: RunConfig) -> TabularMDP:
    """The task that a run was trained on, as its first seed drew it."""
    benchmark = registered_benchmark(config["benchmark"])
    if benchmark is None:
        raise InputError(f"'{config['benchmark']}' is no registered benchmark: give one of its MDPs as module:object.")
    if not offers(benchmark, Tabular):
        raise InputError(
            f"the benchmark '{config['benchmark']}' has no tasks that can be tabulated: its H is not known."
        )
    try:
        return benchmark.tabular(config["task"], config["seeds"][0], **config["knobs"])
    except InputError as why:
        raise InputError(
            f"{why} A study's tasks are tabulated as they were trained: train them so that nothing is left to chance, "
            f"as study=horizon/toys does, or give such a task by itself (lcd horizon {config['task']} knobs.…)."
        ) from None
