"""Several tasks: sampled, nested, with similar goals; how similar two are; and curricula of them.

A task is here what a graph is made of: knobs in the layout of `GraphKnobs`. Tasks that are made together have equal
spaces (one number of observation ids, one branching), so that one agent can learn them one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from lcd.envs.checks import require_one_of, require_whole_number
from lcd.envs.ctgraph.benchmark import KNOBS
from lcd.envs.ctgraph.goals import checked_goal
from lcd.envs.ctgraph.knobs import GraphKnobs, merge
from lcd.envs.ctgraph.layout import SET_OF_KIND, shown_ids
from lcd.envs.ctgraph.theory import num_decisions, num_ends, num_states, num_waits
from lcd.envs.errors import InputError, nearest
from lcd.envs.streams import seed_sequence

Knobs = dict[str, Any]
VARIATIONS = ("goal", "images", "ids", "shape")


def sample_tasks(
    count: int,
    seed: int,
    vary: Sequence[str] = ("goal",),
    base: Mapping[str, Any] | None = None,
    depths: Sequence[int] = (1, 2, 3),
    waits: Sequence[float] = (0.0, 0.5, 0.9),
) -> list[Knobs]:
    """Random tasks that differ in what `vary` names (sections 3.4 and 3.5 of the paper).

    Args:
        count: number of tasks.
        seed: they are the same for the same seed.
        vary: any of "goal" (where the reward is), "images" (another image set), "ids" (other observation ids of the
            same set) and "shape" (depth and wait probability).
        base: the knobs that all share.
        depths: what "shape" draws depths from.
        waits: what "shape" draws wait probabilities from.
    """
    require_whole_number("count", count, 1)
    for name in vary:
        require_one_of("vary", name, VARIATIONS)
    base = merge(base or {})
    rng = np.random.default_rng(seed_sequence(seed, "mdp"))
    tasks: list[Knobs] = []
    for number in range(count):
        task = merge(base)
        if "shape" in vary:
            shape = {"d": int(rng.choice(list(depths))), "p": float(rng.choice(list(waits)))}
            task = merge({**task, "goal": None}, {"graph_shape": shape})
        if "images" in vary:
            task = merge(task, {"image_dataset": {"seed": int(rng.integers(2**31))}})
        graph = GraphKnobs.from_dict(task)
        if "ids" in vary:
            task = merge(task, {"observations": _shifted(graph, number)})
        if "goal" in vary or graph.goal is None:
            goal = rng.integers(1, graph.graph_shape.b + 1, graph.graph_shape.d)
            task["goal"] = _unlike(goal, tasks, graph, rng) if set(vary) == {"goal"} else goal.tolist()
        tasks.append(task)
    return with_equal_spaces(tasks)


def _unlike(goal: np.ndarray, tasks: list[Knobs], graph: GraphKnobs, rng: np.random.Generator) -> list[int]:
    """A goal that comes again only when all others have come as often."""
    shape = graph.graph_shape
    taken = [tuple(task["goal"]) for task in tasks]
    seldom = len(tasks) // num_ends(shape.b, shape.d)
    while taken.count(tuple(goal.tolist())) > seldom:
        goal = rng.integers(1, shape.b + 1, shape.d)
    return goal.tolist()


def _shifted(graph: GraphKnobs, number: int) -> dict[str, list[int]]:
    """The graph's sets, moved on to ids that no task with a smaller number has."""
    width = max(last for _, last in graph.id_sets.values()) + 1
    return {name: [first + number * width, last + number * width] for name, (first, last) in graph.id_sets.items()}


def with_equal_spaces(tasks: Sequence[Mapping[str, Any]]) -> list[Knobs]:
    """The same tasks with the number of observation ids that the largest needs; refused if branchings differ."""
    graphs = [GraphKnobs.from_dict(task) for task in tasks]
    branchings = sorted({graph.graph_shape.b for graph in graphs})
    if len(branchings) > 1:
        raise InputError(
            f"graph_shape.b is {branchings[0]} and {branchings[1]} in tasks that need equal action spaces."
        )
    ids = max(graph.num_ids for graph in graphs)
    return [merge(task, {"image_dataset": {"nr_of_images": ids}}) for task in tasks]


def all_goals(base: Mapping[str, Any] | None = None) -> list[Knobs]:
    """The same graph with the reward at each of its ends in turn: the same policy at wait states."""
    graph = GraphKnobs.from_dict(base or {})
    goals = product(range(1, graph.graph_shape.b + 1), repeat=graph.graph_shape.d)
    return with_equal_spaces([merge(base or {}, {"goal": list(goal)}) for goal in goals])


def similar_goals(count: int, shared: int, seed: int, base: Mapping[str, Any] | None = None) -> list[Knobs]:
    """The same graph with goals whose first `shared` decisions agree, and only those where b and count allow.

    Args:
        count: number of tasks.
        shared: how many decisions all goals have in common.
        seed: the tasks are the same for the same seed.
        base: the knobs that all share.
    """
    require_whole_number("count", count, 1)
    require_whole_number("shared", shared, 0)
    shape = GraphKnobs.from_dict(base or {}).graph_shape
    if shared > shape.d or count > shape.b ** (shape.d - shared):
        told = f"there are not as many goals that agree in {shared} of {shape.d} decisions"
        raise InputError(f"count is {count}, but {told}.")
    rng = np.random.default_rng(seed_sequence(seed, "mdp"))
    prefix = rng.integers(1, shape.b + 1, shared).tolist()
    # Rests in an order that goes through all branches of the first decision not shared, before one comes again.
    rests = [list(rest) for rest in product(range(1, shape.b + 1), repeat=shape.d - shared)]
    rng.shuffle(rests)
    turn = dict.fromkeys(range(shape.b + 1), 0)
    keyed = []
    for rest in rests:
        branch = rest[0] if rest else 0
        keyed.append((turn[branch], rest))
        turn[branch] += 1
    ordered = [rest for _, rest in sorted(keyed, key=lambda pair: pair[0])]
    return with_equal_spaces([merge(base or {}, {"goal": prefix + rest}) for rest in ordered[:count]])


def nested(depths: Sequence[int], goal: Sequence[int], base: Mapping[str, Any] | None = None) -> list[Knobs]:
    """Graphs of growing depth, each inside the next: same observation ids, and the goal on the way to the deeper goal.

    Args:
        depths: the depths, in the order of the tasks.
        goal: the deepest graph's optimal decisions.
        base: the knobs that all share.
    """
    base, deepest = merge(base or {}), max(depths)
    deep = GraphKnobs.from_dict(merge({**base, "goal": None}, {"graph_shape": {"d": deepest}}))
    goal = list(checked_goal(list(goal), deep.graph_shape.b, deepest))
    sets = {name: list(deep.id_sets[name]) for name in SET_OF_KIND}
    layer = {"observations": sets}
    return with_equal_spaces(
        [merge(base, layer, {"graph_shape": {"d": depth}, "goal": goal[:depth]}) for depth in depths]
    )


def similarity(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    """How similar two tasks are, each from 0 to 1.

    `goal`: common prefix of the goals over the greater depth. `ids`: observation ids that both show, over those that
    any shows; none are shared by different image sets. `states`: states that both have, over those that any has, where
    a state is its kind and the decisions that lead there.
    """
    a, b = GraphKnobs.from_dict(one), GraphKnobs.from_dict(other)
    return {"goal": _common_prefix(a, b), "ids": _shared_ids(a, b), "states": _shared_states(a, b)}


def _common_prefix(a: GraphKnobs, b: GraphKnobs) -> float:
    if a.goal is None or b.goal is None:
        raise InputError("goal is null, but only tasks whose goals are given can be compared.")
    equal = [x == y for x, y in zip(a.goal, b.goal, strict=False)]
    return (equal.index(False) if False in equal else len(equal)) / max(len(a.goal), len(b.goal))


def _shared_ids(a: GraphKnobs, b: GraphKnobs) -> float:
    if (a.image_dataset.seed, a.image_dataset.path) != (b.image_dataset.seed, b.image_dataset.path):
        return 0.0
    of_a, of_b = shown_ids(a), shown_ids(b)
    return len(of_a & of_b) / len(of_a | of_b)


def _shared_states(a: GraphKnobs, b: GraphKnobs) -> float:
    one, other = a.graph_shape, b.graph_shape
    branching, depth = min(one.b, other.b), min(one.d, other.d)
    both = 2 + num_waits(branching, depth) + num_decisions(branching, depth)
    if one.d == other.d:
        both += num_ends(branching, depth)
    return both / (num_states(one.b, one.d) + num_states(other.b, other.d) - both)


def curriculum(task: str, variants: Sequence[Mapping[str, Any]], steps: int | Sequence[int]) -> list[dict[str, Any]]:
    """Stages for `lcd train curriculum=…`: each variant of a benchmark's task for a number of steps.

    Args:
        task: a task of `benchmark=ctgraph`; the variants' knobs go over its own, and all get equal spaces.
        variants: knobs, as the functions above return them.
        steps: environment steps of a seed in every stage, or in each.
    """
    each = [steps] * len(variants) if isinstance(steps, int) else list(steps)
    names = [_name(task, variant) for variant in variants]
    if task not in KNOBS:
        raise InputError(f"task is '{task}', which is none of benchmark=ctgraph; {nearest(task, KNOBS)}")
    # What number of ids the variants had among themselves need not fit the task's own.
    whole = [merge(KNOBS[task], variant, {"image_dataset": {"nr_of_images": None}}) for variant in variants]
    variants = with_equal_spaces(whole)
    return [
        {
            "name": name if names.count(name) == 1 else f"{name}-{place}",
            "task": task,
            "knobs": dict(variant),
            "steps": n,
        }
        for place, (name, variant, n) in enumerate(zip(names, variants, each, strict=True))
    ]


def _name(task: str, variant: Mapping[str, Any]) -> str:
    goal = variant.get("goal")
    return f"{task}-goal-{''.join(map(str, goal))}" if goal else task
