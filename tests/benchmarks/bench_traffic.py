"""Intersections in one simulation of SUMO, beside one simulation for each of them.

Run it as a script. The figures are simulated seconds of all intersections per second, under the untuned plan.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence

from lcd.envs.families.family import Point
from lcd.envs.traffic.controllers import fixed_time, untuned_plan
from lcd.envs.traffic.intersections import family
from lcd.envs.traffic.remote import RemoteSimulation
from lcd.envs.traffic.rules import chosen
from lcd.envs.traffic.simulation import DECISION


def played(parts: Sequence[Sequence[Point]], seconds: int) -> tuple[float, float]:
    """Seconds to start simulations of these intersections, and to play an episode in all of them, step by step."""
    began = time.perf_counter()
    simulations = [RemoteSimulation(points, seconds) for points in parts]
    seen = [simulation.begin(range(len(points))) for simulation, points in zip(simulations, parts, strict=True)]
    started = time.perf_counter()
    for _ in range(seconds // DECISION):
        for number, simulation in enumerate(simulations):
            seen[number], _ = simulation.step(fixed_time(seen[number], untuned_plan(seen[number].served)))
    ended = time.perf_counter()
    for simulation in simulations:
        simulation.close()
    return started - began, ended - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=24)
    parser.add_argument("--horizon", type=int, default=900)
    asked = parser.parse_args()
    print(f"{asked.copies} intersections, {asked.horizon} s, load {os.getloadavg()[0]:.1f}")
    cases = {"busy (the default point)": [family().default] * asked.copies, "of the family": chosen(asked.copies)[0]}
    for name, points in cases.items():
        one_start, one = played([points], asked.horizon)
        each_start, each = played([[point] for point in points], asked.horizon)
        driven = asked.copies * asked.horizon
        print(
            f"{name:<25} one {one_start:.1f} s to start, {driven / one:,.0f} s/s; one each {each_start:.1f} s to "
            f"start, {driven / each:,.0f} s/s: {each / one:.1f}× faster, {each_start / one_start:.1f}× sooner"
        )


if __name__ == "__main__":
    main()
