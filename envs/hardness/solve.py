"""Exact returns of the toy by dynamic programming over its Markov state."""

from __future__ import annotations

from typing import Literal

import numpy as np

from lcd.envs.errors import InputError, nearest
from lcd.envs.hardness.mdp import DiscreteMDP

MOST_MARKOV_STATES = 2_000_000
POLICIES = ("optimal", "random")


def expected_return(mdp: DiscreteMDP, policy: Literal["optimal", "random"] = "optimal") -> float:
    """The expected undiscounted return of an episode, without the (zero-mean) reward noise.

    Backward induction over the horizon. The Markov state is the last `max(n - 1, 1)` states and, because an
    episode that ends drops what is still due, which of the last `delay` steps earned a reward. Where no state
    is terminal the end is known, so that a reward counts when it is earned if it will be paid in time.

    Args:
        mdp: the toy.
        policy: "optimal" (over all policies, those with memory included) or "random" (uniform actions).
    """
    if policy not in POLICIES:
        raise InputError(f"policy is {policy!r}, which is none of its values; {nearest(policy, POLICIES)}")
    knobs = mdp.knobs
    states, length = knobs.state_space_size, knobs.sequence_length
    remembered = max(length - 1, 1)
    histories = states**remembered
    slots = knobs.delay if mdp.terminal.any() else 0
    if histories * states << slots > MOST_MARKOV_STATES:
        raise InputError(
            f"delay is {knobs.delay} and sequence_length is {length}, but with {states} states that makes "
            f"{histories << slots} Markov states, too many to solve exactly; a shorter delay or sequence would do."
        )
    history = np.arange(histories)
    state = history % states
    after = (history[:, None] * states + np.arange(states)) % histories
    earned = _sequence_rewards(mdp, histories)
    values = np.zeros((histories, 1 << slots))
    for step in range(knobs.horizon, 0, -1):
        in_time = slots == knobs.delay or step + knobs.delay <= knobs.horizon
        now = earned * (mdp.gate[step] and in_time)
        outcome = _outcomes(values, now, after, mdp.terminal, slots)
        values = _choose(outcome, mdp, state, policy)
    # What lies before the first state cannot matter: no sequence is long enough to reach back to it.
    return float(values[mdp.starts, 0].mean())


def _sequence_rewards(mdp: DiscreteMDP, histories: int) -> np.ndarray:
    """(histories, states): what is earned by reaching the state with that history behind."""
    states = mdp.knobs.state_space_size
    if mdp.knobs.sequence_length == 1:
        return np.tile(mdp.rewards, (histories, 1))
    return mdp.rewards.reshape(histories, states)


def _outcomes(
    values: np.ndarray, earned: np.ndarray, after: np.ndarray, terminal: np.ndarray, slots: int
) -> np.ndarray:
    """(histories, pending, states): what is paid on reaching a state, and the value of going on from there.

    Bit i of `pending` says that a reward was earned i + 1 steps ago; the highest is due now.
    """
    pending = np.arange(1 << slots)
    if slots == 0:
        going_on = np.where(terminal, 0.0, values[after, 0])
        return (earned + going_on)[:, None, :]
    due = (pending >> (slots - 1)) & 1
    shifted = (pending << 1) & ((1 << slots) - 1)
    following = shifted[None, :, None] | (earned > 0)[:, None, :]
    going_on = np.where(terminal, 0.0, values[after[:, None, :], following])
    return due[None, :, None] + going_on


def _choose(outcome: np.ndarray, mdp: DiscreteMDP, state: np.ndarray, policy: str) -> np.ndarray:
    noise = mdp.knobs.transition_noise
    others = mdp.knobs.state_space_size - 1
    true = np.take_along_axis(outcome, mdp.transitions[state][:, None, :], axis=2)
    astray = (outcome.sum(axis=2, keepdims=True) - true) / others
    of_actions = (1 - noise) * true + noise * astray
    return of_actions.max(axis=2) if policy == "optimal" else of_actions.mean(axis=2)
