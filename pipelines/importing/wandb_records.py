"""W&B's offline files read by hand: a LevelDB log of protocol buffers, which may be a stranger's.

A file has a header of seven bytes and then blocks of 32 KiB. A record lies in one block, or in parts in several; each
part has a checksum (CRC-32 of its type and its bytes), a length and a type. What the records hold are the messages of
W&B's own generated classes; nothing of them is run, and of what they hold plain numbers and texts alone are taken.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lcd.envs.errors import InputError
from lcd.files.reading import Unreadable, read_bytes
from lcd.pipelines.importing.read_run import ReadRun, plain

HEADER, BLOCK, PART = 7, 32768, 7
MAGIC = b":W&B"
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
MOST_BYTES = 1 << 30
"""Of a file."""
MOST_RECORD = 1 << 24
"""Bytes of a record."""
LONGEST_TEXT = 100_000
"""Letters of a value; longer ones are left out."""


def read_offline_run(path: Path) -> ReadRun:
    """The run of a `.wandb` file, as far as it was written."""
    try:
        content = read_bytes(path, most=MOST_BYTES)
    except Unreadable as why:
        raise InputError(f"'{path}' cannot be read ({why}): give a folder of offline W&B runs.") from None
    if content[: len(MAGIC)] != MAGIC:
        raise InputError(f"'{path}' is no offline run of W&B: it does not begin as one.")
    from google.protobuf.message import DecodeError
    from wandb.proto.wandb_internal_pb2 import Record

    history: list[dict[str, Any]] = []
    run = ReadRun(history=history)
    for raw in records(content):
        record = Record()
        try:
            record.ParseFromString(raw)
        except DecodeError:
            raise InputError(f"'{path}' is damaged: one of its records cannot be read.") from None
        _take(run, history, record)
    return run


def records(content: bytes) -> Iterator[bytes]:
    """The whole records of a file; it ends where one is cut off, damaged or too long."""
    position, parts = HEADER, b""
    while position + PART <= len(content):
        room = BLOCK - position % BLOCK
        if room < PART:
            position += room
            continue
        checksum = int.from_bytes(content[position : position + 4], "little")
        length, kind = int.from_bytes(content[position + 4 : position + 6], "little"), content[position + 6]
        part = content[position + PART : position + PART + length]
        whole = len(part) == length and length <= room - PART and kind in (WHOLE, FIRST, MIDDLE, LAST)
        if not whole or zlib.crc32(part, zlib.crc32(bytes([kind]))) != checksum:
            return
        parts = part if kind in (WHOLE, FIRST) else parts + part
        if len(parts) > MOST_RECORD:
            return
        position += PART + length
        if kind in (WHOLE, LAST):
            yield parts
            parts = b""


def _take(run: ReadRun, history: list[dict[str, Any]], record: Any) -> None:
    kind = record.WhichOneof("record_type")
    if kind == "run":
        told = record.run
        run.id, run.name, run.group, run.job_type = told.run_id, told.display_name, told.run_group, told.job_type
        run.config |= _values(told.config.update)
    elif kind == "config":
        run.config |= _values(record.config.update)
    elif kind == "summary":
        run.summary |= _values(record.summary.update)
    elif kind == "history":
        history.append(_values(record.history.item))


def _values(items: Any) -> dict[str, Any]:
    """The plain values of key-and-JSON messages, nested ones on one level."""
    found: dict[str, Any] = {}
    for item in items:
        key = ".".join(item.nested_key) if len(item.nested_key) else item.key
        if len(item.value_json) > LONGEST_TEXT:
            continue
        try:
            found |= plain(json.loads(item.value_json), key)
        except (ValueError, RecursionError):
            continue
    return found
