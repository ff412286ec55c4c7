"""How fast something is stepped."""

import time
from collections.abc import Callable, Mapping

SECONDS_A_MEASUREMENT = 1.0
TURNS = 8


def rate(
    step: Callable[[int], object],
    steps_a_call: int,
    seconds: float = SECONDS_A_MEASUREMENT,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Steps per second of `step(number)`, after a warm-up."""
    for number in range(20):
        step(number)
    calls, started = 0, clock()
    while clock() - started < seconds:
        for _ in range(20):
            step(calls)
            calls += 1
    return calls * steps_a_call / (clock() - started)


def best_rates(steppers: Mapping[str, tuple[Callable[[int], object], int]]) -> dict[str, float]:
    """By name, the most steps per second of the process's own time, measured in turn under whatever load there is."""
    seconds = SECONDS_A_MEASUREMENT / TURNS
    turns = [
        {name: rate(*stepper, seconds, time.process_time) for name, stepper in steppers.items()} for _ in range(TURNS)
    ]
    return {name: max(turn[name] for turn in turns) for name in steppers}
