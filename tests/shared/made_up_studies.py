"""Studies of any number of runs as the store would write them, without training anything."""

import contextlib
import hashlib
import json
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import yaml

from lcd.curves.table import COLUMNS
from lcd.envs.benchmarks import get_benchmark, reward_range
from lcd.pipelines.study.configs import STATUS, run_id
from lcd.pipelines.study.hands import acquire, holding

AGENTS = ("ppo", "ppg")
CONDITIONS = (
    *((view, 1.0) for view in ("pixels", "figure_ground", "semantic")),
    *(("semantic", reward_p) for reward_p in (0.75, 0.5, 0.25)),
)
STEPS_A_ROLLOUT = 256
REASONS = ("RuntimeError: the simulator said no", "OSError: the network file system went away", "it ran out of memory")


def configs(number: int, evaluations: int):
    """The configs of so many runs of Procgen, each of one seed: all conditions' first, then their second and so on."""
    conditions = list(product(get_benchmark("procgen").tasks, AGENTS, CONDITIONS))
    for index in range(number):
        seed, place = divmod(index, len(conditions))
        task, agent, (view, reward_p) = conditions[place]
        yield {
            "kind": "train",
            "benchmark": "procgen",
            "task": task,
            "knobs": {},
            "view": view,
            "frontend": {"name": "identity"},
            "reward_p": reward_p,
            "shaping": "none",
            "agent": {"name": agent, "copies": 16, "rollout": 16, "learning_rate": 0.0005, "gamma": 0.999},
            "seeds": [seed],
            "steps": STEPS_A_ROLLOUT * (evaluations - 1),
            "evaluation": {"every": STEPS_A_ROLLOUT, "copies": 8, "episodes": 4},
        }


def write_study(folder: Path, number: int, states: Sequence[str] = ("done",), evaluations: int = 0) -> list[Path]:
    """A study whose runs are in turn what `states` say; returns the runs' folders.

    Args:
        folder: the study's, which is made.
        number: of runs.
        states: as statuses say them.
        evaluations: of each run that is done; 0: its curve is empty.
    """
    made = []
    for index, config in enumerate(configs(number, evaluations or 40)):
        run, state = folder / "runs" / run_id(config), states[index % len(states)]
        run.mkdir(parents=True)
        text = "".join(map(_dumped, config.items()))
        (run / "config.yaml").write_text(text)
        status = STATUS | _status(config, state, index)
        if state == "done":
            curve = curve_text(config, evaluations)
            (run / "curve.csv").write_text(curve)
            status["seal"] = {"curve.csv": hashlib.sha256(curve.encode()).hexdigest()}
        (run / "status.json").write_text(json.dumps(status, indent=1))
        made.append(run)
    (folder / "study.yaml").write_text(yaml.safe_dump({"created": "2026-11-01T00:00:00+0000", "requests": []}))
    return made


_texts: dict[str, str] = {}


def _dumped(entry: tuple[str, object]) -> str:
    key = repr(entry)
    if key not in _texts:
        _texts[key] = yaml.safe_dump(dict([entry]), sort_keys=False)
    return _texts[key]


def _status(config: dict, state: str, index: int) -> dict:
    share = {"done": 1.0, "queued": 0.0}.get(state, 0.4)
    status = {"state": state, "step": int(share * config["steps"]), "steps": config["steps"], "wall_s": 9000.0 * share}
    status |= {"threads": 2, "device": "cuda" if share else None, "updated": time.time()}
    if state == "running":
        status |= {"steps_per_s": 1234.5, "where": f"node{index % 100:03d}, process {4000 + index}, GPU {index % 4}"}
    if state in ("failed", "diverged"):
        status["error"] = REASONS[index % len(REASONS)]
    return status


def curve_text(config: dict, evaluations: int) -> str:
    """What is in a curve: a task that is learned, at a speed of its condition's own."""
    lines = [",".join(COLUMNS)]
    if evaluations:
        key = json.dumps([config[name] for name in ("task", "view", "reward_p", "agent")])
        speed = 1 + 5 * int(hashlib.sha256(key.encode()).hexdigest()[:4], 16) / 0xFFFF * config["reward_p"]
        low, high = reward_range("procgen", config["task"], 0)
        rng, share = np.random.default_rng(config["seeds"]), np.linspace(0, 1, evaluations)
        returns = low + (high - low) * ((1 - np.exp(-speed * share)) * 0.8 + rng.normal(0, 0.03, evaluations))
        head = f"procgen,{config['task']},,{config['task']},,{config['view']},identity,{config['reward_p']:g},none,"
        head += f"{config['agent']['name']},{config['seeds'][0]},eval"
        steps = (share * config["steps"]).round().astype(int)
        lines += [
            f"{head},{step},100,{value:.4f},1.5,321.5,{step / 100:.2f},{low},{high}"
            for step, value in zip(steps.tolist(), returns.tolist(), strict=True)
        ]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def held(run: Path):
    """Hold a run's lease, as a worker of this process would."""
    lease, _ = acquire(run)
    with holding(lease):
        yield
    lease.end()
