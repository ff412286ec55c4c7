"""Whether the views of a study's tasks are one task: looked at before training, kept in its folder for the report."""

from collections.abc import Iterable

from rich.console import Console

from lcd.pipelines.study.configs import task_name
from lcd.pipelines.study.store import Run, Study

RECORD = "dynamics"


def compare(study: Study, runs: Iterable[Run], console: Console) -> None:
    """Step the views of tasks that are to be trained side by side, where that was not done before; tell what differs.

    An environment that fails here fails its runs, too, and they say why.
    """
    from lcd.envs.benchmarks import get_benchmark
    from lcd.envs.lockstep import compare_views

    wanted: dict[str, list[Run]] = {}
    for run in runs:
        wanted.setdefault(task_name(run.config), []).append(run)
    known = recorded_differences(study)
    found = {}
    for task, mine in wanted.items():
        config, trained = mine[0].config, {run.config["view"] for run in mine}
        if task in known or len(trained) < 2 or all(run.done for run in mine):
            continue
        try:
            benchmark = get_benchmark(config["benchmark"])
            views = [view for view in benchmark.views if view in trained]
            seen = compare_views(benchmark, config["task"], views=views, **config["knobs"])
        except Exception:  # a stranger's environment may fail in any way
            continue
        found[task] = list(seen.differences)
        for sentence in seen.differences:
            console.print(f"Warning: {task}: {sentence}", highlight=False, soft_wrap=True, markup=False)
    if found:
        study.note(**{RECORD: {**known, **found}})


def recorded_differences(study: Study) -> dict[str, list[str]]:
    """Task to what tells its views apart, as far as it was looked at; a stranger's file may hold anything."""
    record = study.record.get(RECORD)
    if not isinstance(record, dict):
        return {}
    return {str(task): [str(each) for each in found] for task, found in record.items() if isinstance(found, list)}
