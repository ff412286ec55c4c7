"""Held-out evaluation: the original reward, a number of episodes for each copy, sampled or greedy actions."""

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper

from lcd.agents.finite import lost_of, require_finite
from lcd.agents.memory import forget, recall, restore
from lcd.agents.protocols import draws_of
from lcd.agents.rollout import uniforms
from lcd.agents.seats import Seats, Widths
from lcd.agents.stepping import EpisodeLog, Stepper
from lcd.envs.errors import InputError
from lcd.envs.protocols import Drawn, RestsCopies, offers
from lcd.envs.spaces import is_image
from lcd.envs.streams import seed_sequence
from lcd.process import deadlines, signals

BLOCK = 128  # steps whose draws are made at once
LONGEST_FILM = 500
"""Frames of a film; longer episodes are cut off."""


class Evaluator:
    """Plays the held-out population with the policy as it is.

    Every evaluation restarts the environments and the exploration from streams named by the training step, so that
    it neither depends on what was evaluated before nor disturbs training. Copies that have played their episodes are
    left out as far as agent (`lcd.agents.seats`) and environment (`RestsCopies`) can do that. A process that is told to
    stop gives it up between two steps (`lcd.process.signals.Stopped`): made again, it is the same.

    Args:
        env: the held-out population, ordered seed by seed.
        seeds: the run's seeds.
        episodes: episodes of each copy.
        branch: of each seed's random streams, those of the evaluations.
        greedy: take the most probable actions.
        measured: what the infos of an episode's last step also tell of it: a curve column of its mean.
    """

    def __init__(
        self,
        env: VectorEnv,
        seeds: list[int],
        episodes: int,
        branch: tuple[str | int, ...] = ("evaluation",),
        greedy: bool = False,
        measured: str | None = None,
    ):
        self.branch, self.greedy, self.measured = branch, greedy, measured
        self.film: list[np.ndarray] | None = None
        self.stepper, self.seeds, self.episodes = Stepper(env), list(seeds), episodes
        self.copies = env.num_envs // len(seeds)
        self.widths = Widths(self.copies)

    def __call__(self, agent: Any, step: int) -> list[dict[str, float]]:
        """Each seed's curve columns (`episodes`, `return_mean`, …) at a training step."""
        remembered = recall(agent)
        forget(agent, self.copies)
        try:
            return self._play(agent, step)
        finally:
            restore(agent, remembered)

    def _play(self, agent: Any, step: int) -> list[dict[str, float]]:
        streams = [seed_sequence(seed, *self.branch, step, 0).generate_state(1)[0] for seed in self.seeds]
        observations = self.stepper.reset(seed=[int(stream) for stream in streams])
        log, seats = EpisodeLog(len(self.seeds), self.copies), Seats(agent, len(self.seeds), self.widths)
        left = np.full(len(self.seeds) * self.copies, self.episodes)
        sums = np.zeros(len(self.seeds))
        lost = lost_of(agent, self.seeds)
        elapsed, patience = 0, deadlines.Countdown(deadlines.current_deadlines().episode)
        while left.any():
            if signals.stop_requested():
                raise signals.Stopped
            if elapsed % BLOCK == 0:
                stream = (*self.branch, step, 1 + elapsed // BLOCK)
                each = (BLOCK, self.copies, *draws_of(agent))
                draws = uniforms(self.seeds, *stream, shape=each).to(agent.device)
            if self.film is not None and left[0] == self.episodes and len(self.film) < LONGEST_FILM:
                self.film += picture_of(self.stepper.env, observations)
            observations = require_finite("a held-out observation", observations, self.seeds, step, lost)
            drawn = None if self.greedy else draws[:, elapsed % BLOCK]
            told, log_probs = seats.act(observations, drawn)
            if elapsed == 0 and log_probs is not None:
                # Finite weights may be too large to say anything finite; one look is enough to know.
                require_finite("the policy", log_probs.cpu().numpy(), self.seeds, step, lost)
            outcome = self.stepper.step(told)
            ended = log.add(outcome, counted=left > 0) & (left > 0)
            left -= ended
            seats.begin_episodes(outcome)
            if ended.any():
                patience.renew()
                seats.settle(left.reshape(-1, self.copies) > 0)
                rest(self.stepper.env, left == 0)
                if self.measured is not None:
                    np.add.at(sums, log.owner[ended], np.asarray(outcome.infos[self.measured], float)[ended])
            elif patience.is_over():
                raise InputError(
                    f"deadlines.episode={patience.seconds} has passed in the evaluation at step {step}, and none of "
                    f"its episodes has ended since ({elapsed + 1:,} steps of each copy were played): give the "
                    "environment a limit of steps (Gymnasium's TimeLimit), or more seconds."
                )
            observations, elapsed = outcome.observations, elapsed + 1
        rows = [statistics for statistics in log.pop() if statistics is not None]
        if self.measured is None:
            return rows
        return [{**row, self.measured: float(total / row["episodes"])} for row, total in zip(rows, sums, strict=True)]


def picture_of(env: VectorEnv, observations: np.ndarray) -> list[np.ndarray]:
    """A picture of the first copy (height, width, colours), as it is seen or else drawn; none where neither can be."""
    if is_image(env.single_observation_space):
        return [observations[0].copy()]
    return [env.pictures()[0]] if offers(env, Drawn) else []


def rest(env: VectorEnv, copies: np.ndarray) -> None:
    """Let an environment, under whatever wrappers, leave out these copies until it is reset, if it can."""
    while isinstance(env, VectorWrapper) and not offers(env, RestsCopies):
        env = env.env
    if copies.any() and offers(env, RestsCopies):
        env.rest(copies)


class EveryTask:
    """Plays several held-out populations, one after the other, with the policy as it is.

    Args:
        evaluators: one for each task.
    """

    def __init__(self, evaluators: list[Evaluator]):
        self.evaluators = evaluators

    def filmed(self, agent: Any, step: int) -> tuple[list[dict[str, float]], list[np.ndarray]]:
        """What a call gives, and the first seed's first episode on the first task's first copy, as pictures."""
        first, film = self.evaluators[0], list[np.ndarray]()
        first.film = film
        try:
            return self(agent, step), film
        finally:
            first.film = None

    def __call__(self, agent: Any, step: int) -> list[dict[str, float]]:
        """Each task's and each seed's curve columns."""
        return [columns for evaluator in self.evaluators for columns in evaluator(agent, step)]
