"""From the frames of a skin to masks: what is left to do where a sprite's colour alone does not give the class.

Ten games need nothing: their skins are painted in the masks' greys. Elsewhere the pixels that are not grey are few and
are looked up; three games are helped by their state, read when a level starts:

- bossfight: player and boss may be given one and the same laser. The masks' game always gives them different ones.
- starpilot: slow and fast flyers share sprites. The masks' game draws them with different opacities.
- plunder: the level's cue says which ship is an enemy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from lcd.envs.procgen.mask_tables import TABLES
from lcd.envs.procgen.paint import ship_colour
from lcd.envs.procgen.snapshot import Snapshot, cue_theme, laser_themes, waiting

UNKNOWN = 1
"""A grey that no label has: what a pixel of unknown colour becomes."""

# What is drawn of jumper's puff: white with this opacity (of 255).
_PUFF = 120

_LASERS = {"player": (1, 6), "boss": (4, 5)}
_SLOW, _FAST = 4, 8
_OPACITY = {_SLOW: 0.9, _FAST: 0.5}


class States(Protocol):
    """What a decoder needs of an engine."""

    def get_state(self, copy: int) -> bytes:
        """The state of a copy."""
        ...

    def set_state(self, copy: int, state: bytes) -> None:
        """Continue a copy."""
        ...


class Decoder:
    """Turns frames into masks. This one is for games whose frames are masks already."""

    reads_levels = False
    """Must `level_started` be called?"""

    def __init__(self, game: str, view: str, copies: int) -> None:
        """Read the game's frames of so many copies as `semantic` or `figure_ground`."""
        table = TABLES[game]
        self.game, self.copies = game, copies
        greys = np.array(table.intensities(view), dtype=np.uint8)
        self.grey = {name: greys[label] for name, label in table.labels(view).items()}

    def __call__(self, frames: np.ndarray, engine: States) -> np.ndarray:
        """New masks (copies, 64, 64, 3) from frames of that shape."""
        masks = frames.copy()
        self.label(masks.reshape(-1, 3), engine)
        return masks

    def label(self, pixels: np.ndarray, engine: States) -> None:
        """Give the pixels (all copies', one after the other) that are no masks' greys yet theirs, in place."""

    def disguise(self, state: Snapshot, copy: int) -> None:
        """Change a state so that its frames tell the classes apart; nothing but drawing may depend on it."""

    def undisguise(self, state: Snapshot, copy: int) -> None:
        """Undo `disguise`."""

    def level_started(self, engine: States, copy: int) -> None:
        """A copy has begun a level."""
        state = Snapshot(engine.get_state(copy))
        self.disguise(state, copy)
        engine.set_state(copy, bytes(state))


# Pixels are compared and written as wholes of three bytes, which is several times faster than by channels.
_WHOLE = np.dtype("V3")
_GREYS = np.repeat(np.arange(256, dtype=np.uint8), 3).view(_WHOLE)


def coloured(pixels: np.ndarray) -> np.ndarray:
    """Which pixels have unequal green and blue."""
    values = pixels.reshape(-1)
    return np.flatnonzero((values[1:-1] != values[2:])[::3])


def write(pixels: np.ndarray, where: np.ndarray, greys: np.ndarray) -> None:
    """Make some pixels grey."""
    pixels.view(_WHOLE).reshape(-1)[where] = _GREYS[greys]


class Drawn(Decoder):
    """Games that draw things in colours of their own: ninja, plunder."""

    def __init__(self, game: str, view: str, copies: int) -> None:
        super().__init__(game, view, copies)
        self.by_red = np.full(256, UNKNOWN, dtype=np.uint8)
        for entity in TABLES[game].entities:
            for red, _, _ in entity.colours:
                self.by_red[red] = self.grey[entity.name]

    def label(self, pixels: np.ndarray, engine: States) -> None:
        special = coloured(pixels)
        write(pixels, special, self.by_red[pixels[special, 0]])


class Chaser(Decoder):
    """Chaser, whose squares are pure green: where green is spread to red and blue they are white, as their label is."""

    def __init__(self, game: str, view: str, copies: int) -> None:
        super().__init__(game, view, copies)
        self.green = np.tile(np.array([0, 255, 0], dtype=np.uint8), copies * 64 * 64)

    def label(self, pixels: np.ndarray, engine: States) -> None:
        values = pixels.reshape(-1)
        green = values & self.green
        np.bitwise_or(values[:-1], green[1:], out=values[:-1])
        np.bitwise_or(values[1:], green[:-1], out=values[1:])


class Jumper(Decoder):
    """Jumper, which also draws a half-transparent puff where the player jumps: what lies behind it is shown.

    No value of a channel means two things here, so that all bytes are looked up in one table.
    """

    def __init__(self, game: str, view: str, copies: int) -> None:
        super().__init__(game, view, copies)
        greys = (0, *map(int, self.grey.values()))
        table = bytearray([UNKNOWN]) * 256
        for entity in TABLES[game].entities:
            for value in (value for colour in entity.colours for value in colour):
                table[value] = self.grey[entity.name]
        for grey in greys:
            table[_through_puff(grey)] = grey
        for grey in greys:
            table[grey] = grey
        self.table = bytes(table)

    def __call__(self, frames: np.ndarray, engine: States) -> np.ndarray:
        return np.frombuffer(bytearray(frames).translate(self.table), dtype=np.uint8).reshape(frames.shape)


def _through_puff(grey: int) -> int:
    """What Qt makes of a grey that a puff covers."""
    left = grey * (255 - _PUFF)
    return _PUFF + (left + (left >> 8) + 128 >> 8)


class Plunder(Drawn):
    """Plunder: ships are told apart by the level's cue."""

    reads_levels = True

    def __init__(self, game: str, view: str, copies: int) -> None:
        super().__init__(game, view, copies)
        self.by_red = np.tile(self.by_red, (copies, 1))

    def level_started(self, engine: States, copy: int) -> None:
        self.disguise(Snapshot(engine.get_state(copy)), copy)

    def disguise(self, state: Snapshot, copy: int) -> None:
        cue = cue_theme(state)
        for theme in range(6):
            owner = "enemy ships and cue" if theme == cue else "player and ally ships"
            self.by_red[copy, ship_colour(theme)[0]] = self.grey[owner]

    def label(self, pixels: np.ndarray, engine: States) -> None:
        special = coloured(pixels)
        copies = special // (len(pixels) // self.copies)
        write(pixels, special, self.by_red[copies, pixels[special, 0]])


class BossfightFigures(Decoder):
    """Bossfight as figure and ground: what fades is figure to the end."""

    def __call__(self, frames: np.ndarray, engine: States) -> np.ndarray:
        return (frames != 0) * np.uint8(255)


class Bossfight(Decoder):
    """Bossfight: lasers and their trails by who fired them, also where they fade over each other."""

    reads_levels = True

    def __init__(self, game: str, view: str, copies: int) -> None:
        super().__init__(game, view, copies)
        self.themes = np.zeros((copies, 2), dtype=np.int32)

    def disguise(self, state: Snapshot, copy: int) -> None:
        themes = laser_themes(state)
        self.themes[copy] = themes
        self._give(state, themes, (0, 1))

    def undisguise(self, state: Snapshot, copy: int) -> None:
        self._give(state, laser_themes(state), self.themes[copy])

    def _give(self, state: Snapshot, themes: np.ndarray, wanted: tuple[int, int] | np.ndarray) -> None:
        themes[:] = wanted
        for types, theme in zip(_LASERS.values(), wanted, strict=True):
            state.entities["image_theme"][np.isin(state.entities["type"], types)] = theme

    def label(self, pixels: np.ndarray, engine: States) -> None:
        special = coloured(pixels)
        red, green, blue = pixels[special].astype(np.int16).T
        players = 2 * (red - green) > blue - green
        write(pixels, special, np.where(players, self.grey["player projectiles"], self.grey["enemy projectiles"]))


class Starpilot(Decoder):
    """Starpilot: flyers by the opacity that their kind is drawn with, and by their order where both overlap."""

    reads_levels = True

    def disguise(self, state: Snapshot, copy: int) -> None:
        self._draw(state, lambda kind: _OPACITY[kind])

    def undisguise(self, state: Snapshot, copy: int) -> None:
        self._draw(state, lambda kind: 1.0)

    def _draw(self, state: Snapshot, opacity: Callable[[int], float]) -> None:
        for entities in (state.entities, waiting(state)):
            for kind in _OPACITY:
                entities["alpha"][entities["type"] == kind] = opacity(kind)

    def label(self, pixels: np.ndarray, engine: States) -> None:
        special = coloured(pixels)
        cover = pixels[special, 2] - pixels[special, 1]
        # Of 255: fast flyers alone cover 127, 191, 223; slow ones 229 and 252; both together something else.
        slow = (cover > 226) & (cover < 235) | (cover > 250)
        both = (cover >= 235) & (cover <= 250)
        write(pixels, special, np.where(slow, self.grey["slow flyers"], self.grey["fast flyers"]))
        if both.any():
            self._settle(pixels, special[both], engine)

    def _settle(self, pixels: np.ndarray, where: np.ndarray, engine: States) -> None:
        area = len(pixels) // self.copies
        for copy in np.unique(where // area):
            here = where[where // area == copy]
            state = Snapshot(engine.get_state(int(copy)))
            flyers, unit = state.of_type(_SLOW, _FAST), state.view["unit"]
            x = (here % area % 64 + 0.5) / unit
            y = state.height - (here % area // 64 + 0.5) / unit
            for flyer in flyers:  # in the order in which they are drawn
                inside = (abs(x - flyer["x"]) <= flyer["rx"]) & (abs(y - flyer["y"]) <= flyer["ry"])
                kind = "slow flyers" if flyer["type"] == _SLOW else "fast flyers"
                pixels[here[inside]] = self.grey[kind]


_DECODERS: dict[tuple[str, str], type[Decoder]] = {
    **{("chaser", view): Chaser for view in ("semantic", "figure_ground")},
    **{("ninja", view): Drawn for view in ("semantic", "figure_ground")},
    **{("jumper", view): Jumper for view in ("semantic", "figure_ground")},
    **{("plunder", view): Plunder for view in ("semantic", "figure_ground")},
    ("bossfight", "figure_ground"): BossfightFigures,
    ("bossfight", "semantic"): Bossfight,
    ("starpilot", "semantic"): Starpilot,
}


def make_decoder(game: str, view: str, copies: int) -> Decoder:
    """The decoder of a game's mask."""
    return _DECODERS.get((game, view), Decoder)(game, view, copies)
