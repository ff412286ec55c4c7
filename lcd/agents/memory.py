"""Agents' memories of an episode, where they have one (`lcd.agents.protocols.Remembers`)."""

from typing import Any

import numpy as np
from torch import Tensor

from lcd.agents.protocols import Remembers
from lcd.agents.stepping import Step
from lcd.envs.protocols import offers


def forget(agent: Any, copies: int) -> None:
    """New episodes start in all copies."""
    if offers(agent, Remembers):
        agent.forget(copies)


def begin_episodes(agent: Any, step: Step, seated: np.ndarray | None = None) -> None:
    """New episodes start where a step ended one (or, where the environment resets a step later, did that).

    Args:
        agent: who may remember.
        step: of all copies.
        seated: (seeds, some copies) whose memory the agent has; None: all.
    """
    if offers(agent, Remembers):
        fresh = (step.dones | ~step.valid).reshape(len(agent.seeds), -1)
        agent.begin_episodes(fresh if seated is None else np.take_along_axis(fresh, seated, 1))


def recall(agent: Any) -> dict[str, Tensor]:
    """The agent's memory at present, empty without one."""
    return agent.recall() if offers(agent, Remembers) else {}


def restore(agent: Any, memory: dict[str, Tensor]) -> None:
    """Put back what `recall` gave."""
    if memory and offers(agent, Remembers):
        agent.restore(memory)
