"""Training that is fast, resumable and made up: what the real one leaves in a run's folder, without learning."""

import csv
import json
import os
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from lcd.curves.table import COLUMNS
from lcd.envs.errors import Diverged, InputError
from lcd.files.atomic import write_atomic
from lcd.pipelines.kinds.kind import kinds
from lcd.pipelines.kinds.train import TRAINING
from lcd.pipelines.publish.track import open_tracker
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import task_name

PAUSE_S = "LCD_TEST_PAUSE_S"
FAIL_ON = "LCD_TEST_FAIL_ON"
DIE_ON = "LCD_TEST_DIE_ON"
DIVERGE_ON = "LCD_TEST_DIVERGE_ON"
EVALUATIONS = 5
SOLVABILITY = {"pixels": 0.3, "figure_ground": 0.6, "semantic": 0.9}


def instead(patch=None):
    """From now on jobs of the kind `train` do this; with a `MonkeyPatch`, while it lasts."""
    fake = replace(TRAINING, work="fake_training:train")
    if patch is None:
        kinds.add("train", fake)
    else:
        patch.setitem(kinds._built_in, "train", fake)


def train(run_config, run_dir, tracker, device):
    """Five evaluations with a checkpoint after each."""
    folder = Path(run_dir)
    for variable, act in ((FAIL_ON, _fail), (DIE_ON, os.abort)):
        if os.environ.get(variable) == run_config["view"]:
            act()
    checkpoint = folder / "checkpoint.json"
    reached = json.loads(checkpoint.read_text())["step"] if checkpoint.exists() else -1
    rows = [row for step in _steps(run_config) for row in _rows(run_config, step)]
    kept = [row for row in rows if row["step"] <= reached]
    with (folder / "curve.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(kept)
    tracked = open_tracker(tracker, folder, run_config, store.read_status(folder))
    tracked.log(kept, [])
    for step in _steps(run_config):
        if step <= reached:
            continue
        if f"{run_config['task']}/{run_config['view']}".startswith(os.environ.get(DIVERGE_ON, "\0")) and step > 0:
            raise Diverged("a weight of seed 1 is not finite at step 100")
        time.sleep(float(os.environ.get(PAUSE_S, 0)))
        fresh = [row for row in rows if row["step"] == step]
        with (folder / "curve.csv").open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS).writerows(fresh)
        write_atomic(checkpoint, json.dumps({"step": step}))
        tracked.log(fresh, [])
        store.update_status(folder, step=step, steps_per_s=1000.0)
        print("reached", step)
    tracked.finish({"steps": run_config["steps"]})
    store.finish(folder, step=run_config["steps"])


def _fail():
    raise InputError("the knob is wrong: turn it.")


def _steps(run_config):
    return np.linspace(0, run_config["steps"], EVALUATIONS).astype(int).tolist()


def _rows(run_config, step):
    key = "/".join(str(run_config[name]) for name in ("task", "view", "reward_p"))
    for seed in run_config["seeds"]:
        rng = np.random.default_rng([zlib.crc32(key.encode()), seed])
        level = SOLVABILITY.get(run_config["view"], 0.5) * run_config["reward_p"] + rng.normal(0, 0.02)
        shared = {name: run_config[name] for name in ("benchmark", "view", "reward_p", "shaping")}
        shared["task"] = shared["trained_on"] = task_name(run_config)
        named = {name: run_config[name]["name"] for name in ("agent", "frontend")}
        numbers = {"episodes": 8, "return_std": 0.1, "length_mean": 20.0, "wall_s": 1.0, "r_min": 0.0, "r_max": 1.0}
        progress = step / run_config["steps"]
        moment = {"seed": seed, "split": "eval", "step": step, "return_mean": round(level * progress, 6)}
        yield shared | named | numbers | moment
