"""`lcd logs`: what runs have printed, as text that commands no terminal; `--follow` goes on as long as they run."""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Iterable
from pathlib import Path

from lcd.config.steering_schemas import LogsConfig
from lcd.envs.errors import InputError
from lcd.files.reading import Unreadable, open_regular
from lcd.pipelines.steering.chosen import asked, chosen, study_of
from lcd.pipelines.steering.glance import Glance, Seen
from lcd.pipelines.study.hands import is_at_work
from lcd.pipelines.study.lease import LOG_FILE
from lcd.process import exits
from lcd.process.exits import printable

LOOK_EVERY_S = 0.5
LONGEST = 64 * 1024 * 1024
"""Bytes of a log that are read, from its end."""
BYTES_A_LINE = 4096
MOST_RUNS = 20


def run(cfg: LogsConfig) -> int:
    """Show the logs of the chosen runs; returns the exit code, 1 where one of them cannot be read."""
    study = study_of(cfg)
    glance = Glance(study)
    found = chosen(glance.look(), cfg)
    if not asked(cfg) and len(found) > 1:
        raise InputError(f"Of {len(found)} runs of {study.path} give one or some: a run id, or state=failed, task=….")
    if len(found) > MOST_RUNS:
        raise InputError(
            f"These are the logs of {len(found)} runs, and {MOST_RUNS} can be shown: give more conditions."
        )
    shown = {each.folder: _Log(each.folder / LOG_FILE, cfg.lines) for each in found}
    wrong = False
    for each in found:
        _say([f"==> {each.label} ({each.name}): {each.state}, {each.folder / LOG_FILE}"])
        try:
            there = os.path.lexists(shown[each.folder].path)
            _say((shown[each.folder].last() if there else []) or ["It has printed nothing."])
        except Unreadable as why:
            wrong = True
            _say([f"It cannot be read ({why})."])
        if each.why:
            _say([f"{each.state}: {each.why}"])
    if cfg.follow:
        _follow(found, shown)
    _say(log.rest for log in shown.values() if log.rest)
    return exits.FAILED if wrong and not cfg.follow else exits.OK


def _follow(found: Iterable[Seen], shown: dict[Path, _Log]) -> None:
    """Show what is added as long as somebody works on one of the runs."""
    told: Path | None = None
    left = list(found)
    while left:
        # Asked first, so that what a run prints at its end is shown.
        at_work = [each for each in left if is_at_work(each.folder) is not False]
        for each in left:
            if (lines := shown[each.folder].added()) and len(shown) > 1 and told != each.folder:
                _say([f"==> {each.label} ({each.name})"])
                told = each.folder
            _say(lines)
        left = at_work
        if left:
            time.sleep(LOOK_EVERY_S)


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(printable(line.expandtabs()), flush=True)


class _Log:
    """A log that may grow.

    Args:
        path: the file, which need not be there yet.
        lines: how many of its last ones are wanted at first; 0: all.
    """

    def __init__(self, path: Path, lines: int) -> None:
        self.path, self.lines, self.place, self.rest = path, lines, 0, ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def last(self) -> list[str]:
        """Its last lines.

        Raises:
            Unreadable: where there is none, or it is no regular file.
        """
        with open_regular(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            most = min(LONGEST, self.lines * BYTES_A_LINE) if self.lines else LONGEST
            self.place = max(0, size - most)
        return self.added()[-self.lines :]

    def added(self) -> list[str]:
        """The whole lines that were added since it was last looked at."""
        try:
            with open_regular(self.path) as file:
                if os.fstat(file.fileno()).st_size < self.place:
                    self.place = 0
                file.seek(self.place)
                found = file.read(LONGEST)
        except (Unreadable, OSError):
            return []
        self.place += len(found)
        *lines, self.rest = (self.rest + self._decoder.decode(found)).replace("\r\n", "\n").split("\n")
        return lines
