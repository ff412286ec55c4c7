"""Runs that a study has for fewer steps and for more: which of them goes on from which, and which of them count.

A run of more steps is a run of its own, so that it is the same wherever it was asked for. Where its agent learns as it
would have learned if it had been asked for so many steps from the start, it begins with what the shorter one left.
The shorter one stays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from lcd.pipelines.kinds.train import iteration, promised_steps
from lcd.pipelines.study.configs import RunConfig, agent_name, canonical, is_training, without_places


class HasConfig(Protocol):
    """A run, as whoever looks at it has it."""

    @property
    def config(self) -> Any: ...


AnyRun = TypeVar("AnyRun", bound=HasConfig)


def but_for_steps(config: Mapping[str, Any], *others: str) -> str:
    """What two runs have in common of which one is the other for more steps; `others` may differ, too."""
    return canonical({**without_places(config), "steps": None, **dict.fromkeys(others)})


def is_longer(config: Mapping[str, Any], than: Mapping[str, Any]) -> bool:
    """Whether a training is another one for more steps; of a curriculum its stages say how many."""
    return _may_be_longer(config) and config["steps"] > than["steps"] and but_for_steps(config) == but_for_steps(than)


def _may_be_longer(config: Any) -> bool:
    return config is not None and is_training(config) and "curriculum" not in config


def by_all_but_steps(runs: Iterable[AnyRun]) -> dict[str, list[AnyRun]]:
    """Trainings by what those have in common of which one is another for more steps."""
    found: dict[str, list[AnyRun]] = {}
    for run in runs:
        if _may_be_longer(run.config):
            found.setdefault(but_for_steps(run.config), []).append(run)
    return found


def lengths(runs: Iterable[AnyRun]) -> list[list[AnyRun]]:
    """The runs that there are for several numbers of steps, from the shortest to the longest of each."""
    alike: dict[Any, list[AnyRun]] = {}
    for run in runs:
        if _may_be_longer(config := run.config):
            # Of ten thousand runs few are alike in this, and what all have in common takes long to write.
            near = config["task"], config["view"], config["reward_p"], agent_name(config["agent"]), *config["seeds"]
            alike.setdefault(near, []).append(run)
    several = [run for runs in alike.values() if len({run.config["steps"] for run in runs}) > 1 for run in runs]
    found = by_all_but_steps(several).values()
    return [sorted(each, key=lambda run: run.config["steps"]) for each in found if len(each) > 1]


def longest(runs: Sequence[AnyRun]) -> list[AnyRun]:
    """Runs without those that there are for more steps, too."""
    shorter = {id(run) for each in lengths(runs) for run in each[:-1]}
    return [run for run in runs if id(run) not in shorter]


def finished_of(lengths: Sequence[Sequence[AnyRun]], done: Iterable[AnyRun]) -> list[AnyRun]:
    """Of runs for several numbers of steps those that are told of: the longest, once all of those are done.

    Until then it is the longest that are done of every one that an agent trains, so that what is told has one length.

    Args:
        lengths: as `lengths` has them.
        done: those of them that are done.
    """
    ended = {id(run) for run in done}
    finished = [[run for run in each if id(run) in ended] for each in lengths]
    common: dict[str, int] = {}
    for each in filter(None, finished):
        agent, steps = agent_name(each[-1].config["agent"]), each[-1].config["steps"]
        common[agent] = min(steps, common.get(agent, steps))
    told = []
    for every, each in zip(lengths, finished, strict=True):
        short = [run for run in each if run.config["steps"] <= common[agent_name(run.config["agent"])]]
        told.append([*every[-1:], *each[-1:], *short[-1:]][-1])
    return told


def why_anew(config: RunConfig, steps: int) -> str:
    """Why a run begins at step 0 although it is there for fewer steps, which were trained; "" where it goes on."""
    agent = config["agent"]
    if "rollout" not in agent:
        return f"{agent['name']} plans by how many steps there are, or keeps nothing that it could go on from"
    each = iteration(agent)
    end = math.ceil(steps / each) * each
    if end not in promised_steps(config):
        return f"those of {steps:,} steps end with an evaluation at step {end:,}, where the longer ones have none"
    if end // each % int(agent.get("phase", 1)):
        return f"those of {steps:,} steps end within a phase of {agent['name']}, whose rollouts are not kept"
    return ""


def sentence(begun: Iterable[tuple[RunConfig, int]]) -> str:
    """What becomes of runs that there are for fewer steps, by their configs and these steps; "" where all are 0."""
    reasons = Counter(why_anew(config, steps) for config, steps in begun if steps)
    number = reasons.pop("", 0)
    told = [f"{number} run{'s go' if number > 1 else ' goes'} on from where those of fewer steps ended"] * bool(number)
    for why, count in reasons.items():
        told.append(f"{count} run{'s begin' if count > 1 else ' begins'} at step 0, because {why}")
    return f"{'; '.join(told)}. What is there is kept." if told else ""
