"""Who of the held-out copies still plays: an agent is asked about these alone, in batches that round as all do."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcd.agents.memory import begin_episodes, recall, restore
from lcd.agents.protocols import ActsForFewer
from lcd.agents.rollout import commands
from lcd.agents.stepping import Step
from lcd.envs.protocols import offers

LEAST = 8
"""Copies of each seed that an agent is asked about at the least: beside those so few would save nothing."""
TRIALS = 4
"""Batches in which a smaller one has to have given the same bits before it takes the larger one's place."""


class Widths:
    """Which sizes of batches give the same bits as all copies at once, found out on the way.

    A processor chooses by the size of a product how it adds up. Halves of halves of all copies mostly round alike; one
    that does not is never used. On a GPU, where bits are not promised, none is tried.

    Args:
        copies: of each seed.
    """

    def __init__(self, copies: int):
        self.copies = copies
        self._alike: dict[int, int] = {}
        self._refused: set[int] = set()

    def least(self, needed: int) -> int:
        """The smallest batch with room for so many copies of each seed that is not known to be rounded otherwise."""
        width = best = self.copies
        while width % 2 == 0 and width // 2 >= max(needed, LEAST):
            width //= 2
            best = best if width in self._refused else width
        return best

    def trusted(self, width: int) -> bool:
        """Has it given the same bits often enough?"""
        return self._alike.get(width, 0) >= TRIALS

    def tell(self, width: int, alike: bool) -> None:
        """Take in whether it gave the same bits."""
        self._alike[width] = self._alike.get(width, 0) + 1
        if not alike:
            self._refused.add(width)


class Seats:
    """The copies that an agent is asked about in one evaluation.

    Those that have finished keep a seat only where the batch has one left.

    Args:
        agent: who acts; it has forgotten what it saw before.
        seeds: number of seeds.
        widths: the sizes of batches that will do.
    """

    def __init__(self, agent: Any, seeds: int, widths: Widths):
        self.agent, self.widths = agent, widths
        self._shrinks = offers(agent, ActsForFewer) and agent.acts_for_fewer
        self._taken = np.tile(np.arange(widths.copies), (seeds, 1))
        """(seeds, width): which of a seed's copies."""
        self._kept: np.ndarray | None = None
        """(seeds, narrower width): the seats of those that a smaller batch, on trial, would keep."""
        self._told: np.ndarray | None = None

    def act(self, observations: np.ndarray, draws: Tensor | None) -> tuple[np.ndarray, Tensor | None]:
        """What the environment is told, a row a copy, and the log-probabilities of the actions, if any.

        Args:
            observations: of all copies.
            draws: of all copies, (seeds, copies, …); None: the most probable actions.
        """
        before = recall(self.agent)
        answer = self._ask(self._taken, observations, draws)
        told = commands(self.agent, answer[0])
        if self._told is None:
            self._told = told
        else:
            # Whoever rests or plays on uncounted may do as before.
            self._told = self._told.copy()
            self._told[self._rows(self._taken)] = told
        if self._kept is not None:
            self._try(before, answer, observations, draws)
        return self._told, answer[1]

    def settle(self, playing: np.ndarray) -> None:
        """Ask about fewer copies from now on, where those that still play fit into a smaller batch.

        Args:
            playing: (seeds, copies) booleans.
        """
        if not self._shrinks:
            return
        width = self.widths.least(int(playing.sum(1).max()))
        if width == self._taken.shape[1]:
            self._kept = None
            return
        seated = np.take_along_axis(playing, self._taken, 1)
        self._kept = np.argsort(~seated, axis=1, kind="stable")[:, :width]
        if self.agent.device.type != "cpu" or self.widths.trusted(width):
            self._move()

    def begin_episodes(self, step: Step) -> None:
        """New episodes start where a step ended one."""
        begin_episodes(self.agent, step, self._taken)

    def _ask(self, taken: np.ndarray, observations: np.ndarray, draws: Tensor | None) -> tuple[Any, Any, Any]:
        if taken.shape[1] < self.widths.copies:
            observations = observations[self._rows(taken)]
            draws = None if draws is None else _of(draws, taken)
        return self.agent.act(self.agent.encode(observations), draws)

    def _rows(self, taken: np.ndarray) -> np.ndarray:
        """Where copies stand among those of all seeds."""
        return (np.arange(len(taken))[:, None] * self.widths.copies + taken).ravel()

    def _try(
        self, before: dict[str, Tensor], answer: tuple[Any, Any, Any], observations: np.ndarray, draws: Tensor | None
    ) -> None:
        """Ask a smaller batch the same, and move there if it has always answered the same."""
        kept, after = self._kept, recall(self.agent)
        assert kept is not None
        restore(self.agent, {name: _of(memory, kept) for name, memory in before.items()})
        again = self._ask(np.take_along_axis(self._taken, kept, 1), observations, draws)
        restore(self.agent, after)
        alike = all(torch.equal(_of(whole, kept), part) for whole, part in zip(answer, again, strict=True))
        self.widths.tell(kept.shape[1], alike)
        if not alike:
            self._kept = None
        elif self.widths.trusted(kept.shape[1]):
            self._move()

    def _move(self) -> None:
        assert self._kept is not None
        self._taken = np.take_along_axis(self._taken, self._kept, 1)
        restore(self.agent, {name: _of(memory, self._kept) for name, memory in recall(self.agent).items()})
        self._kept = None


def _of(values: Tensor, chosen: np.ndarray) -> Tensor:
    """Some copies of each seed, (seeds, copies, …)."""
    seeds = torch.arange(len(chosen), device=values.device)[:, None]
    return values[seeds, torch.from_numpy(chosen).to(values.device)]
