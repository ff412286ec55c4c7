"""What a job takes of others of its study: found and checked where the job is done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lcd.envs.errors import InputError
from lcd.files.atomic import sha256_of
from lcd.pipelines.study.configs import AnyConfig, OutputOf, WeightsFile, inputs_of
from lcd.pipelines.study.store import DONE, read_status


def take_inputs(config: AnyConfig, runs: Path) -> tuple[AnyConfig, dict[str, str]]:
    """A job's config with the places and hashes of the files that it takes of others.

    Args:
        config: the job's.
        runs: the folder that holds the study's runs.

    Returns:
        The config, and the hashes by `<run id>/<file>`.

    Raises:
        InputError: where a file is not what its job left there.
    """
    hashes = {f"{each['job']}/{each['file']}": _sealed(each, runs) for each in inputs_of(config)}

    def filled_in(value: Any) -> Any:
        if isinstance(value, Mapping):
            if set(value) == set(OutputOf.__annotations__):
                name = f"{value['job']}/{value['file']}"
                return WeightsFile(file=str((runs / name).resolve()), sha256=hashes[name])
            return {key: filled_in(each) for key, each in value.items()}
        return [filled_in(each) for each in value] if isinstance(value, list | tuple) else value

    return filled_in(config), hashes


def _sealed(wanted: OutputOf, runs: Path) -> str:
    """The hash of a file that another job left, which is the one that it sealed."""
    folder, name = runs / wanted["job"], wanted["file"]
    status = read_status(folder)
    sealed = status["seal"].get(name)
    if status["state"] != DONE or sealed is None:
        raise InputError(f"it needs {name} of the run {wanted['job']}, which is not done: the same command makes it.")
    try:
        now = sha256_of(folder / name)
    except OSError as error:
        raise InputError(
            f"it needs {folder / name}, which cannot be read ({error.strerror}): {_anew(folder)}."
        ) from None
    if now != sealed:
        raise InputError(f"{folder / name} has been changed since its run was done: {_anew(folder)}.")
    return sealed


def _anew(folder: Path) -> str:
    return f"put it back as it was, or move {folder} away and the same command makes it anew"
