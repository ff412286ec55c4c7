"""`lcd list`: what can be chosen, third parties' additions included."""

from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from lcd.config import budgets
from lcd.config.compose import choices, registered
from lcd.config.schemas import ListConfig
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError, nearest
from lcd.pipelines.kinds.kind import kinds
from lcd.pipelines.launch.launchers import launchers
from lcd.pipelines.publish.track import trackers
from lcd.scores.contrasts import contrasts, parse_contrast

Rows = Iterator[tuple[str, ...]]


def run(cfg: ListConfig) -> int:
    """Print a table of everything, or of what is asked for; returns the exit code."""
    wanted = list(LISTS) if cfg.what is None else [_kind(cfg.what)]
    console = Console()
    for kind in wanted:
        headings, rows = LISTS[kind]
        table = Table(*headings, box=None, pad_edge=False)
        for row in rows():
            table.add_row(*row)
        console.print(table)
        console.print()
    return 0


def _kind(what: str) -> str:
    for kind in (what, f"{what}s", what.replace("study", "studies")):
        if kind in LISTS:
            return kind
    raise InputError(f"what={what} cannot be listed: {nearest(what, LISTS)}")


def _benchmarks() -> Rows:
    for name in registered("benchmark"):
        benchmark = get_benchmark(name)
        yield name, str(len(benchmark.tasks)), ", ".join(benchmark.views)


def _tasks() -> Rows:
    for name in registered("benchmark"):
        for task in get_benchmark(name).tasks:
            yield task, name


def _budgets() -> Rows:
    for name in choices(budgets.GROUP):
        owners = [
            "all others" if owner == budgets.OTHERS else owner for owner in budgets.read(budgets.GROUP, name)["own_of"]
        ]
        yield name, ", ".join(owners)


def _contrasts() -> Rows:
    for name in contrasts.names():
        contrast = parse_contrast(name, "study.contrasts")
        values = " ".join(map(str, contrast.values))
        yield name, contrast.sign, contrast.asks, contrast.axis, values


def _names(group: str) -> Callable[[], Rows]:
    return lambda: ((name,) for name in sorted({*choices(group), *registered(group)}))


def _registry(names: Callable[[], list[str]]) -> Callable[[], Rows]:
    return lambda: ((name,) for name in names())


LISTS: dict[str, tuple[tuple[str, ...], Callable[[], Rows]]] = {
    "benchmarks": (("benchmark", "tasks", "views"), _benchmarks),
    "tasks": (("task", "benchmark"), _tasks),
    "agents": (("agent",), _names("agent")),
    "frontends": (("frontend",), _names("frontend")),
    "studies": (("study",), _names("study")),
    "contrasts": (("contrast", "sign", "asks", "axis", "values"), _contrasts),
    "budgets": (("budget", "own budget of"), _budgets),
    "jobs": (("kind of job",), _registry(kinds.names)),
    "launchers": (("launcher",), _registry(launchers.names)),
    "trackers": (("tracker",), _registry(trackers.names)),
}
