"""Time and peak memory of `lcd report` on curves of the paper's size, from CSV, from Parquet and from a study's runs.

`make bench ONLY=report ARGS="--times 10 --forms parquet"` measures ten times as many rows, and
`ARGS="--curves 10000 --forms parquet"` ten thousand curves, whose memory has a limit.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from bench_diagnose import measured

from lcd.curves.table import COLUMNS
from lcd.envs.benchmarks import get_benchmark, reward_range

AGENTS, SEEDS, EVALUATIONS = ("ppo", "ppg"), 3, 3000
CONDITIONS = (
    *((view, 1.0) for view in ("pixels", "figure_ground", "semantic")),
    *(("semantic", reward_p) for reward_p in (0.75, 0.5, 0.25)),
)
CURVES_OF_A_SEED = len(get_benchmark("procgen").tasks) * len(AGENTS) * len(CONDITIONS)
LIMITS = {"parquet": (15, 1.0), "csv": (25, None), "runs": (25, None)}
"""Seconds and GiB on two cores at the paper's size."""
LARGEST_PAGE = 6 * 2**20
MANY, MOST_OF_MANY = 10_000, 8.0
"""So many curves may take so many GiB."""


def curves(evaluations: int, seeds: int) -> Iterator[pd.DataFrame]:
    """The curves of one run (all its seeds) after another: tasks that are learned, at speeds of their own."""
    rng = np.random.default_rng(0)
    step = np.linspace(0, 200e6, evaluations).round()
    for task, agent, (view, reward_p) in product(get_benchmark("procgen").tasks, AGENTS, CONDITIONS):
        low, high = reward_range("procgen", task, 0)
        speed = rng.uniform(1, 6) * (1 + (view != "pixels")) * reward_p
        tables = []
        for seed in range(seeds):
            share = (1 - np.exp(-speed * step / step[-1])) * rng.uniform(0.6, 0.9)
            returns = low + (high - low) * share + rng.normal(0, 0.03 * (high - low), evaluations)
            text = {"benchmark": "procgen", "trained_on": task, "stage": "", "task": task, "context": ""}
            text |= {"view": view, "frontend": "identity"}
            text |= {"reward_p": reward_p, "shaping": "none", "agent": agent, "seed": seed, "split": "eval"}
            numbers = {"step": step.astype(np.int64), "episodes": 100, "return_mean": np.round(returns, 2)}
            numbers |= {
                "return_std": rng.gamma(2, 1, evaluations),
                "length_mean": np.round(rng.uniform(50, 900, evaluations), 2),
            }
            numbers |= {"wall_s": np.round(np.linspace(1, 9e4, evaluations), 3), "r_min": low, "r_max": high}
            tables.append(pd.DataFrame(text | numbers)[list(COLUMNS)])
        yield pd.concat(tables, ignore_index=True)


def written(folder: Path, form: str, evaluations: int, seeds: int) -> tuple[Path, int]:
    """Curves in a file or folder of a form, and how many rows they have."""
    rows = 0
    if form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        path, writer = folder / "curves.parquet", None
        for table in curves(evaluations, seeds):
            arrow = pa.Table.from_pandas(table, preserve_index=False)
            writer = writer or pq.ParquetWriter(path, arrow.schema)
            writer.write_table(arrow)
            rows += len(table)
        writer.close()
        return path, rows
    path = folder / ("curves.csv" if form == "csv" else "study")
    for place, table in enumerate(curves(evaluations, seeds)):
        rows += len(table)
        if form == "csv":
            table.to_csv(path, index=False, header=place == 0, mode="a")
            continue
        for seed, mine in table.groupby("seed"):
            run = path / "runs" / f"{place:04d}-{seed}"
            run.mkdir(parents=True)
            mine.to_csv(run / "curve.csv", index=False)
    return path, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1, help="so many times as many rows as the paper's study has")
    parser.add_argument("--curves", type=int, default=0, help="so many curves at the least, by more seeds")
    parser.add_argument("--forms", nargs="+", choices=LIMITS, default=list(LIMITS))
    parser.add_argument("--keep", type=Path, help="a folder for curves and reports, instead of one that is removed")
    options = parser.parse_args()
    cores, missed = len(os.sched_getaffinity(0)), False
    seeds = max(SEEDS, -(-options.curves // CURVES_OF_A_SEED))
    for form in options.forms:
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep / form if options.keep else Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            path, rows = written(folder, form, EVALUATIONS * options.times, seeds)
            size = sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*.csv")))
            report = folder / "report"
            command = [sys.executable, "-m", "lcd.cli", "report", str(path), f"out={report}"]
            seconds, peak = measured(command)
            page = (report / "report.html").stat().st_size
        limits = []
        if seeds > SEEDS:
            missed |= rows >= MANY * EVALUATIONS and peak > MOST_OF_MANY
            limits = [f"limit {MOST_OF_MANY:g} GiB for {MANY:,} curves"]
        elif options.times == 1:
            most_seconds, most_memory = LIMITS[form]
            limits = [f"limits {most_seconds} s", *([f"{most_memory:g} GiB"] if most_memory else []), "6 MiB"]
            missed |= seconds > most_seconds or peak > (most_memory or peak) or page > LARGEST_PAGE
        print(
            f"{form:<8}{rows:>12,} rows, {size / 1e6:7.0f} MB: {seconds:6.1f} s, peak memory {peak:5.2f} GiB, "
            f"report.html {page / 2**20:5.1f} MiB, {cores} cores{' (' + ', '.join(limits) + ')' if limits else ''}",
            flush=True,
        )
    sys.exit(missed)


if __name__ == "__main__":
    main()
