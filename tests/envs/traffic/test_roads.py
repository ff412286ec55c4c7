"""Road files of strangers: which intersections they give, and what is refused of them."""

from __future__ import annotations

import contextlib
import csv
import math
import os
import re

import pytest

from lcd.envs.errors import InputError
from lcd.envs.families.features import checked_point
from lcd.envs.traffic import road_files
from lcd.envs.traffic.intersections import FEATURES
from lcd.envs.traffic.road_files import read_roads
from lcd.envs.traffic.roads import features, main, points_of

# Metres east and north of 40° N, 111° W.
NODES = {1: (0, 0), 2: (0, 300), 3: (250, 0), 4: (0, -300), 5: (-300, 0), 6: (600, 0), 7: (600, -200), 8: (900, 0)}
WAYS = (((2, 1, 4), 4, "35 mph"), ((5, 1, 3, 6, 8), 2, "25 mph"), ((6, 7), 2, "25 mph"))


def extract(lights=(1, 6)):
    """A town by hand: a road of four lanes crosses one of two, whose lights further east are those of a T."""
    parts = ['<osm version="0.6">']
    for name, (east, north) in NODES.items():
        latitude = 40 + north / 111_320
        longitude = -111 + east / (111_320 * math.cos(math.radians(40)))
        light = '<tag k="highway" v="traffic_signals"/>' if name in lights else ""
        parts.append(f'<node id="{name}" lat="{latitude:.7f}" lon="{longitude:.7f}">{light}</node>')
    for number, (nodes, lanes, limit) in enumerate(WAYS):
        tags = {"highway": "secondary", "lanes": lanes, "maxspeed": limit}
        parts.append(f'<way id="{10 + number}">' + "".join(f'<nd ref="{node}"/>' for node in nodes))
        parts += [f'<tag k="{key}" v="{value}"/>' for key, value in tags.items()] + ["</way>"]
    return "\n".join([*parts, "</osm>"])


LANES = {"left": ["s", "s l"], "right": ["r", "s", "l"]}
"""Directions of the lanes of the main road's and the crossing road's approaches, from the right."""


def network(length="120.5", speed="13.41", end="x"):
    """SUMO's network of one intersection by hand, and of an approach that is for buses alone."""
    lines, connections = ["<net>", '<edge id=":x_0" function="internal"><lane/></edge>'], []
    for approach in range(4):
        lanes = list(LANES.values())[approach % 2]
        lines.append(f'<edge id="i{approach}" from="p{approach}" to="{end}">')
        for place, directions in enumerate(lanes):
            lines.append(f'<lane id="i{approach}_{place}" index="{place}" speed="{speed}" length="{length}"/>')
            for each in directions.split():
                ends = f'from="i{approach}" to="o" fromLane="{place}" toLane="0"'
                connections.append(f'<connection {ends} dir="{each}" tl="x"/>')
        lines.append("</edge>")
    lines.append('<edge id="bus" from="p9" to="x"><lane id="b" index="0" allow="bus" speed="9" length="9"/></edge>')
    return "".join([*lines, '<junction id="x" type="traffic_light"/>', *connections, "</net>"])


@pytest.fixture
def file(tmp_path):
    def write(content, name="town.net.xml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_an_extract_gives_the_crossing_and_says_why_not_the_t(file):
    rows, left_out = points_of([file(extract(), "town.osm.xml")], [100.0, 300.0])
    assert [row["inflow"] for row in rows] == [100, 300]
    for row in rows:
        # Both of three lanes have the mean; the three short approaches end 10 m before the middle, at most.
        assert (row["lanes"], row["left_lanes"], row["right_lanes"], row["count"]) == (3, 0, 0, 1)
        assert row["speed"] == pytest.approx((4 * 35 + 2 * 25) / 6, abs=0.02)
        assert (300 * 3 + 600) / 4 - 15 < row["length"] < (300 * 3 + 600) / 4
        assert row["junctions"] == "town.osm.xml:1"
    assert left_out == ["town.osm.xml:6 is left out: 3 roads lead to it, not 4."]


def test_features_are_means_over_approaches(file):
    found = features(read_roads(file(network())), "x")
    assert found == {"lanes": 3, "speed": 30, "length": 120.5, "left_lanes": 0.5, "right_lanes": 0.5}
    assert checked_point(FEATURES, found)["inflow"] == 300


def test_the_command_writes_points_that_a_study_takes(file, tmp_path, capsys):
    folder, out = tmp_path / "roads", tmp_path / "points.csv"
    folder.mkdir()
    for name, length in (("a", "50.01"), ("b", "50.012"), ("c", "400")):
        (folder / f"{name}.net.xml").write_text(network(length))
    assert main([str(folder), "--inflow", "10", "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.open()))
    assert [(row["length"], row["count"], row["junctions"]) for row in rows] == [
        ("50.01", "2", "a.net.xml:x b.net.xml:x"),
        ("400.0", "1", "c.net.xml:x"),
    ]
    assert main([str(folder), "--junctions", "y", "--out", str(out)]) == 2
    assert "junctions=y is no intersection" in capsys.readouterr().err
    assert main([str(folder), "--inflow", "nan"]) == 2
    assert "--inflow nan must be a number from 1 to 1000" in capsys.readouterr().err
    # An inflow, and a file by another of its names, count once.
    twice = [str(folder / "c.net.xml"), str(folder / ".." / "roads" / "c.net.xml"), "--inflow", "10", "10.0"]
    assert main([*twice, "--out", str(out)]) == 0
    assert [row["count"] for row in csv.DictReader(out.open())] == ["1"]


def test_out_replaces_nothing_but_a_table(file, tmp_path, capsys):
    roads = file(network())
    (link := tmp_path / "link.csv").symlink_to(roads)
    (hard := tmp_path / "hard.csv").hardlink_to(roads)
    (folder := tmp_path / "folder.csv").mkdir()
    for out, told in {
        roads: "must be a file of its own whose name ends in .csv",
        link: "must be a file of its own",
        folder: "must be a file of its own",
        hard: "is one of the road files",
    }.items():
        assert main([str(roads), "--out", str(out)]) == 2
        assert told in capsys.readouterr().err
    assert roads.read_text() == network()
    assert main([str(roads), "--out", str(tmp_path / "no" / "p.csv")]) == 2
    assert "cannot be written (No such file or directory)" in capsys.readouterr().err


def test_names_of_strangers_command_neither_a_terminal_nor_a_spreadsheet(file, tmp_path, capsys):
    folder, out = tmp_path / "roads", tmp_path / "points.csv"
    folder.mkdir()
    odd = network().replace('"x"', '"x&#x9b;31m&#10;lcd: fine"')
    (folder / "=1+1.net.xml").write_text(network())
    with contextlib.suppress(OSError):  # some file systems know no other names
        (folder / os.fsdecode(b"\xff.net.xml")).write_text(network("400"))
    (folder / "odd.net.xml").write_text(odd)
    (folder / "t.net.xml").write_text(odd.replace('to="x&#x9b;31m&#10;lcd: fine"', 'to="y"'))
    assert main([str(folder), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "\x9b" not in told
    assert len(told.splitlines()) == 2  # the intersection without roads, and where the points are
    cells = [row["junctions"] for row in csv.DictReader(out.open(encoding="utf-8"))]
    assert not any(cell.startswith("=") for cell in cells)
    assert all(cell.isprintable() for cell in cells)


@pytest.mark.parametrize("codec", ["foo", "utf-7", "unicode_escape", "hex_codec"])
def test_a_file_is_written_in_what_the_parser_reads_by_itself(file, codec):
    with pytest.raises(InputError, match=rf"says that it is written in {codec}: give a road file in UTF-8"):
        read_roads(file(f'<?xml version="1.0" encoding="{codec}"?>' + network()))
    assert read_roads(file('<?xml version="1.0" encoding="iso-8859-1"?>' + network())).signalised == ["x"]


def test_time_grows_with_the_number_of_junctions_alone(file):
    """Each intersection is asked for its own roads, never for all of them."""
    one = network().removeprefix("<net>").removesuffix("</net>")
    many = "".join(re.sub(r'"(i\d|x)', rf'"\g<1>{place}-', one) for place in range(300))
    roads = read_roads(file(f"<net>{many}</net>"))
    assert len(roads.signalised) == 300
    assert max(map(len, roads.leads_to.values())) == 5


BOMB = '<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><net>&b;</net>'


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        (network(length="0.00"), "x.net.xml", "lane of length 0.00 .*: it must be a number above 0"),
        (network(speed="nan"), "x.net.xml", "lane of speed nan"),
        (network(length="1e308"), "x.net.xml", "lane of length 1e308"),
        (network(speed="fast"), "x.net.xml", "lane of speed fast"),
        (network(end="y"), "x.net.xml", "0 roads lead to it, not 4"),
        (network().replace(" index=", " place="), "x.net.xml", "<lane> without 'index'"),
        (network().replace("traffic_light", "priority"), "x.net.xml", "no traffic light"),
        (extract(lights=()), "x.osm", "no traffic light"),
        (extract(), "x.net.xml", "begins with <osm>"),
        (BOMB, "x.net.xml", "declares a document type"),
        (BOMB.replace("net", "osm"), "x.osm.xml", "declares a document type"),
        (b"\x1f\x8b\x08 packed", "x.osm", "is not XML"),
        (network(), "x.pbf", "no road file by its name"),
    ],
)
def test_what_gives_no_intersection_is_refused_in_a_sentence(file, content, name, told):
    with pytest.raises(InputError, match=told):
        points_of([file(content, name)], [300.0])


def test_what_is_no_file_or_too_large_is_not_read(file, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.osm")
    with pytest.raises(InputError, match="is no file"):
        read_roads(tmp_path / "pipe.osm")
    with pytest.raises(InputError, match="cannot be read"):
        read_roads(tmp_path / "none.osm")
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / "empty")]) == 2
    monkeypatch.setattr(road_files, "MOST_BYTES", 1 << 20)
    with pytest.raises(InputError, match="more than 1 MB"):
        read_roads(file(b" " * ((1 << 20) + 1)))
