"""Live progress of a study: runs done, the runs at work, steps a second, time left."""

import time
from collections.abc import Collection, Sequence
from html import escape
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lcd.pipelines.study.configs import TRAIN, Status, population
from lcd.pipelines.study.store import DIVERGED, DONE, FAILED, QUEUED, RUNNING, Run

READ_EVERY_S = 0.5
READING_SHARE = 0.05
"""Most of a command's time that goes into reading: of ten thousand runs on a file system of a cluster it takes long."""
LINE_EVERY_S = 15.0


class Progress:
    """Watches runs' status files; draws on a terminal, prints a line now and then elsewhere."""

    def __init__(self, runs: Sequence[Run], console: Console, again: Collection[Run] = ()) -> None:
        """again: those that are tried again, and have not failed before they were."""
        self.runs, self.console = list(runs), console
        self._before = {run: run.status["updated"] for run in again}
        self._counting = TRAIN if any(run.config["kind"] == TRAIN for run in self.runs) else None
        self.statuses: list[Status] = [self._status(run) for run in self.runs]
        self.started = time.monotonic()
        self.read_at = self.printed_at = self._took = 0.0
        self.trained_before = self._trained()
        self.live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self.cell = NotebookCell() if console.is_jupyter else None

    def __enter__(self) -> "Progress":
        if self.live is not None:
            self.live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.cell is not None:
            # The last runs end after the last look, and a cell stays as it is.
            self._look()
            self.cell.show(self.line(), self.count(DONE) / max(len(self.runs), 1))
        if self.live is not None:
            self.live.__exit__(kind, error, trace)

    def update(self) -> None:
        """Read the status files again and show what they say, at most every half second."""
        now = time.monotonic()
        if now - self.read_at < max(READ_EVERY_S, self._took * (1 / READING_SHARE - 1)):
            return
        self._look()
        self.read_at = time.monotonic()
        self._took = self.read_at - now
        if self.cell is not None:
            self.cell.show(self.line(), self.count(DONE) / max(len(self.runs), 1))
        elif self.live is not None:
            self.live.update(self._drawing(), refresh=True)
        elif now - self.printed_at >= LINE_EVERY_S:
            self.printed_at = now
            self.console.print(self.line(), highlight=False)

    def _look(self) -> None:
        # What is done stays done; only the others can have changed.
        for index, run in enumerate(self.runs):
            if self.statuses[index]["state"] != DONE:
                self.statuses[index] = self._status(run)

    def _status(self, run: Run) -> Status:
        status = run.status
        if status["state"] in (FAILED, DIVERGED) and self._before.get(run) == status["updated"]:
            status["state"] = QUEUED
        return status

    def line(self) -> str:
        """The progress in one line."""
        left = self.seconds_left()
        parts = [
            f"{self.count(DONE)}/{len(self.runs)} runs done",
            f"{self.rate():,.0f} steps/s",
            f"{clock(time.monotonic() - self.started)} elapsed",
        ]
        if self.count(DONE) < len(self.runs):
            parts.append(f"{clock(left)} left" if left is not None else "time left unknown")
        parts[1:1] = [f"{count} {state}" for state in (FAILED, DIVERGED) if (count := self.count(state))]
        return ", ".join(parts)

    def count(self, state: str) -> int:
        return sum(status["state"] == state for status in self.statuses)

    def rate(self) -> float:
        """Environment steps of all seeds per second since the start of this command; of a pretraining alone batches."""
        return (self._trained() - self.trained_before) / max(time.monotonic() - self.started, 1e-9)

    def seconds_left(self) -> float | None:
        """Seconds until the last run is done at the present rate; None while there is no rate."""
        rate = self.rate()
        pairs = zip(self.runs, self.statuses, strict=True)
        left = sum(self._steps(run, s) * (1.0 - fraction(s)) for run, s in pairs if s["state"] in (QUEUED, RUNNING))
        return left / rate if rate > 0 else None

    def _trained(self) -> float:
        pairs = zip(self.runs, self.statuses, strict=True)
        return sum(
            self._steps(run, status) * (1.0 if status["state"] == DONE else fraction(status)) for run, status in pairs
        )

    def _steps(self, run: Run, status: Status) -> float:
        if self._counting not in (None, run.config["kind"]):
            return 0.0
        return (status["steps"] or run.config["steps"]) * population(run.config)

    def _drawing(self) -> Group:
        table = Table.grid(padding=(0, 2))
        for run, status in zip(self.runs, self.statuses, strict=True):
            if status["state"] == RUNNING:
                table.add_row(
                    Text(run.label),
                    ProgressBar(total=1.0, completed=fraction(status), width=20),
                    f"step {status['step']:,} of {status['steps']:,}",
                    f"{status['steps_per_s']:,.0f} steps/s",
                )
        # A bar ends no line of its own.
        bar = Table.grid()
        bar.add_row(ProgressBar(total=max(len(self.runs), 1), completed=self.count(DONE), width=60))
        return Group(bar, self.line(), table)


class NotebookCell:
    """A bar and a line in a notebook's cell, which are drawn anew in their place."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._made: Any = HTML
        self._place: Any = display(HTML(""), display_id=True)

    def show(self, line: str, share: float) -> None:
        """Show how far things are.

        Args:
            line: in words.
            share: 0 to 1.
        """
        bar = f'<progress value="{share:.3f}" max="1" style="width:40ch"></progress>'
        self._place.update(self._made(f"<div>{bar} {escape(line)}</div>"))


def fraction(status: Status) -> float:
    """How much of a run is trained, 0 to 1."""
    return min(1.0, status["step"] / status["steps"]) if status["steps"] else 0.0


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds, or hours and minutes."""
    seconds = int(seconds)
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"
    return f"{seconds // 60}:{seconds % 60:02d}"
