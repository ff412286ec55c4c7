"""Intersections as roads: what netconvert makes of them, and that they know nothing of each other."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from lcd.envs.traffic.green_phases import PHASES, read_links, served, state, yellow
from lcd.envs.traffic.intersections import family
from lcd.envs.traffic.network import MOVEMENTS, MPH, connections, exit_of, lanes_of, lanes_out, write_network

POINT = {"lanes": 5, "speed": 40.0, "length": 120.0, "inflow": 10.0, "left_lanes": 1, "right_lanes": 0.5}


def test_movements_lead_where_drivers_would_say():
    north, east, south, west = range(4)
    assert [exit_of(north, movement) for movement in MOVEMENTS] == [west, south, east]
    assert [exit_of(west, movement) for movement in MOVEMENTS] == [south, east, north]


def test_halves_are_lanes_of_the_main_road():
    assert lanes_of(POINT, 0) == lanes_of(POINT, 2) == (1, 3, 1)
    assert lanes_of(POINT, 1) == lanes_of(POINT, 3) == (0, 2, 1)
    assert lanes_of({**POINT, "lanes": 1}, 1) == (0, 1, 1)


@pytest.mark.parametrize("point", [POINT, *family().points[::40]])
def test_every_lane_leads_somewhere_that_there_is(point):
    for approach in range(4):
        found = list(connections(point, approach))
        assert {lane for _, lane, _ in found} == set(range(sum(lanes_of(point, approach))))
        assert {movement for movement, _, _ in found} == set(MOVEMENTS)
        for movement, _, behind in found:
            assert 0 <= behind < lanes_out(point, exit_of(approach, movement))
        # Lanes do not cross: who is further right stays further right.
        order = [(lane, MOVEMENTS.index(movement)) for movement, lane, _ in found]
        assert order == sorted(order)


def elements(network, number):
    """What of a network belongs to an intersection, its name aside."""
    found = []
    for element in ElementTree.parse(network).getroot():
        text = ElementTree.tostring(element, encoding="unicode").strip()
        if any(re.match(rf":?x{number}\b", element.get(key, "")) for key in ("id", "from")):
            found.append(re.sub(rf"\bx{number}(?=\b|_)", "x", text))
    return found


def test_an_intersection_among_others_is_what_it_is_alone(tmp_path):
    points = [*family().points[::30], POINT]
    together = [elements(write_network(points, tmp_path), number) for number in range(len(points))]
    for number in (0, 4, len(points) - 1):
        alone = elements(write_network([points[number]], tmp_path), 0)
        assert len(alone) > 20
        assert together[number] == alone


def test_roads_are_as_the_features_say(tmp_path):
    network = ElementTree.parse(write_network([POINT], tmp_path)).getroot()
    roads = {edge.get("id"): edge for edge in network.iter("edge") if not edge.get("function")}
    assert len(roads) == 8
    for approach in range(4):
        lanes = list(roads[f"x0.i{approach}"].iter("lane"))
        assert len(lanes) == sum(lanes_of(POINT, approach))
        for lane in lanes:
            assert float(lane.get("length")) == POINT["length"]
            assert float(lane.get("speed")) == pytest.approx(POINT["speed"] * MPH, abs=0.005)


def test_conflicting_movements_are_never_both_protected(tmp_path):
    network = ElementTree.parse(write_network([POINT], tmp_path)).getroot()
    signals = {int(link.get("linkIndex")): link for link in network.iter("connection") if link.get("tl")}
    links = read_links(
        [
            [
                (
                    f"{signals[n].get('from')}_{signals[n].get('fromLane')}",
                    f"{signals[n].get('to')}_{signals[n].get('toLane')}",
                    "",
                )
            ]
            for n in range(len(signals))
        ]
    )
    # SUMO's own word for turns is what a signal's turn is.
    assert [MOVEMENTS[movement] for _, movement in links] == [
        {"r": "right", "s": "through", "l": "left"}[signals[n].get("dir")] for n in range(len(signals))
    ]
    (junction,) = (j for j in network.iter("junction") if j.get("type") == "traffic_light")
    foes = [request.get("foes")[::-1] for request in junction.iter("request")]
    greens = []
    for phase in range(len(PHASES)):
        shown = state(links, phase)
        greens.append({n for n, letter in enumerate(shown) if letter in "Gg"})
        for one in greens[-1]:
            for other in greens[-1]:
                if shown[one] == shown[other] == "G":
                    # Merging into one road is settled by who gives way; crossing is not.
                    same_exit = signals[one].get("to") == signals[other].get("to")
                    assert foes[one][other] == "0" or same_exit, (phase, one, other)
    assert set.union(*greens) == set(range(len(links)))


def test_yellow_is_for_who_has_to_stand():
    assert yellow("GGgrr", "rrGGr") == "yygrr"
    assert yellow("Grg", "Grg") == "Grg"


def test_phases_of_left_turns_are_served_where_these_have_lanes():
    assert served(POINT) == (True, True, True, True)
    assert served({**POINT, "left_lanes": 0}) == (True, False, True, False)
