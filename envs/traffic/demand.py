"""Who wants to drive where and when: drawn by us, so that SUMO has nothing left to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from lcd.envs.families.family import Point
from lcd.envs.traffic.network import APPROACHES, MOVEMENTS, exit_of, is_main, lanes_of, name_of

TURNS = {"right": 0.15, "through": 0.65, "left": 0.2}
"""Share of an approach's vehicles that make each movement."""
CROSSING = 0.5
"""Vehicles of an approach of the crossing road per through lane, for one of the main road."""
KEENNESS, LEAST_KEEN, KEENEST = 0.1, 0.8, 1.2
"""Standard deviation of the speed that drivers would like, as a multiple of the limit, and between what it lies."""
_ENOUGH = 6.0


@dataclass(frozen=True)
class Demand:
    """All vehicles of an episode in all intersections, in the order in which they want to start.

    Attributes:
        copy: the intersection of each.
        approach: where it comes from.
        movement: where it turns, as a place among `MOVEMENTS`.
        start: the second at which it wants to enter.
        keenness: the speed that it would like, as a multiple of the limit.
    """

    copy: np.ndarray
    approach: np.ndarray
    movement: np.ndarray
    start: np.ndarray
    keenness: np.ndarray

    def __len__(self) -> int:
        return len(self.copy)


def rates(point: Point) -> np.ndarray:
    """Vehicles per second of each approach."""
    share = np.array([1.0 if is_main(a) else CROSSING for a in range(len(APPROACHES))])
    through = np.array([lanes_of(point, a)[1] for a in range(len(APPROACHES))])
    return point["inflow"] / 3600 * share * through


def draw(points: Sequence[Point], words: Sequence[int], seconds: float) -> Demand:
    """The vehicles of one episode.

    Args:
        points: the intersections.
        words: a random number for each, all that its vehicles depend on beside its features.
        seconds: how long vehicles come.
    """
    parts = [_of_copy(copy, rates(point), int(words[copy]), seconds) for copy, point in enumerate(points)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[0], columns[3]))
    return Demand(*(column[order] for column in columns))


def _of_copy(copy: int, rate: np.ndarray, word: int, seconds: float) -> tuple[np.ndarray, ...]:
    """Poisson arrivals of one intersection: every approach's numbers are the same whatever the rates are."""
    parts = []
    for approach, bits in enumerate(np.random.SeedSequence(word).generate_state(len(APPROACHES), np.uint64)):
        generator = np.random.Generator(np.random.PCG64(int(bits)))
        expected = rate[approach] * seconds
        # Rows are vehicles: more of them leave those before as they are.
        uniforms = generator.random((int(expected + _ENOUGH * np.sqrt(expected) + _ENOUGH), 4))
        start = np.cumsum(-np.log1p(-uniforms[:, 0])) / rate[approach]
        uniforms, start = uniforms[start < seconds], start[start < seconds]
        movement = np.searchsorted(np.cumsum(list(TURNS.values()))[:-1], uniforms[:, 1], side="right")
        normal = np.sqrt(-2 * np.log1p(-uniforms[:, 2])) * np.cos(2 * np.pi * uniforms[:, 3])
        keenness = np.clip(1 + KEENNESS * normal, LEAST_KEEN, KEENEST)
        whose = (np.full(len(start), number) for number in (copy, approach))
        # SUMO lets vehicles in at whole seconds, and reads four decimals.
        parts.append((*whose, movement, np.floor(start), np.round(keenness, 4)))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def route_name(copy: int, approach: int, movement: int) -> str:
    """What SUMO calls a way through an intersection."""
    return f"{name_of(copy)}.{approach}.{MOVEMENTS[movement]}"


def write_routes(demand: Demand, copies: int, file: Path) -> Path:
    """Write the vehicles for SUMO; they are called by their numbers."""
    root = ElementTree.Element("routes")
    # Drivers without SUMO's own randomness: sigma is how imperfectly they drive.
    ElementTree.SubElement(root, "vType", id="car", sigma="0", speedDev="0")
    for copy in range(copies):
        for approach in range(len(APPROACHES)):
            for number, movement in enumerate(MOVEMENTS):
                centre, out = name_of(copy), exit_of(approach, movement)
                edges = f"{centre}.i{approach} {centre}.o{out}"
                ElementTree.SubElement(root, "route", id=route_name(copy, approach, number), edges=edges)
    how = {"type": "car", "departLane": "best", "departPos": "0", "departSpeed": "desired"}
    columns = (demand.copy, demand.approach, demand.movement, demand.start, demand.keenness)
    for number, (copy, approach, movement, start, keenness) in enumerate(zip(*columns, strict=True)):
        when = {"depart": f"{start:.0f}", "speedFactor": f"{keenness:.4f}"}
        route = route_name(copy, approach, movement)
        ElementTree.SubElement(root, "vehicle", {"id": str(number), "route": route, **when, **how})
    ElementTree.ElementTree(root).write(file, encoding="utf-8")
    return file
