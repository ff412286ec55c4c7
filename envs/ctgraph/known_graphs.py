"""The benchmark `calibration-ctgraph`: graphs whose RL hardness is a closed form, neither guessed nor measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lcd.envs.calibration import Truth
from lcd.envs.ctgraph.benchmark import FULLY_OBSERVABLE, IMAGES, CTGraphBenchmark
from lcd.envs.ctgraph.theory import reward_probability

SHAPES: Sequence[tuple[int, float]] = (
    *((1, p) for p in (0.0, 0.3, 0.6, 0.8, 0.9)),
    *((2, p) for p in (0.0, 0.3, 0.5)),
    *((3, p) for p in (0.0, 0.2)),
)
"""Decisions in a row, and the probability of remaining in a wait state."""
BRANCHES = 2


class KnownGraphs(CTGraphBenchmark):
    """Every state looks different, so that only what rewards ask for changes; how hard that is to see is not known."""

    name = "calibration-ctgraph"
    graphs: Mapping[str, Mapping[str, Any]] = {
        f"calibration-ctgraph/depth-{d}-wait-{p:g}": {
            "graph_shape": {"b": BRANCHES, "d": d, "p": p},
            "observations": FULLY_OBSERVABLE,
            "image_dataset": IMAGES,
        }
        for d, p in SHAPES
    }
    tasks = tuple(graphs)
    about = {
        task: f"an episode of random play in {1 / reward_probability(BRANCHES, d, p):,.0f} is rewarded; every state "
        "looks different"
        for task, (d, p) in zip(graphs, SHAPES, strict=True)
    }
    truth: Mapping[str, Truth] = {
        task: Truth(math.nan, -math.log2(reward_probability(BRANCHES, d, p)))
        for task, (d, p) in zip(graphs, SHAPES, strict=True)
    }
    """Task -> −log₂ of the probability that an episode of random play is rewarded."""


KNOWN_GRAPHS = KnownGraphs()
"""Tree graphs whose RL hardness is a closed form: how seldom random play is rewarded."""
