"""The local launcher: long-lived worker processes that share one queue of calls.

A worker is a fresh interpreter with its own process group: Ctrl-C reaches only the launching process, which stops the
workers. Each worker holds the end of a pipe whose other end only the launching process has: when that dies, by
whatever, the pipe closes and the worker ends at once.

A worker tells of its progress (`lcd.process.deadlines`): one that makes none for too long is ended, and its call has
failed. It is first asked where it stands, which it writes into the call's log even if it is in code that never returns.

On a machine with several GPUs each worker sees those of its call alone, by CUDA_VISIBLE_DEVICES, of those that the
launching process may use.

A launching process that is told to stop by a signal (`lcd.process.signals`) tells its workers, which have some time to
finish what they are at and to keep it; Ctrl-C gives them less. A worker that is told so by anybody else ends with
`CONTINUE_ME`: its call is stopped, which is no error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue

from lcd.config.schema_parts import DeadlinesConfig
from lcd.envs.errors import Cancelled, InputError
from lcd.envs.registry import named, naming
from lcd.pipelines.launch.cards import VISIBLE, Cards, Shelf, cards_here
from lcd.pipelines.launch.launchers import RUNS_AT_ONCE, keep_freed_memory, usable_cores
from lcd.pipelines.launch.order import Call, Needs, Order, Outcome
from lcd.process import children, signals
from lcd.process.deadlines import Countdown, count_beats, set_deadlines
from lcd.process.limits import RUNS_ON_A_GPU, machine_memory
from lcd.process.signals import CONTINUE_ME, Stopped

POLL_S = 0.25
GRACE_S = 5.0
"""Seconds that workers have after Ctrl-C, or when another part of the launching process fails."""
BEAT_S = 0.5
"""How often a worker tells of its progress, if there is any."""
LAST_WORDS_S = 1.0
"""Seconds that a worker which has hung is given to write down where it stands."""
BEAT = True
"""What a worker sends for progress; its calls end in None or in a text."""
WHERE = signal.SIGUSR2
"""Asks a worker where it stands."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class LocalSettings:
    """Settings of `launcher=local`.

    Attributes:
        per_gpu: runs that share a GPU at the most; 0: as many as its memory has room for.
    """

    per_gpu: int = 0

    def __post_init__(self) -> None:
        if self.per_gpu < 0:
            raise InputError(f"launcher.per_gpu={self.per_gpu} must be at least 0.")


def launch(
    function: str,
    calls: Sequence[Call],
    *,
    watch: Callable[[], None],
    settings: LocalSettings,
    workers: int | str = "auto",
    threads: int = 1,
    grace: float = 60.0,
    deadlines: DeadlinesConfig | None = None,
) -> list[Outcome]:
    """Worker processes on this machine, one a core or sharing its GPUs.

    Make the calls on this machine, in their order, as many at a time as there is room for.

    Args:
        function: `module:function`.
        calls: those to be made; one starts when those that it waits for have ended well.
        watch: called a few times a second.
        settings: what the user sets.
        workers: the most calls at a time; `auto`: as many as there are cores for.
        threads: of each process of a call.
        grace: seconds that workers have to finish an iteration and keep it when a signal tells this process to stop.
        deadlines: how long calls may go without progress; None: as long as usual.

    Returns:
        The outcomes in the order of the calls.
    """
    deadlines = deadlines or DeadlinesConfig()
    here = cards_here() if any(call.needs.gpus for call in calls) else {}
    room = Room(workers, threads, Shelf(here, settings.per_gpu))
    order, together = Order(calls), room.at_once([call.needs for call in calls])
    beside = {RUNS_AT_ONCE: str(together), RUNS_ON_A_GPU: str(room.gpus.shared_by(together))}
    crew: list[_Worker] = []
    try:
        while not order.over:
            crew = [worker for worker in crew if worker.alive]
            _hand_out(order, crew, room, lambda cards: _Worker(function, threads, beside, deadlines, cards))
            for worker in _workers_to_attend(crew):
                if (ended := worker.take()) is not None:
                    order.end(*ended)
            watch()
    except Stopped:
        _stop(crew, grace)
        raise
    finally:
        _stop(crew)
    return order.results


launch.takes_graphs = True  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Room:
    """How much is done on this machine at the same time.

    Attributes:
        workers: the most calls; `auto`: those that there are cores for.
        threads: of each call, at the least.
        gpus: those of the machine.
    """

    workers: int | str
    threads: int
    gpus: Shelf = field(default_factory=Shelf)

    def fits(self, needs: Needs, at_work: Sequence[Needs]) -> bool:
        """Whether a call may be made beside those that are; one alone always may."""
        if not at_work:
            return True
        every = [needs, *at_work]
        few = sum(max(each.cores, self.threads) for each in every) <= usable_cores()
        if self.workers != "auto":
            few = len(every) <= int(self.workers)
        return few and sum(each.memory for each in every) <= machine_memory()

    def at_once(self, needs: Sequence[Needs]) -> int:
        """How many of so many calls are made at the same time, the first ones first."""
        beside: list[tuple[Needs, Cards]] = []
        for each in needs:
            if (cards := self.cards_for(each, beside)) is not None:
                beside.append((each, cards))
        return max(1, len(beside))

    def cards_for(self, needs: Needs, at_work: Sequence[tuple[Needs, Cards]]) -> Cards | None:
        """The GPUs that a call gets beside those at work; None where there is no room for it."""
        return self.gpus.place(needs, at_work) if self.fits(needs, [other for other, _ in at_work]) else None


def _hand_out(order: Order, crew: list[_Worker], room: Room, hire: Callable[[Cards], _Worker]) -> None:
    """Give the calls that may start, and for which there is room, to idle workers or to new ones."""
    while (found := order.start(lambda needs: room.cards_for(needs, _at_work(crew)) is not None)) is not None:
        cards = room.cards_for(found[1].needs, _at_work(crew)) or ()
        idle = [worker for worker in crew if worker.given is None]
        worker = next((worker for worker in idle if worker.cards == cards), None)
        if worker is None:
            # What a worker has seen of GPUs it keeps to its end.
            _stop(idle)
            for each in idle:
                crew.remove(each)
            worker = hire(cards)
            crew.append(worker)
        worker.give(*found)


def _at_work(crew: list[_Worker]) -> list[tuple[Needs, Cards]]:
    return [(worker.given[1].needs, worker.cards) for worker in crew if worker.given is not None]


def _workers_to_attend(crew: list[_Worker]) -> list[_Worker]:
    """The workers that say something, and those of which nothing was heard for too long."""
    busy = {worker.pipe: worker for worker in crew if worker.given is not None}
    speaking = wait(list(busy), timeout=POLL_S)
    return [worker for pipe, worker in busy.items() if pipe in speaking or worker.patience.is_over()]


class _Worker:
    """The launching process's side of one worker process."""

    def __init__(
        self, function: str, threads: int, beside: dict[str, str], deadlines: DeadlinesConfig, cards: Cards = ()
    ) -> None:
        self.deadlines, self.deadline, self.patience = deadlines, "start", Countdown(deadlines.start)
        self.given: tuple[int, Call] | None = None
        self.alive, self.stopped = True, False
        self.cards = cards
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads)) | beside
        if cards:
            environment[VISIBLE] = ",".join(cards)
        self.process, self.pipe = children.start("lcd.pipelines.launch.local:work", environment, group=0)
        self.pipe.send((sys.path, function, deadlines, named()))

    def give(self, index: int, call: Call) -> None:
        self.given = index, call
        self.deadline, self.patience = "start", Countdown(self.deadlines.start)
        # A worker that died before its first call is noticed, like any other, when its result is taken.
        with contextlib.suppress(BrokenPipeError):
            self.pipe.send(call)

    def take(self) -> tuple[int, Outcome] | None:
        """What the worker says: the number of its call and how that ended; None where it only makes progress.

        A worker that failed is not used again.
        """
        try:
            error = self.pipe.recv() if self.pipe.poll() else self._given_up()
            if error is BEAT:
                self.deadline, self.patience = "heartbeat", Countdown(self.deadlines.heartbeat)
                return None
        except (EOFError, ConnectionResetError):
            code = self.process.wait()
            self.stopped = code == CONTINUE_ME
            how = f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"
            memory = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
            error = None if self.stopped else f"the worker process died with {how}{memory}"
        given, self.given = self.given, None
        if error is not None or self.stopped:
            self.alive = False
            _stop([self])
        return None if given is None else (given[0], Outcome(given[1], error, stopped=self.stopped))

    def _given_up(self) -> str:
        """End a worker that has hung, after it has written down where; why its call has failed."""
        self.process.send_signal(WHERE)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(LAST_WORDS_S)
        self.signal(signal.SIGKILL)
        what = "of a first step" if self.deadline == "start" else "of another step or update"
        return (
            f"deadlines.{self.deadline}={self.patience.seconds} has passed without a sign {what}: mend what hangs (the "
            "end of the log says where it stood), or give more seconds"
        )

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def _stop(crew: list[_Worker], grace: float | None = None) -> None:
    """End workers: idle ones by closing their pipe, busy ones by SIGTERM, stubborn ones by SIGKILL."""
    for worker in crew:
        if worker.given is None:
            worker.pipe.close()
        elif worker.process.poll() is None:
            worker.process.terminate()
    end = time.monotonic() + (GRACE_S if grace is None else grace)
    try:
        for worker in crew:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, end - time.monotonic()))
    finally:
        for worker in crew:
            if worker.process.poll() is None:
                worker.signal(signal.SIGKILL)
                worker.process.wait()
            worker.pipe.close()


def work(descriptor: int) -> None:
    """A worker's life: take calls until the launching process closes the pipe or dies."""
    signals.handle_stop_signals()
    faulthandler.register(WHERE, all_threads=True)
    pipe = Connection(descriptor)
    try:
        sys.path[:], function, agreed, names = pipe.recv()
    except (EOFError, OSError):
        return  # who started it was stopped before it said what is to be done
    set_deadlines(agreed)
    keep_freed_memory()
    busy = threading.Event()
    calls: SimpleQueue[Call | None] = SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, calls, busy), daemon=True).start()
    speaking = threading.Lock()
    threading.Thread(target=_report_beats, args=(pipe, speaking, busy), daemon=True).start()
    try:
        with naming(names):
            while (call := calls.get()) is not None:
                with _printing_to(call.log):
                    error = _attempt(function, call)
                with speaking:
                    busy.clear()
                    pipe.send(error)
    except (Stopped, BrokenPipeError):
        sys.exit(CONTINUE_ME)


def _report_beats(pipe: Connection, speaking: threading.Lock, busy: threading.Event) -> None:
    """Tell the launching process of progress, now and then and only where there is some."""
    told = 0
    while busy.wait():
        time.sleep(BEAT_S)
        with speaking, contextlib.suppress(OSError):
            if busy.is_set() and count_beats() > told:
                told = count_beats()
                pipe.send(BEAT)


def _receive(pipe: Connection, calls: SimpleQueue[Call | None], busy: threading.Event) -> None:
    while True:
        try:
            call = pipe.recv()
        except (EOFError, OSError):
            break
        busy.set()
        calls.put(call)
    if busy.is_set():
        # The launching process is dead: nobody wants this call's result, and another process may start it anew.
        os._exit(1)
    calls.put(None)


def _attempt(function: str, call: Call) -> str | None:
    try:
        children.resolve(function)(*call.arguments)
    except Exception as error:
        # The disk on which the log lies may be full.
        with contextlib.suppress(OSError):
            if isinstance(error, Cancelled):
                print(children.describe(error))
            else:
                traceback.print_exc()
        return children.describe(error)
    return None


@contextlib.contextmanager
def _printing_to(path: Path | None) -> Iterator[None]:
    """Send what the call prints, native code included, to a file instead of the terminal."""
    try:
        target = os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError:
        # What is wrong with the disk is told by the call itself, which writes there, too.
        target = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in (1, 2):
            os.dup2(target, descriptor)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os.close(target)
