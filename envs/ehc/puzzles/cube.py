"""The 2 × 2 × 3 tower cube: two layers of four corners, and four middle pieces between them.

The sides take half turns alone, so that corners never twist; a middle piece may come to stand on its head. One corner
of the bottom is held, which leaves no two codes for the same cube turned as a whole. A code has the corner at each of
eight places in three bits, the middle piece at each of four in two, and for each of those a bit: does it stand on its
head?

Places go clockwise, seen from above: place j lies between the sides j and j + 1 of front, left, back, right.
"""

from __future__ import annotations

import numpy as np

from lcd.envs.ehc.puzzles.planning import digits, packed, planning_rules, random_code
from lcd.envs.tabular.closure import build, codes_of
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.pictures import BoardRenderer

CORNERS, MIDDLES = 8, 4
"""Corners 0–3 are the top's, 4–7 lie below them; 5, between left and back, is held."""
ACTIONS = ("top", "top back", "upper two", "upper two back", "right", "front")
"""Quarter turns of the top layer and of the upper two, clockwise seen from above and back; half turns of two sides."""
HARDEST = 15
"""Turns from the most distant state: the horizon, in which every start can be solved."""
COLOURS = ("white", "yellow", "green", "orange", "blue", "red")
TOP, BOTTOM, FRONT = range(3)
_MIDDLE_BITS, _HEAD_BITS = 3 * CORNERS, 3 * CORNERS + 2 * MIDDLES
_CELL_PIXELS = 12


def _quarter(layers: tuple[int, ...]) -> np.ndarray:
    """Which place each place takes its piece from, when these layers (0 top, 1 middle) turn clockwise."""
    taken = np.arange(CORNERS + MIDDLES)
    for layer in layers:
        first = 0 if layer == 0 else CORNERS
        taken[first : first + 4] = first + (np.arange(4) - 1) % 4
    return taken


def _half(one: int, other: int) -> np.ndarray:
    """The same for a half turn of the side that has these two columns of places: everything goes across."""
    taken = np.arange(CORNERS + MIDDLES)
    for here, there in ((one, other), (other, one)):
        taken[here], taken[here + 4], taken[CORNERS + here] = there + 4, there, CORNERS + there
    return taken


_TURNS = (_quarter((0,)), _quarter((0, 1)))
TAKEN = np.stack([_TURNS[0], np.argsort(_TURNS[0]), _TURNS[1], np.argsort(_TURNS[1]), _half(2, 3), _half(3, 0)])
"""(actions, places): where each place's next piece comes from."""
TURNED_OVER = np.zeros((len(ACTIONS), MIDDLES), dtype=np.int64)
TURNED_OVER[4, [2, 3]] = TURNED_OVER[5, [3, 0]] = 1
"""(actions, places): is the middle piece that comes to a place turned over?"""


def _faces(place: int) -> tuple[int, ...]:
    """The faces that a piece at this place shows: an end's if it is a corner's, then the two sides in a fixed order."""
    column = place % 4
    sides = (FRONT + column, FRONT + (column + 1) % 4)
    if place >= CORNERS:
        return sides
    # Clockwise as seen from the end, which below is the other way round.
    return (TOP, *sides) if place < 4 else (BOTTOM, *reversed(sides))


CORNER_FACES = np.array([_faces(place) for place in range(CORNERS)])
MIDDLE_FACES = np.array([_faces(CORNERS + place) for place in range(MIDDLES)])
PREDICATES = tuple(
    f"colour(place {place}, face {face}) = {COLOURS[face]}"
    for place in range(CORNERS + MIDDLES)
    for face in _faces(place)
)
"""The goal; the three of the corner that is held always hold."""


def pieces_of(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The corner at each place, the middle piece at each place, and whether that stands on its head."""
    corners = digits(codes, CORNERS, 3)
    return corners, digits(codes >> _MIDDLE_BITS, MIDDLES, 2), digits(codes >> _HEAD_BITS, MIDDLES, 1)


def code_of(corners: np.ndarray, middles: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """The codes of pieces, the inverse of `pieces_of`."""
    return packed(corners, 3) | packed(middles, 2) << _MIDDLE_BITS | packed(heads, 1) << _HEAD_BITS


def solved_code() -> int:
    """The code of the goal: every piece where it belongs."""
    return int(code_of(np.arange(CORNERS), np.arange(MIDDLES), np.zeros(MIDDLES)))


def stickers(codes: np.ndarray) -> np.ndarray:
    """(n, 32) colours: three for each corner's place, then two for each middle place."""
    corners, middles, heads = pieces_of(codes)
    shown = MIDDLE_FACES[middles]
    shown = np.where(heads[..., None] == 1, shown[..., ::-1], shown)
    return np.concatenate([CORNER_FACES[corners].reshape(len(codes), -1), shown.reshape(len(codes), -1)], axis=1)


RIGHT_COLOURS = np.concatenate([CORNER_FACES.ravel(), MIDDLE_FACES.ravel()])


def goal(codes: np.ndarray) -> np.ndarray:
    """(n, 32): has each sticker's place its own colour?"""
    return stickers(codes) == RIGHT_COLOURS


def moves(codes: np.ndarray) -> np.ndarray:
    """The six turns."""
    corners, middles, heads = pieces_of(codes)
    middle_from = TAKEN[:, CORNERS:] - CORNERS
    return code_of(corners[:, TAKEN[:, :CORNERS]], middles[:, middle_from], heads[:, middle_from] ^ TURNED_OVER)


def scrambled(seed: int) -> int:
    """The code of a state drawn from all that there are; every one is as likely."""
    return random_code(moves, solved_code(), seed)


def cube(start: int, name: str) -> TabularMDP:
    """The cube from a start, for as many steps as the hardest start takes."""
    mdp = build(planning_rules(moves, goal), start, HARDEST, actions=ACTIONS, name=name)
    return mdp.changed(renderer=renderer(codes_of(mdp)))


def _net() -> np.ndarray:
    """(7, 8) which sticker each cell of the unfolded cube shows, -1 for none: the top, the four sides, the bottom."""
    net = np.full((7, 8), -1)
    for place in range(CORNERS):
        faces, first, column = _faces(place), 3 * place, place % 4
        # The ends are unfolded above and below the front; seen from outside, place 3 is at the front's right.
        near, right = column in (0, 3), column in (2, 3)
        net[(0 + near if place < 4 else 5 + (not near)), 2 + right] = first
        for slot in (1, 2):
            net[2 if place < 4 else 4, _net_column(faces[slot], column)] = first + slot
    for place in range(MIDDLES):
        for slot, face in enumerate(_faces(CORNERS + place)):
            net[3, _net_column(face, place)] = 3 * CORNERS + 2 * place + slot
    return net


def _net_column(face: int, column: int) -> int:
    """Where a side's left or right half stands in the net, whose sides go left, front, right, back."""
    side = face - FRONT
    order = {1: 0, 0: 1, 3: 2, 2: 3}[side]
    # Seen from outside, place j is the left half of side j, and the right half of side j + 1.
    return 2 * order + (0 if column == side else 1)


NET = _net()


def renderer(codes: np.ndarray) -> BoardRenderer:
    """Draws the states of these codes, unfolded; every colour has an outline of its own."""

    def cells(states: np.ndarray) -> np.ndarray:
        shown = stickers(codes[states]) + 1
        return np.concatenate([shown, np.zeros((len(shown), 1), shown.dtype)], axis=1)[:, NET]

    return BoardRenderer(cells, COLOURS, NET.shape, _CELL_PIXELS)
