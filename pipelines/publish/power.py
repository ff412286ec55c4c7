"""`lcd power`: how many seeds and steps a study needs before its tasks can be told apart."""

import math
from pathlib import Path

import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from lcd.config.schemas import PowerConfig
from lcd.consoles import console_for_tables
from lcd.envs.errors import InputError
from lcd.files import outputs
from lcd.files.atomic import write_atomic
from lcd.files.spreadsheets import csv_text
from lcd.pipelines.study import store
from lcd.pipelines.study.quarantine import read_finished
from lcd.pipelines.study.remembered import definition_of

SIGNS = {"phi": "φ", "psi": "ψ"}
NAME = 15
"""Least room of a task's name, where it has as many letters."""


def run(cfg: PowerConfig) -> int:
    """Print what telling tasks apart takes; returns the exit code."""
    from lcd.curves.ranges import range_sets, ranges_from
    from lcd.curves.table import evaluated_names
    from lcd.statistics.power import tell_apart

    if cfg.path is None:
        raise InputError("path is missing: give a study's folder or a CSV or Parquet file of curves.")
    for key, value in (("power", cfg.power), ("alpha", cfg.alpha)):
        if not 0 < value < 1:
            raise InputError(f"{key}={value} must lie between 0 and 1.")
    source, console = Path(cfg.path).expanduser(), console_for_tables()
    out = None if cfg.out is None else Path(cfg.out).expanduser()
    if out is not None:
        outputs.check_file(out, [source])
    study = store.Study(source) if source.is_dir() and (source / "study.yaml").is_file() else None
    definition = cfg.definition or definition_of(study)
    finished = read_finished(source, study)
    finished.print_left_out(console)
    ranges = ranges_from(cfg.ranges, evaluated_names(finished.curves), range_sets(finished.curves))
    found = tell_apart(finished.curves, definition, cfg.power, cfg.alpha, ranges=ranges)
    if found.empty:
        raise InputError(f"{source} has no two tasks with scores and two seeds each: there is nothing to tell apart.")
    for score, rows in found.groupby("score", sort=True):
        console.print(pair_table(rows, SIGNS[str(score)], cfg.most))
        console.print(summary(rows, SIGNS[str(score)], definition, cfg), highlight=False, soft_wrap=True)
    if out is not None:
        with outputs.drafted_file(out, [source]) as draft:
            write_atomic(draft, csv_text(found))
        console.print(f"all pairs  {out}", highlight=False, soft_wrap=True, markup=False)
    return 0


def pair_table(rows: pd.DataFrame, sign: str, most: int) -> Table:
    """The pairs that take most seeds."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    hardest = rows.sort_values(["seeds_needed", "task", "other"], ascending=[False, True, True]).head(most)
    # A benchmark's name before every task says nothing here, and takes the room of what does.
    shared = {name.rpartition("/")[0] for name in (*hardest["task"], *hardest["other"])}
    cut = len(next(iter(shared))) + 1 if len(shared) == 1 and "" not in shared else 0
    longest = max(len(name) - cut for name in (*hardest["task"], *hardest["other"]))
    for head in (f"{sign} of", "and"):
        table.add_column(head, overflow="fold", min_width=min(longest, NAME))
    for head in (f"{sign}−{sign}", "power", "seeds\nneeded", "steps\nneeded", "cheapest,\nseeds × steps"):
        table.add_column(head, justify="right")
    for row in hardest.itertuples():
        cheapest = "–" if math.isnan(row.best_seeds) else f"{row.best_seeds:,.0f} × {row.best_steps:,.0f}"
        numbers = (f"{row.difference:+.2f}", f"{row.power:.0%}", _count(row.seeds_needed), _count(row.steps_needed))
        table.add_row(Text(row.task[cut:]), Text(row.other[cut:]), *numbers, cheapest)
    if len(rows) > most:
        table.caption = Text(
            f"the {most} hardest of {len(rows)} pairs (most=… shows more, out=… keeps all)", style="dim"
        )
    return table


def summary(rows: pd.DataFrame, sign: str, definition: str, cfg: PowerConfig) -> str:
    """How many seeds tell how many of the pairs apart."""
    seeds, total = int(rows["seeds"].min()), len(rows)
    now = int((rows["seeds_needed"] <= rows["seeds"]).sum())
    needed = sorted(rows["seeds_needed"])
    parts = [f"{_count(needed[math.ceil(share * total) - 1])} for {share:.0%}" for share in (0.5, 0.8, 0.95)]
    return (
        f"{sign}: with its {seeds} seeds the study tells {now} of {total} pairs apart (power {cfg.power:.0%}, "
        f"α = {cfg.alpha:g}, definition {definition}); "
        f"seeds needed at these steps: {', '.join(parts)} of the pairs.\n"
    )


def _count(number: float) -> str:
    return "never" if math.isinf(number) else f"{number:,.0f}"
