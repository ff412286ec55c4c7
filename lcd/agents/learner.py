"""Agents that are no networks of ours: they train themselves, step by step, and play when asked to.

A learner is a class with `Config`, `flat_actions` and `numbered` (what it needs of the spaces), made as
`learner(config, env, seeds)`. It offers `learn` and, for evaluation, what `lcd.agents.ppo.PPO` offers under "Acting".
It steps its environment through `lcd.agents.stepping.Stepper`, or says by `lcd.process.deadlines.beat` that it makes
progress.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.finite import diverged
from lcd.agents.protocols import SpaceNeeds
from lcd.agents.stepping import EpisodeLog
from lcd.envs.protocols import offers
from lcd.envs.spaces import FlatActions, NumberedStates

Evaluate = Callable[[int], None]
"""Called with the environment steps of a seed at which the learner stands still to be evaluated."""


class Learner:
    """What learners share.

    A learner adds every step of training to its `log`, which says what its training episodes returned.

    Args:
        config: hyper-parameters.
        env: the training population, its spaces as `spaces_for` makes them.
        seeds: the run's seeds.
    """

    Config: ClassVar[type]
    flat_actions: ClassVar[bool] = False
    """Does it need several discrete actions as one?"""
    numbered: ClassVar[bool] = False
    """Does it need states as numbers?"""
    one_by_one: ClassVar[bool] = False
    """Are the seeds trained one after the other (and so is an unfinished seed trained anew)?"""

    device = torch.device("cpu")
    went_on: Callable[[int], None] = staticmethod(lambda step: None)
    """Called by a learner with the environment steps of a seed as often as it likes: `train.csv` may get a row."""

    def __init__(self, config: Any, env: VectorEnv, seeds: Sequence[int]):
        self.config, self.env, self.seeds = config, env, list(seeds)
        self.log = EpisodeLog(len(self.seeds), env.num_envs // len(self.seeds))

    def learn(self, steps: int, every: int, evaluate: Evaluate) -> None:
        """Train for `steps` steps of a seed, calling `evaluate` at 0, at multiples of `every` and at the end."""
        raise NotImplementedError

    @property
    def scalars(self) -> Mapping[str, Any]:
        """What `train.csv` tells of its last update, by name: (seeds,) each, or one number that is everybody's."""
        return {}

    def encode(self, observations: np.ndarray) -> Any:
        """Observations as `act` wants them."""
        return observations

    def act(self, features: Any, draws: Tensor | None) -> tuple[Any, None, None]:
        """Actions of all copies, sampled by these draws; without any, the most probable ones."""
        raise NotImplementedError

    def commands(self, actions: Any) -> np.ndarray:
        """What the environment is told."""
        return actions

    def state_dict(self) -> dict[str, Any]:
        """What is kept of the trained learner."""
        raise NotImplementedError

    def finite(self) -> np.ndarray:
        """Which seeds' learned numbers are finite, (seeds,); where they cannot be told apart, all or none."""
        kept = [value for value in self.state_dict().values() if isinstance(value, Tensor)]
        return np.full(len(self.seeds), all(bool(value.isfinite().all()) for value in kept))

    def require_finite(self, step: int) -> None:
        """Refuse to go on with learned numbers that are not finite."""
        if not (finite := self.finite()).all():
            raise diverged("a learned number", finite, self.seeds, step)


def spaces_for(learner: type[Any], env: VectorEnv) -> VectorEnv:
    """The environment with the spaces that an agent needs: one discrete action, numbered states."""
    flat, numbered = (learner.flat_actions, learner.numbered) if offers(learner, SpaceNeeds) else (True, False)
    if flat and isinstance(env.single_action_space, spaces.MultiDiscrete):
        env = FlatActions(env)
    return NumberedStates(env) if numbered else env
