"""The front-end file: what `lcd pretrain` writes and `frontend=flow frontend.weights=FILE` loads.

A dictionary of plain values and tensors that `torch.load(weights_only=True)` reads: nothing in it can run. It holds
the object encoder, which is the front-end, and the whole model, from which pretraining could go on.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from lcd.envs.errors import InputError
from lcd.frontends.flow.config import KINDS, FlowConfig
from lcd.frontends.flow.networks import FlowModel
from lcd.frontends.weight_files import open_regular

KIND = "lcd-frontend-flow"
VERSION = 1
KEYS = ("kind", "version", "config", "model", "mean", "std", "data_hash", "provenance")
OBJECTS = "objects."


@dataclass(frozen=True)
class FrontendFile:
    """What a file holds, checked.

    Attributes:
        config: sizes of the networks.
        model: parameters and buffers of the three networks.
        mean, std: the normalisation of frames in 0–1, a number a colour.
        data_hash: SHA-256 of the videos.
        provenance: how it came about: benchmark, tasks, policy, loss, steps, version of LCD; for readers only.
        hash: SHA-256 of the file.
    """

    config: FlowConfig
    model: dict[str, torch.Tensor]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    data_hash: str
    provenance: dict[str, Any]
    hash: str = ""

    @property
    def objects(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers of the object encoder."""
        return {name[len(OBJECTS) :]: value for name, value in self.model.items() if name.startswith(OBJECTS)}

    def to_bytes(self) -> bytes:
        """The file's content."""
        content = {
            "kind": KIND,
            "version": VERSION,
            "config": self.config.recorded(),
            "model": {name: value.detach().cpu().contiguous() for name, value in self.model.items()},
            "mean": list(self.mean),
            "std": list(self.std),
            "data_hash": self.data_hash,
            "provenance": self.provenance,
        }
        buffer = io.BytesIO()
        torch.save(content, buffer)
        return buffer.getvalue()


def read(path: Path) -> FrontendFile:
    """Load a file; whatever is wrong with it is an `InputError`."""
    where = f"frontend.weights={path}"
    try:
        with open_regular(path) as file:
            data = file.read()
    except OSError as error:
        raise InputError(f"{where} cannot be read ({error.strerror}): give a file that 'lcd pretrain' wrote.") from None
    try:
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception:
        raise InputError(f"{where} is not a front-end file, or is cut off: 'lcd pretrain' writes one.") from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise InputError(
            f"{where} holds something else than a flow front-end: 'lcd pretrain frontend=flow' writes one."
        )
    if content.get("version") != VERSION:
        raise InputError(
            f"{where} has format version {content.get('version')}, and this LCD reads version {VERSION}: "
            "pretrain again, or use the LCD that wrote it."
        )
    if missing := [key for key in KEYS if key not in content]:
        raise InputError(f"{where} has no {', '.join(missing)}: it is damaged; pretrain again.")
    config = _config(where, content["config"])
    _check_model(where, content["model"], config)
    return FrontendFile(
        config,
        content["model"],
        _three_numbers(where, "mean", content["mean"]),
        _three_numbers(where, "std", content["std"]),
        str(content["data_hash"]),
        content["provenance"] if isinstance(content["provenance"], dict) else {},
        hashlib.sha256(data).hexdigest(),
    )


def _config(where: str, found: Any) -> FlowConfig:
    names = {entry.name for entry in fields(FlowConfig)}
    if not isinstance(found, Mapping) or set(found) | set(KINDS) != names:
        raise InputError(f"{where}: its config must have exactly {', '.join(sorted(names))}: it is damaged.")
    try:
        return FlowConfig(**found)
    except InputError as error:
        raise InputError(f"{where}: its config is damaged: {error}") from None


def _check_model(where: str, found: Any, config: FlowConfig) -> None:
    """Refuse parameters that are not those of the networks that the config describes."""
    try:
        with torch.device("meta"):
            wanted = FlowModel(config).state_dict()
    except RuntimeError:
        raise InputError(f"{where}: its config is damaged: no machine holds networks of these sizes.") from None
    if not isinstance(found, Mapping) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise InputError(f"{where}: its model must be tensors by their names: it is damaged.")
    if missing := sorted(set(wanted) - set(found)):
        raise InputError(f"{where} lacks {len(missing)} of the networks' parameters, such as {missing[0]}.")
    if extra := sorted(set(found) - set(wanted)):
        raise InputError(f"{where} has {len(extra)} parameters that the networks do not have, such as {extra[0]}.")
    for name, value in wanted.items():
        if found[name].shape != value.shape:
            shapes = f"{tuple(found[name].shape)}, and its config says {tuple(value.shape)}"
            raise InputError(f"{where}: {name} has shape {shapes}.")
        if found[name].is_floating_point() and not found[name].isfinite().all():
            raise InputError(f"{where}: {name} has values that are not finite: pretraining went wrong.")


def _three_numbers(where: str, name: str, found: Any) -> tuple[float, ...]:
    good = isinstance(found, Sequence) and len(found) == 3 and all(isinstance(value, float) for value in found)
    if not good or not all(math.isfinite(value) for value in found) or (name == "std" and min(found) <= 0):
        raise InputError(f"{where}: its {name} must be three numbers{' above 0' * (name == 'std')}: it is damaged.")
    return tuple(found)
