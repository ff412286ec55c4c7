"""What `lcd check` is looking at: a line that changes on a terminal, lines elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.markup import escape


class Now:
    """Tells which check of which task is at work."""

    def __init__(self, console: Console) -> None:
        """console: where it is told; a quiet one is told nothing."""
        self.console = console
        self._status = console.status("")
        self._told: dict[str, str] = {}

    def __enter__(self) -> Now:
        if self.console.is_terminal:
            self._status.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self._status.__exit__(kind, error, trace)

    def tell(self, what: str) -> None:
        """What is looked at from now on."""
        if self.console.is_terminal:
            self._status.update(escape(what))
        else:
            self.console.print(f"{what} …", highlight=False, markup=False, soft_wrap=True)

    def follow(self, files: Mapping[str, Path]) -> None:
        """Tell what tasks' processes have written since the last time.

        Args:
            files: task → where its process says what it looks at, line by line.
        """
        for task, file in files.items():
            lines = file.read_text().splitlines() if file.is_file() else []
            if lines and self._told.get(task) != lines[-1]:
                self._told[task] = lines[-1]
                self.tell(f"{task}: {lines[-1]}")
