"""What Stable-Baselines3 leaves: `monitor.csv` of its Monitor, `evaluations.npz` of its EvalCallback."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcd.envs.errors import InputError
from lcd.envs.npz_files import keys_in, numbers_in, opened
from lcd.files.reading import Unreadable, parse_json, read_bytes
from lcd.pipelines.importing.read_run import ReadRun, plain

if TYPE_CHECKING:
    import pandas as pd

MONITOR = "monitor.csv"
EVALUATIONS = "evaluations.npz"
HEAD = b"#"
"""What the first line of a monitor's file begins with, before JSON."""
MOST_BYTES = 1 << 30
OF_MONITOR = {"step": "history.step", "return_mean": "history.r", "length_mean": "history.l", "wall_s": "history.t"}
OF_EVALUATIONS = {name: f"history.{name}" for name in ("step", "return_mean", "return_std", "episodes", "length_mean")}


def read_monitors(paths: Sequence[Path], name: str) -> ReadRun:
    """The run of the monitors of its environments: an episode a row, in the order in which they ended.

    A step is how many all of its environments had taken in episodes that had ended by then.
    """
    import pandas as pd

    config: dict[str, Any] = {}
    parts = []
    for path in paths:
        head, table = _monitor(path)
        config |= head
        parts.append(table.assign(t=table["t"] + _start(head)))
    table = pd.concat(parts, ignore_index=True).sort_values("t", kind="stable", ignore_index=True)
    table["t"] -= min((_start(config), *table["t"].head(1)))
    table["step"] = table["l"].cumsum()
    usual = OF_MONITOR | ({"task": "config.env_id"} if config.get("env_id") not in (None, "None") else {})
    return ReadRun(name=name, config=config, history=table, usual=usual, of_episodes=True)


def _start(head: dict[str, Any]) -> float:
    start = head.get("t_start", 0.0)
    return float(start) if isinstance(start, int | float) else 0.0


def _monitor(path: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    import numpy as np
    import pandas as pd

    right = "give a monitor.csv of Stable-Baselines3, which begins with # and JSON"
    try:
        content = read_bytes(path, most=MOST_BYTES)
        first, _, rest = content.partition(b"\n")
        if not first.startswith(HEAD):
            raise Unreadable("its first line is no # and JSON")
        head = plain(parse_json(first[len(HEAD) :].decode("utf-8", "replace")), "")
        # A killed run may leave a row half-written.
        table = pd.read_csv(io.BytesIO(rest[: rest.rfind(b"\n") + 1]), dtype=float, usecols=["r", "l", "t"])
        if (table["l"].lt(0) | np.isinf(table["l"])).any():
            raise ValueError("an episode's length, l, is below 0 or infinite")
    except Unreadable as why:
        raise InputError(f"'{path}' cannot be read ({why}): {right}.") from None
    except (ValueError, UnicodeDecodeError) as error:
        told = " ".join(str(error).split())[:200].rstrip(".")
        raise InputError(f"'{path}' is no monitor's file ({told}): {right}.") from None
    return head, table


def read_evaluations(path: Path, name: str) -> ReadRun:
    """The run of an `evaluations.npz`: held-out evaluations of some episodes each."""
    import numpy as np
    import pandas as pd

    with opened(path, "an evaluations.npz of Stable-Baselines3") as archive:
        there = keys_in(archive)
        for key in ("timesteps", "results"):
            if key not in there:
                raise InputError(f"{path} has no array '{key}': give an evaluations.npz of Stable-Baselines3.")
        steps = numbers_in(path, archive, "timesteps", (1,))
        results = numbers_in(path, archive, "results", (2,)).astype(float)
        lengths = numbers_in(path, archive, "ep_lengths", (2,)) if "ep_lengths" in there else None
    if len(results) != len(steps) or not results.shape[1]:
        raise InputError(f"{path}: 'results' has the shape {results.shape}, but there are {len(steps)} timesteps.")
    if lengths is not None and lengths.shape != results.shape:
        raise InputError(f"{path}: 'ep_lengths' has the shape {lengths.shape}, but 'results' {results.shape}.")
    table = pd.DataFrame(
        {
            "step": steps.astype(float),
            "return_mean": results.mean(axis=1),
            "return_std": results.std(axis=1),
            "episodes": float(results.shape[1]),
            "length_mean": np.nan if lengths is None else lengths.mean(axis=1),
        }
    )
    return ReadRun(name=name, history=table, usual=OF_EVALUATIONS)
