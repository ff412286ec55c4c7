"""Extra reward for sub-goals (section 4 of the paper), for training on heist, leaper and maze.

Sub-goals are read from the game's state, which takes longer than a step. So a copy is read only when it may have
reached one: when its frame has changed, and when a player as fast as the game allows could have come so far.
"""

from __future__ import annotations

import math

import numpy as np

from lcd.envs.procgen.engine import Engine
from lcd.envs.procgen.knobs import ProcgenKnobs
from lcd.envs.procgen.snapshot import Snapshot, keys_held, lanes

_DOOR, _KEY = 1, 2
_NEVER = 2**30

# The furthest that a player gets in a step, along either axis, and what is allowed for rounding.
_FASTEST = {"heist": 0.75, "leaper": 0.5}
_MARGIN = 0.05

Goal = tuple[str, int]


class Subgoals:
    """What was reached in each copy's episode, and what the last step's progress is worth."""

    def __init__(self, knobs: ProcgenKnobs, copies: int) -> None:
        """Look for the sub-goals that the environment's knobs name, in all of its copies."""
        self.knobs = knobs
        self.reached: list[set[Goal]] = [set() for _ in range(copies)]
        self.asleep = np.zeros(copies, dtype=np.int64)
        """For how many steps yet no sub-goal can be reached."""
        self.last: np.ndarray | None = None

    def restart(self, engine: Engine, copies: np.ndarray) -> None:
        """Episodes have begun in some copies: what is reached already is worth nothing."""
        for copy in copies:
            self.reached[copy] = set(self._look(engine, int(copy)))

    def step(self, engine: Engine, started: np.ndarray) -> np.ndarray:
        """The extra rewards of a step; `started` marks the copies that have begun a new episode with it."""
        extra = np.zeros(len(self.reached))
        frames = engine.frames
        moved = np.ones(len(extra), dtype=bool) if self.last is None else (frames != self.last).any(axis=(1, 2, 3))
        self.last = frames.copy()
        self.asleep -= 1
        for copy in np.flatnonzero(moved & ~started & (self.asleep < 0)):
            worth = self._look(engine, int(copy))
            extra[copy] = sum(value for goal, value in worth.items() if goal not in self.reached[copy])
            self.reached[copy] |= worth.keys()
        self.restart(engine, np.flatnonzero(started))
        return extra

    def _look(self, engine: Engine, copy: int) -> dict[Goal, float]:
        """Every sub-goal that a copy's state has reached, and its reward; says how long the copy may sleep, too."""
        state = Snapshot(engine.get_state(int(copy)))
        worth, gap = {"maze": self._maze, "leaper": self._leaper, "heist": self._heist}[self.knobs.game](state)
        far = (gap - _MARGIN) / _FASTEST.get(self.knobs.game, 1)
        self.asleep[copy] = _NEVER if far == math.inf else max(0, math.ceil(far) - 1)
        return worth

    def _maze(self, state: Snapshot) -> tuple[dict[Goal, float], float]:
        x, y = int(state.player["x"]), int(state.player["y"])
        return {("cell", y * state.width + x): self.knobs.cell_reward}, 0

    def _leaper(self, state: Snapshot) -> tuple[dict[Goal, float], float]:
        y, rows = float(state.player["y"]), lanes(state)
        above = rows[rows > int(y)]
        reached = {("lane", int(lane)): self.knobs.lane_reward for lane in rows if lane <= int(y)}
        return reached, float(above.min() - y) if len(above) else math.inf

    def _heist(self, state: Snapshot) -> tuple[dict[Goal, float], float]:
        held, doors = keys_held(state), state.of_type(_DOOR)
        locked = set(doors["image_theme"].tolist())
        keys = {("key", number): self.knobs.key_reward for number in np.flatnonzero(held).tolist()}
        opened = {("door", n): self.knobs.door_reward for n in range(len(held)) if n not in locked}
        player, wanted = state.player, np.concatenate([state.of_type(_KEY), doors[held[doors["image_theme"]]]])
        across = abs(wanted["x"] - player["x"]) - wanted["rx"] - player["rx"]
        along = abs(wanted["y"] - player["y"]) - wanted["ry"] - player["ry"]
        return keys | opened, float(np.maximum(across, along).min()) if len(wanted) else math.inf

    def get(self) -> list[set[Goal]]:
        """What has been reached, as copies."""
        return [set(of_copy) for of_copy in self.reached]

    def set(self, reached: list[set[Goal]]) -> None:
        """Continue."""
        self.reached = [set(of_copy) for of_copy in reached]
        self.asleep[:] = 0
        self.last = None
