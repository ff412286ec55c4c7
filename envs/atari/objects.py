"""Where the things of a game are by OCAtari, an installed library that knows far more games than our own tables."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from functools import cache
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lcd.envs.masks import ALL_WHITE, BACKGROUND, Moment

LIBRARY = "ocatari"


class ObjectMasks:
    """Labels by OCAtari's boxes: a class for each kind of thing, the smaller drawn over the larger."""

    ground = 1
    figure = ALL_WHITE

    def __init__(self, game: str) -> None:
        """Take a game that the library knows."""
        self.game, self.finder = game, _finder()
        self.names = (BACKGROUND, *sys.modules[f"{LIBRARY}.ram.{game.lower()}"].MAX_NB_OBJECTS)
        # Things are followed from step to step: what is known of an episode's, and its frame.
        self._followed: WeakKeyDictionary[Any, tuple[list[Any], int]] = WeakKeyDictionary()

    def __call__(self, moment: Moment) -> np.ndarray:
        """The class of each pixel of the screen."""
        console = moment.env.ale
        frame = console.getEpisodeFrameNumber()
        things, last = self._followed.get(moment.env, ([], frame))
        if frame <= last:
            things = self.finder.init_objects(self.game, False)
        # As numbers that do not wrap around at 256: the library was written for a numpy that took care of it.
        self.finder.detect_objects_ram(things, console.getRAM().astype(np.int64), self.game, False)
        self._followed[moment.env] = things, frame
        found = np.zeros(console.getScreenDims(), np.uint8)
        boxes = [(thing.category, *(int(number) for number in thing.xywh)) for thing in things if thing]
        for name, left, top, width, height in sorted(boxes, key=lambda box: -box[3] * box[4]):
            if name in self.names:
                rows, columns = slice(max(top, 0), max(top + height, 0)), slice(max(left, 0), max(left + width, 0))
                found[rows, columns] = self.names.index(name)
        return found

    def __str__(self) -> str:
        return "OCAtari's boxes"


@cache
def _finder() -> Any:
    """The part of the library that reads memory; what it brings along greets whoever imports it."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with contextlib.redirect_stdout(io.StringIO()):
        return import_module(f"{LIBRARY}.ram.extract_ram_info")
