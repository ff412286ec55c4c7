"""The tables of the discrete toy MDP that its knobs and a seed stand for.

States are numbered set by set: state `s` is number `s % L` of set `s // L`, L being the size of a set. Without a
diameter there is one set of all states. A sequence of n states that ends in set k has the code
`k * L**n + (s_1 % L) * L**(n-1) + … + s_n % L`: the sets of the earlier ones follow from that of the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lcd.envs.checks import floor_of_share
from lcd.envs.errors import InputError
from lcd.envs.hardness.knobs import MOST_SEQUENCES, HardnessKnobs
from lcd.envs.streams import seed_sequence

__all__ = ["MOST_SEQUENCES", "DiscreteMDP", "HardnessKnobs", "admissible_sequences", "build_mdp"]


@dataclass(frozen=True, eq=False)
class DiscreteMDP:
    """The tables of one toy."""

    knobs: HardnessKnobs
    transitions: np.ndarray
    """(states, actions): the true successor."""
    terminal: np.ndarray
    """(states,): does it end the episode?"""
    starts: np.ndarray
    """The states in which an episode starts, uniformly unless `init_state_dist` says otherwise."""
    sequences: np.ndarray
    """(rewarded sequences, sequence_length): the states to be reached, in order."""
    sequence_rewards: np.ndarray
    """(rewarded sequences,): what each is worth."""
    rewards: np.ndarray
    """(codes,): the reward for completing a sequence; without sequences, that of `reward_function` for the code
    `states' code (base states) * actions ** window + actions' code (base actions)`."""
    gate: np.ndarray
    """(horizon + 1,): may a sequence be completed at this step (the first step is 1)?"""
    partial: tuple[np.ndarray, ...] = ()
    """With `make_denser`: for i = 1 … n, what the codes of i states pay as beginnings of rewarded sequences."""
    irrelevant: np.ndarray | None = None
    """(irrelevant states, irrelevant actions): the successors of the part that no reward depends on."""

    @property
    def window(self) -> int:
        """How many actions back the user's reward function looks; 0 where sequences are rewarded."""
        if self.knobs.reward_function is None:
            return 0
        return self.knobs.sequence_length if callable(self.knobs.reward_function) else 1

    def true_local(self) -> np.ndarray:
        """(states, actions): the true successor's number in its set."""
        return self.transitions % self.knobs.set_size


def build_mdp(knobs: HardnessKnobs, seed: int = 0) -> DiscreteMDP:
    """The toy of these knobs and `knobs.mdp_seed` (else `seed`)."""
    rng = np.random.default_rng(seed_sequence(seed if knobs.mdp_seed is None else knobs.mdp_seed, "mdp"))
    terminal = _terminal(knobs, rng)
    transitions = _successors(knobs.state_space_size, knobs.action_space_size, knobs.sets, rng)
    if knobs.transition_function is not None:
        transitions = np.array(knobs.transition_function, dtype=np.int64)
        _check_sets(transitions, terminal, knobs)
    length = knobs.sequence_length
    sequences, worth = np.zeros((0, length), dtype=np.int64), np.zeros(0)
    partial: tuple[np.ndarray, ...] = ()
    if knobs.reward_function is None:
        sequences = _rewarded(knobs, admissible_sequences(transitions, terminal, length), rng, seed)
        worth = _worth(knobs, sequences, rng)
        rewards = np.zeros(knobs.table_size)
        rewards[_codes(knobs, sequences)] = worth
        if knobs.make_denser:
            partial = tuple(_beginnings(knobs, sequences, worth, i) for i in range(1, length + 1))
    else:
        rewards = _function_rewards(knobs)
    irrelevant = None
    if knobs.irrelevant_features:
        irrelevant = _successors(knobs.irrelevant_states, knobs.irrelevant_actions, knobs.sets, rng)
    steps = np.arange(knobs.horizon + 1)
    gate = (steps % knobs.reward_every_n_steps == 0) & (steps >= length)
    starts = _starts(knobs, terminal)
    return DiscreteMDP(knobs, transitions, terminal, starts, sequences, worth, rewards, gate, partial, irrelevant)


def _terminal(knobs: HardnessKnobs, rng: np.random.Generator) -> np.ndarray:
    terminal = np.zeros(knobs.state_space_size, dtype=bool)
    if knobs.terminal_states is not None:
        terminal[list(knobs.terminal_states)] = True
        return terminal
    size = knobs.set_size
    for first in range(0, knobs.state_space_size, size):
        terminal[first + rng.choice(size, floor_of_share(knobs.terminal_state_density, size), replace=False)] = True
    return terminal


def _successors(states: int, actions: int, sets: int, rng: np.random.Generator) -> np.ndarray:
    """(states, actions): different states, in random order, of the set after a state's own."""
    size = states // sets
    orders = np.stack([rng.permutation(size) for _ in range(states)])[:, :actions].astype(np.int64)
    following = (np.arange(states) // size + 1) % sets
    return orders + (following * size)[:, None]


def _check_sets(transitions: np.ndarray, terminal: np.ndarray, knobs: HardnessKnobs) -> None:
    following = (np.arange(knobs.state_space_size) // knobs.set_size + 1) % knobs.sets
    strays = (transitions // knobs.set_size != following[:, None]) & ~terminal[:, None]
    if strays.any():
        state, action = np.argwhere(strays)[0]
        raise InputError(
            f"transition_function leads from state {state} by action {action} to {transitions[state, action]}, but "
            f"with a diameter of {knobs.diameter} every action leads to the next set of {knobs.set_size} states."
        )


def _rewarded(knobs: HardnessKnobs, possible: np.ndarray, rng: np.random.Generator, seed: int) -> np.ndarray:
    """The rewarded sequences: as many from every set, at least one."""
    of_set = [np.flatnonzero(possible[:, 0] // knobs.set_size == k) for k in range(knobs.sets)]
    fewest = min(len(rows) for rows in of_set)
    if not fewest:
        raise InputError(
            f"sequence_length is {knobs.sequence_length}, but this MDP (seed {seed}) has no path of "
            f"{knobs.sequence_length} different states that are not terminal"
            f"{' from one of its sets' if knobs.sets > 1 else ''}; a shorter sequence or more actions would have one."
        )
    chosen = max(1, floor_of_share(knobs.reward_density, fewest))
    return possible[np.concatenate([rows[np.sort(rng.choice(len(rows), chosen, replace=False))] for rows in of_set])]


def _worth(knobs: HardnessKnobs, sequences: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What each rewarded sequence pays."""
    if knobs.reward_dist is None:
        return np.ones(len(sequences))
    if callable(knobs.reward_dist):
        so_far: dict[tuple[int, ...], float] = {}
        for sequence in map(tuple, sequences.tolist()):
            so_far[sequence] = float(knobs.reward_dist(rng, so_far))
        return np.array(list(so_far.values()))
    low, high = knobs.reward_dist
    # Of one support point there is only an end: the upper one, the reward without a distribution in [0, 1].
    points = np.linspace(low, high, len(sequences)) if len(sequences) > 1 else np.array([high])
    return rng.permutation(points)


def _codes(knobs: HardnessKnobs, sequences: np.ndarray) -> np.ndarray:
    size, length = knobs.set_size, sequences.shape[1]
    local = sequences % size
    return sequences[:, -1] // size * size**length + local @ size ** np.arange(length - 1, -1, -1)


def _beginnings(knobs: HardnessKnobs, sequences: np.ndarray, worth: np.ndarray, length: int) -> np.ndarray:
    """(codes of `length` states,): the summed partial rewards of all sequences that begin so."""
    paid = np.zeros(knobs.sets * knobs.set_size**length)
    np.add.at(paid, _codes(knobs, sequences[:, :length]), worth * length / knobs.sequence_length)
    return paid


def _function_rewards(knobs: HardnessKnobs) -> np.ndarray:
    """The user's reward function as a table of codes."""
    states, actions = knobs.state_space_size, knobs.action_space_size
    if not callable(knobs.reward_function):
        of_pairs = np.array(knobs.reward_function)
        return np.repeat(of_pairs[:, None, :], states, axis=1).ravel()
    length = knobs.sequence_length
    reached = np.stack(np.unravel_index(np.arange(states ** (length + 1)), (states,) * (length + 1)), axis=1).tolist()
    taken = np.stack(np.unravel_index(np.arange(actions**length), (actions,) * length), axis=1).tolist()
    table = [float(knobs.reward_function(tuple(s), tuple(a))) for s in reached for a in taken]
    if not np.isfinite(table).all():
        raise InputError("reward_function gives a reward that is not finite.")
    return np.array(table)


def _starts(knobs: HardnessKnobs, terminal: np.ndarray) -> np.ndarray:
    if knobs.init_state_dist is None:
        return np.flatnonzero(~terminal)
    starts = np.flatnonzero(knobs.init_state_dist)
    if terminal[starts].any():
        raise InputError(
            f"init_state_dist starts episodes in state {starts[terminal[starts]][0]}, which is terminal: its "
            "probability must be 0."
        )
    return starts


def admissible_sequences(transitions: np.ndarray, terminal: np.ndarray, length: int) -> np.ndarray:
    """All sequences of different states that are not terminal, each a successor of the one before."""
    follows = np.zeros((len(terminal), len(terminal)), dtype=bool)
    np.put_along_axis(follows, transitions, True, axis=1)
    paths = np.flatnonzero(~terminal)[:, None]
    for _ in range(length - 1):
        allowed = follows[paths[:, -1]] & ~terminal
        np.put_along_axis(allowed, paths, False, axis=1)
        before, after = np.nonzero(allowed)
        paths = np.column_stack([paths[before], after])
    return paths
