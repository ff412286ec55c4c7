"""Exact returns of the toy by dynamic programming over its Markov state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from lcd.envs.errors import InputError, nearest
from lcd.envs.hardness.knobs import HardnessKnobs, power
from lcd.envs.hardness.mdp import DiscreteMDP, build_mdp

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_MARKOV_STATES = 2_000_000
POLICIES = ("optimal", "random", "blind")


@lru_cache(maxsize=4096)
def exact_range(knobs: HardnessKnobs, seed: int) -> tuple[float, float]:
    """The expected returns of a random and of an optimal policy in the toy of a seed."""
    mdp = build_mdp(knobs, seed)
    return expected_return(mdp, "random"), expected_return(mdp, "optimal")


def expected_return(mdp: DiscreteMDP, policy: Literal["optimal", "random", "blind"] = "optimal") -> float:
    """The expected undiscounted return of an episode, without the reward noise (taken to have mean zero).

    Backward induction over the horizon. The Markov state is what the reward can depend on of the past (the last
    `max(n - 1, 1)` states, or the states and actions that the user's reward function sees) and, because an episode
    that ends drops what is still due, what each of the last `delay` steps earned. Where no state is terminal the
    end is known, so that a reward counts when it is earned if it will be paid in time.

    Args:
        mdp: the toy.
        policy: "optimal" (over all policies, those with memory included), "random" (uniform actions) or "blind"
            (the best of those that take one action always, and so need not look).
    """
    if policy not in POLICIES:
        raise InputError(f"policy is {policy!r}, which is none of its values; {nearest(policy, POLICIES)}")
    if policy == "blind":
        return max(_return_of(mdp, action) for action in range(mdp.knobs.action_space_size))
    return _return_of(mdp, policy)


def _return_of(mdp: DiscreteMDP, policy: str | int) -> float:
    """The expected return of the optimal or the random policy, or of always taking one action."""
    knobs = mdp.knobs
    past = _past_of_function(mdp) if mdp.window else past_of_sequences(mdp)
    values = np.unique(np.concatenate([np.zeros(1), *(each.ravel() for each in past.earned)]))
    slots = knobs.delay if mdp.terminal.any() else 0
    pending = power(len(values), slots)
    if past.count * knobs.set_size * pending > MOST_MARKOV_STATES:
        many = float(min(past.count * pending, 10**30))
        raise InputError(
            f"delay is {knobs.delay} and sequence_length is {knobs.sequence_length}, but with {knobs.state_space_size} "
            f"states that makes {many:.3g} Markov states, too many to solve exactly; a shorter delay or "
            "sequence would do."
        )
    noise = straying(mdp)
    goal = np.zeros((past.count, pending))
    for step in range(knobs.horizon, 0, -1):
        earned = past.earned[min(step, len(past.earned)) - 1]
        in_time = slots == knobs.delay or step + knobs.delay <= knobs.horizon
        now = earned * ((mdp.gate[step] or knobs.make_denser) and in_time)
        goal = _choose(_outcomes(goal, now, past, mdp, slots, values), mdp, past, noise, policy)
    # What lies before the first state cannot matter: no reward reaches back to it.
    weights = None if knobs.init_state_dist is None else np.array(knobs.init_state_dist)[mdp.starts]
    return float(np.average(goal[past.start[mdp.starts], 0], weights=weights))


@dataclass(frozen=True)
class Past:
    """What the reward can depend on of the past, as numbers from 0. A is 1 where actions do not matter."""

    state: np.ndarray
    """(pasts,): the present state."""
    earned: list[np.ndarray]
    """At step 1, 2, … and from the last on: (pasts, A, states of a set), by the state reached in the next set."""
    after: np.ndarray
    """(pasts, A, states of a set): the past that this makes."""
    start: np.ndarray
    """(states,): the past of an episode that starts there."""

    @property
    def count(self) -> int:
        return len(self.state)


def past_of_sequences(mdp: DiscreteMDP) -> Past:
    knobs = mdp.knobs
    size, sets, length = knobs.set_size, knobs.sets, knobs.sequence_length
    remembered = max(length - 1, 1)
    number = np.arange(sets * size**remembered)
    own, local = number // size**remembered, number % size**remembered
    following = (own + 1) % sets
    extended = local[:, None] * size + np.arange(size)

    def code(states: int) -> np.ndarray:
        return following[:, None] * size**states + extended % size**states

    if knobs.make_denser:
        paid = [mdp.partial[i][code(i + 1)] for i in range(length)]
        earned = [sum(paid[: step + 1]) for step in range(length)]
    else:
        earned = [mdp.rewards[code(length)]]
    state = own * size + local % size
    start = np.arange(knobs.state_space_size)
    first = start // size * size**remembered + start % size
    return Past(state, [each[:, None, :] for each in earned], code(remembered)[:, None, :], first)


def _past_of_function(mdp: DiscreteMDP) -> Past:
    knobs, window = mdp.knobs, mdp.window
    states, actions, size = knobs.state_space_size, knobs.action_space_size, knobs.set_size
    kept = actions ** (window - 1)
    number = np.arange(states**window * kept)
    reached, taken = number // kept, number % kept
    state = reached % states
    next_state = ((state // size + 1) % knobs.sets * size)[:, None, None] + np.arange(size)
    all_reached = reached[:, None, None] * states + next_state
    all_taken = taken[:, None, None] * actions + np.arange(actions)[:, None]
    earned = mdp.rewards[all_reached * actions**window + all_taken]
    after = all_reached % states**window * kept + all_taken % kept
    return Past(state, [earned], after, np.arange(states) * kept)


def straying(mdp: DiscreteMDP) -> np.ndarray:
    """(states, actions): the probability of straying."""
    knobs = mdp.knobs
    shape = (knobs.state_space_size, knobs.action_space_size)
    if not callable(knobs.transition_noise):
        return np.full(shape, float(knobs.transition_noise))
    try:
        # A function that draws fails without a generator, which is how it is found out.
        chance = cast("Callable[[int, int, None], float]", knobs.transition_noise)
        return np.array([[float(chance(s, a, None)) for a in range(shape[1])] for s in range(shape[0])])
    except (AttributeError, TypeError):
        raise InputError(
            "transition_noise is a function that draws from its generator, but exact returns need a number or a "
            "function of state and action alone."
        ) from None


def _outcomes(
    goal: np.ndarray, earned: np.ndarray, past: Past, mdp: DiscreteMDP, slots: int, values: np.ndarray
) -> np.ndarray:
    """(pasts, A, pending, states of a set): what is paid on reaching a state, and the value of going on from there.

    Digit i of `pending` (in base `len(values)`) says which of the values was earned i + 1 steps ago; the highest
    is due now.
    """
    knobs, base = mdp.knobs, len(values)
    size = knobs.set_size
    reached = ((past.state // size + 1) % knobs.sets * size)[:, None] + np.arange(size)
    ends = mdp.terminal[reached][:, None, None, :]
    extra = knobs.reward_shift + ends * (knobs.term_state_reward * knobs.reward_scale)
    if slots == 0:
        going_on = np.where(ends[:, :, 0], 0.0, goal[past.after, 0])
        return (earned * knobs.reward_scale + going_on)[:, :, None, :] + extra
    pending = np.arange(base**slots)
    due = values[pending // base ** (slots - 1)][None, None, :, None]
    following = (pending * base % base**slots)[None, None, :, None] + np.searchsorted(values, earned)[:, :, None, :]
    going_on = np.where(ends, 0.0, goal[past.after[:, :, None, :], following])
    return due * knobs.reward_scale + extra + going_on


def _choose(outcome: np.ndarray, mdp: DiscreteMDP, past: Past, noise: np.ndarray, policy: str | int) -> np.ndarray:
    """(pasts, pending): the value of the policy's choice among the actions."""
    local = mdp.true_local()[past.state]
    chance = noise[past.state]
    others = max(mdp.knobs.set_size - 1, 1)
    if outcome.shape[1] == 1:
        outcome = outcome[:, 0]
        true = np.take_along_axis(outcome, local[:, None, :], axis=2)
        astray = (outcome.sum(axis=2, keepdims=True) - true) / others
        of_actions = (1 - chance[:, None, :]) * true + chance[:, None, :] * astray
    else:
        true = np.take_along_axis(outcome, local[:, :, None, None], axis=3)[..., 0]
        astray = (outcome.sum(axis=3) - true) / others
        of_actions = ((1 - chance[:, :, None]) * true + chance[:, :, None] * astray).transpose(0, 2, 1)
    if isinstance(policy, int):
        return of_actions[:, :, policy]
    return of_actions.max(axis=2) if policy == "optimal" else of_actions.mean(axis=2)
