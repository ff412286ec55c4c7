"""`--dry-run`: what a command would train, and what that costs by a probe of some seconds. It leaves nothing behind."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from lcd.envs.errors import InputError
from lcd.pipelines import store
from lcd.pipelines.cost import duration
from lcd.pipelines.launch import Call, launch, usable_cores
from lcd.schemas import DiagnoseConfig, TrainConfig

PROBE_S = 20.0
"""About how long the probe of one kind of run may take."""
KINDS = 2
"""How many runs are probed: the pixels of the first task and those of the last one, say."""
UNIT = 512
"""Steps between updates of agents that have no rollouts."""
SHORT_ROLLOUT = 16
NARROW, WIDE = 1.4, 3.0
"""By what factor an hour may be off: where whole rollouts were timed, and where only scaled-down ones could be."""


@dataclass(frozen=True)
class Pace:
    """How fast runs of one kind are, in seconds and bytes, all seeds of a run together."""

    fixed_s: float
    unit_s: float
    evaluation_s: float
    run_bytes: float
    evaluation_bytes: float
    exact: bool

    def seconds(self, run_config: Mapping[str, Any]) -> float:
        """What a run takes."""
        return self.fixed_s + units(run_config) * self.unit_s + evaluations(run_config) * self.evaluation_s

    def size(self, run_config: Mapping[str, Any]) -> float:
        """What a run leaves on the disk."""
        return self.run_bytes + evaluations(run_config) * self.evaluation_bytes


def unit_steps(run_config: Mapping[str, Any]) -> int:
    """Steps of one seed between two updates."""
    agent = run_config["agent"]
    return int(agent.get("copies", 1)) * int(agent["rollout"]) if "rollout" in agent else UNIT


def units(run_config: Mapping[str, Any]) -> int:
    """Rollouts of a run."""
    return math.ceil(run_config["steps"] / unit_steps(run_config))


def evaluations(run_config: Mapping[str, Any]) -> int:
    """Evaluations of a run, those at both ends included; there is at most one a rollout."""
    return 1 + min(math.ceil(run_config["steps"] / run_config["evaluation"]["every"]), units(run_config))


def tell(
    run_configs: Sequence[Mapping[str, Any]], cfg: DiagnoseConfig | TrainConfig, out: Path, console: Console
) -> int:
    """Print what training these runs into `out` would cost; returns the exit code."""
    missing = [config for config in run_configs if not _settled(out, config, cfg.retry)]
    table = Table(box=box.SIMPLE_HEAD, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    steps = sum(config["steps"] * len(config["seeds"]) for config in missing)
    seeds = sorted({len(config["seeds"]) for config in missing})
    done = f" ({len(run_configs) - len(missing)} more are done)" if len(missing) < len(run_configs) else ""
    table.add_row("study", str(out))
    table.add_row("runs", f"{len(missing)}{done}")
    if missing:
        console.print(
            f"Probing how fast this machine is (about {PROBE_S:.0f} s, more where episodes or networks are long) …",
            highlight=False,
        )
        paces = probe(missing, cfg)
        table.add_row("seeds a run", " or ".join(map(str, seeds)))
        table.add_row("steps", f"{steps:,} of all seeds together")
        table.add_row("time", _time(missing, paces, cfg))
        size = sum(paces[kind(config)].size(config) for config in missing)
        table.add_row("disk", f"{_bytes(size)}, without what a tracker keeps and the report's few MB")
    console.print(table)
    for note in _notes(cfg, missing):
        console.print(note, highlight=False, soft_wrap=True, markup=False)
    return 0


def hours(
    run_configs: Sequence[Mapping[str, Any]], paces: Mapping[str, Pace], workers: int
) -> tuple[float, float, float]:
    """Expected hours from start to end with so many workers, and the least and most that they may be."""
    each = sorted((paces[kind(config)].seconds(config) for config in run_configs), reverse=True)
    free = [0.0] * max(1, min(workers, len(each)))
    # The launcher gives the longest runs out first, each to whoever is free.
    for seconds in each:
        free[free.index(min(free))] += seconds
    expected = max(free) / 3600
    factor = NARROW if all(pace.exact for pace in paces.values()) else WIDE
    return expected, expected / factor, expected * factor


def kind(run_config: Mapping[str, Any]) -> str:
    """Runs of one kind are taken to be equally fast."""
    chosen = ("agent", "frontend", "evaluation", "shaping")
    return store.canonical({key: run_config[key] for key in chosen} | {"seeds": len(run_config["seeds"])})


def probe(run_configs: Sequence[Mapping[str, Any]], cfg: DiagnoseConfig | TrainConfig) -> dict[str, Pace]:
    """Time a little of the training of every kind of run, in a worker like those that will train."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for config in run_configs:
        by_kind.setdefault(kind(config), []).append(config)
    paces = {}
    with tempfile.TemporaryDirectory(prefix="lcd-dry-run-") as folder:
        for number, (name, configs) in enumerate(by_kind.items()):
            allowed = PROBE_S / len(by_kind)
            paces[name] = _pace(configs, Path(folder) / str(number), cfg, allowed)
    return paces


def _pace(configs: Sequence[Mapping[str, Any]], folder: Path, cfg: Any, allowed: float) -> Pace:
    """The mean pace of the first and the last run of a kind."""
    folder.mkdir()
    some = list({store.run_id(config): config for config in (configs[0], configs[-1])}.values())[:KINDS]
    file = folder / "pace.json"
    call = Call(([dict(config) for config in some], str(folder), cfg.device, allowed), folder / "log.txt")
    (outcome,) = launch(
        "local",
        "lcd.pipelines.dry_run:time_runs",
        [call],
        workers=1,
        threads=cfg.launcher.threads,
    )
    if outcome.error is not None:
        raise InputError(f"The probe failed ({outcome.error}), and so would the runs: mend that first.")
    found = [Pace(**each) for each in json.loads(file.read_text())]
    mean = {key: sum(getattr(pace, key) for pace in found) / len(found) for key in Pace.__dataclass_fields__}
    return Pace(**mean | {"exact": all(pace.exact for pace in found)})


def time_runs(run_configs: Sequence[dict[str, Any]], folder: str, accelerator: str, allowed: float) -> None:
    """What the probing worker does: the pace of each run, as JSON into the folder."""
    began, paces = time.perf_counter(), []
    for number, config in enumerate(run_configs):
        if not paces or time.perf_counter() - began < allowed:
            paces.append(_time_run(config, Path(folder) / str(number), accelerator, allowed / len(run_configs)))
    (Path(folder) / "pace.json").write_text(json.dumps([vars(pace) for pace in paces]))


def _time_run(run_config: dict[str, Any], folder: Path, accelerator: str, allowed: float) -> Pace:
    """Time one update of a scaled-down run, and where that was fast enough several of the real one."""
    small, share = _scaled_down(run_config)
    evaluation, seeds = run_config["evaluation"], len(run_config["seeds"])
    played = int(evaluation["copies"]) * int(evaluation["episodes"]) * seeds
    first = _timed(small, 1, folder / "warm", accelerator)
    unit = first.total_s - 2 * first.evaluation_s
    # What is so slow has no time to warm up: all that is known of it is this one time.
    if first.total_s < allowed:
        first, second = (_timed(small, count, folder / f"small-{count}", accelerator) for count in (1, 2))
        unit = second.total_s - first.total_s
    pace = Pace(
        max(first.total_s - 2 * first.evaluation_s - unit, 0.0),
        max(unit, 1e-3) * share,
        first.evaluation_s * played,
        first.run_bytes * seeds,
        first.evaluation_bytes * seeds,
        exact=False,
    )
    whole = units(run_config)
    # Copies play side by side: what they take together is between what one takes and as many times that.
    afford = int((allowed - 2 * (pace.fixed_s + 2 * first.evaluation_s)) / max(pace.unit_s, 1e-9)) - 2
    if afford < 1 or whole < 2 or pace.evaluation_s > allowed:
        return pace
    one, more = 1, min(1 + afford, 12, whole)
    if more <= one:
        return pace
    short, long = (_timed(run_config, count, folder / f"whole-{count}", accelerator) for count in (one, more))
    unit = max(long.total_s - short.total_s, 1e-6) / (more - one)
    fixed = max(short.total_s - 2 * short.evaluation_s - unit, 0.0)
    return Pace(fixed, unit, short.evaluation_s, short.run_bytes, short.evaluation_bytes, exact=True)


@dataclass(frozen=True)
class _Timed:
    total_s: float
    evaluation_s: float
    run_bytes: float
    evaluation_bytes: float


def _timed(run_config: dict[str, Any], count: int, folder: Path, accelerator: str) -> _Timed:
    """Train so many units with an evaluation at either end."""
    from lcd.pipelines.runs import resolve

    steps = count * unit_steps(run_config)
    evaluation = run_config["evaluation"] | {"every": 10 * steps}
    config = {key: value for key, value in run_config.items() if key != "curriculum"}
    if stages := run_config.get("curriculum"):
        config |= {"task": stages[0]["task"], "knobs": stages[0]["knobs"]}
    if "phase" in config["agent"]:
        # As many auxiliary passes for each rollout as in the long run, but from the first rollout on.
        config |= {"agent": config["agent"] | {"phase": 1}}
    folder.mkdir(parents=True)
    started = time.perf_counter()
    train = resolve("lcd.pipelines.train:train_run")
    train(config | {"steps": steps, "evaluation": evaluation}, folder, {"name": "none"}, {"accelerator": accelerator})
    total = time.perf_counter() - started
    curve = folder / "curve.csv"
    of_curve = curve.stat().st_size
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) - of_curve
    return _Timed(total, _first_evaluation(curve), size, of_curve / 2)


def _first_evaluation(curve: Path) -> float:
    """Seconds to the end of the evaluation at step 0, as the curve tells."""
    import pandas as pd

    rows = pd.read_csv(curve)
    return float(rows.loc[rows["step"] == 0, "wall_s"].max())


def _scaled_down(run_config: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """The run with one seed, short rollouts and one episode an evaluation, and how many times as much a unit of the
    real one trains."""
    agent, seeds = dict(run_config["agent"]), run_config["seeds"]
    share = float(len(seeds))
    rollout = agent.get("rollout", 0)
    samples = int(agent.get("copies", 1)) * SHORT_ROLLOUT
    if rollout > SHORT_ROLLOUT and samples % int(agent.get("minibatches", 1)) == 0:
        share *= rollout / SHORT_ROLLOUT
        agent["rollout"] = SHORT_ROLLOUT
    evaluation = run_config["evaluation"] | {"copies": 1, "episodes": 1}
    return run_config | {"agent": agent, "seeds": seeds[:1], "evaluation": evaluation}, share


def _settled(out: Path, run_config: Mapping[str, Any], retry: bool) -> bool:
    """Whether the command would not train the run."""
    path = out / "runs" / store.run_id(run_config)
    return path.is_dir() and not store.Run(path, run_config).wanting(retry)


def _time(missing: Sequence[Mapping[str, Any]], paces: Mapping[str, Pace], cfg: Any) -> str:
    workers = cfg.launcher.workers
    if workers == "auto":
        workers = max(1, usable_cores() // cfg.launcher.threads)
    expected, least, most = hours(missing, paces, workers)
    total = sum(paces[kind(config)].seconds(config) for config in missing) / 3600
    many = f"{workers} worker{'s' * (workers > 1)}"
    return (
        f"about {duration(expected)} with {many} here (likely {duration(least)} to {duration(most)}); "
        f"{duration(total)} of one worker in all"
    )


def _notes(cfg: Any, missing: Sequence[Mapping[str, Any]]) -> list[str]:
    notes = []
    if missing:
        notes.append(
            "Times are this machine's as busy as it is now; learning may make episodes, and so evaluations, longer."
        )
    if getattr(getattr(cfg, "stopping", None), "name", "none") == "auto":
        notes.append("This is the most it can be: stopping=auto ends tasks sooner.")
    if cfg.launcher.name != "local":
        notes.append(f"The probe ran here, not where launcher={cfg.launcher.name} trains.")
    return notes


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
