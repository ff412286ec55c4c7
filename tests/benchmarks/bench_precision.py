r"""What bf16 costs: how far IMPALA's outputs and gradients are from those in 64 bits, and what seeds learn with it.

Run it as a script. Gradients are of PPO's loss on random images, by layers; learning is paired by seed, on toys seen as
pixels, with IMPALA, or on what `--settings` says. `bf16, heads too` computes policies and values in 16 bits as well,
which agents do not do. Two games, by the small network that a CPU can train:

    bench_precision.py --tasks procgen/starpilot procgen/coinrun --variants fp32 bf16 --steps 65536 \
        --settings benchmark=procgen-easy agent=ppo_cpu evaluation.copies=32 --no-numbers
"""

from __future__ import annotations

import argparse
import copy
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
from scipy.special import stdtrit
from torch import Tensor, nn

from lcd.agents import networks
from lcd.agents.networks import ActorCritic
from lcd.config.compose import compose
from lcd.curves.spans import area
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.runs import run_config_from

TASKS = ("toy/easy-sight-easy-reward", "toy/hard-sight-easy-reward")
SETTINGS = ("agent.encoder=impala", "evaluation.copies=32")
VARIANTS = {"fp32": "32-true", "bf16": "bf16-mixed", "bf16, heads too": "bf16-mixed"}
LAYERS = {
    "first stack": r"stacks\.[0-3]\.",
    "second stack": r"stacks\.[4-7]\.",
    "third stack": r"stacks\.(8|9|10|11)\.",
    "hidden layer": r"encoder\.head",
    "policy": r"^policy",
    "value": r"^value",
}
IMAGES, ACTIONS = 64, 15
VALUE = 8.0
"""What discounted, normalised rewards of Procgen add up to."""


@contextmanager
def as_variant(name: str) -> Iterator[None]:
    """Within this, networks are computed as a variant says."""
    if name != "bf16, heads too":
        yield
        return
    plain = lambda layer, given: layer(given)  # noqa: E731
    with mock.patch.object(networks, "in_full", plain):
        yield


@contextmanager
def in_64_bits() -> Iterator[None]:
    """Within this, images become fractions in 64 bits, and no layout of oneDNN's is used, which has none."""
    with (
        mock.patch.object(networks, "as_float", lambda seen: seen.double() / 255),
        mock.patch.object(networks, "in_blocks", return_value=False),
    ):
        yield


def outputs_and_gradients(network: nn.Module, images: Tensor, half: bool) -> dict[str, Any]:
    """Log-probabilities and values of images, and the gradients of PPO's loss by parameter, as 64 bits."""
    generator = torch.Generator().manual_seed(1)
    gains = torch.randn(len(images), generator=generator).double()
    actions = torch.randint(0, ACTIONS, (len(images),), generator=generator)
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        outputs, values = network(images)[:2]
        policy = (outputs if outputs.dtype == torch.float64 else outputs.float()).log_softmax(-1)
        values = values if values.dtype == torch.float64 else values.float()
        log_probs = policy.gather(1, actions[:, None])[:, 0]
        entropy = -(policy.exp() * policy).sum(-1).mean()
        errors = (values - (VALUE + gains).to(values.dtype)).square()
        loss = -(log_probs * gains.to(values.dtype)).mean() + 0.25 * errors.mean() - 0.01 * entropy
    loss.backward()
    gradients = {name: weight.grad.double() for name, weight in network.named_parameters()}
    return {"log-probability": log_probs.detach().double(), "value": values.detach().double(), "by": gradients}


def compare_numbers() -> None:
    """Print how far each variant is from 64 bits."""
    torch.manual_seed(0)
    images = torch.randint(0, 256, (IMAGES, 3, 64, 64), dtype=torch.uint8)
    network = ActorCritic((3, 64, 64), ACTIONS, "impala", 256, scheme="glorot")
    with torch.no_grad():
        # A policy that has learned something, and values of the size that they come to.
        network.policy.weight.mul_(60)
        network.value.bias.fill_(VALUE)
    with in_64_bits():
        exact = outputs_and_gradients(copy.deepcopy(network).double(), images, half=False)
    print("| | log-probability | value |", " | ".join(LAYERS), "|")
    for name, precision in VARIANTS.items():
        with as_variant(name):
            found = outputs_and_gradients(copy.deepcopy(network), images, precision == "bf16-mixed")
        told = [f"{(found[what] - exact[what]).square().mean().sqrt():.1e}" for what in ("log-probability", "value")]
        for pattern in LAYERS.values():
            mine, right = (
                torch.cat([gradient.flatten() for name, gradient in each["by"].items() if re.search(pattern, name)])
                for each in (found, exact)
            )
            told.append(f"{(mine - right).norm() / right.norm():.1%}")
        print(f"| {name} |", " | ".join(told), "|", flush=True)


def learned(task: str, variant: str, seeds: int, steps: int, settings: list[str]) -> np.ndarray:
    """Of each seed's held-out normalised curve the area, the first return, and the last, (3, seeds)."""
    words = [f"task={task}", "view=pixels", f"seeds={seeds}", f"steps={steps}", f"evaluation.every={steps // 8}"]
    words += [*settings, f"agent.precision={VARIANTS[variant]}"]
    with tempfile.TemporaryDirectory() as folder, as_variant(variant):
        train_run(run_config_from(compose("train", words)), Path(folder), {"name": "none"}, Device("cpu"))
        curve = pd.read_csv(Path(folder) / "curve.csv")
    curve = curve[curve["split"] == "eval"]
    heights = (curve["return_mean"] - curve["r_min"]) / (curve["r_max"] - curve["r_min"])
    of_seeds = [
        (area(rows["step"].to_numpy(), heights[rows.index].to_numpy(), 0, steps), *heights[rows.index[[0, -1]]])
        for _, rows in curve.groupby("seed")
    ]
    return np.array(of_seeds).T


def compare_learning(tasks: list[str], variants: list[str], seeds: int, steps: int, settings: list[str]) -> None:
    """Print what variants learn, and the paired differences from the first with 95 % intervals (Student's t)."""
    for task in tasks:
        found = {}
        for name in variants:
            began = time.process_time()
            found[name] = learned(task, name, seeds, steps, settings)
            gains = found[name] - found[variants[0]]
            half = stdtrit(seeds - 1, 0.975) * gains.std(1, ddof=1) / seeds**0.5
            told = [
                f"{what} {height:.3f} ({gain:+.3f} ± {width:.3f})"
                for what, height, gain, width in zip(
                    ("area", "first", "last"), found[name].mean(1), gains.mean(1), half, strict=True
                )
            ]
            spent = time.process_time() - began
            print(f"{task}, {seeds} seeds, {steps} steps, {name}: {', '.join(told)}; {spent:.0f} CPU s", flush=True)


def main() -> None:
    """`bench_precision.py [--tasks …] [--variants …] [--seeds N] [--steps N] [--settings …] [--no-numbers]`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=6144)
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), help="of lcd train")
    parser.add_argument("--no-numbers", dest="numbers", action="store_false", help="learning alone")
    args = parser.parse_args()
    if args.numbers:
        compare_numbers()
    compare_learning(args.tasks, args.variants, args.seeds, args.steps, args.settings)


if __name__ == "__main__":
    main()
