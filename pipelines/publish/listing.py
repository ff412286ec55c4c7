"""`lcd list`: what can be chosen, third parties' additions included."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rich.table import Column, Table
from rich.text import Text

from lcd.config import budgets
from lcd.config.budgets import choices
from lcd.config.keys import GROUPS, registered
from lcd.config.registries import registry
from lcd.config.schemas import ListConfig
from lcd.consoles import console_for_tables
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError, nearest
from lcd.envs.gym_names import canonical
from lcd.envs.protocols import ExplainsTasks, offers
from lcd.scores.asked_contrasts import parse_contrast

TASKS = "tasks"
Rows = Iterator[tuple[str, ...]]


def run(cfg: ListConfig) -> int:
    """Print a table of everything, or of what is asked for; returns the exit code."""
    wanted = list(LISTS) if cfg.what is None else [_kind(cfg.what)]
    lists = dict(LISTS)
    if cfg.benchmark is not None:
        if wanted != [TASKS]:
            raise InputError(f"benchmark={cfg.benchmark} goes with tasks: lcd list tasks benchmark={cfg.benchmark}.")
        lists[TASKS] = (LISTS[TASKS][0], partial(_tasks, [canonical(cfg.benchmark)]))
    console = console_for_tables()
    for kind in wanted:
        headings, rows = lists[kind]
        table = Table(
            Column(headings[0], no_wrap=True),
            *(Column(heading, overflow="fold") for heading in headings[1:]),
            box=None,
            pad_edge=False,
        )
        for row in rows():
            table.add_row(*map(Text, row))
        console.print(table)
        console.print()
    return 0


def _kind(what: str) -> str:
    for kind in (what, f"{what}s", what.replace("study", "studies").replace("analysis", "analyses")):
        if kind in LISTS:
            return kind
    raise InputError(f"what={what} cannot be listed: {nearest(what, LISTS)}")


def _benchmarks() -> Rows:
    for name in registered("benchmark"):
        benchmark = get_benchmark(name)
        yield name, str(len(benchmark.tasks)), ", ".join(benchmark.views), registry("benchmark").explains(name)


def _tasks(names: Sequence[str] | None = None) -> Rows:
    """Each benchmark with its views, and its tasks below it; all that are registered, or some by name."""
    for name in registered("benchmark") if names is None else names:
        benchmark = get_benchmark(name)
        about = benchmark.about if offers(benchmark, ExplainsTasks) else {}
        yield f"benchmark={name}", ", ".join(benchmark.views)
        for task in benchmark.tasks:
            yield f"  {task}", about.get(task, "")
        yield "", ""


def _budgets() -> Rows:
    for name in choices(budgets.GROUP):
        owners = [
            "all others" if owner == budgets.OTHERS else owner for owner in budgets.read(budgets.GROUP, name)["own_of"]
        ]
        yield name, ", ".join(owners), budgets.explains(budgets.GROUP, name)


def _contrasts() -> Rows:
    for name in registry("contrast").names():
        contrast = parse_contrast(name, "study.contrasts")
        values = " ".join("–" if value is None else str(value) for value in contrast.values)
        yield name, contrast.sign, contrast.asks, contrast.axis, values


def _studies() -> Rows:
    return ((name, budgets.explains("study", name)) for name in choices("study"))


def _explained(kind: str) -> Callable[[], Rows]:
    """Every name of a kind and what it is: files of a config group may be variants of what is registered."""

    def rows() -> Rows:
        known = registry(kind)
        files = choices(kind) if kind in GROUPS else []
        for name in known.names() + [name for name in files if name not in known.names()]:
            yield name, known.explains(name) if name in known.names() else f"a variant: {_described(kind, name)}"

    return rows


def _described(kind: str, name: str) -> str:
    return str(budgets.read(kind, name).get("name", ""))


LISTS: dict[str, tuple[tuple[str, ...], Callable[[], Rows]]] = {
    "benchmarks": (("benchmark", "tasks", "views", "is"), _benchmarks),
    TASKS: (("task", "is"), _tasks),
    "agents": (("agent", "is"), _explained("agent")),
    "frontends": (("frontend", "is"), _explained("frontend")),
    "studies": (("study", "is"), _studies),
    "contrasts": (("contrast", "sign", "asks", "axis", "values"), _contrasts),
    "budgets": (("budget", "own budget of", "is"), _budgets),
    "jobs": (("kind of job", "is"), _explained("job")),
    "launchers": (("launcher", "is"), _explained("launcher")),
    "trackers": (("tracker", "is"), _explained("tracker")),
    "analyses": (("analysis", "is"), _explained("analysis")),
    "sections": (("section of a report", "is"), _explained("section")),
}
