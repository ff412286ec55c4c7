"""How fast something is stepped."""

import time
from collections.abc import Callable

SECONDS_A_MEASUREMENT = 1.0


def rate(step: Callable[[int], object], steps_a_call: int) -> float:
    """Steps per second of `step(number)`, after a warm-up."""
    for number in range(20):
        step(number)
    calls, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS_A_MEASUREMENT:
        for _ in range(20):
            step(calls)
            calls += 1
    return calls * steps_a_call / (time.perf_counter() - started)
