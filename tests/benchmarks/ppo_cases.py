"""What one process of `bench_ppo.py` measures: our PPO or PPG on starpilot, at the papers' sizes.

    python ppo_cases.py '{"agent": "ppo", "precision": "32-true"}'

prints one line of JSON: the seconds of each iteration, those of the auxiliary phase's two parts, and peak memory.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from lightning.pytorch import Callback, Trainer

from lcd.agents.ppg import PPG, PPGConfig
from lcd.agents.ppo import PPO, PPOConfig
from lcd.agents.rollout import Rollouts, loader
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.population import make_population
from lcd.frontends import make
from lcd.pipelines.launch.launchers import keep_freed_memory

SHARED = {
    "rollout": 256,
    "minibatches": 8,
    "learning_rate": 5e-4,
    "gamma": 0.999,
    "encoder": "impala",
    "width": 256,
}
PPG_OWN = {"epochs": 1, "phase": 1, "auxiliary_epochs": 1, "variant": "detached", "initialisation": "normed"}


class TimedPPG(PPG):
    """PPG that notes how long its auxiliary phase takes, and cloning the policy within it."""

    seconds: dict[str, float]
    clock = staticmethod(time.perf_counter)

    def _auxiliary_phase(self, index: int) -> Any:
        started = self.clock()
        losses = super()._auxiliary_phase(index)
        self.seconds["auxiliary"] = self.clock() - started
        return losses

    def _cloned(self, rollouts: int) -> Any:
        started = self.clock()
        cloned = super()._cloned(rollouts)
        self.seconds["cloning"] = self.clock() - started
        return cloned


class Clock(Callback):
    """Notes how long iterations take, collecting included."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.seconds: list[float] = []
        self.last = 0.0

    def on_train_start(self, *_: object) -> None:
        self.last = self.clock()

    def on_train_batch_end(self, *_: object) -> None:
        now = self.clock()
        self.seconds.append(now - self.last)
        self.last = now


def trainer(precision: str, *callbacks: Callback) -> Trainer:
    """Lightning's trainer as our runs make it, without recording."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning.pytorch")
    return Trainer(
        max_epochs=1,
        logger=False,
        callbacks=list(callbacks),
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        precision=precision,
        devices=1,
    )


def measure(
    agent: str, precision: str, iterations: int = 2, copies: int = 64, cpu_time: bool = False, **knobs: Any
) -> dict[str, Any]:
    """Train for a few iterations, timed by the wall or by the processor."""
    keep_freed_memory()
    env = make_population(
        get_benchmark("procgen-easy"), "procgen/starpilot", seeds=[0], copies=copies, view="pixels", split="train"
    )
    if agent == "ppo":
        kind, config = PPO, PPOConfig(**{"copies": copies, "epochs": 3, **SHARED, **knobs}, precision=precision)
    else:
        kind, config = TimedPPG, PPGConfig(**{"copies": copies, **SHARED, **PPG_OWN, **knobs}, precision=precision)
    made = kind(config, (3, 64, 64), int(env.single_action_space.n), [0], make("identity"))
    now = time.process_time if cpu_time else time.perf_counter
    made.seconds, made.clock = {}, now
    rollouts = Rollouts(env, [0], made, config.rollout, iterations, config.gamma, normalise=True)
    clock = Clock(now)
    trainer(precision, clock).fit(made, loader(rollouts))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"iterations": clock.seconds, "steps": copies * config.rollout, "peak": peak, **made.seconds}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
