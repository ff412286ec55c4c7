"""The discrete toy MDP: its knobs, checked, and the tables that they and a seed stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from lcd.envs.checks import is_number, part, share, whole
from lcd.envs.errors import InputError, nearest
from lcd.envs.hardness.images import ImageKnobs
from lcd.envs.streams import seed_sequence

MOST_SEQUENCES = 300_000
"""The largest number of possible sequences, or entries of a table indexed by sequences, that is built."""


@dataclass(frozen=True)
class HardnessKnobs:
    """What makes the toy hard. Names and defaults are MDP Playground's where it has the knob."""

    state_space_size: int = 8
    """Number of states."""
    action_space_size: int = 8
    """Number of actions; the successors of a state all differ."""
    reward_density: float = 0.25
    """Share of the possible sequences that are rewarded (at least one is)."""
    sequence_length: int = 1
    """How many states in a row have to be reached for a reward."""
    delay: int = 0
    """Steps between completing a sequence and being paid; what is due after the episode's end is dropped."""
    transition_noise: float = 0.0
    """Probability of landing in a random state other than the true successor."""
    reward_noise: float = 0.0
    """Standard deviation of the normal noise on the reward of every step."""
    terminal_state_density: float = 0.25
    """Share of the states that end the episode."""
    reward_every_n_steps: int | None = None
    """Sequences count only when completed at a multiple of this step; by default `sequence_length`."""
    horizon: int = 100
    """Steps after which an episode is truncated."""
    mdp_seed: int | None = None
    """Seed of the tables; by default the seed of the environment."""
    images: ImageKnobs = field(default_factory=ImageKnobs)
    """The knobs of what an image shows."""

    def __post_init__(self) -> None:
        whole(self, "state_space_size", 2)
        whole(self, "action_space_size", 1)
        whole(self, "sequence_length", 1)
        whole(self, "delay", 0)
        whole(self, "horizon", 1)
        share(self, "reward_density")
        share(self, "transition_noise")
        share(self, "terminal_state_density")
        if not is_number(self.reward_noise) or not 0 <= self.reward_noise < np.inf:
            raise InputError(f"reward_noise is {self.reward_noise!r}, but a standard deviation is at least 0.")
        if self.reward_every_n_steps is None:
            object.__setattr__(self, "reward_every_n_steps", self.sequence_length)
        whole(self, "reward_every_n_steps", 1)
        if self.mdp_seed is not None:
            whole(self, "mdp_seed", 0)
        self._check_together()

    def _check_together(self) -> None:
        if self.action_space_size > self.state_space_size:
            raise InputError(
                f"action_space_size is {self.action_space_size}, but a state has at most state_space_size="
                f"{self.state_space_size} different successors."
            )
        if self.terminal_states >= self.state_space_size:
            raise InputError(
                f"terminal_state_density is {self.terminal_state_density}, but at least one of the "
                f"{self.state_space_size} states must not be terminal."
            )
        if self.sequence_length > self.state_space_size - self.terminal_states:
            raise InputError(
                f"sequence_length is {self.sequence_length}, but only {self.state_space_size - self.terminal_states}"
                " states are not terminal and a rewarded sequence repeats none."
            )
        if self.sequence_length + self.delay > self.horizon:
            raise InputError(
                f"horizon is {self.horizon}, but sequence_length + delay = {self.sequence_length + self.delay} steps "
                "are needed before the first reward."
            )
        if self.state_space_size**self.sequence_length > MOST_SEQUENCES:
            raise InputError(
                f"sequence_length is {self.sequence_length}, but state_space_size ** sequence_length may be at most "
                f"{MOST_SEQUENCES}."
            )

    @property
    def terminal_states(self) -> int:
        """Number of terminal states."""
        return part(self.terminal_state_density, self.state_space_size)

    @classmethod
    def from_dict(cls, knobs: Mapping[str, Any]) -> HardnessKnobs:
        """Knobs, those of the images among them, from one flat table; the rest have their defaults."""
        own = {f.name for f in fields(cls)} - {"images"}
        of_images = {f.name for f in fields(ImageKnobs)}
        for name in knobs:
            if name not in own | of_images:
                raise InputError(
                    f"There is no knob '{name}' (given as {knobs[name]!r}); {nearest(name, own | of_images)}"
                )
        images = ImageKnobs(**{name: value for name, value in knobs.items() if name in of_images})
        return cls(images=images, **{name: value for name, value in knobs.items() if name in own})


@dataclass(frozen=True, eq=False)
class DiscreteMDP:
    """The tables of one toy.

    A sequence of states `s_1 … s_n` has the code `s_1 * S**(n-1) + … + s_n`.
    """

    knobs: HardnessKnobs
    transitions: np.ndarray
    """(states, actions): the true successor."""
    terminal: np.ndarray
    """(states,): does it end the episode?"""
    starts: np.ndarray
    """The states in which an episode starts, uniformly."""
    sequences: np.ndarray
    """(rewarded sequences, sequence_length): the states to be reached, in order."""
    rewards: np.ndarray
    """(codes,): the reward for completing a sequence."""
    gate: np.ndarray
    """(horizon + 1,): may a sequence be completed at this step (the first step is 1)?"""


def build_mdp(knobs: HardnessKnobs, seed: int = 0) -> DiscreteMDP:
    """The toy of these knobs and `knobs.mdp_seed` (else `seed`)."""
    rng = np.random.default_rng(seed_sequence(seed if knobs.mdp_seed is None else knobs.mdp_seed, "mdp"))
    states, length = knobs.state_space_size, knobs.sequence_length
    terminal = np.zeros(states, dtype=bool)
    terminal[rng.choice(states, knobs.terminal_states, replace=False)] = True
    orders = np.stack([rng.permutation(states) for _ in range(states)])
    transitions = orders[:, : knobs.action_space_size].astype(np.int64)

    possible = admissible_sequences(transitions, terminal, length)
    if not len(possible):
        raise InputError(
            f"sequence_length is {length}, but this MDP (seed {seed}) has no path of {length} different states that "
            "are not terminal; a shorter sequence or more actions would have one."
        )
    chosen = max(1, part(knobs.reward_density, len(possible)))
    sequences = possible[np.sort(rng.choice(len(possible), chosen, replace=False))]
    rewards = np.zeros(states**length)
    rewards[sequences @ states ** np.arange(length - 1, -1, -1)] = 1.0

    steps = np.arange(knobs.horizon + 1)
    gate = (steps % knobs.reward_every_n_steps == 0) & (steps >= length)
    return DiscreteMDP(knobs, transitions, terminal, np.flatnonzero(~terminal), sequences, rewards, gate)


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
