"""Which calls may be made when: those that wait for others start once all of these have ended well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcd.envs.errors import InputError


@dataclass(frozen=True)
class Needs:
    """What a call takes, as far as it is known: a launcher makes no more calls at once than there is room for.

    Attributes:
        cores: processes times threads.
        memory: bytes that it takes at the least.
        gpus: those that it takes where there are some; it may share them.
        gpu_memory: bytes that it takes of each at the least, as far as it is known.
        seconds: how long it takes at the most; None where nobody knows.
    """

    cores: int = 1
    memory: int = 0
    gpus: int = 0
    gpu_memory: int = 0
    seconds: float | None = None


@dataclass(frozen=True)
class Call:
    """One call of the launched function.

    Attributes:
        arguments: what it is called with; everything is pickled.
        log: the file that takes what the call prints; None drops it.
        name: what `after` of other calls says; needed only there.
        label: what a reader calls it.
        after: names of the calls that must have ended well before.
        needs: what it takes.
    """

    arguments: tuple[Any, ...]
    log: Path | None = None
    name: str = ""
    label: str = ""
    after: tuple[str, ...] = ()
    needs: Needs = field(default_factory=Needs)


@dataclass(frozen=True)
class Outcome:
    """How a call ended.

    Attributes:
        call: the call.
        error: None when it ended well, else one line.
        stopped: it was stopped, or waits for one that was, and may be continued.
    """

    call: Call
    error: str | None = None
    stopped: bool = False

    @property
    def well(self) -> bool:
        """Whether what waits for it may start."""
        return self.error is None and not self.stopped


class Order:
    """Calls that are still to be made, and the outcomes of those that were.

    A call that fails fails those that wait for it; one that is stopped leaves them to be continued.

    Args:
        calls: in the order in which they start where nothing else decides.

    Raises:
        InputError: where calls wait for one another in a circle, or for one that is not there.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        self.waiting = dict(enumerate(calls))
        self.outcomes: dict[int, Outcome] = {}
        self._index = {call.name: index for index, call in enumerate(calls) if call.name}
        _refuse_circles(calls)

    @property
    def over(self) -> bool:
        """Whether every call has ended."""
        return len(self.outcomes) == len(self.calls)

    @property
    def results(self) -> list[Outcome]:
        """The outcomes in the order of the calls, when all is over."""
        return [self.outcomes[index] for index in range(len(self.calls))]

    def ready(self) -> list[int]:
        """The calls that may start now."""
        return [index for index, call in self.waiting.items() if all(self._done(name) for name in call.after)]

    def start(self, fits: Callable[[Needs], bool]) -> tuple[int, Call] | None:
        """The first call that may start now and for which there is room; it waits no more."""
        for index in self.ready():
            if fits(self.calls[index].needs):
                return index, self.waiting.pop(index)
        return None

    def end(self, index: int, outcome: Outcome) -> None:
        """A call has ended; those that wait for it in vain end with it."""
        self.outcomes[index] = outcome
        self.waiting.pop(index, None)
        if outcome.well:
            return
        for other, call in list(self.waiting.items()):
            if outcome.call.name and outcome.call.name in call.after:
                self.end(other, in_vain(call, outcome))

    def _done(self, name: str) -> bool:
        return (outcome := self.outcomes.get(self._index[name])) is not None and outcome.well


def in_vain(call: Call, outcome: Outcome) -> Outcome:
    """The outcome of a call that waits for one which did not end well."""
    if outcome.error is None:
        return Outcome(call, stopped=True)
    return Outcome(call, waits_for(outcome.call.name, outcome.call.label, outcome.error))


def waits_for(name: str, label: str, error: str) -> str:
    """Why a call fails that waits for another one."""
    named = f"{name} ({label})" if label else name
    # Of a longer chain the first failure is what has to be mended.
    return error if error.startswith("it waits for ") else f"it waits for {named}, which failed: {error}"


def _refuse_circles(calls: Sequence[Call]) -> None:
    left = {call.name: set(call.after) for call in calls if call.name}
    for call in calls:
        for name in call.after:
            if name not in left:
                raise InputError(f"{call.name or 'a call'} waits for {name}, which is none of the calls: add it.")
    while free := [name for name, after in left.items() if not after & left.keys()]:
        for name in free:
            del left[name]
    if left:
        raise InputError(f"{', '.join(sorted(left))} wait for one another in a circle: no call of it can start.")
