"""What a controller is shown of an intersection: one row of numbers, and what its numbers mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lcd.envs.traffic.green_phases import PHASES
from lcd.envs.traffic.network import APPROACHES, MOVEMENTS

VEHICLES, SECONDS = 10.0, 60.0
"""Vehicles are shown in tens, times in minutes."""
MOST = 2000.0
"""More than is ever shown: a day has 1,440 minutes, and roads of 1 km hold a hundred vehicles a lane."""
_TABLE = (len(APPROACHES), len(MOVEMENTS))


@dataclass
class Seen:
    """What a decision is made on; every array has a row an intersection.

    Attributes:
        queues: (approaches, movements) vehicles that wait before the lights.
        moving: (approaches, movements) vehicles that approach them.
        leaving: (approaches,) vehicles on each road behind the intersection.
        phase: the phase that is green.
        age: seconds since it became so.
        served: (phases,) the phases that a controller needs here.
    """

    queues: np.ndarray
    moving: np.ndarray
    leaving: np.ndarray
    phase: np.ndarray
    age: np.ndarray
    served: np.ndarray


SIZES = {
    "queues": _TABLE[0] * _TABLE[1],
    "moving": _TABLE[0] * _TABLE[1],
    "leaving": _TABLE[0],
    "phase": len(PHASES),
    "age": 1,
    "served": len(PHASES),
}
"""Numbers that each part of a row has, in their order."""
WIDTH = sum(SIZES.values())


def rows(seen: Seen) -> np.ndarray:
    """What agents are shown, (intersections, WIDTH)."""
    count = len(seen.phase)
    parts = {
        "queues": seen.queues.reshape(count, -1) / VEHICLES,
        "moving": seen.moving.reshape(count, -1) / VEHICLES,
        "leaving": seen.leaving / VEHICLES,
        "phase": np.eye(len(PHASES))[seen.phase],
        "age": seen.age[:, None] / SECONDS,
        "served": seen.served,
    }
    return np.concatenate([parts[name] for name in SIZES], axis=1).astype(np.float32)


def read(shown: np.ndarray) -> Seen:
    """What rows mean."""
    ends = np.cumsum(list(SIZES.values()))[:-1]
    parts = dict(zip(SIZES, np.split(np.asarray(shown, float), ends, axis=1), strict=True))
    return Seen(
        np.round(parts["queues"] * VEHICLES).reshape(-1, *_TABLE),
        np.round(parts["moving"] * VEHICLES).reshape(-1, *_TABLE),
        np.round(parts["leaving"] * VEHICLES),
        parts["phase"].argmax(axis=1),
        np.round(parts["age"][:, 0] * SECONDS),
        parts["served"] > 0,
    )
