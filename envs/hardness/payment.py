"""From what is earned to what is paid: delay, noise, scale, shift and the reward of an end, for all copies together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lcd.envs.state import State
from lcd.envs.streams import LoneStream, Streams

Noise = float | Callable[[Any, Any, np.random.Generator], Any]


class Generators:
    """One numpy generator a copy, for the users' own noise functions; none where they have no functions."""

    def __init__(self, sequences: Sequence[np.random.SeedSequence]) -> None:
        """Seed the generators by the children of the copies' seed sequences."""
        self.all = [np.random.Generator(np.random.Philox(s.spawn(1)[0])) for s in sequences]

    def __getitem__(self, copy: int) -> np.random.Generator:
        return self.all[copy]

    def get_state(self) -> State:
        """Everything that future draws depend on."""
        rows = []
        for generator in self.all:
            state = generator.bit_generator.state
            whole = np.array([state["buffer_pos"], state["has_uint32"], state["uinteger"]], dtype=np.uint64)
            rows.append(np.concatenate([state["state"]["counter"], state["state"]["key"], state["buffer"], whole]))
        return {"philox": np.array(rows, dtype=np.uint64)}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        for generator, row in zip(self.all, state["philox"], strict=True):
            generator.bit_generator.state = {
                "bit_generator": "Philox",
                "state": {"counter": row[:4].copy(), "key": row[4:6].copy()},
                "buffer": row[6:10].copy(),
                "buffer_pos": int(row[10]),
                "has_uint32": int(row[11]),
                "uinteger": int(row[12]),
            }


class Payment:
    """Hands out what copies earn: (due + noise) * scale + shift, and at an end its reward * scale."""

    def __init__(self, copies: int, delay: int, noise: Noise, scale: float, shift: float, end_reward: float) -> None:
        """Owe nothing to any copy yet.

        Args:
            copies: how many there are.
            delay: steps between earning and being paid.
            noise: a standard deviation, or a function (state, action, generator) -> noise.
            scale: factor of the noisy reward.
            shift: what is added to it.
            end_reward: what reaching a terminal state adds, before the scale.
        """
        self.delay, self.noise, self.scale, self.shift, self.end_reward = delay, noise, scale, shift, end_reward
        self._pending = np.zeros((delay, copies))
        self._slot = 0
        self.noisy = callable(noise) or noise > 0
        self.plain = not self.noisy and scale == 1 and shift == 0 and end_reward == 0
        """Is what is paid simply what is due?"""

    def begin(self, rows: Any) -> None:
        """Forget what is due to copies whose episode begins."""
        if self.delay:
            self._pending[:, rows] = 0.0

    def due(self, earned: np.ndarray) -> np.ndarray:
        """Take in what is earned now; returns what was earned `delay` steps ago."""
        if self.delay == 0:
            return earned
        due = self._pending[self._slot].copy()
        self._pending[self._slot] = earned
        self._slot = (self._slot + 1) % self.delay
        return due

    def rest(self, rows: np.ndarray) -> np.ndarray:
        """What is still due to these copies, to be paid at once."""
        rest = self._pending[:, rows].sum(axis=0)
        self._pending[:, rows] = 0.0
        return rest

    def pending(self) -> np.ndarray:
        """(copies, delay): what is still due, the next payment first."""
        return np.roll(self._pending, -self._slot, axis=0).T.copy()

    def drawn(
        self, streams: Streams, generators: Generators, states: Sequence[Any], actions: Sequence[Any]
    ) -> np.ndarray:
        """This step's noise of every copy."""
        if callable(self.noise):
            return np.array(
                [self.noise(*pair, generators[n]) for n, pair in enumerate(zip(states, actions, strict=True))]
            )
        return np.asarray(self.noise * streams.normal())

    def paid(self, due: np.ndarray, noise: np.ndarray | None, terminated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rewards, and the part of them that is an event: without noise and shift."""
        events = due if self.scale == 1 else due * self.scale
        if self.end_reward:
            events = events + terminated * (self.end_reward * self.scale)
        if noise is None and self.shift == 0:
            return events, events
        return events + (self.shift if noise is None else noise * self.scale + self.shift), events

    def get_state(self) -> State:
        """Everything that future payments depend on."""
        return {"pending": self._pending.copy(), "slot": np.array(self._slot)}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self._pending, self._slot = state["pending"].copy(), int(state["slot"])


class LonePayment:
    """`Payment` of an only copy, in plain numbers."""

    _pending: list[float]
    _slot: int

    def __init__(self, payment: Payment) -> None:
        """Pay as `payment` does, whose noise is no function of the user's."""
        self.plain, self._scale, self._shift = payment.plain, payment.scale, payment.shift
        self._deviation = float(payment.noise) if payment.noisy and not callable(payment.noise) else None
        self._end_reward = payment.end_reward * payment.scale
        self.set_state(payment.get_state())

    def begin(self) -> None:
        """Forget what is due: an episode begins."""
        self._pending = [0.0] * len(self._pending)

    def due(self, earned: float) -> float:
        """Take in what is earned now; returns what was earned `delay` steps ago."""
        if not self._pending:
            return earned
        due = self._pending[self._slot]
        self._pending[self._slot] = earned
        self._slot = (self._slot + 1) % len(self._pending)
        return due

    def paid(self, due: float, stream: LoneStream, terminated: bool) -> tuple[float, float]:
        """The reward, and the part of it that is an event: without noise and shift."""
        event = due if self._scale == 1 else due * self._scale
        if self._end_reward:
            event += terminated * self._end_reward
        if self._deviation is not None:
            return event + (self._deviation * stream.normal() * self._scale + self._shift), event
        return event + self._shift if self._shift else event, event

    def get_state(self) -> State:
        """As that of `Payment`."""
        return {"pending": np.array(self._pending).reshape(-1, 1), "slot": np.array(self._slot)}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self._pending = state["pending"][:, 0].tolist()
        self._slot = int(state["slot"])
