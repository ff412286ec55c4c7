"""Road files of anybody's: extracts of OpenStreetMap and networks of SUMO, read as data.

They are looked at by a parser that follows nothing they refer to and expands nothing that they define, before any
program is given them. An extract becomes a network by netconvert.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.parsers import expat

from lcd.envs.errors import InputError
from lcd.envs.traffic.network import netconvert

MOST_BYTES = 64 * 2**20
"""Of a road file: an extract of a town has a few MB."""
MOST_SECONDS = 120
"""For netconvert to make a network of an extract."""
SUFFIXES = (".osm", ".osm.xml", ".net.xml")
"""What the names of road files end in."""
ENCODINGS = ("UTF-8", "UTF-16", "ISO-8859-1", "US-ASCII")
"""What a road file may say that it is written in: what the parser reads by itself."""
NO_CARS = frozenset({"all", "passenger"})
"""Who is kept out of a lane that is not for cars, among others."""
MOST_OF_A_LANE = 1_000_000
"""Metres of a lane, and metres per second of its limit, are fewer."""
Attributes = Mapping[str, str]


@dataclass
class Lane:
    """A lane for cars: its length in metres, its limit in metres per second, and where it leads (`s`, `l`, `r`, …)."""

    length: float
    speed: float
    directions: set[str] = field(default_factory=set)


@dataclass
class Roads:
    """A network.

    Attributes:
        signalised: the junctions that have traffic lights.
        leads_to: junction → the roads that lead to it.
        lanes: road → lane's number → the lane; those for cars alone.
    """

    signalised: list[str] = field(default_factory=list)
    leads_to: dict[str, list[str]] = field(default_factory=dict)
    lanes: dict[str, dict[str, Lane]] = field(default_factory=dict)


def read_roads(path: str | Path) -> Roads:
    """The network in a road file.

    Args:
        path: an extract of OpenStreetMap (.osm, .osm.xml) or a network of SUMO (.net.xml).

    Raises:
        InputError: where it is none, is too large, or has no traffic light.
    """
    path = Path(path)
    if not path.name.endswith(SUFFIXES):
        raise InputError(f"'{path}' is no road file by its name: it should end in {', '.join(SUFFIXES)}.")
    content = _content(path)
    if path.name.endswith(".net.xml"):
        return _network(content, path.name)
    lights = _Signals()
    _parse(content, path.name, "osm", lights.take)
    if not lights.found:
        raise _no_light(path.name)
    with TemporaryDirectory(prefix="lcd-roads-") as folder:
        extract, made = Path(folder) / "extract.osm.xml", Path(folder) / "made.net.xml"
        extract.write_bytes(content)
        how = ["--geometry.remove", "--no-turnarounds", "--tls.join", "--junctions.join"]
        how += ["--keep-edges.by-vclass", "passenger", "--xml-validation", "never", "--output-file", str(made)]
        netconvert(["--osm-files", str(extract), *how], f"'{path.name}'", MOST_SECONDS)
        return _network(_content(made), path.name)


def _content(path: Path) -> bytes:
    try:
        # Whatever waits for a writer is not opened.
        regular = stat.S_ISREG(os.stat(path).st_mode)
        content = b""
        if regular:
            with path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as why:
        reason = why.strerror if isinstance(why, OSError) else why
        raise InputError(f"'{path}' cannot be read ({reason}): give a road file that is there.") from None
    if not regular:
        raise InputError(f"'{path}' is no file: give an extract of OpenStreetMap or a network of SUMO.")
    if len(content) > MOST_BYTES:
        raise InputError(f"'{path.name}' has more than {MOST_BYTES >> 20} MB: cut out a smaller part of the map.")
    return content


def _parse(content: bytes, name: str, root: str, take: Callable[[str, Attributes, str], None]) -> None:
    """Call `take` with every element's name, attributes and parent; a document type or another root is refused."""
    parents: list[str] = []

    def start(element: str, attributes: Attributes) -> None:
        if not parents and element != root:
            raise InputError(f"'{name}' begins with <{element[:40]}>, where a road file of its kind has <{root}>.")
        take(element, attributes, parents[-1] if parents else "")
        parents.append(element)

    def refuse(*declared: object) -> None:
        # Entities that grow, and files that are fetched, are declared there.
        raise InputError(f"'{name}' declares a document type, which no road file needs: take the <!DOCTYPE …> out.")

    def declared(version: str, encoding: str | None, standalone: int) -> None:
        # Python would look for a codec of any name.
        if encoding is not None and encoding.upper() not in ENCODINGS:
            told = f"'{name}' says that it is written in {encoding[:40]}"
            raise InputError(f"{told}: give a road file in {', '.join(ENCODINGS[:-1])} or {ENCODINGS[-1]}.")

    parser = expat.ParserCreate()
    parser.XmlDeclHandler = declared
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda element: parents.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(f"'{name}' is not XML ({error}): give an extract as .osm, not as .pbf or packed.") from None


class _Signals:
    """Looks for a node of an extract that is tagged as traffic signals."""

    found = False

    def take(self, element: str, attributes: Attributes, parent: str) -> None:
        if element == "tag" and parent == "node":
            self.found |= attributes.get("v") == "traffic_signals" and attributes.get("k") == "highway"


def _network(content: bytes, name: str) -> Roads:
    reader = _Reader(name)
    _parse(content, name, "net", reader.take)
    if not reader.roads.signalised:
        raise _no_light(name)
    return reader.roads


def _no_light(name: str) -> InputError:
    return InputError(f"'{name}' has no traffic light: give a part of the map with a signalised intersection.")


class _Reader:
    """Collects a network's roads, and what its lanes are connected to."""

    def __init__(self, name: str) -> None:
        self.name, self.roads, self._edge = name, Roads(), ""

    def take(self, element: str, attributes: Attributes, parent: str) -> None:
        try:
            if element == "edge" and parent == "net":
                # Ways within junctions have a function.
                self._edge = "" if attributes.get("function", "normal") != "normal" else attributes["id"]
                if self._edge:
                    if self._edge not in self.roads.lanes:
                        self.roads.leads_to.setdefault(attributes["to"], []).append(self._edge)
                    self.roads.lanes[self._edge] = {}
            elif element == "lane" and parent == "edge" and self._edge:
                self._lane(attributes)
            elif element == "junction" and attributes["type"].startswith("traffic_light"):
                self.roads.signalised.append(attributes["id"])
            elif element == "connection" and parent == "net" and attributes["from"] in self.roads.lanes:
                lane = self.roads.lanes[attributes["from"]].get(attributes["fromLane"])
                if lane is not None:
                    lane.directions.add(attributes["dir"].lower())
        except KeyError as missing:
            raise InputError(f"'{self.name}' has a <{element}> without {missing}: it is no network of SUMO.") from None

    def _lane(self, attributes: Attributes) -> None:
        numbers = {key: _number(attributes[key]) for key in ("length", "speed")}
        for key, value in numbers.items():
            if not 0 < value < MOST_OF_A_LANE:
                told = f"{key} {attributes[key][:40]} ({attributes['id'][:80]})"
                wanted = f"a number above 0 and below {MOST_OF_A_LANE:,}"
                raise InputError(f"'{self.name}' has a lane of {told}: it must be {wanted}.")
        allowed = attributes.get("allow", "").split()
        if "passenger" in allowed if allowed else NO_CARS.isdisjoint(attributes.get("disallow", "").split()):
            self.roads.lanes[self._edge][attributes["index"]] = Lane(numbers["length"], numbers["speed"])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
