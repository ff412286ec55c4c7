"""Who may train a run: a lease, which one hand holds at a time, and where the run's files are meanwhile.

A hand is a worker, of whatever command, on whatever machine. docs/cluster.md tells the protocol and why it holds;
tests/pipelines/study/test_lease_model.py runs these functions in every order in which hands can be mixed.

    runs/<run id>/
      leases/000001          a ledger: who took a lease, and who ended it; each number is written once, by one
      at-work/1/<run id>/    what the hand of lease 1 writes: status.json, curve.csv, checkpoints/, …
      curve.csv  …           what the last hand left, once the run is done

A hand writes into a folder of its own alone. Another hand that takes the next lease begins with a copy of it, and never
looks there again: so whatever a straggler, who does not know yet that it lost its lease, goes on to write is nobody's.
That a run is done is an entry of the same ledger as the next hand's lease: of the two there is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcd.files.atomic import UNFINISHED
from lcd.files.ledger import Disk, Ledger, numbers
from lcd.files.reading import parse_json

LEASES, AT_WORK = "leases", "at-work"
TAKEN, ENDED, DONE = "taken", "ended", "done"
STATUS_FILE, CHECKPOINTS, LOG_FILE = "status.json", "checkpoints/", "log.txt"
OF_THE_RUN = (LEASES, AT_WORK, LOG_FILE, ".lock", "cancelled")
"""What lies in a run's folder and belongs to no hand."""


@dataclass(frozen=True)
class Entry:
    """What stands in a run's ledger.

    Attributes:
        number: its place there; 0 where nothing does.
        what: `TAKEN`, or how that lease was given back: `ENDED`, or `DONE` where the run is.
        lease: the number of the lease that this is about.
        since: the last entry before the lease that said `DONE`; 0 where none did.
        by: who wrote it.
    """

    number: int = 0
    what: str = ENDED
    lease: int = 0
    since: int = 0
    by: Mapping[str, Any] | None = None

    @property
    def free(self) -> bool:
        """Whether nobody holds a lease."""
        return self.what != TAKEN


def last_entry(disk: Disk, run: Path) -> Entry:
    """The last entry of a run's ledger."""
    ledger = Ledger(disk, run / LEASES)
    number = ledger.last()
    return _entry(number, ledger.read(number)) if number else Entry()


def _entry(number: int, content: bytes | None) -> Entry:
    """An entry; of what a stranger may have put there, one that somebody took and who that was nobody knows."""
    try:
        found = parse_json((content or b"").decode())
        what, lease, since, by = (found.get(key) for key in ("what", "lease", "since", "by"))
        if what in (TAKEN, ENDED, DONE) and 0 < lease <= number and 0 <= since < number:
            return Entry(number, what, int(lease), int(since), by if isinstance(by, dict) else None)
    except (ValueError, TypeError, AttributeError):
        pass
    return Entry(number, TAKEN, number)


def folder_of(disk: Disk, run: Path) -> Path:
    """Where the files of a run are now: in the folder of its last hand until the run is done, then in its own."""
    numbers = _hands_folders(disk, run)
    if not numbers:
        return run
    entry = last_entry(disk, run)
    mine = [number for number in numbers if number > entry.since]
    return run if entry.what == DONE or not mine else hands_folder(run, mine[-1])


def hands_folder(run: Path, number: int) -> Path:
    """Where the holder of a lease works; it is called as the run is."""
    return run / AT_WORK / str(number) / run.name


def run_folder(folder: Path) -> Path:
    """The run's folder, of that which a hand works in or of itself."""
    at_work = len(folder.parts) > 3 and folder.parents[1].name == AT_WORK
    return folder.parents[2] if at_work else folder


def take(disk: Disk, run: Path, last: Entry, by: Mapping[str, Any] | None = None) -> Lease | None:
    """Take the lease that comes after an entry, of which it was judged that it may be; None where another was quicker.

    Args:
        disk: where the run lies.
        run: its folder.
        last: the last entry of its ledger when it was judged.
        by: who takes it.
    """
    number = last.number + 1
    since = last.number if last.what == DONE else last.since
    lease = Lease(disk, run, number, since)
    return lease if lease.write(number, TAKEN, by) else None


@dataclass(frozen=True)
class Lease:
    """The right to train a run, as its holder has it.

    Attributes:
        disk: where the run lies.
        run: its folder.
        number: the lease's.
        since: the last entry before it that said that the run is done.
    """

    disk: Disk
    run: Path
    number: int
    since: int

    @property
    def folder(self) -> Path:
        """The one that the holder writes into."""
        return hands_folder(self.run, self.number)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.disk, self.run / LEASES)

    def write(self, number: int, what: str, by: Mapping[str, Any] | None = None) -> bool:
        """Add an entry about this lease; False where there is another of that number."""
        told = {"what": what, "lease": self.number, "since": self.since, "by": by}
        return self.ledger.add(number, json.dumps(told).encode())

    @property
    def lost(self) -> bool:
        """Whether another hand has the run now."""
        return self.disk.read(self.ledger.place(self.number + 1)) is not None

    def beat(self) -> None:
        """Say that the holder is there."""
        self.disk.touch(self.ledger.place(self.number))

    def prepare(self, anew: bool = False, still: bool = False) -> bool:
        """Make the holder's folder, with what the hand before left; others' folders go.

        Returns False where another hand took the run meanwhile: it may have removed what was to be copied.

        Args:
            anew: leave what was trained where it is.
            still: whether the hand before is known to write no more, so that files need not be copied.
        """
        disk, drafted = self.disk, self.run / AT_WORK / f".{self.number}{UNFINISHED}"
        if self.since:
            _put_in_place(disk, self.run, _entry(self.since, self.ledger.read(self.since)))
        before = None
        # A straggler may put its folder in place while this one copies, and then remove what is copied.
        while before != (now := self._before()):
            before = now
            disk.remove(drafted)
            disk.make(drafted / self.run.name)
            self._copy(before, drafted / self.run.name, anew, still)
        disk.rename(drafted, self.folder.parent)
        self._clear(self.number)
        return not self.lost

    def _before(self) -> int:
        """The number of the last hand whose folder is there; 0 where none did anything since the run was last done."""
        mine = [number for number in _hands_folders(self.disk, self.run) if self.since < number < self.number]
        return max(mine, default=0)

    def _copy(self, before: int, draft: Path, anew: bool, still: bool) -> None:
        source = hands_folder(self.run, before) if before else self.run
        still = before > 0 and (still or self._was_ended(before))
        for name in _in_reading_order(self.disk, source):
            if not anew or name == "config.yaml":
                self.disk.make((draft / name).parent)
                self.disk.copy(source / name, draft / name, link=still)

    def _was_ended(self, number: int) -> bool:
        """Whether the holder of an earlier lease gave it back, after which it writes nothing."""
        entry = _entry(number + 1, self.ledger.read(number + 1))
        return entry.what == ENDED and entry.lease == number

    def end(self, done: bool = False) -> bool:
        """Give the lease back; False where it was lost before, and what the holder wrote is nobody's."""
        if not self.write(self.number + 1, DONE if done else ENDED):
            return False
        if done:
            settle(self.disk, self.run)
        return True

    def _clear(self, below: int) -> None:
        """Remove what earlier hands worked in."""
        for name in self.disk.names(self.run / AT_WORK):
            for number in numbers([name.removeprefix(".").removesuffix(UNFINISHED)]):
                if number < below:
                    self.disk.remove(self.run / AT_WORK / name)


def settle(disk: Disk, run: Path) -> None:
    """Put what a hand left of a run that is done in its place; may be begun again wherever it was interrupted.

    Whoever comes next does it if the hand itself was killed. A file is moved once: of several who do this one after
    the other, or at the same time, each moves what the others did not, and nobody ever removes a file in its place.
    """
    if _hands_folders(disk, run) and (entry := last_entry(disk, run)).what == DONE:
        _put_in_place(disk, run, entry)


def _put_in_place(disk: Disk, run: Path, entry: Entry) -> None:
    """Put what the hand left that said in an entry that the run is done in its place."""
    source = hands_folder(run, entry.lease)
    # The status says that the run is done: it comes last.
    for name in sorted(_files(disk, source), key=lambda name: name == STATUS_FILE):
        disk.make((run / name).parent)
        disk.rename(source / name, run / name)
    Lease(disk, run, entry.lease, entry.since)._clear(entry.lease + 1)
    disk.remove_empty(run / AT_WORK)


def _hands_folders(disk: Disk, run: Path) -> list[int]:
    """The numbers of the leases whose holders' folders are there."""
    return numbers(disk.names(run / AT_WORK))


def _in_reading_order(disk: Disk, folder: Path) -> Iterator[str]:
    """The files in a hand's folder, each looked for when those before it were read.

    The hand may still be writing, and it writes rows, then the checkpoint that relies on them, then that all is done.
    Who reads in the opposite order has all that is relied on.
    """
    yield STATUS_FILE
    yield from [name for name in _files(disk, folder) if name.startswith(CHECKPOINTS)]
    yield from [name for name in _files(disk, folder) if name != STATUS_FILE and not name.startswith(CHECKPOINTS)]


def _files(disk: Disk, folder: Path, below: str = "") -> Iterator[str]:
    """The files in a folder and below, sorted, but for those of the run itself and those that are half written."""
    for name in disk.names(folder / below):
        inner = f"{below}{name}"
        if inner in OF_THE_RUN or name.endswith(UNFINISHED):
            continue
        if disk.is_folder(folder / inner):
            yield from _files(disk, folder, f"{inner}/")
        else:
            yield inner
