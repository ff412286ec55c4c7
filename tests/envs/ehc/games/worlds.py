"""Small games: the fast rules beside the slow ones, and positions that random play reaches."""

import numpy as np

from lcd.envs.ehc.games.checkers import Checkers
from lcd.envs.ehc.games.chess import Chess
from lcd.envs.ehc.games.connect_four import ConnectFour
from lcd.envs.ehc.games.go import Go

from .slow import SlowCheckers, SlowChess, SlowConnectFour, SlowGo

ENDGAME = ("kr.", "...", "p.P", ".RK")
MEN = ("kn.b.", "p....", "..P.K")
FULL = ("rbqk", "pppp", "PPPP", "NBQK")

PAIRS = {
    "connect-four-4x4": (ConnectFour(4, 4), SlowConnectFour(4, 4)),
    "connect-four-5x4": (ConnectFour(5, 4), SlowConnectFour(5, 4)),
    "connect-four-4x6": (ConnectFour(4, 6), SlowConnectFour(4, 6)),
    "go-2x2": (Go(2, 2), SlowGo(2, 2)),
    "go-3x3": (Go(3, 3), SlowGo(3, 3)),
    "go-2x5": (Go(2, 5), SlowGo(2, 5)),
    "go-4x4": (Go(4, 4), SlowGo(4, 4)),
    "checkers-4x4": (Checkers(4, 4, 1), SlowCheckers(4, 4, 1)),
    "checkers-5x5": (Checkers(5, 5, 2), SlowCheckers(5, 5, 2)),
    "checkers-6x4": (Checkers(6, 4, 2), SlowCheckers(6, 4, 2)),
    "chess-4x3": (Chess(ENDGAME), SlowChess(ENDGAME)),
    "chess-3x5": (Chess(MEN), SlowChess(MEN)),
    "chess-4x4": (Chess(FULL), SlowChess(FULL)),
}


def played(slow, games: int, seed: int, longest: int = 60) -> list:
    """Positions of random games, each once."""
    rng, seen = np.random.default_rng(seed), {}
    for _ in range(games):
        position = slow.first()
        for _ in range(longest):
            seen[position] = None
            after, result = (found := slow.moves(position))[rng.integers(len(found))]
            if result is not None:
                break
            position = after
    return list(seen)


def everything(slow) -> dict:
    """All positions that can come about, with their moves."""
    known, todo = {}, [slow.first()]
    while todo:
        position = todo.pop()
        if position not in known:
            known[position] = slow.moves(position)
            todo += [after for after, result in known[position] if result is None]
    return known


def solved(known: dict, sweeps: int, noise: float = 0.0, potential=None) -> dict:
    """Values with so many moves to go, position by position."""
    potential = potential or (lambda position: 0.0)
    values = {position: potential(position) for position in known}
    for _ in range(sweeps):
        following = {}
        for position, found in known.items():
            worth = [values[after] if result is None else result + potential(after) for after, result in found]
            best = max(worth) if position[1] == "X" else min(worth)
            following[position] = (1 - noise) * best + noise * sum(worth) / len(worth)
        if following == values:
            break
        values = following
    return values
