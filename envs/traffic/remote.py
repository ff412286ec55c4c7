"""Simulations in processes of their own: SUMO's library holds one in a process, and an agent needs several."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Any

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.families.family import Point
from lcd.envs.traffic.sensing import Seen

if TYPE_CHECKING:
    from lcd.envs.traffic.simulation import Simulation

_LIFE = "from lcd.envs.traffic.remote import serve; serve({descriptor})"


class RemoteSimulation:
    """A simulation in a process that ends with this object, or with the process that holds it.

    Args:
        points: the features of each intersection.
        seconds: of an episode.
    """

    def __init__(self, points: Sequence[Point], seconds: int) -> None:
        self._pipe, far_end = Pipe()
        self._process = subprocess.Popen(
            # -P: whatever lies in the working directory must not stand for a module of ours or of Python's.
            [sys.executable, "-P", "-c", _LIFE.format(descriptor=far_end.fileno())],
            pass_fds=[far_end.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            process_group=0,
        )
        far_end.close()
        self._ask("make", [dict(point) for point in points], seconds)

    def begin(self, words: Sequence[int] | np.ndarray) -> Seen:
        """Start an episode, with a random number for each intersection."""
        return self._ask("begin", [int(word) for word in words])

    def step(self, phases: np.ndarray) -> tuple[Seen, np.ndarray]:
        """Five seconds of these phases; returns what is seen then and the seconds that a vehicle lost in them."""
        return self._ask("step", phases)

    def replay(self, words: Sequence[int] | np.ndarray, phases: np.ndarray) -> Seen:
        """Start an episode and go through the first steps of it, (steps, intersections)."""
        return self._ask("replay", [int(word) for word in words], phases)

    def measures(self) -> dict[str, np.ndarray]:
        """What was measured in the episode so far."""
        return self._ask("measures")

    def close(self) -> None:
        """End the process."""
        if self._process.returncode is None:
            self._pipe.close()
            self._process.wait()

    def __del__(self) -> None:
        """End the process of who was forgotten."""
        if hasattr(self, "_process"):
            self.close()

    def _ask(self, what: str, *arguments: Any) -> Any:
        try:
            self._pipe.send((what, arguments))
            answer, error = self._pipe.recv()
        except (EOFError, OSError) as gone:
            code = self._process.wait()
            raise RuntimeError(f"SUMO's process ended by itself (with code {code}).") from gone
        if error is not None:
            self.close()
            raise error
        return answer


def serve(descriptor: int) -> None:
    """Do what the process at the other end of a pipe asks for, until it is gone."""
    pipe = Connection(descriptor)
    simulation: Simulation | None = None
    try:
        while True:
            what, arguments = pipe.recv()
            try:
                if what == "make":
                    simulation, answer = _made(*arguments), None
                else:
                    answer = _DEEDS[what](simulation, *arguments)
                pipe.send((answer, None))
            except InputError as error:
                pipe.send((None, error))
            except Exception as error:
                pipe.send((None, RuntimeError(f"SUMO failed: {type(error).__name__}: {error}")))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        if simulation is not None:
            simulation.close()
        # Nothing is left to be done; SUMO's own tear-down of large networks takes its time.
        os._exit(0)


def _made(points: Sequence[Point], seconds: int) -> Simulation:
    from lcd.envs.traffic.simulation import Simulation

    return Simulation(points, seconds)


def _step(simulation: Simulation, phases: np.ndarray) -> tuple[Seen, np.ndarray]:
    seen, lost = simulation.step(phases)
    return seen, lost / np.maximum(simulation.vehicles, 1)


def _replay(simulation: Simulation, words: Sequence[int], phases: np.ndarray) -> Seen:
    seen = simulation.begin(words)
    for row in phases:
        seen, _ = simulation.step(row)
    return seen


_DEEDS: dict[str, Callable[..., Any]] = {
    "begin": lambda simulation, words: simulation.begin(words),
    "step": _step,
    "replay": _replay,
    "measures": lambda simulation: simulation.measures(),
}
