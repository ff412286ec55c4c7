"""Refusing what no machine like this one could hold or finish, before anything is made of it.

What is worked out here is the least that a request takes, whatever its environments and networks are like: who is
refused could not have been served. What is not refused may still be too much.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lcd.envs.errors import InputError

RUNS_ON_A_GPU = "LCD_RUNS_ON_A_GPU"
"""The variable in which a launcher tells its workers how many runs share the memory of a GPU."""
FASTEST = 10_000_000
"""Steps a second, of all copies and seeds together, that no environment here reaches."""
MOST_DAYS = 30
DAY_S = 86_400
ENDLESS = 10**30
"""Greater numbers are told as this one: a float may not hold them."""


def machine_memory() -> int:
    """Bytes of the machine's memory, or of this process's control group."""
    sizes = []
    with contextlib.suppress(OSError, ValueError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min((size for size in sizes if size > 0), default=1 << 62)


def require_memory(what: str, size: int) -> None:
    """Refuse what takes more memory than there is.

    Args:
        what: keys and values that make it so large.
        size: bytes that it takes at least.
    """
    if size > machine_memory():
        raise InputError(
            f"{what} would take at least {readable_size(size)} of memory, and this machine has "
            f"{readable_size(machine_memory())}: give less."
        )


def require_time(what: str, steps: int) -> None:
    """Refuse what takes too long.

    Args:
        what: keys and values that make it so long.
        steps: that it takes at least, of all copies and seeds together.
    """
    days = steps // (FASTEST * DAY_S)
    if days > MOST_DAYS:
        raise InputError(
            f"{what} would take at least {min(days, ENDLESS):,} days at {FASTEST:,} steps a second, which is more than "
            "any environment here makes: give less."
        )


def readable_size(size: float) -> str:
    """Bytes for a reader."""
    size = min(size, ENDLESS)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"
