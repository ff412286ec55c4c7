"""What an agent may offer besides acting and learning: ask with `lcd.envs.protocols.offers(agent, Remembers)`.

What every agent has to have is in `lcd.agents` and `lcd.agents.ppo.PPO` ("Acting").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lcd.envs.protocols import offers

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from lcd.agents.finite import Lost
    from lcd.agents.footprint import Footprint
    from lcd.agents.frozen import FrozenFrontend
    from lcd.agents.ranks import Ranks


class Remembers(Protocol):
    """An agent that remembers earlier observations of an episode; a rollout holds the memory before its start."""

    seeds: Sequence[int]

    def forget(self, copies: int) -> None:
        """New episodes start in all copies (of each seed)."""
        ...

    def begin_episodes(self, fresh: np.ndarray) -> None:
        """New episodes start in some of them: (seeds, copies) booleans."""
        ...

    def recall(self) -> dict[str, Tensor]:
        """The memory: tensors whose names start with `memory`."""
        ...

    def restore(self, memory: dict[str, Tensor]) -> None:
        """Put back what `recall` gave."""
        ...


class ActsForFewer(Protocol):
    """An agent that acts for as many copies of each seed as it is shown, and remembers by (seeds, copies, …)."""

    acts_for_fewer: bool


class LearnsFromFiles(Protocol):
    """An agent that can learn from features that its front-end left in a file: it moves parts of them to its device."""

    learns_from_files: bool


class CountsItsWork(Protocol):
    """An agent that knows what it takes of a processor, and how often it goes through what it sees."""

    config: Any
    frontend: FrozenFrontend
    footprint: Footprint
    passes: tuple[float, float]
    """Of each step: forward alone, and forward and backward."""
    largest_minibatch: int
    """Steps of each seed that an optimiser's step learns from."""


class GivesCommands(Protocol):
    """Actions that are not the environment's as they are; without it, they are numbers of discrete actions."""

    def commands(self, actions: Any) -> np.ndarray:
        """What the environment's `step` gets."""
        ...


class DrawsSeveral(Protocol):
    """Actions that take several random numbers each: the shape of one action's; without it, one number."""

    draws: tuple[int, ...]


class ReportsLosses(Protocol):
    """Losses by name, (seeds,) each: looked at after every iteration, so that a run that diverges ends there."""

    losses: Mapping[str, Any]


class ReportsScalars(Protocol):
    """What `train.csv` tells of the last update, by name: (seeds,) each, or one number that is everybody's.

    It is asked once a row; without it the losses are told.
    """

    scalars: Mapping[str, Any]


class LosesPoints(Protocol):
    """An agent whose run goes on without the points of which a member diverged."""

    lost: Lost


class TrainedByRanks(Protocol):
    """An agent that several processes can train together."""

    ranks: Ranks


class SpaceNeeds(Protocol):
    """What a learner needs of an environment's spaces: one discrete action, states that are numbers."""

    flat_actions: bool
    numbered: bool


class HasSchema(Protocol):
    """The class of an agent: `Config` is a dataclass of its hyper-parameters."""

    Config: type


class HasConfig(Protocol):
    """An agent that keeps its hyper-parameters."""

    config: Any


class LearnsInPhases(Protocol):
    """A `Config` of an agent that keeps the rollouts of `phase` iterations."""

    phase: int


class HasPrecision(Protocol):
    """A `Config` of an agent that trains in the precision of Lightning's that it names."""

    precision: str


def ranks_of(agent: object) -> Ranks:
    """The processes that train an agent."""
    from lcd.agents.ranks import ALONE

    return agent.ranks if offers(agent, TrainedByRanks) else ALONE


def draws_of(agent: object) -> tuple[int, ...]:
    """The shape of the random numbers that one action takes."""
    return agent.draws if offers(agent, DrawsSeveral) else ()


def phase_of(config: object) -> int:
    """How many iterations' rollouts an agent keeps."""
    return config.phase if offers(config, LearnsInPhases) else 1


def precision_of(agent: object) -> str:
    """The precision that an agent trains in, as Lightning calls it."""
    if offers(agent, HasConfig) and offers(agent.config, HasPrecision):
        return agent.config.precision
    return "32-true"
