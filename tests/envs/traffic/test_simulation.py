"""Traffic: nobody is lost, delays are SUMO's, and every intersection drives as it would alone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from lcd.envs.traffic.controllers import fixed_time, untuned_plan
from lcd.envs.traffic.demand import CROSSING, TURNS, draw, rates, write_routes
from lcd.envs.traffic.green_phases import PHASES, read_links, state, yellow
from lcd.envs.traffic.intersections import family
from lcd.envs.traffic.network import MPH, write_network
from lcd.envs.traffic.reference import fixed_time_delay, measured
from lcd.envs.traffic.remote import RemoteSimulation
from lcd.envs.traffic.simulation import DECISION, YELLOW

BUSY = dict(family().default)
FULL = {**BUSY, "lanes": 2, "length": 50.0, "inflow": 1000.0, "left_lanes": 0}
QUIET = {**BUSY, "lanes": 2, "inflow": 30.0, "left_lanes": 0, "length": 200.0}


def plan_of(seen):
    return fixed_time(seen, untuned_plan(seen.served))


def test_arrivals_are_as_many_and_turn_as_they_should():
    points, hours = [BUSY, QUIET], 20
    demand = draw(points, [3, 4], 3600 * hours)
    for copy, point in enumerate(points):
        mine = demand.copy == copy
        expected = rates(point) * 3600 * hours
        assert np.bincount(demand.approach[mine]) == pytest.approx(expected, abs=5 * np.sqrt(expected.max()))
        assert rates(point)[1] == rates(point)[0] * CROSSING
    turns = np.bincount(demand.movement) / len(demand)
    assert turns == pytest.approx(list(TURNS.values()), abs=0.02)
    gaps = np.diff(demand.start[(demand.copy == 0) & (demand.approach == 0)])
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.1)  # of a Poisson process
    assert (demand.keenness.mean(), demand.keenness.std()) == pytest.approx((1, 0.1), abs=0.01)


def test_the_vehicles_of_a_copy_depend_on_its_word_alone():
    together, alone = draw([BUSY, QUIET], [3, 4], 900), draw([QUIET], [4], 900)
    mine = together.copy == 1
    for name in ("approach", "movement", "start", "keenness"):
        assert np.array_equal(getattr(together, name)[mine], getattr(alone, name))


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """SUMO's own program on the same vehicles, its lights switched by a static program: a line a vehicle."""
    folder = tmp_path_factory.mktemp("peer")
    points, words, seconds = [BUSY, QUIET, FULL], [1, 2, 3], 600
    network = write_network(points, folder)
    routes = write_routes(draw(points, words, seconds), len(points), folder / "routes.xml")
    programs = ElementTree.Element("additional")
    for copy, point in enumerate(points):
        _program(programs, ElementTree.parse(network).getroot(), copy, point)
    ElementTree.ElementTree(programs).write(folder / "lights.xml")
    trips = folder / "trips.xml"
    import sumo

    command = [str(Path(sumo.SUMO_HOME) / "bin" / "sumo"), "-n", str(network), "-r", str(routes), "--no-warnings"]
    command += ["-a", str(folder / "lights.xml"), "--tripinfo-output", str(trips), "--tripinfo-output.write-unfinished"]
    command += ["--end", str(seconds), "--no-step-log", "--seed", "0"]
    command += ["--tripinfo-output.write-undeparted", "--time-to-teleport", "300"]
    subprocess.run(command, check=True, capture_output=True)
    return points, words, seconds, [trip.attrib for trip in ElementTree.parse(trips).getroot()]


def _program(parent, network, copy, point):
    signals = {int(c.get("linkIndex")): c for c in network.iter("connection") if c.get("tl") == f"x{copy}"}
    links = read_links(
        [[(f"{signals[n].get('from')}_0", f"{signals[n].get('to')}_0", "")] for n in range(len(signals))]
    )
    (plan,) = untuned_plan(np.array([[True, point["left_lanes"] > 0] * 2]))
    used = [phase for phase in range(len(PHASES)) if plan[phase]]
    program = ElementTree.SubElement(parent, "tlLogic", id=f"x{copy}", programID="peer", type="static", offset="0")
    for place, phase in enumerate(used):
        # The first three seconds of the first cycle are yellow here, and green in ours; nobody is there yet.
        before, after = state(links, used[place - 1]), state(links, phase)
        ElementTree.SubElement(program, "phase", duration=str(YELLOW), state=yellow(before, after))
        ElementTree.SubElement(program, "phase", duration=str(plan[phase] * DECISION - YELLOW), state=after)


def test_delays_and_waiting_are_those_of_sumos_own_program(peer):
    points, words, seconds, trips = peer
    ours = measured(points, seconds, words, plan_of)
    assert len(trips) == ours["vehicles"].sum()
    whose = draw(points, words, seconds).copy
    for copy, point in enumerate(points):
        mine = [trip for trip in trips if whose[int(trip["id"])] == copy]
        assert sum(float(trip["arrival"]) >= 0 for trip in mine) == ours["arrived"][copy]
        assert sum(float(trip["depart"]) < 0 for trip in mine) == ours["not_entered"][copy]
        outside = np.array([max(float(trip["departDelay"]), 0) for trip in mine])
        limits = point["speed"] * MPH * np.array([float(trip["speedFactor"]) for trip in mine])
        lengths = np.array([float(trip["routeLength"]) for trip in mine])
        lost = outside + [float(trip["duration"]) for trip in mine] - np.maximum(lengths, 0) / limits
        assert ours["delay"][copy] == pytest.approx(lost.mean(), abs=0.05)
        waited = outside + [float(trip["waitingTime"]) for trip in mine]
        assert ours["waiting"][copy] == pytest.approx(waited.mean(), rel=1e-9)


def test_who_finds_no_room_loses_time_all_the_same():
    ours = measured([FULL], 600, [3], plan_of)
    vehicles, arrived, outside = (ours[name][0] for name in ("vehicles", "arrived", "not_entered"))
    assert outside > 20
    assert arrived + outside < vehicles
    assert ours["delay"][0] > outside * 60 / vehicles
    assert ours["waiting"][0] > 0


def test_a_quiet_road_waits_as_long_as_its_lights_are_red():
    # Who comes at any time of a cycle C finds red for r of it and waits r²/2C; then there is starting and turning.
    cycle, red = 90, 90 - 45 + YELLOW
    waited = red**2 / (2 * cycle)
    found = fixed_time_delay(QUIET, 3600)
    assert waited < found < waited + 8


def test_every_intersection_drives_as_it_would_alone():
    points = [BUSY, FULL, QUIET, family().points[100]]
    together = RemoteSimulation(points, 300)
    apart = [RemoteSimulation([point], 300) for point in points]
    together.begin(range(4))
    for word, one in enumerate(apart):
        one.begin([word])
    generator = np.random.default_rng(0)
    for _ in range(60):
        phases = generator.integers(0, len(PHASES), len(points))
        seen, lost = together.step(phases)
        for copy, one in enumerate(apart):
            alone, lost_alone = one.step(phases[[copy]])
            assert lost[copy] == lost_alone[0]
            assert np.array_equal(seen.queues[copy], alone.queues[0])
            assert np.array_equal(seen.moving[copy], alone.moving[0])
            assert np.array_equal(seen.leaving[copy], alone.leaving[0])
    for one in (together, *apart):
        one.close()
