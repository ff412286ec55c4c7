"""Agents' memories of an episode, where they have one (`lcd.agents.protocols.Remembers`)."""

from typing import Any

from torch import Tensor

from lcd.agents.protocols import Remembers
from lcd.agents.stepping import Step
from lcd.envs.protocols import offers


def forget(agent: Any, copies: int) -> None:
    """New episodes start in all copies."""
    if offers(agent, Remembers):
        agent.forget(copies)


def begin_episodes(agent: Any, step: Step) -> None:
    """New episodes start where a step ended one (or, where the environment resets a step later, did that)."""
    if offers(agent, Remembers):
        agent.begin_episodes((step.dones | ~step.valid).reshape(len(agent.seeds), -1))


def recall(agent: Any) -> dict[str, Tensor]:
    """The agent's memory at present, empty without one."""
    return agent.recall() if offers(agent, Remembers) else {}


def restore(agent: Any, memory: dict[str, Tensor]) -> None:
    """Put back what `recall` gave."""
    if memory and offers(agent, Remembers):
        agent.restore(memory)
