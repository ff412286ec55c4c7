"""What a study remembers, `study.yaml`, and how several commands change it at once without losing what others wrote.

Every content that the file is to have is first an entry of a ledger; who finds that another command was quicker makes
its change again, to what that one wrote. The file is a copy of the last entry, which whoever comes next puts in place
if a kill came in between. A user may change the file: what is in none of the entries is taken as it stands.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from lcd.envs.errors import InputError
from lcd.files.ledger import Disk, Ledger
from lcd.files.reading import Unreadable, parse_yaml, read_bytes
from lcd.scores.contrasts import DEFINITIONS, USUAL_DEFINITION

if TYPE_CHECKING:
    from lcd.pipelines.study.store import Study

STUDY_FILE = "study.yaml"
REVISIONS = ".revisions"
Record = dict[str, Any]


def definition_of(study: Study | None) -> str:
    """The definition that a study was last asked for with, else the usual one; a stranger's file may hold anything."""
    found = None if study is None else study.record.get("definition")
    return found if isinstance(found, str) and found in DEFINITIONS else USUAL_DEFINITION


class Remembered:
    """The file of a study, and the ledger of what was written there.

    Args:
        disk: where the study lies.
        study: its folder.
    """

    def __init__(self, disk: Disk, study: Path):
        self.disk, self.file = disk, study / STUDY_FILE
        self.ledger = Ledger(disk, study / REVISIONS)
        self._mine: set[int] = set()

    def is_mine(self, after: int) -> bool:
        """Whether all that was written after an entry was written here."""
        return set(range(after + 1, self.ledger.last() + 1)) <= self._mine

    def content(self) -> tuple[int, bytes | None]:
        """What holds now, as the number of the last entry and the file's content; None where there is none."""
        last, found = self.ledger.last(), self._file()
        newest = self.ledger.read(last)
        if newest is None or found == newest:
            return last, found
        if found is None or any(found == self.ledger.read(number) for number in range(1, last)):
            # Its writer was killed before it came to the file, or was so slow that others were here since.
            return last, newest or None
        return last, found

    def _file(self) -> bytes | None:
        """What the file holds; an `InputError` where it may not be read."""
        if not os.path.lexists(self.file):
            return None
        try:
            return read_bytes(self.file)
        except Unreadable as why:
            raise self._unreadable(why) from None

    def write(self, after: int, content: bytes | None) -> bool:
        """Write what is to hold after an entry, None for no file; False where another wrote since."""
        if not self.ledger.add(after + 1, content or b""):
            return False
        self._mine.add(after + 1)
        if content is None:
            self.disk.remove(self.file)
        else:
            self.disk.replace(self.file, content)
        return True

    def change(self, change: Callable[[Record], Record]) -> Record:
        """Change the record; `change` is called again with what others wrote until nobody came in between.

        Returns:
            The record that holds now.
        """
        while True:
            last, found = self.content()
            before = self.parse(found)
            record = change(before)
            if found is not None and record == before:
                return record
            text = yaml.safe_dump(record, sort_keys=False, allow_unicode=True).encode()
            if self.write(last, text):
                return record

    def parse(self, content: bytes | None) -> Record:
        """A record; a stranger's file may hold anything."""
        record: Any = {}
        if content is not None:
            try:
                record = parse_yaml(content)
            except Unreadable as why:
                raise self._unreadable(why) from None
        if not isinstance(record, dict):
            record = {}
        requests = record["requests"] if isinstance(record.get("requests"), list) else []
        return {"created": time.strftime("%Y-%m-%dT%H:%M:%S%z")} | record | {"requests": requests}

    def _unreadable(self, why: Unreadable) -> InputError:
        return InputError(
            f"{self.file} cannot be read ({why}): mend it, or move it away and ask for the study again; its runs stay."
        )
