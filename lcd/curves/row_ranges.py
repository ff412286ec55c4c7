"""Where the rows of each curve stand in a table, in order of their steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


class CurveRows:
    """The rows of many curves.

    Tables of many curves mostly have each curve's rows together and in order: then nothing is sorted, or copied.

    Args:
        numbers: of each row its curve's (`lcd.curves.reading.group_numbers`).
        steps: of each row.
    """

    def __init__(self, numbers: np.ndarray, steps: np.ndarray) -> None:
        begins = _begins(numbers)
        own, self._order = numbers[begins], None
        if len(np.unique(own)) < len(own) or not _rise(numbers, steps):
            self._order = np.lexsort((steps, numbers))
            numbers = numbers[self._order]
            begins = _begins(numbers)
            own = numbers[begins]
        by_number = np.argsort(own)
        ends = np.append(begins, len(numbers))[1:]
        self._spans = np.stack([begins, ends], axis=1)[by_number]

    def __len__(self) -> int:
        """How many curves there are."""
        return len(self._spans)

    def ordered(self, column: np.ndarray) -> np.ndarray:
        """A column in which each curve's rows stand together, in order; the column itself where they do already."""
        return column if self._order is None else column[self._order]

    def spans(self) -> Iterator[tuple[int, int]]:
        """The first row of each curve, and the one behind its last, of what is ordered; curves by their numbers."""
        return ((int(begin), int(end)) for begin, end in self._spans)

    @property
    def first(self) -> np.ndarray:
        """The first row of each curve, as the table has it."""
        return self._in_table(self._spans[:, 0])

    @property
    def last(self) -> np.ndarray:
        """The last row of each curve, as the table has it."""
        return self._in_table(self._spans[:, 1] - 1)

    def _in_table(self, rows: np.ndarray) -> np.ndarray:
        return rows if self._order is None else self._order[rows]

    def any_twice(self, steps: np.ndarray) -> bool:
        """Whether a step comes twice in a curve."""
        steps = self.ordered(steps)
        alike = steps[1:] == steps[:-1]
        # Between two curves lies no step.
        alike[self._spans[:, 1][self._spans[:, 1] < len(steps)] - 1] = False
        return bool(alike.any())


def _begins(numbers: np.ndarray) -> np.ndarray:
    """The rows at which another curve begins than that of the row before."""
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])) if len(numbers) else np.zeros(0, np.int64)


def _rise(numbers: np.ndarray, steps: np.ndarray) -> bool:
    """Whether no step is lower than that of the row before, if that is of the same curve."""
    return bool(((numbers[1:] != numbers[:-1]) | (steps[1:] >= steps[:-1])).all())
