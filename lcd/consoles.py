"""Where commands print: a console that is as wide as its terminal, or wide enough where there is none."""

import os
from typing import Any

from rich.console import Console

WIDE = 300
"""Columns of what is no terminal: a file or another program has room for whole names."""


def console_for_tables(**settings: Any) -> Console:
    """A console of the standard output; `COLUMNS` says another width, as everywhere.

    Args:
        settings: of Rich's console.
    """
    console = Console(**settings)
    if console.is_terminal or console.is_jupyter or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(width=WIDE, **settings)
