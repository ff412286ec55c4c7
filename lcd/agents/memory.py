"""What is asked of an agent that remembers earlier observations of an episode; agents without a memory have none of it.

Such an agent has `forget(copies)` (new episodes start in all copies), `begin_episodes(fresh)` (in some of them, a
(seeds, copies) mask of booleans), `recall()` (its memory as a dictionary of tensors whose names start with `memory`)
and `restore(memory)`. A rollout holds what `recall` gave before its first step.
"""

from typing import Any

from torch import Tensor

from lcd.agents.stepping import Step


def forget(agent: Any, copies: int) -> None:
    """New episodes start in all copies."""
    if hasattr(agent, "forget"):
        agent.forget(copies)


def begin_episodes(agent: Any, step: Step) -> None:
    """New episodes start where a step ended one (or, where the environment resets a step later, did that)."""
    if hasattr(agent, "begin_episodes"):
        agent.begin_episodes((step.dones | ~step.valid).reshape(len(agent.seeds), -1))


def recall(agent: Any) -> dict[str, Tensor]:
    """The agent's memory at present, empty without one."""
    return agent.recall() if hasattr(agent, "recall") else {}


def restore(agent: Any, memory: dict[str, Tensor]) -> None:
    """Put back what `recall` gave."""
    if memory and hasattr(agent, "restore"):
        agent.restore(memory)
