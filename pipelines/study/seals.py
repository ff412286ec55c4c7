"""What a finished run has left, by hashes: its seal."""

from __future__ import annotations

from pathlib import Path

from lcd.envs.errors import InputError
from lcd.files.atomic import sha256_of
from lcd.files.reading import Unreadable, read_yaml
from lcd.pipelines.kinds.kind import CURVE_FILE, kind_of

SEALED = (CURVE_FILE, "checkpoints/*.ckpt")
"""What a finished run has left, besides what its kind says."""


def seal_of(run_dir: str | Path) -> dict[str, str]:
    """The hashes of what lies in a run's folder, by the files' names."""
    folder = Path(run_dir)
    files = sorted(path for pattern in (*SEALED, *_outputs(folder)) for path in folder.glob(pattern) if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}


def _outputs(folder: Path) -> tuple[str, ...]:
    """The files that a run's kind says it leaves."""
    try:
        return kind_of(read_yaml(folder / "config.yaml")).outputs
    except (Unreadable, InputError, TypeError, KeyError):  # somebody's training in a folder that is no study's
        return ()
