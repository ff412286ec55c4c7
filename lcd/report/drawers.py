"""Learning curves of many tasks, drawn by several processes: of a large report, drawing takes the most time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread

from lcd.process import children
from lcd.report.curve_figures import TaskCurves, draw_curves
from lcd.report.figures import save_figure

WORTH_A_PROCESS = 8
"""For so many drawings a further process pays: it takes about as long to start as it takes to draw four."""
MOST_PROCESSES = 8


@contextmanager
def drawing_beside(folder: Path, curves: Mapping[str, TaskCurves]) -> Iterator[Callable[[], dict[str, bytes]]]:
    """Have other processes write a PNG and an SVG of every task's curves while this one does something else.

    Args:
        folder: where to write.
        curves: name of the files → what is drawn.

    Yields:
        What helps them until all are drawn, and returns name → the SVG's content.
    """
    left = deque(curves)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(cores, MOST_PROCESSES, len(curves) // WORTH_A_PROCESS) - 1
    threads = [Thread(target=_drawn_by_a_process, args=(folder, curves, left)) for _ in range(count)]

    def finish() -> dict[str, bytes]:
        with suppress(IndexError):
            while True:
                _draw(folder, left.popleft(), curves)
        for thread in threads:
            thread.join()
        for name in curves:
            # Whatever kept a process from drawing one (it was killed, say) is tried, and told of, here.
            if not (folder / f"{name}.svg").exists():
                _draw(folder, name, curves)
        return {name: (folder / f"{name}.svg").read_bytes() for name in curves}

    for thread in threads:
        thread.start()
    try:
        yield finish
    finally:
        left.clear()
        for thread in threads:
            thread.join()


def _draw(folder: Path, name: str, curves: Mapping[str, TaskCurves]) -> None:
    save_figure(draw_curves(curves[name]), folder, name)


def _drawn_by_a_process(folder: Path, curves: Mapping[str, TaskCurves], left: deque[str]) -> None:
    """Give a process one drawing after another, from the end of what is left; it ends with the pipe."""
    # Until none is left, or it dies, or cannot be started.
    with suppress(IndexError, EOFError, OSError):
        # In a group of its own: Ctrl-C is told by the command alone.
        process, pipe = children.start("lcd.report.drawers:draw_for_parent", group=0)
        with process, pipe:
            pipe.send(str(folder))
            while True:
                name = left.pop()
                pipe.send((name, curves[name]))
                pipe.recv()


def draw_for_parent(descriptor: int) -> None:
    """What such a process does: draws what comes through the pipe, and says when it is written."""
    # What keeps it from drawing one, its parent meets and tells.
    with Connection(descriptor) as pipe, suppress(Exception):
        folder = Path(pipe.recv())
        while True:
            name, curves = pipe.recv()
            save_figure(draw_curves(curves), folder, name)
            pipe.send(name)
