"""The discrete toy as a tabular MDP, where it is deterministic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.hardness.knobs import power
from lcd.envs.hardness.mdp import DiscreteMDP
from lcd.envs.hardness.sequences import SequenceRewards
from lcd.envs.tabular.closure import build
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.pictures import BoardRenderer

_MOST_CODES = 2**62
_MOST_SUMS = 4096
_MOST_DRAWN = 255
_PICTURE = 24


def as_tabular(mdp: DiscreteMDP, name: str, start: int | None = None) -> TabularMDP:
    """The toy's exact MDP: states are what its future depends on, so with a delay or with sequences more than its own.

    Args:
        mdp: the toy.
        name: what the result is called.
        start: the toy's state in which episodes begin; needed where it begins in one of several.

    Raises:
        InputError: where the toy is not deterministic, with what makes it so.
    """
    knobs = mdp.knobs
    _refuse_chance(mdp)
    start = _start(mdp, start)
    parts = _Parts(mdp)
    first = parts.code(np.array([start]), *parts.beginning(start))
    built = build(_rules(mdp, parts), int(first[0]), knobs.horizon, within_horizon=True, name=name)
    assert built.codes is not None  # they are what it is built of
    return built.changed(renderer=_renderer(knobs.state_space_size, parts.nodes(built.codes)))


def _refuse_chance(mdp: DiscreteMDP) -> None:
    """Refuse what is left to chance, or has actions of two parts."""
    for key in ("transition_noise", "reward_noise"):
        value = getattr(mdp.knobs, key)
        if callable(value) or value:
            told = "a function" if callable(value) else value
            raise InputError(f"{key} is {told}, but a tabular MDP is deterministic: it has to be 0.")
    if mdp.knobs.irrelevant_features:
        raise InputError("irrelevant_features is true, but a tabular MDP has one action at a time: leave it out.")


def _start(mdp: DiscreteMDP, start: int | None) -> int:
    starts: list[Any] = mdp.starts.tolist()
    if start is None and len(starts) == 1:
        return starts[0]
    if start is None or start not in starts:
        told = "is missing" if start is None else f"is {start!r}"
        raise InputError(
            f"start {told}, but a tabular MDP begins in one state and the toy in any of {len(starts)}: it "
            f"can be {', '.join(map(str, starts[:20]))}{', …' if len(starts) > 20 else ''}."
        )
    return int(start)


class _Parts:
    """The parts of a code: the state, what rewards remember, what is still due, and how far the clock has come."""

    def __init__(self, mdp: DiscreteMDP) -> None:
        knobs = mdp.knobs
        self.mdp = mdp
        self.values = _sums(mdp) if mdp.partial else np.unique(np.append(mdp.rewards, 0.0))
        self.period, self.least = knobs.reward_every_n_steps, knobs.sequence_length
        states = knobs.state_space_size
        remembered = states**mdp.window if mdp.window else knobs.set_size ** (knobs.sequence_length - 1)
        taken = knobs.action_space_size ** (mdp.window - 1) if mdp.window else 1
        self.bases = (
            states,
            max(remembered, states),
            taken,
            power(len(self.values), knobs.delay),
            self.least + self.period,
        )
        codes = 1
        for base in self.bases:
            codes *= base
        if codes > _MOST_CODES:
            raise InputError(
                f"delay is {knobs.delay} and sequence_length is {knobs.sequence_length}, but what is still due and "
                "what is remembered then have more values than a code holds: give a shorter delay or sequence."
            )

    def beginning(self, start: int) -> tuple[np.ndarray, ...]:
        """What is remembered, taken, due and told by the clock when an episode begins."""
        memory = start if self.mdp.window else start % self.mdp.knobs.set_size
        nothing = int(np.searchsorted(self.values, 0.0))
        due = sum(nothing * len(self.values) ** slot for slot in range(self.mdp.knobs.delay))
        return tuple(np.array([part]) for part in (memory, 0, due, 0))

    def code(self, *parts: np.ndarray) -> np.ndarray:
        """One number of the parts."""
        code = np.zeros_like(parts[0])
        for part, base in zip(parts, self.bases, strict=True):
            code = code * base + part
        return code

    def split(self, codes: np.ndarray) -> list[np.ndarray]:
        """The parts of one number."""
        parts = []
        for base in reversed(self.bases):
            codes, part = codes // base, codes % base
            parts.append(part)
        return parts[::-1]

    def nodes(self, codes: np.ndarray) -> np.ndarray:
        """The toy's own state alone."""
        return self.split(codes)[0]

    def later(self, clock: np.ndarray) -> np.ndarray:
        """The clock one step later: beyond the first steps only the phase of the payments matters."""
        clock = clock + 1
        return np.where(clock >= self.least + self.period, clock - self.period, clock)


def _sums(mdp: DiscreteMDP) -> np.ndarray:
    """Whatever the partial rewards of sequences under way can come to together, added up as the environment does."""
    sums = np.zeros(1)
    for table in mdp.partial:
        sums = np.unique(np.add.outer(sums, np.unique(np.append(table, 0.0))))
        if len(sums) > _MOST_SUMS:
            raise InputError("make_denser is true, but its partial rewards have too many sums: give fewer sequences.")
    return sums


def _rules(mdp: DiscreteMDP, parts: _Parts) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """One step of the toy for every action, as `lcd.envs.tabular.closure` asks for it."""
    knobs, actions = mdp.knobs, mdp.knobs.action_space_size
    most_due = len(parts.values) ** max(knobs.delay - 1, 0)

    def rules(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        state, memory, taken, due, clock = (np.repeat(part, actions) for part in parts.split(codes))
        action = np.tile(np.arange(actions), len(codes))
        reached = mdp.transitions[state, action]
        # The same object that pays the environment's copies is asked what a step earns.
        rewards = SequenceRewards([mdp], np.zeros(len(state), dtype=np.int64))
        rewards.set_state({"history": memory, "taken": taken})
        step = np.minimum(clock + 1, knobs.horizon)
        earned = rewards.earned(reached, action, step)
        kept: dict[str, Any] = rewards.get_state()
        paid = earned
        if knobs.delay:
            paid = parts.values[due // most_due]
            due = due % most_due * len(parts.values) + np.searchsorted(parts.values, earned)
        ended = mdp.terminal[reached]
        paid = (paid + ended * knobs.term_state_reward) * knobs.reward_scale + knobs.reward_shift
        after = parts.code(reached, kept["history"], kept["taken"], due, parts.later(clock))
        return after.reshape(-1, actions), paid.reshape(-1, actions), ended.reshape(-1, actions)

    return rules


def _renderer(states: int, nodes: np.ndarray) -> BoardRenderer | None:
    """The toy's figures, where labels are enough."""
    if states > _MOST_DRAWN:
        return None
    names = [f"state {number}" for number in range(states)]
    return BoardRenderer(lambda numbers: nodes[numbers][:, None, None] + 1, names, (1, 1), cell=_PICTURE)
