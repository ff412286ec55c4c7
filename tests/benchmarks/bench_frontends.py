"""Frames per second of each front-end in a rollout on Procgen, and its share of PPO's time.

Run it as a script. Encoders are untrained, which costs the same. A rollout keeps features or observations in turns; the
limit is that keeping features, which is what `auto` does where they fit, is nowhere slower by more than a tenth.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from torch import Tensor, nn

from lcd.agents import agents, validate
from lcd.agents.frozen import GIB, freeze
from lcd.agents.rollout import Rollouts
from lcd.envs.population import make_population
from lcd.frontends import make

TASK = "procgen/starpilot"
CPU = {"width": 16, "stem": 2, "pyramid": 16, "hgru_kernel": 5, "motion": 16, "decoder": 32}
FRONTENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "identity": ("identity", {}),
    "flow (cpu preset)": ("flow", {"weights": "untrained", **CPU}),
    "flow (the paper's)": ("flow", {"weights": "untrained"}),
    "clip ViT-B-32": ("clip", {"weights": "untrained"}),
    "clip ViT-B-32, tokens": ("clip", {"weights": "untrained", "output": "tokens"}),
    "timm resnet18, 64 pixels": ("backbone", {"model": "resnet18", "size": 64}),
}
SLOWER = 1.1


class Timed(nn.Module):
    """Counts the seconds that a front-end takes."""

    def __init__(self, frontend: nn.Module):
        super().__init__()
        self.frontend, self.half_is_safe = frontend, getattr(frontend, "half_is_safe", False)
        self.seconds, self.frames = 0.0, 0

    def forward(self, observations: Tensor) -> Tensor:
        started = time.perf_counter()
        features = self.frontend(observations)
        self.seconds += time.perf_counter() - started
        self.frames += len(observations)
        return features


def measure(name: str, knobs: dict[str, Any], keep: str, copies: int, length: int, rollouts: int) -> dict[str, float]:
    """Rates of one front-end; the first rollout warms up and is not counted."""
    config = validate("ppo", {"copies": copies, "rollout": length, "epochs": 3, "minibatches": 4})
    timed = Timed(make(name, **knobs))
    env = make_population("procgen", TASK, seeds=[0], copies=copies, view="pixels", split="train")
    steps = copies * length
    use = {"keep": keep, "memory_gb": 2.0, "precision": "auto", "copies": copies, "steps": steps}
    frozen, shape = freeze(timed, env.single_observation_space, **use)
    agent = agents.resolve("ppo")(config, shape, int(env.single_action_space.n), [0], frozen)
    optimizer = agent.configure_optimizers()
    agent.optimizers = lambda: optimizer
    agent.manual_backward = lambda loss: loss.backward()
    data = Rollouts(env, [0], agent, length, rollouts + 1, 0.99, normalise=True)
    collecting = learning = 0.0
    for index in range(rollouts + 1):
        if index == 1:
            timed.seconds, timed.frames, collecting, learning = 0.0, 0, 0.0, 0.0
        started = time.perf_counter()
        rollout = data.collect()
        data.iteration += 1
        collected = time.perf_counter()
        kept = rollout["inputs"].nbytes
        agent.training_step(rollout, index)
        collecting, learning = collecting + collected - started, learning + time.perf_counter() - collected
    env.close()
    total = collecting + learning
    return {
        "alone": timed.frames / timed.seconds,
        "rollout": rollouts * steps / collecting,
        "ppo": rollouts * steps / total,
        "share": timed.seconds / total,
        "kept": kept / steps,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=16)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--rollouts", type=int, default=2)
    asked = parser.parse_args()
    torch.manual_seed(0)
    print("frames/s: of the front-end alone, of the rollout, of PPO (3 epochs); the front-end's share of PPO's time")
    print(f"{'front-end':<26}{'keeps':<14}{'alone':>9}{'rollout':>9}{'PPO':>9}{'share':>8}{'bytes/step':>12}")
    slow = []
    for label, (name, knobs) in FRONTENDS.items():
        rates = {}
        for keep in ("features", "observations"):
            found = measure(name, knobs, keep, asked.copies, asked.length, asked.rollouts)
            rates[keep] = found["ppo"]
            alone, rollout, ppo = (f"{found[key]:,.0f}" for key in ("alone", "rollout", "ppo"))
            print(
                f"{label:<26}{keep:<14}{alone:>9}{rollout:>9}{ppo:>9}{found['share']:>8.0%}{found['kept']:>12,.0f}",
                flush=True,
            )
        if rates["features"] * SLOWER < rates["observations"]:
            slow.append(label)
    print(f"2 GiB of features of flow are {2 * GIB / (19 * 64 * 64 * 2):,.0f} steps of all seeds together")
    print(f"keeping features is slower for: {', '.join(slow)}" if slow else "keeping features is nowhere slower")
    return bool(slow)


if __name__ == "__main__":
    raise SystemExit(main())
