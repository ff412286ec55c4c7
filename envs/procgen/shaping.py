"""Extra reward for sub-goals (section 4 of the paper), for training on heist, leaper and maze.

Sub-goals are read from the game's state. Whoever reaches one changes the picture, so that only copies whose frame has
changed are read.
"""

from __future__ import annotations

import numpy as np

from lcd.envs.procgen.engine import Engine
from lcd.envs.procgen.knobs import ProcgenKnobs
from lcd.envs.procgen.snapshot import Snapshot, keys_held, lanes

_DOOR = 1


class Subgoals:
    """What was reached in each copy's episode, and what the last step's progress is worth."""

    def __init__(self, knobs: ProcgenKnobs, copies: int) -> None:
        """Args: the environment's knobs and number of copies."""
        self.knobs = knobs
        self.reached: list[set[tuple[str, int]]] = [set() for _ in range(copies)]
        self.last: np.ndarray | None = None

    def restart(self, engine: Engine, copies: np.ndarray) -> None:
        """Episodes have begun in some copies: what is reached already is worth nothing."""
        for copy in copies:
            self.reached[copy] = set(self._worth(engine, copy))

    def step(self, engine: Engine, started: np.ndarray) -> np.ndarray:
        """The extra rewards of a step; `started` marks the copies that have begun a new episode with it."""
        extra = np.zeros(len(self.reached))
        frames = engine.frames
        moved = np.ones(len(extra), dtype=bool) if self.last is None else (frames != self.last).any(axis=(1, 2, 3))
        self.last = frames.copy()
        for copy in np.flatnonzero(moved & ~started):
            worth = self._worth(engine, copy)
            extra[copy] = sum(value for what, value in worth.items() if what not in self.reached[copy])
            self.reached[copy] |= worth.keys()
        self.restart(engine, np.flatnonzero(started))
        return extra

    def _worth(self, engine: Engine, copy: int) -> dict[tuple[str, int], float]:
        """Every sub-goal that a copy's state has reached, and its reward."""
        state, knobs = Snapshot(engine.get_state(int(copy))), self.knobs
        if knobs.game == "maze":
            x, y = int(state.player["x"]), int(state.player["y"])
            return {("cell", y * state.width + x): knobs.cell_reward}
        if knobs.game == "leaper":
            row = int(state.player["y"])
            return {("lane", int(lane)): knobs.lane_reward for lane in lanes(state) if lane <= row}
        held = keys_held(state)
        locked = set(state.of_type(_DOOR)["image_theme"].tolist())
        keys = {("key", number): knobs.key_reward for number in np.flatnonzero(held).tolist()}
        return keys | {("door", n): knobs.door_reward for n in range(len(held)) if n not in locked}

    def get(self) -> list[set[tuple[str, int]]]:
        """What has been reached, as copies."""
        return [set(of_copy) for of_copy in self.reached]

    def set(self, reached: list[set[tuple[str, int]]]) -> None:
        """Continue."""
        self.reached = [set(of_copy) for of_copy in reached]
        self.last = None
