"""Whether the views of a study's tasks are one task: looked at before training, kept in its folder for the report."""

import contextlib
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.config.schema_parts import DeadlinesConfig
from lcd.envs.benchmarks import BENCHMARKS
from lcd.files.atomic import write_atomic
from lcd.pipelines.launch.launchers import Call, launch
from lcd.pipelines.study.configs import RunConfig, is_training, task_name
from lcd.pipelines.study.store import Run, Study

RECORD = "dynamics"
Case = tuple[str, str, list[str], dict[str, Any]]
"""Of what views are compared: the benchmark, the task, the views, the knobs."""


def compare(study: Study, runs: Iterable[Run], console: Console, deadlines: DeadlinesConfig | None = None) -> None:
    """Step the views of tasks that are to be trained side by side, where that was not done before; tell what differs.

    An environment that fails here fails its runs, too, and they say why.

    Args:
        study: where it is kept.
        runs: those that are to be trained.
        console: where it is told.
        deadlines: how long a stranger's environments may take; None: as long as usual.
    """
    wanted: dict[str, list[tuple[RunConfig, Run]]] = {}
    for run in runs:
        if is_training(run.config):
            wanted.setdefault(task_name(run.config), []).append((run.config, run))
    known = recorded_differences(study)
    cases = {}
    for task, mine in wanted.items():
        (config, _), trained = mine[0], {config["view"] for config, _ in mine}
        if task in known or len(trained) < 2 or all(run.done for _, run in mine):
            continue
        cases[task] = (config["benchmark"], config["task"], sorted(trained), dict(config["knobs"]))
    found = _differences(cases, deadlines)
    for task, differences in found.items():
        for sentence in differences:
            console.print(f"Warning: {task}: {sentence}", highlight=False, soft_wrap=True, markup=False)
    if found:
        study.note(**{RECORD: {**known, **found}})


def _differences(cases: Mapping[str, Case], deadlines: DeadlinesConfig | None) -> dict[str, list[str]]:
    """What tells views apart, for each task whose environments can be stepped.

    A stranger's are stepped by a process of its own: one that never returns, or takes its process with it, must not
    take the command.
    """
    strangers = {task: case for task, case in cases.items() if not BENCHMARKS.is_built_in(case[0])}
    with tempfile.TemporaryDirectory(prefix="lcd-probe-") as folder:
        files = {task: Path(folder) / f"{number}.json" for number, task in enumerate(cases)}
        for task in cases.keys() - strangers.keys():
            with contextlib.suppress(Exception):
                compare_to_file(cases[task], str(files[task]))
        if strangers:
            calls = [Call((case, str(files[task])), Path(folder) / "log.txt") for task, case in strangers.items()]
            launch("local", f"{__name__}:compare_to_file", calls, workers=1, deadlines=deadlines)
        return {task: json.loads(file.read_text()) for task, file in files.items() if file.is_file()}


def compare_to_file(case: Case, file: str) -> None:
    """Write down what tells the views of a task apart."""
    from lcd.envs.benchmarks import get_benchmark
    from lcd.envs.lockstep import compare_views

    name, task, trained, knobs = case
    benchmark = get_benchmark(name)
    views = [view for view in benchmark.views if view in trained]
    write_atomic(file, json.dumps(compare_views(benchmark, task, views=views, **knobs).differences))


def recorded_differences(study: Study) -> dict[str, list[str]]:
    """Task to what tells its views apart, as far as it was looked at; a stranger's file may hold anything."""
    record = study.record.get(RECORD)
    if not isinstance(record, dict):
        return {}
    return {str(task): [str(each) for each in found] for task, found in record.items() if isinstance(found, list)}
