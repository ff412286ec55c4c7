"""What runs would take of a GPU, by counting: nothing is run on one, and none is needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lcd.agents.footprint import Footprint
from lcd.agents.frozen import FrozenFrontend
from lcd.agents.precision import FULL, precision_on
from lcd.agents.protocols import CountsItsWork
from lcd.envs.errors import InputError
from lcd.envs.protocols import offers
from lcd.pipelines.jobs.trial import likeness, on_trial, one_of_each
from lcd.pipelines.kinds.train import SAMPLE_BYTES
from lcd.pipelines.study.configs import RunConfig, population
from lcd.pipelines.study.cost import hours_text
from lcd.process.limits import readable_size

SUSTAINED = 1.4e12
"""Operations a second that a GPU is assumed to sustain in single precision: what a day for 200 million steps of PPO
comes to (Cobbe et al. 2020 give 24 GPU hours), about a tenth of the peak of the cards of that time."""
LEAST_HOURS = 0.1
"""Hours from which on it is told: networks that train in minutes keep no GPU busy."""
CARD_GB = 24
"""Of the paper's cards, in 10⁹ bytes."""


@dataclass(frozen=True)
class GpuNeeds:
    """What one run takes of a GPU.

    Attributes:
        operations: floating-point operations of the whole run, without evaluation.
        held: bytes of weights, moments, a rollout and a minibatch.
        activations: bytes of a whole minibatch's, of all seeds.
        at_once: steps of each seed that are learned from at once on a card of `CARD_GB`; 0 is the whole minibatch.
    """

    operations: float
    held: int
    activations: int
    at_once: int

    @property
    def memory(self) -> int:
        """Bytes that it would take without micro-batches."""
        return self.held + self.activations

    @property
    def hours(self) -> float:
        """Hours at the assumed speed."""
        return self.operations / SUSTAINED / 3600


def gpu_needs(run_config: RunConfig) -> GpuNeeds | None:
    """What a run takes, by its config and what its task shows; None where its agent does not count its work."""
    try:
        with on_trial(run_config) as (agent, env):
            if not offers(agent, CountsItsWork):
                return None
            seen = torch.from_numpy(env.reset()[0][:1])
            frontend, config = agent.frontend, agent.config
            features, encoding = _encoded(frontend, seen)
            each = frontend.kept(seen, features)[0].nbytes
            footprint: Footprint = agent.footprint
    except InputError:
        return None
    looked, learned = agent.passes
    encoded = 1 if frontend.keep != "observations" else looked + learned
    # Nobody knows which card it will be: `auto` counts in single precision, with which it fits in any case.
    half = precision_on("cpu", config.precision) != FULL
    step = looked * footprint.forward + learned * footprint.training + encoded * encoding
    members = population(run_config)
    rollout, minibatch = config.copies * config.rollout, agent.largest_minibatch
    on_card = 0 if frontend.in_file else rollout * each
    weights = sum(weight.numel() * weight.element_size() for weight in frontend.frontend.parameters())
    held = footprint.held(members) + weights + members * (on_card + rollout * SAMPLE_BYTES + minibatch * each)
    at_once = footprint.fitting(CARD_GB * 10**9 - held + footprint.held(members), members, half)
    return GpuNeeds(
        float(step) * run_config["steps"] * members,
        held,
        footprint.activations * minibatch * members // (2 if half else 1),
        at_once if at_once < minibatch else 0,
    )


def _encoded(frontend: FrozenFrontend, seen: Tensor) -> tuple[Tensor, int]:
    """Features, and the operations that they took."""
    fast = torch.backends.mha.get_fastpath_enabled()
    # PyTorch's fused attention is one operation, of which nobody knows the parts.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with FlopCounterMode(display=False) as count:
            features = frontend(seen)
        return features, count.get_total_flops()
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def gpu_sentence(run_configs: Iterable[RunConfig]) -> str | None:
    """What runs would take of GPUs together, and the largest of one; None where it is not counted, or next to nothing.

    Runs that show, encode and learn alike take the same a step.
    """
    configs = list(run_configs)
    found = {likeness(each): (gpu_needs(each), each["steps"]) for each in one_of_each(configs)}
    pace = {name: (needs, needs.hours / steps) for name, (needs, steps) in found.items() if needs is not None}
    hours = sum(pace[name][1] * each["steps"] for each in configs if (name := likeness(each)) in pace)
    if hours < LEAST_HOURS:
        return None
    largest = max((needs for needs, _ in pace.values()), key=lambda needs: needs.memory)
    fits = f", or micro-batches of {largest.at_once:,} on {CARD_GB} GB" if largest.at_once else ""
    return (
        f"about {hours_text(hours)} of one that sustains {SUSTAINED / 1e12:g} TFLOP/s; a run takes up to "
        f"{readable_size(largest.memory)} of it{fits}"
    )
