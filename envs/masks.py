"""From labels to views: what every pixel belongs to, drawn as figure-ground and as semantic masks.

A mask is a source of labels: for each picture an array (height, width) of whole numbers, 0 for the background. Whoever
has labels has views; that all of them are one task holds by construction, since they are drawn of the same moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from lcd.envs.errors import InputError

PIXELS, FIGURE_GROUND, SEMANTIC, LABELS = "pixels", "figure_ground", "semantic", "labels"
MASKED = (FIGURE_GROUND, SEMANTIC)
VIEWS = (PIXELS, *MASKED)
BACKGROUND = "background"
MOST_CLASSES = 256
COLOUR_KEY, FIGURE_KEY = "colour", "figure"
"""What a table says of a class that is not white in `figure_ground`."""
NAME = re.compile(r"[A-Za-z0-9_ .-]+")
COLOUR = re.compile(r"[0-9a-f]{6}")
WHITE = 255
ALL_WHITE: Mapping[str, int] = {}
"""Greys of `figure_ground` where no class has one of its own."""


@dataclass(frozen=True)
class Moment:
    """What labels may be read from.

    Attributes:
        drawn: draws the picture, which takes time and is not always looked at.
        observation: what the environment itself shows.
        info: what else it told.
        env: the environment, unwrapped.
    """

    drawn: Callable[[], np.ndarray]
    observation: Any
    info: Mapping[str, Any]
    env: Any

    @cached_property
    def picture(self) -> np.ndarray:
        """The picture, uint8 (height, width, 3)."""
        return self.drawn()


class Masks(Protocol):
    """A source of labels."""

    @property
    def names(self) -> tuple[str, ...]:
        """What labels stand for, the background first; empty where only the source knows how many there are."""
        ...

    @property
    def ground(self) -> int:
        """How many of the first labels are ground, which `figure_ground` does not tell from the background."""
        ...

    @property
    def figure(self) -> Mapping[str, int]:
        """Class → its grey in `figure_ground`; those that are not in it are white."""
        ...

    def __call__(self, moment: Moment) -> np.ndarray:
        """The labels of a moment, (height, width)."""
        ...


class NamesLabels(Protocol):
    """A function of labels that says what they stand for, the background first."""

    names: Sequence[str]


class GreysFigures(Protocol):
    """A function of labels that says which classes are not white in `figure_ground`: class → grey."""

    figure: Mapping[str, int]


def greys(names: Sequence[str], view: str, ground: int = 1, figure: Mapping[str, int] = ALL_WHITE) -> tuple[int, ...]:
    """The grey of each label in a view: evenly spread, or where their number is not known all different in any case.

    Args:
        names: what labels stand for, the background first.
        view: `figure_ground`, or any that tells all classes apart.
        ground: how many of the first labels `figure_ground` shows as background.
        figure: class → its grey in `figure_ground`; all others are white.
    """
    if view == FIGURE_GROUND:
        others = (figure.get(name, WHITE) for name in names[ground:])
        return (*[0] * ground, *(others if names else [WHITE] * (MOST_CLASSES - ground)))
    if names:
        return tuple(255 * label // max(len(names) - 1, 1) for label in range(len(names)))
    # 101 has no divisor in common with 255: neighbouring labels are far apart, and no two are alike.
    return (0, *(101 * label % 255 + 1 for label in range(MOST_CLASSES - 1)))


def drawn(
    labels: np.ndarray, names: Sequence[str], view: str, ground: int = 1, figure: Mapping[str, int] = ALL_WHITE
) -> np.ndarray:
    """Labels (…, height, width) as a view: uint8 (…, height, width, 3)."""
    found = np.asarray(greys(names, view, ground, figure), np.uint8)[labels]
    return np.repeat(found[..., None], 3, axis=-1)


def names_in(
    names: Sequence[str], view: str, ground: int = 1, figure: Mapping[str, int] = ALL_WHITE
) -> tuple[str, ...]:
    """What the labels stand for in a view; empty for a view without masks, or where nobody says."""
    if view not in MASKED or not names:
        return ()
    if view != FIGURE_GROUND:
        return tuple(names)
    shown = greys(names, view, ground, figure)
    sharing = {grey: " or ".join(name for name, its in zip(names, shown, strict=True) if its == grey) for grey in shown}
    return (*[names[0]] * ground, *({**sharing, WHITE: "figure"}[grey] for grey in shown[ground:]))


def figure_greys(given: Any, names: Sequence[str], source: str) -> Mapping[str, int]:
    """Greys of classes in `figure_ground`, refused where they are none."""
    if not isinstance(given, Mapping):
        raise InputError(f"{source} is {given!r}: give class → grey, as in {{'coin': 170}}.")
    for name, grey in given.items():
        if name not in names[1:]:
            there = f"there are {', '.join(names[1:])}" if names[1:] else "labels have no names (labels.names)"
            raise InputError(f"{source} has a grey for '{name}', which is no class: {there}.")
        if not isinstance(grey, int) or isinstance(grey, bool) or not 1 <= grey <= WHITE:
            raise InputError(f"{source} has the grey {grey!r} for {name}: give a whole number from 1 to 255.")
    return given


def checked(labels: Any, names: Sequence[str], shape: tuple[int, ...], source: str) -> np.ndarray:
    """Labels as uint8, refused where they are none of a picture of this height and width."""
    found = _as_array(labels, source)
    most = (len(names) or MOST_CLASSES) - 1
    if found.ndim != 2 or not found.size or not (np.issubdtype(found.dtype, np.integer) or found.dtype == bool):
        raise InputError(
            f"masks={source} gives {found.dtype} of shape {found.shape}: whole numbers of (height, width) are needed, "
            "a label a pixel, 0 for the background."
        )
    if found.min() < 0 or found.max() > most:
        wrong = found.max() if found.max() > most else found.min()
        raise InputError(f"masks={source} gives the label {wrong}: labels go from 0 (the background) to {most}.")
    return resized(found.astype(np.uint8), shape)


def _as_array(labels: Any, source: str) -> np.ndarray:
    try:
        return np.asarray(labels)
    except ValueError:
        raise InputError(
            f"masks={source} gives rows of different lengths: whole numbers of (height, width) are needed."
        ) from None


def checked_names(names: Any, source: str) -> tuple[str, ...]:
    """What labels stand for, as somebody's code or file says it; refused where it is no list of names.

    Args:
        names: the classes, the background first.
        source: what `masks=` names.
    """
    if not isinstance(names, list | tuple) or not all(str(name).isprintable() for name in names):
        raise InputError(f"masks={source}: names={names!r} must be a list of printable names, the background first.")
    if len(names) > MOST_CLASSES:
        raise InputError(f"masks={source} has {len(names)} classes: no more than {MOST_CLASSES} have labels.")
    return tuple(map(str, names))


def resized(image: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An image with the pixels nearest to the middles of those of another height and width: no label is made up."""
    if image.shape[:2] == tuple(shape):
        return image
    rows, columns = (
        ((np.arange(size) + 0.5) * old / size).astype(int) for size, old in zip(shape, image.shape[:2], strict=True)
    )
    return image[rows[:, None], columns]


@dataclass(frozen=True)
class ColourMasks:
    """Labels by the exact colours of the picture, for what is drawn in flat colours: all others are background.

    Attributes:
        colours: class → its colours, as numbers 0xrrggbb.
        figure: class → its grey in `figure_ground`, where it is not white.
    """

    colours: Mapping[str, tuple[int, ...]]
    figure: Mapping[str, int] = field(default_factory=dict)
    ground: ClassVar[int] = 1

    @property
    def names(self) -> tuple[str, ...]:
        return (BACKGROUND, *self.colours)

    def __call__(self, moment: Moment) -> np.ndarray:
        """Which class's colour each pixel has."""
        red, green, blue = np.moveaxis(moment.picture.astype(np.int32), -1, 0)
        coded = (red << 16) + (green << 8) + blue
        labels = np.zeros(coded.shape, np.uint8)
        for label, colours in enumerate(self.colours.values(), 1):
            labels[np.isin(coded, colours)] = label
        return labels

    def __str__(self) -> str:
        """As it stands in a benchmark's name."""
        parts = (
            f"{name}={'|'.join(f'{c:06x}' for c in colours)}" + (f"@{self.figure[name]}" if name in self.figure else "")
            for name, colours in self.colours.items()
        )
        return f"colours({','.join(parts)})"

    @classmethod
    def of_table(cls, table: Any, source: str) -> ColourMasks:
        """From a mapping of class → colour, or colours, as "rrggbb" or [r, g, b]; or → {colour: …, figure: grey}."""
        if not isinstance(table, Mapping) or not table:
            raise InputError(
                f"masks={source} must hold class: colour, line by line: agent: 'ff0000', goal: [0, 255, 0]."
            )
        entries = {str(name): _entry(str(name), given, source) for name, given in table.items()}
        found = {name: _colours(name, entry[COLOUR_KEY], source) for name, entry in entries.items()}
        greys_said = {name: entry[FIGURE_KEY] for name, entry in entries.items() if FIGURE_KEY in entry}
        checked_names([BACKGROUND, *found], source)
        said: dict[int, str] = {}
        for name, colours in found.items():
            if not NAME.fullmatch(name) or name == BACKGROUND:
                raise InputError(f"masks={source}: the class '{name}' must be called by letters, digits, spaces, - . _")
            for colour in colours:
                if colour in said:
                    raise InputError(
                        f"masks={source}: {colour:06x} is the colour of {said[colour]} and of {name}: a picture cannot "
                        "tell them apart."
                    )
                said[colour] = name
        return cls(found, figure_greys(greys_said, (BACKGROUND, *found), f"masks={source}"))


def _entry(name: str, given: Any, source: str) -> Mapping[str, Any]:
    """What a table says of a class, in full."""
    if not isinstance(given, Mapping):
        return {COLOUR_KEY: given}
    if COLOUR_KEY not in given or set(given) - {COLOUR_KEY, FIGURE_KEY}:
        raise InputError(
            f"masks={source}: {name} has the keys {', '.join(map(str, given))}: give {COLOUR_KEY}, and if it is not to "
            f"be white in {FIGURE_GROUND} {FIGURE_KEY}, as in {{colour: 'ff8000', figure: 170}}."
        )
    return given


def _colours(name: str, given: Any, source: str) -> tuple[int, ...]:
    many = isinstance(given, list) and given and all(isinstance(each, list | str) for each in given)
    found = []
    for each in given if many else [given]:
        text = each.lower().lstrip("#") if isinstance(each, str) else ""
        numbers = isinstance(each, list) and len(each) == 3
        if numbers and all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= 255 for n in each):
            text = "".join(f"{n:02x}" for n in each)
        if not COLOUR.fullmatch(text):
            raise InputError(f"masks={source}: {name} has the colour {each!r}: give 'rrggbb' in quotes, or [r, g, b].")
        found.append(int(text, 16))
    return tuple(found)


@dataclass(frozen=True)
class InfoMasks:
    """Labels that an environment itself tells, in its info."""

    key: str
    names: tuple[str, ...] = ()
    ground: ClassVar[int] = 1
    figure: ClassVar[Mapping[str, int]] = ALL_WHITE

    def __call__(self, moment: Moment) -> np.ndarray:
        """What stands under the key."""
        if self.key not in moment.info:
            there = ", ".join(map(str, moment.info)) or "nothing"
            raise InputError(f"masks=info.{self.key}: the environment's info has {there}, and no '{self.key}'.")
        return _as_array(moment.info[self.key], str(self))

    def __str__(self) -> str:
        return f"info.{self.key}"


@dataclass(frozen=True)
class OwnMasks:
    """Labels by a function of the user's: `labels(moment)`, with attributes `names` and `figure` if it likes.

    Attributes:
        target: `module:function`.
        names: what labels stand for, as `checked_names` gives it.
        figure: class → its grey in `figure_ground`, as `figure_greys` gives it.
    """

    target: str
    function: Callable[[Moment], Any]
    names: tuple[str, ...] = ()
    figure: Mapping[str, int] = field(default_factory=dict)
    ground: ClassVar[int] = 1

    def __call__(self, moment: Moment) -> np.ndarray:
        """What the function says."""
        return _as_array(self.function(moment), self.target)

    def __str__(self) -> str:
        return self.target


def read_back(text: str) -> ColourMasks | InfoMasks | None:
    """The masks that a benchmark's name tells; None where it names code."""
    if text.startswith("info."):
        return InfoMasks(text.removeprefix("info."))
    if text.startswith("colours(") and text.endswith(")"):
        parts = [part.partition("=") for part in text.removeprefix("colours(")[:-1].split(",")]
        return ColourMasks.of_table({name: _read_back(said) for name, _, said in parts}, text)
    return None


def _read_back(said: str) -> dict[str, Any]:
    """What a name tells of a class: rrggbb|rrggbb@grey."""
    colours, _, grey = said.partition("@")
    own = {FIGURE_KEY: int(grey) if grey.isdecimal() else grey} if grey else {}
    return {COLOUR_KEY: colours.split("|"), **own}
