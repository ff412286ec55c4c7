"""What scores are measured by: the delay under the untuned fixed-time controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lcd.envs.families.family import Point, point_name
from lcd.envs.streams import Streams, seed_sequence
from lcd.envs.traffic.controllers import fixed_time, untuned_plan
from lcd.envs.traffic.demand import rates
from lcd.envs.traffic.remote import RemoteSimulation
from lcd.envs.traffic.sensing import Seen
from lcd.envs.traffic.simulation import DECISION

Controller = Callable[[Seen], np.ndarray]
VEHICLES, FEWEST, MOST = 1000, 4, 64
"""Vehicles to measure a reference by, and between how many episodes that asks for; quiet roads get the most."""
_known: dict[tuple[str, int], float] = {}


def measured(
    points: Sequence[Point], seconds: int, words: Sequence[int], controller: Controller
) -> dict[str, np.ndarray]:
    """What one episode of each of these intersections under a controller came to (`lcd.envs.traffic.simulation`)."""
    simulation = RemoteSimulation(points, seconds)
    try:
        seen = simulation.begin(words)
        for _ in range(seconds // DECISION):
            seen, _ = simulation.step(controller(seen))
        return simulation.measures()
    finally:
        simulation.close()


def episodes_for(point: Point, seconds: int) -> int:
    """Episodes that tell an intersection's mean delay."""
    return int(np.clip(VEHICLES / (rates(point).sum() * seconds), FEWEST, MOST))


def prepare(points: Sequence[Point], seconds: int) -> None:
    """Measure the references of several intersections at once."""
    new = {point_name(point): point for point in points if (point_name(point), seconds) not in _known}
    if not new:
        return
    counts = [episodes_for(point, seconds) for point in new.values()]
    copies = [point for point, count in zip(new.values(), counts, strict=True) for _ in range(count)]
    # An intersection's traffic is what it would be if it were measured alone.
    words = [word for count in counts for word in words_of("evaluation", count)]
    delays = measured(copies, seconds, words, lambda seen: fixed_time(seen, untuned_plan(seen.served)))["delay"]
    for name, of_point in zip(new, np.split(delays, np.cumsum(counts)[:-1]), strict=True):
        _known[name, seconds] = float(of_point.mean())


def fixed_time_delay(point: Point, seconds: int) -> float:
    """Mean delay of a vehicle, over episodes, under the untuned fixed-time controller."""
    prepare([point], seconds)
    return _known[point_name(point), seconds]


def words_of(purpose: str, count: int) -> list[int]:
    """Random numbers of episodes for a purpose (`lcd.envs.streams.KEYS`): the first ones are the same for any count."""
    (stream,) = Streams.spawn([seed_sequence(0, "traffic", purpose)])
    return [int(word) for word in stream.bits(count=count)[0]]
