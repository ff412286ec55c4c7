"""What every copy of the discrete toy earns with a step, from tables joined over the seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lcd.envs.hardness.mdp import DiscreteMDP
from lcd.envs.state import State


class SequenceRewards:
    """Remembers the copies' last states (and actions, for a user's reward function) as codes and looks rewards up."""

    def __init__(self, mdps: Sequence[DiscreteMDP], group: np.ndarray) -> None:
        """Read what is rewarded from the tables.

        Args:
            mdps: one toy a seed.
            group: which of them each copy plays.
        """
        knobs = mdps[0].knobs
        self._size, self._sets, self._length = knobs.set_size, knobs.sets, knobs.sequence_length
        self._states, self._actions = knobs.state_space_size, knobs.action_space_size
        self._window = mdps[0].window
        self._rewards = np.concatenate([mdp.rewards for mdp in mdps])
        self._first = group * len(mdps[0].rewards)
        self._partial = [np.concatenate([mdp.partial[i] for mdp in mdps]) for i in range(len(mdps[0].partial))]
        self._first_partial = [group * len(table) for table in mdps[0].partial]
        self._gate = mdps[0].gate.astype(np.float64)
        self._gated = not self._partial and not mdps[0].gate[1:].all()
        self._history = np.zeros(len(group), dtype=np.int64)
        self._taken = np.zeros(len(group), dtype=np.int64)
        self._kept = self._states**self._window if self._window else self._size ** (self._length - 1)

    def begin(self, rows: slice | np.ndarray, states: np.ndarray) -> None:
        """Episodes of the copies in `rows` start in these states."""
        self._history[rows] = states if self._window else states % self._size
        self._taken[rows] = 0

    def earned(self, states: np.ndarray, actions: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """What reaching these states by these actions earns at these steps of the episodes."""
        if self._window:
            rewards = self._of_function(states, actions)
        else:
            codes = self._history * self._size
            codes += states if self._sets == 1 else states % self._size
            own_set = 0 if self._sets == 1 else states // self._size
            rewards = self._beginnings(codes, own_set, steps) if self._partial else self._whole(codes, own_set)
            if self._length > 1:
                self._history = codes - codes // self._kept * self._kept
        if self._gated:
            rewards *= self._gate.take(steps)
        return rewards

    def _whole(self, codes: np.ndarray, own_set: np.ndarray | int) -> np.ndarray:
        if self._length == 1:
            codes = codes - self._history * self._size
        return self._rewards.take(codes + self._first + own_set * self._size**self._length)

    def _beginnings(self, codes: np.ndarray, own_set: np.ndarray | int, steps: np.ndarray) -> np.ndarray:
        total = np.zeros(len(codes))
        for number, table in enumerate(self._partial, start=1):
            entries = self._size**number
            paid = table.take(codes % entries + own_set * entries + self._first_partial[number - 1])
            total += paid * (steps >= number)
        return total

    def _of_function(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        reached = self._history * self._states + states
        taken = self._taken * self._actions + actions
        self._history = reached % self._kept
        self._taken = taken % self._actions ** (self._window - 1)
        return self._rewards.take(reached * self._actions**self._window + taken + self._first)

    def get_state(self) -> State:
        """Everything that future rewards depend on."""
        return {"history": self._history.copy(), "taken": self._taken.copy()}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self._history, self._taken = state["history"].copy(), state["taken"].copy()


class LoneSequenceRewards:
    """`SequenceRewards` of an only copy, in plain numbers."""

    def __init__(self, mdp: DiscreteMDP) -> None:
        """Read what is rewarded from the tables of its toy."""
        knobs = mdp.knobs
        self._size, self._sets, self._length = knobs.set_size, knobs.sets, knobs.sequence_length
        self._states, self._actions, self._window = knobs.state_space_size, knobs.action_space_size, mdp.window
        self._rewards = mdp.rewards
        self._partial = [(self._size**n, n, table) for n, table in enumerate(mdp.partial, start=1)]
        self._gate: list[bool] | None = None if self._partial or mdp.gate[1:].all() else mdp.gate.tolist()
        self._kept = self._states**self._window if self._window else self._size ** (self._length - 1)
        self._entries = self._size**self._length
        self._history = self._taken = 0

    def begin(self, state: int) -> None:
        """An episode starts in this state."""
        self._history = state if self._window else state % self._size
        self._taken = 0

    def earned(self, state: int, action: int, step: int) -> float:
        """What reaching this state by this action earns at this step of the episode."""
        if self._window:
            reached, taken = self._history * self._states + state, self._taken * self._actions + action
            self._history, self._taken = reached % self._kept, taken % self._actions ** (self._window - 1)
            code = reached * self._actions**self._window + taken
        else:
            own_set, local = divmod(state, self._size) if self._sets > 1 else (0, state)
            code = local if self._length == 1 else self._history * self._size + local
            if self._length > 1:
                self._history = code % self._kept
            if self._partial:
                return self._beginnings(code, own_set, step)
            code += own_set * self._entries
        reward = self._rewards.item(code)
        return reward if self._gate is None or self._gate[step] else 0.0

    def _beginnings(self, code: int, own_set: int, step: int) -> float:
        total = 0.0
        for entries, number, table in self._partial:
            total += table.item(code % entries + own_set * entries) * (step >= number)
        return total

    def get_state(self) -> State:
        """As that of `SequenceRewards`."""
        return {"history": np.array([self._history]), "taken": np.array([self._taken])}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self._history, self._taken = state["history"].item(), state["taken"].item()
