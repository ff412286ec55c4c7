"""Pictures of an intersection: roads, what the lights show, and who waits."""

from __future__ import annotations

import numpy as np

from lcd.envs.families.family import Point
from lcd.envs.traffic.green_phases import state
from lcd.envs.traffic.network import APPROACHES, MOVEMENTS, lanes_of, lanes_out
from lcd.envs.traffic.sensing import Seen

SIZE, LANE = 128, 5
"""Pixels of a picture's side, and of a lane's width."""
GRASS, ROAD, LINE, WAITING, MOVING = (60, 90, 60), (70, 70, 75), (230, 230, 230), (240, 190, 40), (120, 180, 240)
SIGNALS = {"r": (220, 40, 40), "g": (90, 190, 90), "G": (40, 230, 60)}


def picture(point: Point, seen: Seen, copy: int) -> np.ndarray:
    """One intersection from above, the main road upright; a vehicle is a dot, queues are those before the lights."""
    image = np.empty((SIZE, SIZE, 3), np.uint8)
    image[:] = GRASS
    middle = SIZE // 2
    roads = range(len(APPROACHES))
    ways = [(LANE * sum(lanes_of(point, approach)), LANE * lanes_out(point, approach)) for approach in roads]
    across, along = max(ways[0] + ways[2]), max(ways[1] + ways[3])
    image[middle - along : middle + along, middle - across : middle + across] = ROAD
    links = [(approach, movement) for approach in roads for movement in range(len(MOVEMENTS))]
    shown = dict(zip(links, state(links, int(seen.phase[copy])), strict=True))
    # A road is drawn as one that comes from above, in the picture turned to where it comes from.
    turned = [np.rot90(image, approach) for approach in roads]
    for arm, (before, behind) in zip(turned, ways, strict=True):
        arm[:middle, middle - before : middle + behind] = ROAD
    for approach, arm in enumerate(turned):
        stop = middle - (along if approach % 2 == 0 else across) - 1
        _draw_approach(arm, point, seen, copy, approach, stop, shown)
    return image


def _draw_approach(
    image: np.ndarray, point: Point, seen: Seen, copy: int, approach: int, stop: int, shown: dict[tuple[int, int], str]
) -> None:
    """Lights and vehicles of an approach that comes from above; its rightmost lane is leftmost there."""
    right, through, left = lanes_of(point, approach)
    lanes = [0] * right + [1] * through + [2] * left
    edge = SIZE // 2 - LANE * len(lanes)
    image[stop : stop + 1, edge : SIZE // 2] = LINE
    image[:stop, SIZE // 2 : SIZE // 2 + 1] = LINE
    for place, movement in enumerate(lanes):
        column = slice(edge + place * LANE + 1, edge + (place + 1) * LANE - 1)
        image[stop + 1 : stop + 3, column] = SIGNALS[shown[approach, movement]]
        sharing = [m for m in range(len(MOVEMENTS)) if m == movement or (movement == 1 and m not in lanes)]
        counts = [table[copy, approach, sharing].sum() / lanes.count(movement) for table in (seen.queues, seen.moving)]
        row = stop - 3
        for count, colour in zip(counts, (WAITING, MOVING), strict=True):
            for _ in range(int(np.ceil(count))):
                if row > 0:
                    image[row : row + 2, column] = colour
                row -= 4
