"""`lcd horizon BENCHMARK|STUDY`: many MDPs, one after the other; what is done already is not done again."""

from __future__ import annotations

import contextlib
import json
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.config.schemas import HorizonConfig
from lcd.consoles import console_for_tables
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError, nearest
from lcd.envs.protocols import Tabular, offers
from lcd.envs.tabular.files import digest, load, save
from lcd.envs.tabular.mdp import TabularMDP
from lcd.files import outputs
from lcd.files.atomic import write_atomic
from lcd.files.reading import Unreadable, read_json
from lcd.files.slugs import slug
from lcd.horizon import listed
from lcd.horizon.analysis import Settings, analyse
from lcd.process import signals

MDPS, PRODUCT = "mdps", "horizons"
CSV, MARKDOWN, FIGURE = "horizons.csv", "horizons.md", "horizons.png"


@dataclass(frozen=True)
class Named:
    """An MDP that is to be looked at: what its row is called, and what makes it."""

    name: str
    make: Callable[[], TabularMDP]


class _LeftOutError(Exception):
    """An MDP that cannot be tabulated or analysed, with the reason."""


def tasks_of(cfg: HorizonConfig) -> list[Named]:
    """The tasks of the benchmark `cfg.mdp`."""
    benchmark = get_benchmark(str(cfg.mdp))
    tasks = list(benchmark.tasks)
    if not offers(benchmark, Tabular):
        raise InputError(f"mdp={cfg.mdp} is a benchmark whose tasks cannot be tabulated: give one of its tasks.")
    return [Named(task, partial(benchmark.tabular, task, cfg.seed, **cfg.knobs)) for task in tasks]


def run(title: str, named: Sequence[Named], cfg: HorizonConfig, settings: Settings) -> int:
    """Analyse MDPs and print a table of them; what cannot be is named with the reason.

    Args:
        title: what they are together.
        named: the MDPs.
        cfg: what the command was given.
        settings: how they are looked at.

    Returns:
        The exit code.

    Raises:
        InputError: when none of them can be tabulated and analysed.
    """
    from lcd.horizon.histogram import draw, read_bridge

    _refuse(cfg)
    named = _asked(named, cfg.tasks)
    others = {} if cfg.bridge is None else read_bridge(Path(cfg.bridge).expanduser())
    out = None if cfg.out is None else Path(cfg.out).expanduser()
    inputs = [] if cfg.bridge is None else [Path(cfg.bridge).expanduser()]
    if out is not None:
        outputs.check(out, PRODUCT, (CSV, MARKDOWN, FIGURE), inputs)
        outputs.check(out / MDPS, "")
    rows, left_out, console = [], {}, console_for_tables(emoji=False)
    keeping = contextlib.nullcontext() if out is None else signals.keeping("every MDP that is done")
    with keeping, Console(stderr=True).status(f"making {title}") as status:
        for number, each in enumerate(named, 1):
            where = f"{number} of {len(named)}"
            try:
                rows.append(_one(each, cfg, settings, out, lambda doing, at=where: status.update(f"{at}, {doing}")))
            except _LeftOutError as why:
                left_out[each.name] = str(why)
    if not rows:
        raise InputError(next(iter(left_out.values()), f"mdp={title} has no task: there is nothing to analyse."))
    console.print(listed.table_of(rows, console.width), highlight=False, markup=False)
    for line in (listed.long_share(rows), *(f"left out   {name}: {why}" for name, why in left_out.items())):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    if out is not None:
        with outputs.drafted(out, PRODUCT, inputs) as draft:
            write_atomic(draft / CSV, listed.csv_of(rows))
            write_atomic(draft / MARKDOWN, listed.markdown_of(rows))
            draw(rows, title, others).savefig(draft / FIGURE, dpi=150)
        console.print(f"all of it  {out}", highlight=False, soft_wrap=True, markup=False)
    return 0


def _asked(named: Sequence[Named], tasks: Sequence[str] | None) -> Sequence[Named]:
    """Those of the tasks that are asked for, in the order in which they are."""
    if tasks is None:
        return named
    known = {each.name: each for each in named}
    if not tasks:
        raise InputError("tasks is empty, so there is nothing to analyse: leave it out, or name some.")
    for task in tasks:
        if task not in known:
            raise InputError(f"tasks has '{task}': {nearest(task, known)}")
    return [known[task] for task in dict.fromkeys(tasks)]


def _refuse(cfg: HorizonConfig) -> None:
    for key, usual in (("horizon", None), ("sticky", None)):
        if getattr(cfg, key) != usual:
            raise InputError(f"{key} is {getattr(cfg, key)}, but is of one task: name a task of '{cfg.mdp}' instead.")
    for key in ("save", "bridge"):
        if getattr(cfg, key) and cfg.out is None:
            raise InputError(f"{key} is {getattr(cfg, key)}, but out is missing: give the folder to write into.")


def _one(each: Named, cfg: HorizonConfig, settings: Settings, out: Path | None, tell: Any) -> Any:
    """An MDP's row: read where the same tables were analysed in the same way, else made, and written at once."""
    tell(f"{each.name}: making the tables")
    file = f"{slug(each.name)}.json"
    with _memory() as memory:
        began = time.perf_counter()
        try:
            mdp = each.make()
        except InputError as why:
            raise _LeftOutError(str(why)) from why
        build_s = time.perf_counter() - began
        made: dict[str, Any] = {"task": each.name, "settings": asdict(settings), "digest": digest(mdp)}
        saved = None if out is None else out / MDPS / f"{slug(each.name)}.npz"
        save_it = (saved is not None and _holds(saved, made["digest"])) or cfg.save
        kept = None if out is None else _kept(out / MDPS / file, made)
        if kept is None:
            try:
                found = analyse(mdp, settings, tell)
            except InputError as why:
                raise _LeftOutError(str(why)) from why
    if kept is None:
        kept = listed.row_of(each.name, found, settings, build_s, memory[0], made["digest"])
    elif not save_it or (saved is not None and saved.is_file()):
        return kept
    if out is not None:
        with outputs.drafted(out / MDPS, slug(each.name)) as draft:
            write_atomic(draft / file, json.dumps({**made, "row": kept}, indent=1, allow_nan=False) + "\n")
            if save_it:
                save(mdp, draft / f"{slug(each.name)}.npz")
    return kept


def _holds(saved: Path, made: str) -> bool:
    """Whether a file holds tables with this hash, which are then written again beside a new row.

    Raises:
        InputError: where it holds others, which a row of these would take away.
    """
    if not saved.is_file():
        return False
    with contextlib.suppress(InputError):
        if digest(load(saved)) == made:
            return True
    raise InputError(f"out holds {saved}, which save=true wrote of other tables: give another folder, or remove it.")


def _kept(path: Path, made: dict[str, Any]) -> Any:
    """The row in a file, if it is of these tables and settings."""
    if not path.is_file():
        return None
    try:
        content = read_json(path)
    except (Unreadable, InputError, OSError):
        return None
    if not isinstance(content, dict) or any(content.get(key) != value for key, value in made.items()):
        return None
    row = content.get("row")
    return row if listed.is_row(row, made["task"], made["digest"]) else None


@contextlib.contextmanager
def _memory() -> Iterator[list[int]]:
    """The most memory that the process holds within the block, in bytes, once it is over."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    yield found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024
    found.append(peak)
