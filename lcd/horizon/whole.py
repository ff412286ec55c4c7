"""`lcd horizon BENCHMARK`: all MDPs of a benchmark, one after the other; what is done already is not done again."""

from __future__ import annotations

import contextlib
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.config.schemas import HorizonConfig
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.envs.protocols import Tabular, offers
from lcd.envs.tabular.files import digest, save
from lcd.files import outputs
from lcd.files.atomic import write_atomic
from lcd.files.reading import Unreadable, read_json
from lcd.files.slugs import slug
from lcd.horizon import listed
from lcd.horizon.analysis import Settings, analyse

MDPS, PRODUCT = "mdps", "horizons"
CSV, MARKDOWN, FIGURE = "horizons.csv", "horizons.md", "horizons.png"


def run(cfg: HorizonConfig, settings: Settings) -> int:
    """Analyse every task of the benchmark `cfg.mdp` and print a table of them; returns the exit code."""
    from lcd.horizon.histogram import draw, read_bridge

    name = str(cfg.mdp)
    _refuse(cfg)
    benchmark = get_benchmark(name)
    if not offers(benchmark, Tabular):
        raise InputError(f"mdp={name} is a benchmark whose tasks cannot be tabulated: give one of its tasks.")
    others = {} if cfg.bridge is None else read_bridge(Path(cfg.bridge).expanduser())
    out = None if cfg.out is None else Path(cfg.out).expanduser()
    inputs = [] if cfg.bridge is None else [Path(cfg.bridge).expanduser()]
    if out is not None:
        outputs.check(out, PRODUCT, (CSV, MARKDOWN, FIGURE), inputs)
        outputs.check(out / MDPS, "")
    tasks = list(get_benchmark(name).tasks)
    rows, console = [], Console()
    with Console(stderr=True).status(f"making {name}") as status:
        for number, task in enumerate(tasks, 1):
            where = f"{number} of {len(tasks)}"
            rows.append(
                _one(benchmark, task, cfg, settings, out, lambda doing, at=where: status.update(f"{at}, {doing}"))
            )
    console.print(listed.table_of(rows), highlight=False, markup=False)
    console.print(listed.long_share(rows), highlight=False, soft_wrap=True, markup=False)
    if out is not None:
        with outputs.drafted(out, PRODUCT, inputs) as draft:
            write_atomic(draft / CSV, listed.csv_of(rows))
            write_atomic(draft / MARKDOWN, listed.markdown_of(rows))
            draw(rows, name, others).savefig(draft / FIGURE, dpi=150)
        console.print(f"all of it  {out}", highlight=False, soft_wrap=True, markup=False)
    return 0


def _refuse(cfg: HorizonConfig) -> None:
    for key, usual in (("horizon", None), ("sticky", None)):
        if getattr(cfg, key) != usual:
            raise InputError(f"{key} is {getattr(cfg, key)}, but is of one task: name a task of '{cfg.mdp}' instead.")
    for key in ("save", "bridge"):
        if getattr(cfg, key) and cfg.out is None:
            raise InputError(f"{key} is {getattr(cfg, key)}, but out is missing: give the folder to write into.")


def _one(benchmark: Tabular, task: str, cfg: HorizonConfig, settings: Settings, out: Path | None, tell: Any) -> Any:
    """A task's row: read where the same tables were analysed in the same way, else made, and written at once."""
    tell(f"{task}: making the tables")
    file = f"{slug(task)}.json"
    with _memory() as memory:
        began = time.perf_counter()
        mdp = benchmark.tabular(task, cfg.seed, **cfg.knobs)
        build_s = time.perf_counter() - began
        made: dict[str, Any] = {"task": task, "settings": asdict(settings), "digest": digest(mdp)}
        kept = None if out is None else _kept(out / MDPS / file, made)
        if kept is None:
            found = analyse(mdp, settings, tell)
    if kept is None:
        kept = listed.row_of(task, found, settings, build_s, memory[0], made["digest"])
    elif not cfg.save or (out is not None and (out / MDPS / f"{slug(task)}.npz").is_file()):
        return kept
    if out is not None:
        with outputs.drafted(out / MDPS, slug(task)) as draft:
            write_atomic(draft / file, json.dumps({**made, "row": kept}, indent=1, allow_nan=False) + "\n")
            if cfg.save:
                save(mdp, draft / f"{slug(task)}.npz")
    return kept


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
    return row if isinstance(row, dict) and tuple(row) == listed.COLUMNS else None


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
