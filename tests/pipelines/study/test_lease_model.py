"""Leases, proved by trying: every order in which hands can be mixed, paused and killed keeps what they promise.

The functions are those that commands use, on a file system in memory. Hands here trust no clock at all: each takes the
lease of whoever has it as if that one had been silent for ever, though it may be at work. So what holds does not hang
on how long a hand may be silent. A hand that is killed is one that is not taken any further; that is in every order of
the others.
"""

import json
from functools import partial
from pathlib import Path

from interleaving import Alone, Files, explored

from lcd.pipelines.study.lease import DONE, LEASES, folder_of, last_entry, run_folder, settle, take
from lcd.pipelines.study.remembered import Remembered

RUN, STUDY = Path("runs/a"), Path("study")
CURVE, CHECKPOINT, STATUS = "curve.csv", "checkpoints/last.ckpt", "status.json"


class Watched(Files):
    """Files that know of each row whether its writer's folder had been taken over by another when it was written."""

    def append(self, path, content):
        number = int(path.parents[1].name)
        others = [int(name) for name in self.names(path.parents[2]) if name.isdigit()]
        super().append(path, content + (b"late" if any(other > number for other in others) else b"") + b"\n")


def begun():
    """A run that was asked for."""
    files = Watched()
    files.make(RUN)
    files.replace(RUN / "config.yaml", b"config")
    files.replace(RUN / STATUS, b"queued")
    return files


def hand(disk, steps):
    """What a worker does for a run, in its order."""
    last = last_entry(disk, RUN)
    settle(disk, RUN)
    if disk.read(RUN / STATUS) == b"done":
        return
    lease = take(disk, RUN, last)
    if lease is None:
        return
    try:
        if not lease.prepare():
            return
        if disk.read(lease.folder / STATUS) != b"done" and not train(disk, lease, steps):
            return
    except FileNotFoundError:
        # Another hand has removed the folder of this one.
        assert lease.lost
        return
    lease.end(done=True)


def train(disk, lease, steps):
    """Rows, then the checkpoint that relies on them; whether the end was reached."""
    folder = lease.folder
    kept, curve = disk.read(folder / CHECKPOINT), disk.read(folder / CURVE) or b""
    step = int(kept or 0)
    rows = [row for row in curve.splitlines(keepends=True) if row.endswith(b"\n") and step_of(row) <= step]
    if [step_of(row) for row in rows] != list(range(1, step + 1)):
        # Only a later hand may have removed what this one reads.
        assert lease.lost, "rows that a checkpoint relies on are lost"
        return False
    disk.replace(folder / CURVE, b"".join(rows))
    disk.make(folder / "checkpoints")
    while step < steps:
        step += 1
        if lease.lost:
            return False
        disk.append(folder / CURVE, f"{step} {lease.number} ".encode())
        if lease.lost:
            return False
        disk.replace(folder / CHECKPOINT, str(step).encode())
    disk.replace(folder / STATUS, b"done")
    return True


def step_of(row):
    return int(row.split()[0])


def wrong(files, steps):
    """What is wrong with a file system, whatever hands are doing there."""
    entries = [json.loads(files.read(RUN / LEASES / name)) for name in files.names(RUN / LEASES)]
    assert sum(entry["what"] == DONE for entry in entries) <= 1, "a run was trained twice"
    if files.read(RUN / STATUS) == b"done":
        rows = [row.split() for row in files.read(RUN / CURVE).splitlines()]
        assert [int(row[0]) for row in rows] == list(range(1, steps + 1)), "the curve has other rows than its steps"
        assert sorted(rows, key=lambda row: int(row[1])) == rows, "a hand wrote after the one that came after it"
        assert all(len(row) == 2 for row in rows), "a straggler's row is in the curve"
        assert files.read(RUN / CHECKPOINT) == str(steps).encode()
        assert folder_of(Alone(files), RUN) == RUN


def looked_at(files, steps):
    """Nothing is wrong, and one more hand, left alone, ends the run: nothing was lost, and nothing is stuck."""
    wrong(files, steps)
    assert run_folder(folder_of(Alone(files), RUN)) == RUN
    later = Watched(files.held)
    hand(Alone(later), steps)
    assert later.read(RUN / STATUS) == b"done"
    wrong(later, steps)


def test_two_hands_in_every_order():
    states, contents = explored([partial(hand, steps=2)] * 2, begun(), partial(looked_at, steps=2))
    assert states > 1000
    assert contents > 100


def test_three_hands_that_take_turns_a_few_times():
    states, _ = explored([partial(hand, steps=1)] * 3, begun(), partial(looked_at, steps=1), most_switches=3)
    assert states > 1000


def test_a_study_remembers_what_every_command_writes_in_every_order():
    def ask(disk, name):
        remembered = Remembered(disk, STUDY)
        remembered._file = lambda: disk.read(remembered.file)
        record = remembered.change(lambda record: record | {"requests": [*record["requests"], name]})
        assert name in record["requests"]

    def look(files):
        remembered = Remembered(Alone(files), STUDY)
        remembered._file = lambda: files.read(remembered.file)
        last, content = remembered.content()
        found = remembered.parse(content)["requests"]
        assert len(found) == len(set(found)) == last, "a request was lost, or is there twice"

    files = Files()
    files.make(STUDY)
    states, _ = explored([partial(ask, name=name) for name in "ab"], files, look)
    assert states > 20
    assert explored([partial(ask, name=name) for name in "abc"], files, look, most_switches=4)[0] > 100
