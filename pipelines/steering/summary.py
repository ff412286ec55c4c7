"""What there is to be said of many runs at once: how many are what, what they have taken, and what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lcd.config.steering_schemas import STATES
from lcd.pipelines.steering.glance import DONE, LEFT_TO_DO, RUNNING, Seen
from lcd.pipelines.study.configs import is_training
from lcd.pipelines.study.cost import HOUR, cost_of
from lcd.pipelines.study.lease import LOG_FILE

GROUPINGS = (
    *(("task", "agent"), ("task", "view"), ("task",), ("view", "reward_p"), ("agent", "view"), ("agent",)),
    *(("view",), ("frontend",), ("benchmark",)),
)
"""By what runs may be told together, what says most first."""


@dataclass
class Pace:
    """What a unit of work has taken of a worker: seconds, of a core, of a GPU."""

    work: float = 0.0
    wall: float = 0.0
    core: float = 0.0
    gpu: float = 0.0


@dataclass(frozen=True)
class Summary:
    """Of the runs that were looked at.

    Attributes:
        seen: the runs.
    """

    seen: Sequence[Seen]
    states: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", Counter(each.state for each in self.seen))

    @cached_property
    def share(self) -> float:
        """How much of the work is done, 0 to 1; pretrainings count by their number alone."""
        trainings = [each for each in self.seen if each.config is not None and is_training(each.config)]
        if total := sum(each.work for each in trainings):
            return sum(each.work * each.share for each in trainings) / total
        return self.states[DONE] / len(self.seen) if self.seen else 0.0

    @cached_property
    def cost(self) -> dict[str, Any]:
        """What they have taken so far."""
        return cost_of((each.config, each.status) for each in self.seen if each.config is not None)

    @cached_property
    def left(self) -> Pace | None:
        """What those that are at work or wait are going to take, by what others like them took; None: not known."""
        paces: dict[tuple[str, ...], Pace] = {}
        for each in self.seen:
            wall, done = each.status["wall_s"], each.work * each.share
            for key in _alike(each) if wall > 0 and done > 0 else ():
                pace = paces.setdefault(key, Pace())
                pace.work += done
                pace.wall += wall
                pace.core += wall * each.status["threads"]
                pace.gpu += wall * (each.status["device"] == "cuda")
        total = Pace()
        for each in self.seen:
            if each.state in LEFT_TO_DO:
                found = next((paces[key] for key in _alike(each) if key in paces), None)
                if found is None:
                    return None
                times = each.work * (1 - each.share) / found.work
                total.work += each.work * (1 - each.share)
                total.wall += found.wall * times
                total.core += found.core * times
                total.gpu += found.gpu * times
        return total

    @cached_property
    def seconds_left(self) -> float | None:
        """Until all is done if as many runs stay at work as there are now; None where none is, or nothing is known."""
        at_work = self.states[RUNNING]
        if not at_work or self.left is None:
            return None
        longest = max((each.seconds_left or 0.0 for each in self.seen), default=0.0)
        return max(self.left.wall / at_work, longest)

    def groups(self, most: int) -> dict[str, Summary]:
        """The runs by what tells them apart, in at most so many groups if there is a way to do so."""
        found = [named for keys in GROUPINGS if len(named := self._by(keys)) > 1]
        fitting = [named for named in found if len(named) <= most]
        best = fitting[0] if fitting else min(found, key=len, default={})
        return {name: Summary(each) for name, each in best.items()}

    def _by(self, keys: Sequence[str]) -> dict[str, list[Seen]]:
        named = [(each, each.named) for each in self.seen if each.config is not None]
        varying = [key for key in keys if len({told.get(key) for _, told in named}) > 1]
        by: dict[str, list[Seen]] = {}
        for each, told in named:
            name = "  ".join(
                f"p={told[key]:g}" if key == "reward_p" else str(told[key]) for key in varying if key in told
            )
            by.setdefault(name or each.label, []).append(each)
        return by if varying else {}

    def troubles(self, states: Sequence[str]) -> list[tuple[str, str, list[Seen]]]:
        """The states and reasons of what went wrong, and the runs of each, the most frequent reason first."""
        by: dict[tuple[str, str], list[Seen]] = {}
        for each in self.seen:
            if each.state in states:
                by.setdefault((each.state, each.why), []).append(each)
        return [(*told, each) for told, each in sorted(by.items(), key=lambda pair: -len(pair[1]))]

    def as_json(self, study: str) -> dict[str, Any]:
        """All of it for scripts."""
        left = self.left
        return {
            "study": study,
            "runs": len(self.seen),
            "states": {state: self.states[state] for state in STATES},
            "share": self.share,
            "cost": self.cost,
            "left": left and {"core_hours": left.core / HOUR, "gpu_hours": left.gpu / HOUR},
            "seconds_left": self.seconds_left,
            "each": [_as_json(each) for each in self.seen],
        }


def _alike(seen: Seen) -> Iterator[tuple[str, ...]]:
    """What runs that take as long as this one have in common, the closest first."""
    if seen.config is not None:
        kind, named = seen.config["kind"], seen.named
        for keys in (("task", "agent", "view", "frontend"), ("agent", "view", "frontend"), ("agent",), ()):
            yield (kind, *(str(named.get(key, "")) for key in keys))


def _as_json(seen: Seen) -> dict[str, Any]:
    status, log = seen.status, seen.folder / LOG_FILE
    told = {key: status[key] for key in ("step", "steps", "steps_per_s", "wall_s", "device", "where", "updated")}
    return {
        "run": seen.name,
        "state": seen.state,
        "why": seen.why,
        **seen.named,
        "kind": seen.config and seen.config["kind"],
        "seeds": seen.config and seen.config["seeds"],
        **told,
        "seconds_left": seen.seconds_left,
        "log": str(log),
    }
