"""Makes points of the family of intersections from road files of your own.

    python -m lcd.envs.traffic.roads town.osm.xml [more files or folders] --inflow 100 300 --out points.csv
    lcd diagnose benchmark=traffic study.points=points.csv study.agents=[traffic/max_pressure]

Files are extracts of OpenStreetMap (.osm, .osm.xml) and networks of SUMO (.net.xml). Every intersection of two roads
that has traffic lights is described by its features: means over its four approaches. `--junctions` chooses some by
their names. How much traffic there is no map says: `--inflow` does.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lcd.envs.errors import InputError, nearest
from lcd.envs.families.features import checked_point
from lcd.envs.traffic.intersections import FEATURES
from lcd.envs.traffic.network import APPROACHES, MPH
from lcd.envs.traffic.road_files import SUFFIXES, Lane, Roads, read_roads

DIGITS = 2
"""Of features: intersections that are alike to so many are one point."""
Row = dict[str, Any]


class Unsupported(ValueError):
    """Why an intersection is none of two roads that cross."""


def road_files(paths: Sequence[str | Path]) -> list[Path]:
    """The files that are named, and those in the folders that are named."""
    found: dict[tuple[int, int] | Path, Path] = {}
    for path in map(Path, paths):
        try:
            is_folder = path.is_dir()
            inside = sorted(each for each in path.iterdir() if each.name.endswith(SUFFIXES)) if is_folder else [path]
        except OSError as why:
            raise InputError(
                f"'{path}' cannot be read ({why.strerror}): give a file or folder that is there."
            ) from None
        if not inside:
            raise InputError(f"'{path}' has no road file: their names end in {', '.join(SUFFIXES)}.")
        for file in inside:
            found.setdefault(_identity(file), file)
    return list(found.values())


def _identity(file: Path) -> tuple[int, int] | Path:
    """What tells a file from others, by whatever names they are given."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return file
    return status.st_dev, status.st_ino


def features(roads: Roads, junction: str) -> dict[str, float]:
    """The features of an intersection, but for its inflow, which are means over its approaches.

    Raises:
        Unsupported: unless four roads lead to it, each of which goes on through it.
    """
    approaches = [roads.lanes[road] for road in roads.leads_to.get(junction, ()) if roads.lanes[road]]
    if len(approaches) != len(APPROACHES):
        raise Unsupported(f"{len(approaches)} roads lead to it, not {len(APPROACHES)}")
    counts = np.array([_lanes(approach) for approach in approaches])
    if not counts[:, 1].all():
        raise Unsupported("a road does not go on through it")
    left, through, right = counts.mean(axis=0)
    length = np.mean([next(iter(approach.values())).length for approach in approaches])
    speed = np.mean([lane.speed for approach in approaches for lane in approach.values()]) / MPH
    low, high = next((each.low, each.high) for each in FEATURES if each.name == "length")
    found = {"lanes": 2 * through, "speed": speed, "length": np.clip(length, low, high)}
    found |= {"left_lanes": left, "right_lanes": right}
    return {name: round(float(value), DIGITS) for name, value in found.items()}


def _lanes(approach: dict[str, Lane]) -> tuple[int, int, int]:
    """Lanes for left turns alone, for through traffic, and for right turns alone."""
    kinds = [lane.directions - {"t"} for lane in approach.values()]
    return kinds.count({"l"}), sum("s" in each for each in kinds), kinds.count({"r"})


def points_of(
    files: Sequence[Path], inflows: Sequence[float], junctions: Sequence[str] = ()
) -> tuple[list[Row], list[str]]:
    """The points that road files give, one a row, and sentences on the intersections that give none.

    Args:
        files: road files.
        inflows: vehicles per hour and lane of an approach of the main road; with each of them an intersection is a
            point.
        junctions: names of the intersections to take; none: all.
    """
    inflows = _inflows(inflows)
    rows: dict[tuple[float, ...], Row] = {}
    left_out, seen = [], []
    for file in files:
        roads = read_roads(file)
        seen += roads.signalised
        for junction in roads.signalised:
            if junctions and junction not in junctions:
                continue
            try:
                for point in _with_inflows(features(roads, junction), inflows):
                    row = rows.setdefault(tuple(point.values()), {**point, "count": 0, "junctions": []})
                    row["count"] += 1
                    row["junctions"].append(f"{file.name}:{junction}")
            except (Unsupported, InputError) as why:
                left_out.append(f"{file.name}:{junction} is left out: {str(why).rstrip('.')}.")
    for name in junctions:
        if name not in seen:
            raise InputError(f"junctions={name} is no intersection with traffic lights there: {nearest(name, seen)}")
    if not rows:
        told = " ".join(left_out[:3])
        raise InputError(f"No intersection of two roads that cross under traffic lights was found: {told}")
    return [{**row, "junctions": _as_text(row["junctions"])} for row in rows.values()], left_out


def _inflows(asked: Sequence[float]) -> list[float]:
    """The inflows that are asked for, each once."""
    feature = next(each for each in FEATURES if each.name == "inflow")
    for inflow in asked:
        if not feature.low <= inflow <= feature.high:
            raise InputError(f"--inflow {inflow:g} must be a number from {feature.low:g} to {feature.high:g}.")
    return list(dict.fromkeys(asked))


def _with_inflows(found: dict[str, float], inflows: Sequence[float]) -> Iterator[dict[str, float]]:
    for inflow in inflows:
        yield checked_point(FEATURES, {**found, "inflow": inflow})


def _as_text(names: Sequence[str]) -> str:
    """Names in one cell of a table, which no spreadsheet takes for a formula."""
    told = printable(" ".join(names))
    return f"'{told}" if told.startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠")) else told


def printable(text: str) -> str:
    """A text in one line, with nothing that would command a terminal."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def write_points(file: Path, rows: Sequence[Row], read: Sequence[Path]) -> None:
    """Write the points as CSV, whole or not at all.

    Args:
        file: where; an older table of points there is replaced.
        rows: the points.
        read: the road files, none of which is written over.
    """
    if file.suffix != ".csv" or file.is_symlink() or (file.exists() and not file.is_file()):
        raise InputError(f"--out {file} must be a file of its own whose name ends in .csv.")
    if file.exists() and _identity(file) in map(_identity, read):
        raise InputError(f"--out {file} is one of the road files: give another name.")
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    with tempfile.TemporaryDirectory(prefix=".lcd-", dir=file.parent) as folder:
        draft = Path(folder) / file.name
        draft.write_text(text.getvalue(), encoding="utf-8", newline="")
        os.replace(draft, file)


def main(words: Sequence[str] | None = None) -> int:
    """Read, and write the points."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roads", nargs="+", help="road files, or folders of them")
    parser.add_argument("--inflow", type=float, nargs="+", default=[300.0], help="vehicles per hour and lane")
    parser.add_argument("--junctions", nargs="+", default=(), help="names of intersections; all by default")
    parser.add_argument("--out", type=Path, default=Path("points.csv"), help="the file to write")
    asked = parser.parse_args(words)
    try:
        files = road_files(asked.roads)
        rows, left_out = points_of(files, asked.inflow, asked.junctions)
        write_points(asked.out, rows, files)
    except InputError as error:
        print(f"lcd: {printable(str(error))}", file=sys.stderr)
        return 2
    except OSError as error:
        told = f"'{asked.out}' cannot be written ({error.strerror}): give another --out."
        print(f"lcd: {printable(told)}", file=sys.stderr)
        return 2
    ready = f"{len(rows)} points are in {asked.out}: study.points={asked.out}"
    print("\n".join(map(printable, [*left_out, ready])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
