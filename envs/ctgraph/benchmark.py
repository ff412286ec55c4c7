"""The benchmark `ctgraph`: graphs that span depth, wait probability and observability, the paper's among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from lcd.envs.benchmarks import NativeBenchmark
from lcd.envs.ctgraph.compare import expected_return
from lcd.envs.ctgraph.goals import GoalSchedule
from lcd.envs.ctgraph.graph import VIEWS, CTGraphVectorEnv
from lcd.envs.ctgraph.images import check_noise
from lcd.envs.ctgraph.knobs import GraphKnobs, canonical, load_json, merge
from lcd.envs.ctgraph.tabular import as_tabular
from lcd.envs.families.family import Family, grid_family
from lcd.envs.tabular.mdp import TabularMDP

FULLY_OBSERVABLE = {"MDP_D": True, "MDP_W": True}
SURJECTIVE = {"MDP_D": False, "MDP_W": False, "D_IDs": [2, 2], "W_IDs": [3, 3]}
CONFUSED = {"H_IDs": [0, 3], "F_IDs": [4, 7], "D_IDs": [8, 11], "W_IDs": [12, 15], "E_IDs": [16, 19]}

NAMED: dict[str, dict[str, Any]] = {
    "ctgraph/ct-fo-b1": {"graph_shape": {"d": 2, "b": 2, "p": 0.0}, "observations": FULLY_OBSERVABLE},
    "ctgraph/ct-fo-b2": {"graph_shape": {"d": 3, "b": 2, "p": 0.5}, "observations": FULLY_OBSERVABLE},
    "ctgraph/ct-su-b1": {"graph_shape": {"d": 2, "b": 2, "p": 0.0}, "observations": SURJECTIVE},
    "ctgraph/ct-co-b1": {"graph_shape": {"d": 2, "b": 2, "p": 0.0}, "observations": {**SURJECTIVE, "W_IDs": [3, 102]}},
    "ctgraph/ct-posr-b1": {"graph_shape": {"d": 2, "b": 2, "p": 0.5}, "observations": SURJECTIVE},
    # Section 4.2: the graph of Ben-Iwhiwhu et al. (2022b), and that of Ladosz et al. (2021), whose depth and branching
    # the paper does not tell.
    "ctgraph/depth-5": {"graph_shape": {"d": 5, "b": 2, "p": 0.0}, "observations": {"MDP_D": True, "MDP_W": False}},
    "ctgraph/wait-0.9-ids-500": {
        "graph_shape": {"d": 2, "b": 2, "p": 0.9},
        "observations": {**SURJECTIVE, "W_IDs": [3, 502]},
    },
}
"""The paper's configurations."""

SMALL: dict[str, dict[str, Any]] = {
    "ctgraph/depth-1": {"graph_shape": {"d": 1}, "observations": FULLY_OBSERVABLE},
    "ctgraph/depth-1-wait-0.5": {"graph_shape": {"d": 1, "p": 0.5}, "observations": FULLY_OBSERVABLE},
    "ctgraph/depth-1-wait-0.9": {"graph_shape": {"d": 1, "p": 0.9}, "observations": FULLY_OBSERVABLE},
    "ctgraph/depth-1-surjective": {"graph_shape": {"d": 1}, "observations": SURJECTIVE},
    "ctgraph/depth-1-confounding": {"graph_shape": {"d": 1}, "observations": {**SURJECTIVE, "W_IDs": [3, 102]}},
    "ctgraph/depth-1-stochastic": {"graph_shape": {"d": 1}, "observations": CONFUSED},
}
"""Graphs that a small budget solves, so that what wait states and observations do to learning can be told."""

ABOUT: Mapping[str, str] = {
    "ctgraph/depth-1": "one decision, no waiting; every state looks different",
    "ctgraph/depth-1-wait-0.5": "one decision after waiting (p .5); every state looks different",
    "ctgraph/depth-1-wait-0.9": "one decision after long waiting (p .9); every state looks different",
    "ctgraph/depth-1-surjective": "one decision; all decisions look alike, all wait states too",
    "ctgraph/depth-1-confounding": "one decision; a wait state looks like any of a hundred",
    "ctgraph/depth-1-stochastic": "one decision; every state looks like any of four",
    "ctgraph/ct-fo-b1": "two decisions, no waiting; every state looks different",
    "ctgraph/ct-fo-b2": "three decisions after waiting (p .5); every state looks different",
    "ctgraph/ct-su-b1": "two decisions, no waiting; all decisions look alike, all wait states too",
    "ctgraph/ct-co-b1": "two decisions, no waiting; a wait state looks like any of a hundred",
    "ctgraph/ct-posr-b1": "two decisions after waiting (p .5); all decisions look alike, all wait states too",
    "ctgraph/depth-5": "five decisions, no waiting; every decision looks different",
    "ctgraph/wait-0.9-ids-500": "two decisions after long waiting (p .9); a wait state looks like any of five hundred",
}
"""What a task's graph asks for, and what is seen of it."""

IMAGES = {"noise_on_read": 0.1, "rotation_on_read": 5}
KNOBS = {task: {**knobs, "image_dataset": IMAGES} for task, knobs in {**SMALL, **NAMED}.items()}

FEATURES: dict[str, tuple[float, ...]] = {"graph_shape.d": (1, 2, 3), "graph_shape.p": (0.0, 0.5, 0.9)}
"""Knobs that every task is a family over: how deep the tree is, and how probably a wait state is not left."""
NUMBERS = (
    *("graph_shape.b", "graph_shape.d", "graph_shape.p", "reward.high_r", "reward.fail_r", "reward.step_r"),
    "reward.std_r",
    *("image_dataset.noise_on_read", "image_dataset.rotation_on_read"),
)
"""Knobs that are numbers: what a family of anybody's may vary."""


class CTGraphBenchmark(NativeBenchmark):
    """Every task's goal alternates between branches 1 and 2 unless another is given, so that observability matters."""

    name = "ctgraph"
    graphs: Mapping[str, Mapping[str, Any]] = KNOBS
    """Task -> its own knobs."""
    tasks: Sequence[str] = tuple(KNOBS)
    about: Mapping[str, str] = ABOUT
    views: Sequence[str] = VIEWS

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """The exact mean returns of the random and of the optimal policy."""
        graph, goal = self.graph(task, seed, **knobs)
        check_noise(graph.image_dataset, graph.num_ids)
        return expected_return(graph, goal, "random"), expected_return(graph, goal, "optimal")

    def graph(self, task: str, seed: int, **knobs: Any) -> tuple[GraphKnobs, np.ndarray]:
        """The graph of a task, and the goal that a seed has in it (at first, where goals change)."""
        graph = GraphKnobs.from_dict(task_knobs(task, knobs, self.graphs))
        return graph, GoalSchedule(graph, seed).goal(0)

    def family(self, task: str) -> Family:
        """A task at other depths and wait probabilities; its goal alternates at each depth."""
        return grid_family(FEATURES, {name: self.features_of(task)[name] for name in FEATURES})

    def features_of(self, task: str) -> Mapping[str, float]:
        """The numbers of a task's graph, each with the task's own value."""
        graph = GraphKnobs.from_dict(task_knobs(task, {}, self.graphs))
        return {name: float(attrgetter(name)(graph)) for name in NUMBERS}

    def tabular(self, task: str, seed: int, **knobs: Any) -> TabularMDP:
        """The graph of a task as a tabular MDP, with the goal that a seed has in it, where it is deterministic."""
        return as_tabular(*self.graph(task, seed, **knobs), task)

    def make_population(
        self, task: str, *, seeds: Sequence[int], copies: int, view: str, split: str, **knobs: Any
    ) -> VectorEnv:
        """Copies of a task for several seeds, in one environment."""
        own = task_knobs(task, knobs, self.graphs)
        return CTGraphVectorEnv(len(seeds) * copies, view=view, split=split, seed=seeds, **own)


def task_knobs(task: str, knobs: dict[str, Any], graphs: Mapping[str, Mapping[str, Any]] = KNOBS) -> dict[str, Any]:
    """A task's knobs, as `graphs` has them, with `knobs` (and before them those in their file `config`) over them."""
    given = canonical(knobs)
    layers = [graphs[task], given]
    if (path := given.pop("config", None)) is not None:
        layers.insert(1, load_json(path))
    merged = merge(*layers)
    merged.setdefault("goal", alternating(merged.get("graph_shape", {}).get("d", 2)))
    return merged


def alternating(depth: Any) -> list[int] | None:
    """The goal <1, 2, 1, …>, which no agent without memory reaches more than now and then if it sees no difference."""
    return [1 + level % 2 for level in range(depth)] if isinstance(depth, int) else None


CTGRAPH = CTGraphBenchmark()
"""Configurable tree graphs: how deep, how long to wait, how much can be observed."""
