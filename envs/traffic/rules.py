"""Compares the controllers that learn nothing over intersections of the family.

    python -m lcd.envs.traffic.rules [--points 24] [--horizon 900] [--out traffic.csv]

Prints each intersection's delay under the untuned plan, and what of it is left under a plan tuned to it and under max
pressure (`*` where a vehicle waits more than 20 s on average, which the paper calls a failure); then what holds over
all of them, weighted as the family has it, beside the one intersection that is reported alone.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from lcd.envs.checks import require_whole_number
from lcd.envs.errors import InputError
from lcd.envs.families.family import Point, point_name
from lcd.envs.traffic.controllers import fixed_time, max_pressure, plans, untuned_plan
from lcd.envs.traffic.green_phases import served
from lcd.envs.traffic.intersections import family
from lcd.envs.traffic.reference import Controller, episodes_for, measured, words_of
from lcd.envs.traffic.signal_vector import checked_horizon
from lcd.envs.traffic.simulation import FAILURE

UNTUNED, TUNED, PRESSURE = "untuned", "tuned", "max_pressure"
TRIALS = 3
"""Episodes on which each plan is tried."""
AT_ONCE = 13
"""Intersections whose plans are tried in one simulation."""
Row = dict[str, Any]


def tuned_plans(points: Sequence[Point], seconds: int) -> np.ndarray:
    """(points, phases): of the plans worth trying, each intersection's best on traffic that it is not judged by."""
    tried = [plans(served(point)) for point in points]
    each = [(point, plan) for point, of_point in zip(points, tried, strict=True) for plan in of_point]
    copies = [point for point, _ in each for _ in range(TRIALS)]
    table = np.array([plan for _, plan in each for _ in range(TRIALS)])
    words = words_of("train", TRIALS) * len(each)
    found = measured(copies, seconds, words, lambda seen: fixed_time(seen, table))
    lost = (found["delay"] * found["vehicles"]).reshape(-1, TRIALS).sum(axis=1)
    ends = np.cumsum([len(of_point) for of_point in tried])[:-1]
    best = [int(of_point.argmin()) for of_point in np.split(lost, ends)]
    return np.array([of_point[place] for of_point, place in zip(tried, best, strict=True)])


def compare(points: Sequence[Point], seconds: int) -> list[Row]:
    """A row for each intersection and controller; delays and waiting are means over all vehicles of all episodes."""
    parts = [points[start : start + AT_ONCE] for start in range(0, len(points), AT_ONCE)]
    # Simulations are processes of their own; the threads only wait for them.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [row for rows in pool.map(lambda part: _compared(part, seconds), parts) for row in rows]


def _compared(points: Sequence[Point], seconds: int) -> list[Row]:
    counts = [episodes_for(point, seconds) for point in points]
    copies = np.repeat(np.arange(len(points)), counts)
    words = [word for count in counts for word in words_of("eval", count)]
    tuned = tuned_plans(points, seconds)[copies]
    controllers: dict[str, Controller] = {
        UNTUNED: lambda seen: fixed_time(seen, untuned_plan(seen.served)),
        TUNED: lambda seen: fixed_time(seen, tuned),
        PRESSURE: max_pressure,
    }
    rows: list[Row] = []
    for name, controller in controllers.items():
        found = measured([points[copy] for copy in copies.tolist()], seconds, words, controller)
        sums: dict[str, np.ndarray] = {key: np.bincount(copies, values) for key, values in found.items()}
        for key in ("delay", "waiting"):
            sums[key] = np.bincount(copies, found[key] * found["vehicles"]) / np.maximum(sums["vehicles"], 1)
        for number, point in enumerate(points):
            row: Row = {"point": point_name(point), **point, "controller": name, "episodes": counts[number]}
            rows.append(row | {key: float(values[number]) for key, values in sums.items()})
    untuned = {row["point"]: row["delay"] for row in rows if row["controller"] == UNTUNED}
    for row in rows:
        row["score"] = row["delay"] / untuned[row["point"]] if untuned[row["point"]] > 0 else float("nan")
        row["failed"] = row["waiting"] > FAILURE
    return rows


def chosen(number: int) -> tuple[list[Point], np.ndarray]:
    """Some of the family's intersections, spread over it evenly, and how much each counts."""
    found = family()
    require_whole_number("points", number, 1, len(found.points))
    places = np.arange(number) * len(found.points) // number
    weights = found.distribution[places]
    return [found.points[place] for place in places], weights / weights.sum()


def told(rows: Sequence[Row], weights: np.ndarray) -> str:
    """The comparison as text; the first point is the reported one, which does not count otherwise."""
    names = list(dict.fromkeys(row["point"] for row in rows))
    by = {(row["point"], row["controller"]): row for row in rows}
    lines = [f"{'intersection':<78}{'weight':>7}{'untuned':>10}{TUNED:>8}{PRESSURE:>14}"]
    for number, name in enumerate(names):
        untuned, tuned, pressure = (by[name, controller] for controller in (UNTUNED, TUNED, PRESSURE))
        weight = f"{weights[number - 1]:.3f}" if number else "-"
        cells = [_cell(untuned, "delay", 1) + " s", _cell(tuned, "score", 2), _cell(pressure, "score", 2)]
        lines.append(f"{name:<78}{weight:>7}{cells[0]:>10}{cells[1]:>8}{cells[2]:>14}")
    lines += [_over_family(by, names, controller, weights) for controller in (TUNED, PRESSURE)]
    of = {name: [row for row in rows if row["controller"] == name] for name in (UNTUNED, TUNED, PRESSURE)}
    vehicles = sum(row["vehicles"] for row in of[UNTUNED])
    for key, what in (("teleports", "were stuck and moved on"), ("not_entered", "never found room to enter")):
        parts = ", ".join(f"{sum(row[key] for row in own):,.0f} ({name})" for name, own in of.items())
        lines.append(f"Vehicles that {what}: {parts}; of {vehicles:,.0f}.")
    return "\n".join(lines)


def _over_family(by: Mapping[tuple[str, str], Row], names: Sequence[str], controller: str, weights: np.ndarray) -> str:
    """What a controller's scores come to; where nobody came there is no score."""
    reported, *others = (by[name, controller] for name in names)
    scores, failed = (np.array([row[key] for row in others], float) for key in ("score", "failed"))
    known = np.isfinite(scores)
    overall = scores[known] @ weights[known] / weights[known].sum()
    return (
        f"{controller}: {reported['score']:.2f} where it is reported, {overall:.2f} over the family; "
        f"{int(failed.sum())} of {len(failed)} intersections failed, {failed @ weights:.1%} by weight."
    )


def _cell(row: Row, key: str, digits: int) -> str:
    return f"{row[key]:.{digits}f}" + ("*" if row["failed"] else "")


def main(words: Sequence[str] | None = None) -> int:
    """Compare and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=24, help="intersections of the family")
    parser.add_argument("--horizon", type=int, default=900, help="seconds of an episode")
    parser.add_argument("--out", type=Path, default=None, help="a CSV file for all rows")
    asked = parser.parse_args(words)
    try:
        points, weights = chosen(asked.points)
        rows = compare([family().default, *points], checked_horizon(asked.horizon))
    except InputError as error:
        print(f"lcd: {error}", file=sys.stderr)
        return 2
    print(told(rows, weights))
    if asked.out is not None:
        with asked.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
