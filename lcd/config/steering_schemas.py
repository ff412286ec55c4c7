"""The configs of the commands that look at a study's runs and steer them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lcd.config.schema_parts import doc

CONDITION = "condition"


def condition(meaning: str, choices: Sequence[Any] = ()) -> dict[str, Any]:
    """Of a key that chooses among a study's runs: one value, or a list of them."""
    return {**doc(meaning), CONDITION: tuple(choices) or True}


STATES = ("done", "running", "waiting", "failed", "diverged", "cancelled", "damaged")
"""What a reader is told that runs of a study are."""


@dataclass
class ChosenRunsConfig:
    """A study, and which of its runs: those that meet all conditions. Names may have signs like toy/*."""

    path: str | None = field(default=None, metadata=doc("study folder; path= may be left out"))
    run: Any = field(default=None, metadata=condition("run ids, or how they begin; one or a list, as all conditions"))
    state: Any = field(default=None, metadata=condition(f"what they are: {', '.join(STATES)}", STATES))
    task: Any = field(default=None, metadata=condition("what they are trained on (toy/*)"))
    view: Any = field(default=None, metadata=condition("what their environments show"))
    reward_p: Any = field(default=None, metadata=condition("probability of keeping a reward in training"))
    agent: Any = field(default=None, metadata=condition("who learns"))
    frontend: Any = field(default=None, metadata=condition("the encoder between view and agent"))
    shaping: Any = field(default=None, metadata=condition("extra training reward"))
    benchmark: Any = field(default=None, metadata=condition("whose tasks they are"))
    kind: Any = field(default=None, metadata=condition("what they do: train, pretrain, …"))
    seed: Any = field(default=None, metadata=condition("a seed that they train"))


@dataclass
class StatusConfig(ChosenRunsConfig):
    """Say how far a study is: what runs, where and how fast, what failed, what it has cost and is going to cost."""

    watch: bool = field(default=False, metadata=doc("say it again until nothing is left to do; --watch is the same"))
    every: int = field(default=2, metadata=doc("seconds between two looks of --watch, at least", least=1))
    format: str = field(
        default="text", metadata=doc("for a reader, or for a script (--json is the same)", ("text", "json"))
    )


@dataclass
class RetryConfig(ChosenRunsConfig):
    """Let runs that failed, diverged or were cancelled be tried again by the next command that asks for them."""

    anew: bool = field(default=False, metadata=doc("from the start, instead of from where they came to"))


@dataclass
class CancelConfig(ChosenRunsConfig):
    """Stop runs, wherever they are trained, and keep what they have; none is gone on with before lcd retry."""

    wait: int = field(default=0, metadata=doc("seconds to wait until those that run have stopped", least=0))


@dataclass
class LogsConfig(ChosenRunsConfig):
    """Show what runs have printed, and why they failed."""

    follow: bool = field(default=False, metadata=doc("go on as long as they run; --follow is the same"))
    lines: int = field(default=40, metadata=doc("the last ones of each run; 0: all", least=0))


@dataclass
class RemoveConfig(ChosenRunsConfig):
    """Remove runs from a study, after a look at which; what LCD did not write stays."""

    all: bool = field(default=False, metadata=doc("every run, where there is no condition"))
    yes: bool = field(default=False, metadata=doc("do not ask; --yes is the same"))
