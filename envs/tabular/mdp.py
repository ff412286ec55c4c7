"""A deterministic Markov decision process as two arrays: where each action leads, and what it pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from lcd.envs.checks import MOST_STEPS, require_share, require_whole_knob
from lcd.envs.errors import InputError

TERMINAL = -1
"""In `transitions`: the episode ends with this step."""
MOST_STATES = 4_000_000
MOST_ACTIONS = 1024
MOST_ENTRIES = 200_000_000
"""Of a table of states and actions: 800 MB for the transitions, and as much for the rewards."""


class Renderer(Protocol):
    """Draws states; `lcd.envs.tabular.pictures` has some, and a base for those that draw labels."""

    views: Sequence[str]
    """Which of the views `pixels`, `figure_ground` and `semantic` it draws."""
    shape: tuple[int, int]
    """Height and width in pixels."""
    words: int
    """How many random 64-bit words a frame of the view `pixels` takes."""

    def paint(self, states: np.ndarray, view: str, words: np.ndarray | None = None) -> np.ndarray:
        """Frames (n, height, width, 3) `uint8` of these states; `words` are (n, `words`), or None for a plain frame."""
        ...


class Board(Protocol):
    """A renderer that also tells what lies where, for the observation `board`."""

    kinds: int
    """How many kinds of content a cell may have."""

    def cells(self, states: np.ndarray) -> np.ndarray:
        """(n, cells) the kind of each cell's content, from 0 to `kinds` - 1."""
        ...


@dataclass(frozen=True, eq=False)
class TabularMDP:
    """A deterministic, episodic MDP with a fixed first state, checked when it is made.

    Attributes:
        transitions: (states, actions) `int32`: the next state, or -1 where the episode ends with the step.
        rewards: (states, actions) `float32`: what the step pays.
        horizon: steps after which every episode is over.
        start: the state in which every episode begins.
        actions: the actions' names; by default their numbers.
        sticky: probability with which a step, other than an episode's first, repeats the action of the step before.
        renderer: draws states, where there are pictures.
        features: (states, features) `float32`: what the view `state` shows; by default one-hot vectors of the state.
        codes: (states,) `int64`: the compact codes that states were built from (`lcd.envs.tabular.closure`).
        name: what it is called in tables.
    """

    transitions: np.ndarray
    rewards: np.ndarray
    horizon: int
    start: int = 0
    actions: tuple[str, ...] = ()
    sticky: float = 0.0
    renderer: Renderer | None = None
    features: np.ndarray | None = None
    codes: np.ndarray | None = None
    name: str = "mdp"

    def __post_init__(self) -> None:
        transitions, rewards = np.asarray(self.transitions), np.asarray(self.rewards)
        if not isinstance(self.name, str):
            raise InputError(f"name is {self.name!r}, but must be a text.")
        _check_shapes(transitions, rewards)
        states, actions = transitions.shape
        require_whole_knob(self, "horizon", 1, MOST_STEPS)
        require_whole_knob(self, "start", 0, states - 1)
        require_share(self, "sticky")
        _check_values(transitions, rewards)
        names = tuple(map(str, self.actions)) or tuple(map(str, range(actions)))
        if len(names) != actions or len(set(names)) != actions:
            raise InputError(f"actions has {len(set(names))} different names, but the MDP has {actions} actions.")
        for key, columns in (("features", 2), ("codes", 1)):
            value = getattr(self, key)
            if value is not None and (np.ndim(value) != columns or len(value) != states):
                raise InputError(
                    f"{key} has the shape {np.shape(value)}, but must have a row for each of {states} states."
                )
        if self.features is not None:
            _check_features(np.asarray(self.features))
        self._set(
            transitions=_frozen(transitions, np.int32), rewards=_frozen(rewards, np.float32), actions=names,
            features=None if self.features is None else _frozen(self.features, np.float32),
            codes=None if self.codes is None else _frozen(self.codes, np.int64),
            horizon=int(self.horizon), start=int(self.start), sticky=float(self.sticky),
        )  # fmt: skip

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def num_states(self) -> int:
        """How many states there are."""
        return self.transitions.shape[0]

    @property
    def num_actions(self) -> int:
        """How many actions there are."""
        return self.transitions.shape[1]

    def changed(self, **fields: Any) -> TabularMDP:
        """The same MDP with other values of some attributes, such as `horizon` or `sticky`."""
        return replace(self, **fields)

    def __deepcopy__(self, memo: dict[int, Any]) -> TabularMDP:
        # Nothing in it changes, and its arrays may be large.
        return self


def _frozen(array: Any, kind: type) -> np.ndarray:
    """A read-only array of this type in C order; the caller's own stays writable."""
    array = np.ascontiguousarray(array, dtype=kind).view()
    array.flags.writeable = False
    return array


def _check_shapes(transitions: np.ndarray, rewards: np.ndarray) -> None:
    if transitions.ndim != 2 or 0 in transitions.shape:
        raise InputError(
            f"transitions has the shape {transitions.shape}, but must be (states, actions), both at least 1."
        )
    if rewards.shape != transitions.shape:
        raise InputError(
            f"rewards has the shape {rewards.shape}, but must have that of transitions, {transitions.shape}."
        )
    states, actions = transitions.shape
    if states > MOST_STATES or actions > MOST_ACTIONS or states * actions > MOST_ENTRIES:
        raise InputError(
            f"transitions has {states:,} states and {actions:,} actions, but at most {MOST_STATES:,} states, "
            f"{MOST_ACTIONS:,} actions and {MOST_ENTRIES:,} entries are taken: give a smaller MDP."
        )
    if transitions.dtype.kind not in "iu":
        raise InputError(f"transitions has the type {transitions.dtype}, but must hold whole numbers.")
    if rewards.dtype.kind not in "iuf":
        raise InputError(f"rewards has the type {rewards.dtype}, but must hold real numbers.")


def _check_values(transitions: np.ndarray, rewards: np.ndarray) -> None:
    states = len(transitions)
    if transitions.max() >= states or transitions.min() < TERMINAL:
        wrong = (transitions >= states) | (transitions < TERMINAL)
        state, action = np.argwhere(wrong)[0]
        raise InputError(
            f"transitions[{state}, {action}] is {transitions[state, action]}, but must be a state from 0 to "
            f"{states - 1}, or {TERMINAL} where the episode ends."
        )
    check_rewards(rewards)


def check_rewards(rewards: np.ndarray, first: int = 0) -> None:
    """Refuse rewards (states, actions) that float32 has not, or has as 0; `first` is the first state's number."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = rewards.astype(np.float32)
    finite, lost = np.isfinite(rounded), (rounded == 0) & (rewards != 0)
    if not finite.all():
        state, action = np.argwhere(~finite)[0]
        told = f"rewards[{first + state}, {action}] is {rewards[state, action]}"
        raise InputError(f"{told}, but must be a finite float32.")
    if lost.any():
        state, action = np.argwhere(lost)[0]
        told = f"rewards[{first + state}, {action}] is {rewards[state, action]}"
        raise InputError(f"{told}, which is 0 as a float32: give rewards on a larger scale.")


def _check_features(features: np.ndarray) -> None:
    if features.dtype.kind not in "iufb" or not features.shape[1]:
        raise InputError(
            f"features has the shape {features.shape} and type {features.dtype}, but must hold at least one real "
            "number for each state."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(features.astype(np.float32))
    if not finite.all():
        state, column = np.argwhere(~finite)[0]
        raise InputError(f"features[{state}, {column}] is {features[state, column]}, but must be a finite float32.")
