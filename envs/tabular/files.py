"""Tabular MDPs in `.npz` files of the layout of the BRIDGE dataset, read as data that anybody may have written.

BRIDGE's files hold `transitions` and `rewards`, the first state being 0 and -1 standing for an end; where there is room
also `screens` and `screen_mapping` (a picture of each state). Ours add `horizon`, `actions`, `sticky`, `codes` and
`features`, which BRIDGE's readers pass over.
"""

from __future__ import annotations

import hashlib
import math
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.npz_files import MOST_BYTES, array_in, header_in, keys_in, opened
from lcd.envs.tabular.mdp import MOST_ACTIONS, MOST_ENTRIES, MOST_STATES, TERMINAL, TabularMDP
from lcd.envs.tabular.pictures import Screens

MOST_NAME_BYTES = 4096
"""Of the name of an action."""
KINDS = {
    "transitions": ("iu", 2),
    "rewards": ("iuf", 2),
    "horizon": ("iu", 0),
    "actions": ("U", 1),
    "sticky": ("f", 0),
    "codes": ("iu", 1),
    "features": ("iuf", 2),
    "screens": ("iu", 4),
    "screen_mapping": ("iu", 1),
}
"""The arrays that are read: kinds of type, and number of dimensions."""
NEEDED = ("transitions", "rewards")
OF_STATES = ("codes", "features", "screen_mapping")
"""Arrays with a row for each state."""
TYPES = {"iu": "whole numbers", "iuf": "real numbers", "f": "a real number", "U": "texts"}


def save(mdp: TabularMDP, file: str | Path | BinaryIO) -> None:
    """Write an MDP; where its first state is not 0, the two change places.

    Args:
        mdp: the MDP; its renderer is not kept.
        file: a path, which should end in .npz, or a file that is open for writing.
    """
    order = np.arange(mdp.num_states)
    order[[0, mdp.start]] = mdp.start, 0
    after = mdp.transitions[order]
    arrays: dict[str, Any] = {
        # An exchange of two numbers is its own inverse.
        "transitions": np.where(after == TERMINAL, TERMINAL, order[after]).astype(np.int32),
        "rewards": mdp.rewards[order],
        "horizon": np.int64(mdp.horizon),
        "actions": np.array(mdp.actions),
        "sticky": np.float64(mdp.sticky),
    }
    for key in ("codes", "features"):
        if (value := getattr(mdp, key)) is not None:
            arrays[key] = value[order]
    np.savez_compressed(file, **arrays)


def digest(mdp: TabularMDP) -> str:
    """A hash of what an MDP does: its arrays, horizon, first state and sticky actions; the same on every machine."""
    about = f"{mdp.num_states} {mdp.num_actions} {mdp.horizon} {mdp.start} {mdp.sticky!r}\n"
    found = hashlib.sha256(about.encode())
    found.update(mdp.transitions.astype("<i4", copy=False).data)
    found.update(mdp.rewards.astype("<f4", copy=False).data)
    return found.hexdigest()


def load(path: str | Path, horizon: int | None = None, sticky: float | None = None) -> TabularMDP:
    """The MDP in a file, checked.

    Args:
        path: an `.npz` file, BRIDGE's or one that `save` wrote.
        horizon: steps of an episode; needed where the file does not say, as BRIDGE's do not. Where it says, at most as
            many: beyond them its tables may have been cut off.
        sticky: probability of repeating an action; by default the file's, else 0.

    Raises:
        InputError: where the file is no such MDP, in one sentence.
    """
    path = Path(path).expanduser()
    with opened(path, "an .npz file with transitions and rewards") as archive:
        arrays = _arrays(path, archive)
    return _made(path, arrays, horizon, sticky)


def _arrays(path: Path, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    """The arrays of a file, all of them refused by their headers before memory is taken for any."""
    names = keys_in(archive)
    shapes = {key: _shape(path, archive, key) for key in KINDS if key in names}
    for key in NEEDED:
        if key not in shapes:
            raise InputError(f"{path} has no array '{key}': an MDP needs {' and '.join(NEEDED)}.")
    states = shapes["transitions"][0]
    for key in (each for each in OF_STATES if each in shapes):
        if shapes[key][0] != states:
            raise InputError(
                f"{path}: {key} has the shape {shapes[key]}, but must have a row for each of {states} states."
            )
    return {key: array_in(archive, key) for key in shapes}


def _shape(path: Path, archive: zipfile.ZipFile, key: str) -> tuple[int, ...]:
    """The shape of an array that may be read, by its header alone."""
    kinds, dimensions = KINDS[key]
    header = header_in(path, archive, key)
    shape, dtype = header.shape, header.dtype
    if dtype.kind not in kinds or dtype.hasobject:
        raise InputError(f"{path}: '{key}' has the type {dtype}, but must hold {TYPES[kinds]}.")
    if len(shape) != dimensions or min(shape, default=1) < 0:
        raise InputError(
            f"{path}: '{key}' has the shape {shape}, but must have {dimensions} dimensions, none of them below 0."
        )
    entries = math.prod(shape)
    if key == "actions" and (entries > MOST_ACTIONS or dtype.itemsize > MOST_NAME_BYTES):
        raise InputError(
            f"{path}: 'actions' has {entries:,} names of up to {dtype.itemsize // 4:,} characters, but at most "
            f"{MOST_ACTIONS:,} of {MOST_NAME_BYTES // 4:,} are read."
        )
    if entries * max(dtype.itemsize, 1) > MOST_BYTES or (key in NEEDED and entries > MOST_ENTRIES):
        raise InputError(
            f"{path}: '{key}' has the shape {shape}, which is more than the {MOST_STATES:,} states, or the 2 GB, that "
            "are read."
        )
    header.refuse_lies(path, key)
    return shape


def _made(path: Path, arrays: dict[str, np.ndarray], horizon: int | None, sticky: float | None) -> TabularMDP:
    if horizon is None:
        if "horizon" not in arrays:
            raise InputError(
                f"horizon is missing: {path} does not say after how many steps its episodes end; give horizon=…."
            )
        horizon = int(arrays["horizon"])
    elif horizon > int(arrays.get("horizon", horizon)):
        raise InputError(
            f"horizon is {horizon}, but the tables in {path} are for {arrays['horizon']} steps: give at most that."
        )
    if sticky is None:
        sticky = float(arrays.get("sticky", 0.0))
    try:
        renderer = None
        if {"screens", "screen_mapping"} <= arrays.keys():
            renderer = Screens(arrays["screens"], arrays["screen_mapping"], len(arrays["transitions"]))
        return TabularMDP(
            arrays["transitions"],
            arrays["rewards"],
            horizon,
            actions=_names(arrays.get("actions", np.array([]))),
            sticky=sticky,
            renderer=renderer,
            features=arrays.get("features"),
            codes=arrays.get("codes"),
            name=path.stem if path.stem != "consolidated" else path.absolute().parent.name,
        )
    except InputError as flaw:
        raise InputError(f"{path}: {flaw}") from None


def _names(actions: np.ndarray) -> tuple[str, ...]:
    """The actions' names, as long as they are texts."""
    try:
        names = tuple(actions.tolist())
        "".join(names).encode()
    # What numpy says where a character is none that there is.
    except (SystemError, ValueError):
        raise InputError("actions has a name that is no text: give names in Unicode.") from None
    return names
