"""Rollouts of one task after another, by an agent that keeps what it has learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.memory import forget
from lcd.agents.rollout import Rollouts
from lcd.agents.stepping import EpisodeLog, Stepper
from lcd.envs.errors import InputError


@dataclass
class TrainedStage:
    """A part of a curriculum.

    Attributes:
        name: what curves call the stage.
        task: what they call its task.
        env: the training population of the task.
        rollouts: for how many rollouts it is trained.
    """

    name: str
    task: str
    env: VectorEnv
    rollouts: int


class CurriculumRollouts(Rollouts):
    """Yields the rollouts of a curriculum; a stage starts with new episodes and with random streams of its own.

    Args:
        stages: the tasks in their order, with equal spaces.
        seeds, agent, length, gamma, normalise: as those of `Rollouts`.
    """

    def __init__(
        self,
        stages: Sequence[TrainedStage],
        seeds: list[int],
        agent: Any,
        length: int,
        gamma: float,
        normalise: bool,
    ):
        self.stages = list(stages)
        first = self.stages[0]
        for stage in self.stages:
            spaces = (stage.env.single_observation_space, stage.env.single_action_space)
            if spaces != (first.env.single_observation_space, first.env.single_action_space):
                raise InputError(
                    f"curriculum: '{stage.name}' and '{first.name}' have different spaces: give equal ones."
                )
        self.begun = 0
        super().__init__(first.env, seeds, agent, length, sum(s.rollouts for s in self.stages), gamma, normalise)

    @property
    def stage(self) -> str:
        """The stage that was trained last, or before the first rollout will be trained first."""
        return self._present.name

    @property
    def task(self) -> str:
        """The task of that stage."""
        return self._present.task

    @property
    def _present(self) -> TrainedStage:
        return self.stages[self._place(max(self.iteration - 1, 0))]

    @property
    def stage_ended(self) -> bool:
        """Was the last rollout the last of its stage?"""
        ends = 0
        for stage in self.stages:
            ends += stage.rollouts
            if self.iteration == ends:
                return True
        return False

    def collect(self) -> dict[str, Tensor]:
        """One rollout of the stage that its number falls into."""
        place = self._place(self.iteration)
        if place != self.begun:
            self._enter(place)
            self.observations = self.stepper.reset(seed=self.ranks.seeds(self.seeds, "stage", place))
            forget(self.agent, self.copies)
            if self.normaliser:
                self.normaliser.returns[:] = 0.0
        return super().collect()

    def _place(self, iteration: int) -> int:
        for place, stage in enumerate(self.stages):
            iteration -= stage.rollouts
            if iteration < 0:
                return place
        return len(self.stages) - 1

    def _enter(self, place: int) -> None:
        self.begun = place
        self.env = self.stages[place].env
        self.stepper = Stepper(self.env)
        finished = self.episodes.state()["finished"]
        self.episodes = EpisodeLog(len(self.seeds), self.copies)
        self.episodes.finished = finished

    def _state(self) -> dict:
        """Of the environments, the state of the present stage's."""
        return {**super()._state(), "stage": self.begun}

    def _restore(self, state: dict) -> None:
        self._enter(state["stage"])
        super()._restore(state)
