"""`lcd measure`: R_min anew, as a random agent's mean return; of a front-end, how well its maps show objects."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.special import stdtrit

from lcd.config.schemas import MeasureConfig
from lcd.consoles import console_for_tables
from lcd.envs.benchmarks import Benchmark, get_benchmark, make_copies, reward_range
from lcd.envs.errors import InputError
from lcd.envs.protocols import check_installed, moving_tasks_of
from lcd.envs.streams import seed_sequence
from lcd.files import outputs
from lcd.files.atomic import write_atomic
from lcd.files.spreadsheets import csv_text
from lcd.pipelines.study import needs
from lcd.pipelines.study.parts import check_names
from lcd.process.deadlines import Countdown

PRODUCT = "objectness"
RANGES_PRODUCT, RANGES_FILE = "ranges", "ranges.csv"


def run(cfg: MeasureConfig, console: Console | None = None) -> int:
    """Print a row a task; returns the exit code."""
    benchmark = get_benchmark(cfg.benchmark.name)
    tasks = list(benchmark.tasks) if cfg.tasks is None else cfg.tasks
    needs.check_measurement(cfg.episodes)
    check_names("tasks", tasks, benchmark.tasks, cfg.benchmark.name)
    check_installed(benchmark, tasks)
    console = console or console_for_tables()
    if cfg.frontend["name"] != "identity":
        return measure_frontend(benchmark, tasks if cfg.tasks else list(moving_tasks_of(benchmark)), cfg, console)
    folder = None if cfg.out is None else Path(cfg.out).expanduser()
    if folder is not None:
        outputs.check(folder, RANGES_PRODUCT, [RANGES_FILE])
    table = Table("task", "episodes", "mean return", "standard error", "stated R_min", box=None, pad_edge=False)
    rows = []
    with console.status("") as status:
        for task in tasks:
            status.update(f"{task}: {cfg.episodes} episodes at random")
            row = measured_range(benchmark, task, cfg)
            rows.append(row)
            numbers = (f"{row['r_min']:.3g}", f"{row['standard_error']:.2g}", f"{row['stated_r_min']:.3g}")
            table.add_row(task, str(row["episodes"]), *numbers)
    console.print(table)
    if folder is not None:
        with outputs.drafted(folder, RANGES_PRODUCT) as draft:
            write_atomic(draft / RANGES_FILE, csv_text(pd.DataFrame(rows)))
        console.print(f"ranges     {folder / RANGES_FILE}", highlight=False, soft_wrap=True)
    return 0


def measured_range(benchmark: Benchmark, task: str, cfg: MeasureConfig) -> dict[str, Any]:
    """A task's R_min as a random agent's mean return, with Student's 95 % interval, and its stated R_min and R_max."""
    returns = random_returns(benchmark, task, cfg)
    count = len(returns)
    error = returns.std(ddof=1) / math.sqrt(count) if count > 1 else math.nan
    half = float(stdtrit(max(count - 1, 1), 0.975)) * error
    stated, best = reward_range(benchmark, task, cfg.seed)
    mean = float(returns.mean())
    return {
        "task": task,
        "r_min": mean,
        "r_max": best,
        "r_min_low": mean - half,
        "r_min_high": mean + half,
        "standard_error": error,
        "episodes": count,
        "stated_r_min": stated,
    }


def measure_frontend(benchmark: Benchmark, tasks: list[str], cfg: MeasureConfig, console: Console) -> int:
    """Print a front-end's objectness beside the baselines'; keep table and sheets where `out` says."""
    from lcd.frontends.entry import build, entry_of
    from lcd.pipelines.jobs import objectness
    from lcd.report import seeing

    folder = None if cfg.out is None else Path(cfg.out).expanduser()
    if folder is not None:
        outputs.check(folder, PRODUCT, [objectness.KEPT])
    recorded = entry_of(**cfg.frontend)
    frontend = build(recorded)
    maps = objectness.maps_of(frontend)
    with console.status("") as status:
        status.update("filming")
        measured = objectness.Objectness(benchmark, tasks, cfg.seed, cfg.videos)
        ways = {seeing.OWN: lambda _: maps, **objectness.baselines(frontend)}
        table = measured.measure(ways, tell=status.update)
    console.print(objectness.summary_table(table))
    for line in seeing.verdict(table):
        console.print(line, highlight=False)
    if folder is not None:
        with outputs.drafted(folder, PRODUCT) as draft:
            write_atomic(draft / objectness.KEPT, csv_text(table))
            sheets = {task: draft / f"{task.replace('/', '-')}.png" for task in tasks}
            for task, sheet in sheets.items():
                objectness.draw(measured, task, maps, sheet)
            pictures = {task: sheet.read_bytes() for task, sheet in sheets.items() if sheet.exists()}
            facts = {key: str(value) for key, value in recorded.items()}
            page = seeing.write_seeing(draft, benchmark.name, table, pictures=pictures, facts=facts).name
        console.print(f"report     {folder / page}", f"sheets     {folder}", sep="\n", highlight=False, soft_wrap=True)
    return 0


def random_returns(benchmark: Benchmark, task: str, cfg: MeasureConfig) -> np.ndarray:
    """The returns of a random agent's episodes.

    Every copy plays equally many, one after the other: the first episodes to end anywhere would be the short ones.
    """
    copies = min(cfg.copies, cfg.episodes)
    each = math.ceil(cfg.episodes / copies)
    env: Any = make_copies(benchmark, task, view=benchmark.views[0], split=cfg.split, num_envs=copies, seed=cfg.seed)
    try:
        if env.metadata.get("autoreset_mode") is None or env.metadata["autoreset_mode"].name != "SAME_STEP":
            raise InputError(f"{task} does not reset within the step (SAME_STEP), which 'lcd measure' relies on.")
        env.action_space.seed(int(seed_sequence(cfg.seed, "exploration").generate_state(1)[0]))
        env.reset()
        sums, played, returns, patience = np.zeros(copies), np.zeros(copies, dtype=int), [], Countdown(cfg.deadline)
        while played.min() < each:
            _, rewards, terminations, truncations, infos = env.step(env.action_space.sample())
            sums += infos.get("original_reward", rewards)
            ended = terminations | truncations
            returns += sums[ended & (played < each)].tolist()
            played += ended
            sums[ended] = 0
            if ended.any():
                patience.renew()
            elif patience.is_over():
                raise InputError(
                    f"deadline={cfg.deadline} has passed in {task}, and no episode has ended since: give the "
                    "environment a limit of steps (Gymnasium's TimeLimit), or more seconds."
                )
    finally:
        env.close()
    return np.array(returns)
