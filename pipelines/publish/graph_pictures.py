"""A picture of a task's graph: its states by kind, the observation ids that they show, and the way to the goal."""

from typing import Any

import numpy as np

from lcd.envs.ctgraph.layout import DECISION, END, FAIL, HOME, KINDS, WAIT, Node, nodes
from lcd.envs.ctgraph.theory import num_ends, num_states
from lcd.envs.errors import InputError

MOST_ENDS = 128
COLOURS = {HOME: "#cc79a7", WAIT: "#c9d3dc", DECISION: "#56b4e9", END: "#e69f00", FAIL: "#4b5560"}
SHAPES = {HOME: "s", WAIT: "o", DECISION: "D", END: "p", FAIL: "X"}
GOAL, LINE, INK = "#d55e00", "#9aa5b1", "#1f2933"


def draw_graph(knobs: Any, goal: np.ndarray, title: str) -> Any:
    """The figure: time goes right, branches go down in the order of their actions, the way to the goal is thick.

    Args:
        knobs: the graph's `GraphKnobs`.
        goal: the optimal decisions.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shape = knobs.graph_shape
    ends = num_ends(shape.b, shape.d)
    if ends > MOST_ENDS:
        raise InputError(f"graph_shape.d is {shape.d}, but of the {ends} end states at most {MOST_ENDS} can be drawn.")
    places = {node: _place(node, shape) for node in nodes(knobs)}
    width, height = 1.6 + 1.15 * (2 * shape.d + 3), 1.9 + max(0.34 * ends, 1.6)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_axis_off()
    facts = f"b = {shape.b}, d = {shape.d}, p = {shape.p:g}: {num_states(shape.b, shape.d)} states"
    axes.set_title(f"{title}\n{facts}; numbers inside are observation ids", loc="left", fontsize=9)
    on_way = {node for node in places if node.kind not in (FAIL,) and node.path == tuple(goal[: len(node.path)])}
    _lines(axes, places, on_way, shape)
    _states(axes, places, on_way)
    _legend(axes, places, shape)
    return figure


def _place(node: Node, shape: Any) -> tuple[float, float]:
    """Across by the steps behind, down by the decisions: every state in the middle of the ends below it."""
    if node.kind == FAIL:
        return 1.0, -num_ends(shape.b, shape.d) - 0.6
    depth = len(node.path)
    first = sum((a - 1) * shape.b ** (shape.d - level - 1) for level, a in enumerate(node.path))
    middle = first + (shape.b ** (shape.d - depth) - 1) / 2
    across = {HOME: 0, WAIT: 1 + 2 * depth, DECISION: 2 + 2 * depth, END: 2 + 2 * depth}[node.kind]
    return float(across), -float(middle)


def _lines(axes: Any, places: dict[Node, tuple[float, float]], on_way: set[Node], shape: Any) -> None:
    by_state = {(node.kind, node.path): node for node in places}
    for node in places:
        for action, after in _followers(node, shape):
            follower = by_state[after]
            (x, y), (to_x, to_y) = places[node], places[follower]
            way = node in on_way and follower in on_way
            axes.plot([x, to_x], [y, to_y], color=GOAL if way else LINE, linewidth=2.6 if way else 1.0, zorder=1)
            if action:
                axes.annotate(
                    str(action), (x + 0.5 * (to_x - x), y + 0.5 * (to_y - y)), ha="center", va="center", fontsize=7,
                    color=INK, bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
                )  # fmt: skip


def _followers(node: Node, shape: Any) -> list[tuple[int, tuple[int, tuple[int, ...]]]]:
    """Where a state leads other than to fail: (action, (kind, decisions))."""
    if node.kind == HOME:
        return [(0, (WAIT, ()))]
    if node.kind == WAIT:
        return [(0, (END if len(node.path) == shape.d else DECISION, node.path))]
    if node.kind == DECISION:
        return [(action, (WAIT, (*node.path, action))) for action in range(1, shape.b + 1)]
    return []


def _states(axes: Any, places: dict[Node, tuple[float, float]], on_way: set[Node]) -> None:
    for node, (x, y) in places.items():
        edge = GOAL if node in on_way else INK
        axes.plot(
            x, y, SHAPES[node.kind], color=COLOURS[node.kind], markeredgecolor=edge, markeredgewidth=1.8 if node in
            on_way else 0.6, markersize=19, zorder=2,
        )  # fmt: skip
        first, last = node.ids
        text = str(first) if first == last else f"{first}–{last}"
        colour = "white" if node.kind == FAIL else INK
        axes.text(x, y, text, ha="center", va="center", fontsize=7.5 if len(text) < 4 else 5.5, color=colour, zorder=3)


def _legend(axes: Any, places: dict[Node, tuple[float, float]], shape: Any) -> None:
    from matplotlib.lines import Line2D

    style = {"linestyle": "", "markeredgecolor": INK, "markeredgewidth": 0.6, "markersize": 9}
    marks = [
        Line2D([], [], marker=SHAPES[kind], color=COLOURS[kind], label=name, **style) for kind, name in enumerate(KINDS)
    ]
    marks.append(Line2D([], [], color=GOAL, linewidth=2.6, label="way to the goal"))
    axes.legend(handles=marks, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=6, fontsize=7.5, frameon=False)
    fail = next(place for node, place in places.items() if node.kind == FAIL)
    axes.text(fail[0] + 0.35, fail[1], "from every other action", fontsize=7.5, color=INK, va="center")
    axes.margins(x=0.06, y=0.08)
