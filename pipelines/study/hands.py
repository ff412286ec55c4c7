"""Hands, as they are on machines: who holds a lease, whether that one is still there, and which one this process has.

A hand on the same machine is asked for by its process. Of any other, observers see only whether it beats: whether its
entry in the ledger was touched since they looked first. How long that takes is told by the observer's clock alone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcd.envs.errors import InputError
from lcd.files.ledger import Disk, Ledger
from lcd.pipelines.study.lease import (
    AT_WORK,
    LEASES,
    LOG_FILE,
    Entry,
    Lease,
    folder_of,
    last_entry,
    run_folder,
    settle,
    take,
)
from lcd.process.signals import Stopped

LEASE_VARIABLE = "LCD_LEASE_S"
"""The environment variable with the seconds that a hand on another machine may be silent."""
LEASE_S = 120.0
BEATS = 8
"""In so many parts of that time a hand beats once."""
LOOK_S = 0.05
DISK = Disk()

FREE, HELD, GONE, SILENT = "free", "held", "gone", "silent"
"""What an observer sees of a lease: nobody has it; its holder is there, is known to be dead, was silent too long."""


class Lost(Stopped):
    """Another hand has the run now: what this one has trained since is nobody's."""


def lease_seconds() -> float:
    """How long a hand on another machine may be silent before another takes its run over."""
    try:
        return max(0.1, float(os.environ[LEASE_VARIABLE]))
    except (KeyError, ValueError):
        return LEASE_S


def myself() -> dict[str, Any]:
    """Who this process is, for others on this machine and for people."""
    own = _process(os.getpid())
    return {"host": socket.gethostname(), "pid": os.getpid(), "started": own, "machine": _machine()}


def _machine() -> str | None:
    """What tells one start of one machine, and what process ids mean there, from all others; None where nothing does.

    Containers have their own process ids, so that one cannot tell whether another's process lives.
    """
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _process(pid: int) -> str | None:
    """When a process of this machine started, None where there is none that runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[19]


def is_here(entry: Entry) -> bool | None:
    """Whether the process that wrote an entry runs on this machine; None where that cannot be told."""
    by = entry.by or {}
    if by.get("machine") is None or by["machine"] != _machine() or not isinstance(by.get("pid"), int):
        return None
    return by.get("started") is not None and _process(by["pid"]) == by["started"]


@dataclass(frozen=True)
class Sight:
    """A lease that an observer saw: its number, and the stamp that its holder's last beat left."""

    number: int = 0
    stamp: int | None = None


@dataclass
class Watch:
    """An observer of one run's leases.

    Attributes:
        run: the run's folder.
        clock: the observer's own.
        disk: where the run lies.
    """

    run: Path
    clock: Callable[[], float] = time.monotonic
    disk: Disk = DISK
    seen: Sight = field(default_factory=Sight)
    _since: float = 0.0

    def look(self) -> tuple[str, Entry]:
        """What is seen of the lease now, and the ledger's last entry."""
        entry = last_entry(self.disk, self.run)
        if entry.free:
            return FREE, entry
        sight = Sight(entry.number, self.disk.stamp(Ledger(self.disk, self.run / LEASES).place(entry.number)))
        if sight != self.seen:
            self.seen, self._since = sight, self.clock()
        if is_here(entry) is False:
            return GONE, entry
        return (SILENT if self.clock() - self._since >= lease_seconds() else HELD), entry


def is_at_work(run: Path) -> bool | None:
    """Does a hand have a run, for a reader? None where that cannot be told from here."""
    try:
        state, entry = Watch(run).look()
    except PermissionError:
        return None
    return None if state == HELD and is_here(entry) is None else state == HELD


def is_held(run: Path) -> bool:
    """Whether a hand has a run, as far as one look tells."""
    return Watch(run).look()[0] == HELD


def free_to_take(runs: Iterable[Path], wait: Callable[[], None] = lambda: None) -> dict[Path, Sight]:
    """Those of some runs that no hand has.

    A hand of another machine has one when it beats, and has none when it was silent for as long as it may be: where
    nothing else tells, that is waited for.

    Args:
        runs: their folders.
        wait: called once, if there is anything to wait for.

    Returns:
        Runs, with what was seen of each last: what `acquire` takes as `silent`.
    """
    watches, free = {run: Watch(run) for run in runs}, {}
    first: dict[Path, Sight] = {}
    while watches:
        for run, watch in list(watches.items()):
            state, entry = watch.look()
            if state != HELD:
                free[watches.pop(run).run] = watch.seen
            elif is_here(entry) or first.setdefault(run, watch.seen) != watch.seen:
                del watches[run]
        if watches:
            wait()
            wait = lambda: None  # noqa: E731
            time.sleep(min(LOOK_S, lease_seconds() / 20))
    return free


def refuse_odd(run: Path) -> None:
    """Refuse a run where who works on it would write through a stranger's link, or to what is no file or folder."""
    folders = [run.parent, run, run / LEASES, run / AT_WORK]
    if not (run / AT_WORK).is_symlink():
        of_hands = [run / AT_WORK / name for name in DISK.names(run / AT_WORK)]
        folders += of_hands + [folder / run.name for folder in of_hands]
    for path, is_right in ((run / LOG_FILE, stat.S_ISREG), *((folder, stat.S_ISDIR) for folder in folders)):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if not is_right(path.lstat().st_mode):
                what = "file" if is_right is stat.S_ISREG else "folder"
                raise InputError(f"{path} is no {what}, or a link: nothing is written there; remove it.")


def acquire(
    run: Path, silent: Sight | None = None, needed: Callable[[], bool] = lambda: True
) -> tuple[Lease, bool] | None:
    """Take a run's lease, if nobody has it; that takes as long as it takes to see that.

    Args:
        run: the run's folder.
        needed: whether there is anything to be done; asked once nobody has the lease, and where the lease is taken
            nothing has changed since.
        silent: what somebody has seen for long enough, if so.

    Returns:
        The lease, and whether the hand before is known to write no more; None where another hand has it, or where
        nothing is to be done.
    """
    refuse_odd(run)
    watch, first = Watch(run), None
    while True:
        state, entry = watch.look()
        if state == HELD and watch.seen == silent:
            state = SILENT
        if state != HELD:
            settle(DISK, run)
            lease = take(DISK, run, entry, myself()) if needed() else None
            return None if lease is None else (lease, state != SILENT)
        first = first or watch.seen
        # One that runs here, or that was seen to beat, has it.
        if watch.seen != first or is_here(entry):
            return None
        time.sleep(min(LOOK_S, lease_seconds() / 20))


_held: Lease | None = None


def require(folder: str | Path) -> None:
    """Refuse to write into a folder that this process holds by a lease and has lost."""
    if _held is not None and Path(folder) == _held.folder and _held.lost:
        raise Lost


@contextlib.contextmanager
def holding(lease: Lease) -> Iterator[None]:
    """Beat while this lasts, and have what writes into the lease's folder ask whether it may (`require`)."""
    global _held
    over, before = threading.Event(), _held
    thread = threading.Thread(target=_beat, args=(lease, over), daemon=True)
    _held = lease
    thread.start()
    try:
        yield
    finally:
        _held = before
        over.set()
        thread.join()


def _beat(lease: Lease, over: threading.Event) -> None:
    while not over.wait(lease_seconds() / BEATS):
        # A disk that is away for a moment may come back before the lease is over.
        with contextlib.suppress(OSError):
            lease.beat()


def where(folder: Path) -> Path:
    """Where the files of a run are now, of its folder or of one that a hand works in."""
    try:
        return folder if run_folder(folder) != folder else folder_of(DISK, folder)
    except PermissionError:  # somebody else's, which may not be read
        return folder
