"""Road networks for SUMO: any number of intersections that know nothing of each other, made by netconvert."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lcd.envs.errors import InputError
from lcd.envs.families.family import Point

APPROACHES = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""From where each of the four roads comes, clockwise; the first and the third are the main road."""
MOVEMENTS = ("right", "through", "left")
"""From an approach; they leave by the approach that lies one, two or three places before it in the clockwise order."""
MPH = 0.44704
EXIT = 100.0
"""Metres of a road behind the intersection."""
DRAWN = 150.0
"""Metres of a road in the plan; how far vehicles travel on it is told to SUMO apart from that."""
MISSING = "SUMO is not installed, which simulates traffic: pip install 'learning-challenge-diagnosticator[traffic]'."


def is_main(approach: int) -> bool:
    """Is it an approach of the main road?"""
    return approach % 2 == 0


def lanes_of(point: Point, approach: int) -> tuple[int, int, int]:
    """Lanes of an approach: for right turns alone, through (with whoever has no lane of their own), left turns alone.

    What is no whole number an approach is rounded up on the main road, and down on the crossing one.
    """
    whole = math.ceil if is_main(approach) else math.floor
    return whole(point["right_lanes"]), max(1, whole(point["lanes"] / 2)), whole(point["left_lanes"])


def exit_of(approach: int, movement: str) -> int:
    """Where a movement leads to."""
    return (approach - 1 - MOVEMENTS.index(movement)) % len(APPROACHES)


def lanes_out(point: Point, approach: int) -> int:
    """Lanes of the road that leaves towards an approach: as many as can be full at once."""
    return max(lanes_of(point, a)[MOVEMENTS.index(m)] for a, m in _into(approach))


def _into(leaving: int) -> Iterator[tuple[int, str]]:
    for approach in range(len(APPROACHES)):
        for movement in MOVEMENTS:
            if exit_of(approach, movement) == leaving:
                yield approach, movement


def connections(point: Point, approach: int) -> Iterator[tuple[str, int, int]]:
    """Movement, lane and lane behind the intersection (the rightmost is 0) of everything that an approach allows."""
    right, through, left = lanes_of(point, approach)
    for movement in MOVEMENTS:
        out = lanes_out(point, exit_of(approach, movement))
        if movement == "right":
            for lane in range(max(right, 1)):
                yield movement, lane, min(lane, out - 1)
        elif movement == "through":
            for lane in range(through):
                yield movement, right + lane, min(lane, out - 1)
        else:
            lanes = (
                range(right + through, right + through + left) if left else range(right + through - 1, right + through)
            )
            for place, lane in enumerate(reversed(lanes)):
                yield movement, lane, max(out - 1 - place, 0)


def name_of(number: int) -> str:
    """What SUMO calls an intersection's lights."""
    return f"x{number}"


def write_network(points: Sequence[Point], folder: Path) -> Path:
    """Have netconvert make the network of one intersection a point.

    All lie at the same place of the plan: nothing connects them, and each is exactly what it would be alone.

    Returns:
        The network's file. Of the lights that `name_of` names `x7`, roads lead towards `x7.i0` … `x7.i3`, and away
        `x7.o0` … `x7.o3`.
    """
    nodes, edges, links = ElementTree.Element("nodes"), ElementTree.Element("edges"), ElementTree.Element("connections")
    for number, point in enumerate(points):
        centre = name_of(number)
        _add(nodes, "node", id=centre, x=0, y=0, type="traffic_light")
        for approach, (east, north) in enumerate(APPROACHES):
            place = f"{centre}.{approach}"
            _add(nodes, "node", id=place, x=east * DRAWN, y=north * DRAWN)
            speed = f"{point['speed'] * MPH:.4f}"
            lanes, length = sum(lanes_of(point, approach)), point["length"]
            _add(edges, "edge", **_road(f"{centre}.i{approach}", place, centre, lanes, speed, length))
            lanes = lanes_out(point, approach)
            _add(edges, "edge", **_road(f"{centre}.o{approach}", centre, place, lanes, speed, EXIT))
            for movement, lane, behind in connections(point, approach):
                ends = {"from": f"{centre}.i{approach}", "to": f"{centre}.o{exit_of(approach, movement)}"}
                _add(links, "connection", **ends, fromLane=lane, toLane=behind)
    parts = {"node": nodes, "edge": edges, "connection": links}
    for name, part in parts.items():
        ElementTree.ElementTree(part).write(folder / f"{name}s.xml", encoding="utf-8")
    network = folder / "network.xml"
    files = [argument for name in parts for argument in (f"--{name}-files", str(folder / f"{name}s.xml"))]
    netconvert([*files, "--output-file", str(network), "--no-turnarounds", "--offset.disable-normalization"])
    return network


def _road(name: str, start: object, end: object, lanes: int, speed: str, length: float) -> dict[str, object]:
    return {"id": name, "from": start, "to": end, "numLanes": lanes, "speed": speed, "length": length}


def _add(parent: ElementTree.Element, tag: str, **attributes: object) -> None:
    ElementTree.SubElement(parent, tag, {name: str(value) for name, value in attributes.items()})


def netconvert(arguments: Sequence[str], what: str = "these intersections", seconds: float | None = None) -> None:
    """Run netconvert.

    Args:
        arguments: its own.
        what: of which it makes a network, for an error's sentence.
        seconds: how long it may take.
    """
    try:
        import sumo
    except ImportError as error:
        raise InputError(MISSING) from error
    home = Path(sumo.SUMO_HOME)
    how: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(
            [str(home / "bin" / "netconvert"), *arguments], env={**os.environ, "SUMO_HOME": str(home)}, timeout=seconds,
            **how,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(f"netconvert took more than {seconds:g} seconds for {what}: take a smaller part.") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[:500]
        raise InputError(f"netconvert made no network of {what}: {said}")
