"""TensorBoard's event files read by hand: a log of protocol buffers, which may be a stranger's.

A record is its length (8 bytes), a checksum of that, its bytes, and a checksum of these (CRC-32C, masked). A message
of it tells a step and values by their tags, of which plain numbers are taken, and the text that CleanRL keeps its
settings in. Nothing is imported or run for it, TensorBoard itself included.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lcd.envs.errors import InputError
from lcd.files.reading import Unreadable, read_bytes
from lcd.pipelines.importing.read_run import ReadRun

MARK = "events.out.tfevents."
"""What event files' names begin with."""
MOST_BYTES = 1 << 30
"""Of a file."""
LONGEST = 1 << 16
"""Bytes of a record that is read; longer ones are pictures, sounds and graphs."""
SETTINGS = "hyperparameters/text_summary"
"""Where CleanRL tells its arguments, as a table of Markdown."""
RETURNS = ("eval/mean_reward", "evaluation/return", "charts/episodic_return", "rollout/ep_rew_mean")
"""Tags of returns that are known, those of evaluation first: Stable-Baselines3's and CleanRL's."""
MOST_TAGS = 200
WALL_S = "wall_s"
SEVERAL = "charts/episodic_return"
"""The tag of single episodes of training."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
STEP, SUMMARY, VALUE, TAG, SIMPLE, TENSOR = 2, 5, 1, 1, 2, 8
WALL = 1
FLOATS, DOUBLES, TEXTS, INTEGERS, CONTENT, KIND = 5, 6, 8, 10, 4, 1
NUMBERS = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8"}
"""Numbers' types of a tensor by their number in TensorFlow."""


class Told(NamedTuple):
    """A value of an event."""

    step: int
    wall: float
    tag: str
    value: float | str


def read_event_files(paths: Sequence[Path], name: str) -> ReadRun:
    """The run of some event files of one folder; what a restart tells again takes the place of what was there.

    Args:
        paths: the files, in the order in which they were begun.
        name: what the run is called.
    """
    import pandas as pd

    told: list[Told] = []
    for path in paths:
        mine = list(values_in(_content(path)))
        first = min((each.step for each in mine if isinstance(each.value, float)), default=None)
        if first is not None:
            told = [each for each in told if each.step < first or isinstance(each.value, str)]
        told += mine
    config: dict[str, Any] = {}
    for each in told:
        if each.tag == SETTINGS and isinstance(each.value, str):
            config |= settings_of(each.value)
    rows = [each for each in told if isinstance(each.value, float)]
    tags = _wanted({each.tag for each in rows})
    long = pd.DataFrame([each for each in rows if each.tag in tags], columns=list(Told._fields))
    # A tag may come several times at one step: each time is a row.
    long["time"] = long.groupby(["tag", "step"]).cumcount()
    table = long.pivot(index=["step", "time"], columns="tag", values="value")
    table.insert(0, WALL_S, long.groupby(["step", "time"])["wall"].min() - long["wall"].min())
    table = table.reset_index().drop(columns="time")
    found = next((tag for tag in RETURNS if tag in tags), None)
    usual = {"step": "history.step", "wall_s": f"history.{WALL_S}"}
    usual |= {"return_mean": f"history.{found}"} if found else {}
    usual |= {"task": "config.env_id"} if "env_id" in config else {}
    usual |= {"agent": "config.exp_name"} if "exp_name" in config else {}
    usual |= {"seed": "config.seed"} if "seed" in config else {}
    return ReadRun(name=name, config=config, history=table, usual=usual, of_episodes=found == SEVERAL)


def _wanted(tags: set[str]) -> set[str]:
    """Tags that become columns: returns first, and no more than a table has room for."""
    return set(sorted(tags, key=lambda tag: (tag not in RETURNS, tag))[:MOST_TAGS])


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path, most=MOST_BYTES)
    except Unreadable as why:
        raise InputError(f"'{path}' cannot be read ({why}): give a folder of TensorBoard's event files.") from None


def settings_of(text: str) -> dict[str, Any]:
    """What a table |name|value| in Markdown says, numbers as numbers."""
    found: dict[str, Any] = {}
    for line in text.splitlines()[:10_000]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 2 and cells != ["param", "value"] and cells[0].strip("-"):
            found[cells[0]] = _number(cells[1])
    return found


def _number(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def values_in(content: bytes) -> Iterator[Told]:
    """The values of a file; it ends where a record is cut off or damaged, and unknown messages are passed over."""
    for record in records(content):
        try:
            yield from _event(record)
        except (IndexError, ValueError, struct.error, OverflowError):
            return


def records(content: bytes) -> list[bytes]:
    """The whole records of a file that are short enough to be numbers, up to the first one that is damaged."""
    starts, lengths, place = [], [], 0
    while place + 12 <= len(content):
        length = int.from_bytes(content[place : place + 8], "little")
        if masked(_checksums([content[place : place + 8]])[0]) != int.from_bytes(
            content[place + 8 : place + 12], "little"
        ):
            break
        if place + 16 + length > len(content):
            break
        if length <= LONGEST:
            starts.append(place + 12)
            lengths.append(length)
        place += 16 + length
    found = [content[start : start + length] for start, length in zip(starts, lengths, strict=True)]
    ends = (start + length for start, length in zip(starts, lengths, strict=True))
    there = [int.from_bytes(content[end : end + 4], "little") for end in ends]
    right = [masked(checksum) for checksum in _checksums(found)]
    bad = next((index for index, pair in enumerate(zip(there, right, strict=True)) if pair[0] != pair[1]), None)
    return found[:bad]


def _event(record: bytes) -> Iterator[Told]:
    step, wall, summaries = 0, 0.0, []
    for field, kind, value in _fields(record):
        if field == STEP and kind == VARINT:
            step = value
        elif field == WALL and kind == FIXED64:
            (wall,) = struct.unpack("<d", value)
        elif field == SUMMARY and kind == BYTES:
            summaries.append(value)
    if not 0 <= step < 2**53 or not np.isfinite(wall):
        return
    for summary in summaries:
        for field, kind, value in _fields(summary):
            if field == VALUE and kind == BYTES:
                yield from _value(value, step, wall)


def _value(message: bytes, step: int, wall: float) -> Iterator[Told]:
    tag, found = "", None
    for field, kind, value in _fields(message):
        if field == TAG and kind == BYTES:
            tag = value.decode("utf-8", "replace")
        elif field == SIMPLE and kind == FIXED32:
            (found,) = struct.unpack("<f", value)
        elif field == TENSOR and kind == BYTES:
            found = _tensor(value)
    if tag and found is not None:
        yield Told(step, wall, tag, found)


def _tensor(message: bytes) -> float | str | None:
    """The one number, or the one text, that a tensor holds."""
    parts = {field: value for field, _, value in _fields(message)}
    if TEXTS in parts:
        return parts[TEXTS].decode("utf-8", "replace") if isinstance(parts[TEXTS], bytes) else None
    if CONTENT in parts and parts.get(KIND) in NUMBERS:
        values = np.frombuffer(parts[CONTENT], NUMBERS[parts[KIND]])
    elif FLOATS in parts:
        values = np.frombuffer(parts[FLOATS], "<f4")
    elif DOUBLES in parts:
        values = np.frombuffer(parts[DOUBLES], "<f8")
    else:
        return None
    return float(values[0]) if values.size == 1 else None


def _fields(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, kind, value."""
    place, end = 0, len(message)
    while place < end:
        key, place = _varint(message, place)
        field, kind = key >> 3, key & 7
        value: Any
        if kind == VARINT:
            value, place = _varint(message, place)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            value, place = message[place : place + size], place + size
        elif kind == BYTES:
            length, place = _varint(message, place)
            value, place = message[place : place + length], place + length
        else:
            raise ValueError(f"no such kind of field: {kind}")
        if place > end:
            raise ValueError("a field is cut off")
        yield field, kind, value


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def masked(checksum: int) -> int:
    """A checksum as it stands in the file."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _checksums(parts: Sequence[bytes]) -> list[int]:
    """The CRC-32C of each part; those of one length are worked out together."""
    found = np.zeros(len(parts), np.uint32)
    lengths = np.array([len(part) for part in parts], np.int64)
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        table = np.frombuffer(b"".join(parts[int(place)] for place in places), np.uint8).reshape(len(places), length)
        checksum = np.full(len(places), 0xFFFFFFFF, np.uint32)
        for column in range(length):
            checksum = _TABLE[(checksum ^ table[:, column]) & 0xFF] ^ (checksum >> np.uint32(8))
        found[places] = checksum ^ np.uint32(0xFFFFFFFF)
    return found.tolist()


def _crc_table() -> np.ndarray:
    """CRC-32C's (Castagnoli's polynomial), a byte at a time."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> np.uint32(1) ^ np.uint32(0x82F63B78), table >> np.uint32(1))
    return table.astype(np.uint32)


_TABLE = _crc_table()
