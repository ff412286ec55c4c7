"""The files that fuzzed commands find: a small study, tables of curves, things that are neither."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lcd.config.compose import compose
from lcd.curves.table import COLUMNS
from lcd.pipelines.study import runs
from lcd.pipelines.study.store import DONE, Run, Study, update_status

STUDY = ("benchmark=toy", "budget=smoke", "study.seeds=2", "study.steps=1000", "agent=ppo",
         "study.tasks=[toy/easy-sight-easy-reward,toy/easy-sight-hard-reward]")  # fmt: skip
STEPS = (0, 500, 1000)
RAISING = "raise RuntimeError('a module that fails')\n"
"""A user's module that cannot be imported for another reason than that it is not there."""


def fill(folder: Path) -> None:
    """Everything into a folder."""
    write_study(folder / "study")
    table = curves()
    table.to_csv(folder / "curves.csv", index=False)
    table.to_parquet(folder / "curves.parquet")
    curricula().to_csv(folder / "curricula.csv", index=False)
    (folder / "curricula.yaml").write_text("- [toy/easy-sight-easy-reward, 500]\n- [toy/easy-sight-hard-reward, 500]\n")
    (folder / "empty.csv").write_text("")
    (folder / "notes.txt").write_text("mine\n")
    (folder / "raising.py").write_text(RAISING)
    (folder / "broken.py").write_text("def\n")
    (folder / "folder" / "figures").mkdir(parents=True)
    (folder / "folder" / "figures" / "mine.pdf").write_text("mine\n")
    os.symlink("nowhere", folder / "gone")
    os.symlink("loop", folder / "loop")


def write_study(folder: Path) -> None:
    """A study that is done, with the curves of runs that were never trained."""
    cfg = compose("diagnose", STUDY)
    study = Study(folder, create=True)
    with study.at_work():
        made = study.ask({"benchmark": {"name": "toy"}}, runs.expand(cfg))
    for run in made:
        write_run(run)


def write_run(run: Run) -> None:
    """A finished run's curve, checkpoint's place and status."""
    rows = [row for seed in run.config["seeds"] for row in _rows(run.config, seed)]
    pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(run.path / "curve.csv", index=False)
    (run.path / "checkpoints").mkdir(exist_ok=True)
    update_status(run.path, state=DONE, step=STEPS[-1], steps=STEPS[-1], wall_s=1.0)


def _rows(config: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    shared = {key: config[key] for key in ("benchmark", "task", "view", "reward_p", "shaping")}
    shared |= {"frontend": config["frontend"]["name"], "agent": config["agent"]["name"], "seed": seed, "split": "eval"}
    shared |= {"episodes": 8, "return_std": 0.1, "length_mean": 5.0, "wall_s": 1.0, "r_min": 0.0, "r_max": 1.0}
    shared |= {"trained_on": config["task"]}
    level = {"pixels": 0.3, "figure_ground": 0.5, "semantic": 0.8}[config["view"]] * config["reward_p"]
    level *= 0.5 if "hard-reward" in config["task"] and config["reward_p"] < 1 else 1.0
    return [shared | {"step": step, "return_mean": (level + 0.01 * seed) * step / STEPS[-1]} for step in STEPS]


def curves() -> pd.DataFrame:
    """Curves of two tasks that no benchmark has."""
    conditions = [("pixels", 1.0), ("figure_ground", 1.0), *(("semantic", p) for p in (1.0, 0.75, 0.5, 0.25))]
    found = []
    for task in ("mine/a", "mine/hard-reward"):
        for view, p in conditions:
            config = {
                "kind": "train",
                "benchmark": "mine",
                "task": task,
                "view": view,
                "reward_p": p,
                "shaping": "none",
            }
            config |= {"frontend": {"name": "identity"}, "agent": {"name": "ppo"}}
            found += [row for seed in (0, 1) for row in _rows(config, seed)]
    return pd.DataFrame(found)


def curricula() -> pd.DataFrame:
    """The curves of a curriculum of two tasks."""
    rows = [
        row | {"trained_on": "c", "stage": "mine/a" if row["step"] <= 500 else "mine/b", "task": task}
        for task in ("mine/a", "mine/b")
        for seed in (0, 1)
        for row in curves().query("view == 'pixels' and task == 'mine/a' and seed == @seed").to_dict("records")
    ]
    return pd.DataFrame(rows)
