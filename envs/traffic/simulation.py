"""One simulation of SUMO in this process: many intersections, their signals, and what is measured of them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.families.family import Point
from lcd.envs.traffic.demand import Demand, draw, write_routes
from lcd.envs.traffic.green_phases import PHASES, read_links, served, state, yellow
from lcd.envs.traffic.network import APPROACHES, EXIT, MISSING, MOVEMENTS, MPH, name_of, write_network
from lcd.envs.traffic.sensing import Seen

DECISION, YELLOW = 5, 3
"""Seconds from one decision to the next, and how many of them are yellow where the phase changes."""
HALTED = 0.1
"""Metres per second below which SUMO says that a vehicle waits."""
TELEPORT = 300
"""Seconds after which a vehicle that is stuck is moved on by SUMO."""
FAILURE = 20.0
"""Mean seconds of waiting above which the paper calls an intersection failed."""
MEASURES = ("delay", "waiting", "vehicles", "arrived", "not_entered", "teleports")
"""Of an episode: mean seconds of delay and of waiting a vehicle, and numbers of vehicles."""


class Simulation:
    """Intersections that know nothing of each other, in the one simulation that a process can have.

    Args:
        points: the features of each intersection.
        seconds: of an episode.
    """

    def __init__(self, points: Sequence[Point], seconds: int) -> None:
        self.sumo = _libsumo()
        self.points, self.seconds = list(points), seconds
        self._folder = TemporaryDirectory(prefix="lcd-traffic-")
        self._network = write_network(self.points, Path(self._folder.name))
        self._lengths = np.array([point["length"] for point in self.points])
        self._limits = np.array([point["speed"] * MPH for point in self.points])
        self._served = np.array([served(point) for point in self.points])
        self._states: list[list[str]] = []

    def close(self) -> None:
        """End the simulation."""
        if self._states:
            self.sumo.close()
            self._states = []
        self._folder.cleanup()

    def begin(self, words: Sequence[int]) -> Seen:
        """Start an episode, with a random number for each intersection."""
        copies = len(self.points)
        self.demand: Demand = draw(self.points, words, self.seconds)
        routes = write_routes(self.demand, copies, Path(self._folder.name) / "routes.xml")
        self._load(routes)
        vehicles = len(self.demand)
        self._entered, self._end = np.full(vehicles, np.inf), np.full(vehicles, np.inf)
        self._travelled, self._waited = np.zeros(vehicles), np.zeros(vehicles)
        self._per_copy = np.bincount(self.demand.copy, minlength=copies)
        self._teleports = np.zeros(copies, dtype=np.int64)
        self._lost = np.zeros(copies)
        self._now = 0
        self._phase, self._since = np.zeros(copies, dtype=np.int64), np.zeros(copies)
        for copy in range(copies):
            self._show(copy, self._states[copy][0])
        return self._look()

    def _load(self, routes: Path) -> None:
        arguments = ["--net-file", str(self._network), "--route-files", str(routes), "--seed", "0"]
        arguments += ["--no-step-log", "--no-warnings", "--xml-validation", "never", "--step-length", "1"]
        arguments += ["--time-to-teleport", str(TELEPORT), "--waiting-time-memory", str(self.seconds + 1)]
        if self._states:
            self.sumo.load(arguments)
            return
        self.sumo.start(["sumo", *arguments])
        controlled = [self.sumo.trafficlight.getControlledLinks(name_of(copy)) for copy in range(len(self.points))]
        links = [read_links(of_copy) for of_copy in controlled]
        self._states = [[state(of_copy, phase) for phase in range(len(PHASES))] for of_copy in links]
        self._route_lengths = np.zeros((len(links), len(APPROACHES), len(MOVEMENTS)))
        for copy, of_copy in enumerate(links):
            for (approach, movement), ((_, _, inside),) in zip(of_copy, controlled[copy], strict=True):
                metres = self._lengths[copy] + self._metres(inside) + EXIT
                self._route_lengths[copy, approach, movement] = metres

    def _metres(self, inside: str) -> float:
        """Of a way within an intersection, from its first lane on."""
        lane, metres = self.sumo.lane, 0.0
        while inside:
            metres += lane.getLength(inside)
            inside = lane.getLinks(inside)[0][4]
        return metres

    def step(self, phases: np.ndarray) -> tuple[Seen, np.ndarray]:
        """Five seconds of these phases; returns what is seen then and the seconds that vehicles lost in them."""
        changing = np.flatnonzero(phases != self._phase)
        for copy in changing.tolist():
            before, after = (self._states[copy][phase[copy]] for phase in (self._phase, phases))
            self._show(copy, yellow(before, after))
        self._since[changing] = self._now
        for second in range(DECISION):
            if second == YELLOW:
                for copy in changing.tolist():
                    self._show(copy, self._states[copy][phases[copy]])
            self._second()
        self._phase = phases.copy()
        seen = self._look()
        lost = self._lost_so_far()
        lost, self._lost = lost - self._lost, lost
        return seen, lost

    def _show(self, copy: int, state: str) -> None:
        self.sumo.trafficlight.setRedYellowGreenState(name_of(copy), state)

    def _second(self) -> None:
        self.sumo.simulationStep()
        happened = self.sumo.simulation
        self._entered[_numbers(happened.getDepartedIDList())] = self._now
        self._end[_numbers(happened.getArrivedIDList())] = self._now
        self._now += 1
        np.add.at(self._teleports, self.demand.copy[_numbers(happened.getStartingTeleportIDList())], 1)

    def _look(self) -> Seen:
        """Where everybody is, as far as an intersection's sensors tell it."""
        vehicle = self.sumo.vehicle
        names = vehicle.getIDList()
        who = _numbers(names)
        distance = np.maximum([vehicle.getDistance(name) for name in names], 0.0)
        halted = np.array([vehicle.getSpeed(name) for name in names]) < HALTED
        self._travelled[who] = distance
        self._waited[who] = [vehicle.getAccumulatedWaitingTime(name) for name in names]
        demand, shape = self.demand, (len(self.points), len(APPROACHES), len(MOVEMENTS))
        before = distance <= self._lengths[demand.copy[who]]
        queues, moving = np.zeros(shape), np.zeros(shape)
        for table, chosen in ((queues, before & halted), (moving, before & ~halted)):
            some = who[chosen]
            np.add.at(table, (demand.copy[some], demand.approach[some], demand.movement[some]), 1)
        leaving = np.zeros(shape[:2])
        some = who[~before]
        out = (demand.approach[some] - 1 - demand.movement[some]) % len(APPROACHES)
        np.add.at(leaving, (demand.copy[some], out), 1)
        return Seen(queues, moving, leaving, self._phase.copy(), self._now - self._since, self._served)

    def delays(self) -> np.ndarray:
        """Seconds that each vehicle has lost: since it wanted to enter, less what its way took at its own speed.

        Who stands outside because there is no room loses time as well.
        """
        demand = self.demand
        arrived = np.isfinite(self._end)
        whole = self._route_lengths[demand.copy, demand.approach, demand.movement]
        metres = np.where(arrived, whole, self._travelled)
        freely = metres / (self._limits[demand.copy] * demand.keenness)
        return np.where(self._now > demand.start, np.minimum(self._end, self._now) - demand.start - freely, 0.0)

    def _lost_so_far(self) -> np.ndarray:
        return np.bincount(self.demand.copy, self.delays(), minlength=len(self.points))

    @property
    def vehicles(self) -> np.ndarray:
        """How many vehicles each intersection's episode has, from its beginning on."""
        return self._per_copy

    def measures(self) -> dict[str, np.ndarray]:
        """What `MEASURES` names, of the episode so far."""
        copies, demand = len(self.points), self.demand
        outside = np.isinf(self._entered)
        before = np.maximum(np.minimum(self._entered, self._now) - demand.start, 0)
        count = np.maximum(self._per_copy, 1)
        return {
            "delay": self._lost / count,
            "waiting": np.bincount(demand.copy, self._waited + before, minlength=copies) / count,
            "vehicles": self._per_copy,
            "arrived": np.bincount(demand.copy, np.isfinite(self._end), minlength=copies),
            "not_entered": np.bincount(demand.copy, outside & (demand.start < self._now), minlength=copies),
            "teleports": self._teleports,
        }


def _numbers(names: Sequence[str]) -> np.ndarray:
    """Vehicles, which are called by their numbers."""
    return np.array([int(name) for name in names], dtype=np.int64)


def _libsumo() -> ModuleType:
    """SUMO as a library; what it says of other packages' versions when it is imported is of no use here."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            import libsumo
    except ImportError as error:
        raise InputError(MISSING) from error
    return libsumo
