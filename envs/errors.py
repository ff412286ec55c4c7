"""The one kind of error that a user's mistake raises."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """A user's mistake, told in one sentence that names the key, the value and what would be right."""


def nearest(name: str, options: Iterable[str]) -> str:
    """The end of an error's sentence: the option that was probably meant, or all of them when none is close."""
    options = sorted(map(str, options))
    close = get_close_matches(str(name), options, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"choose from: {', '.join(options)}." if options else "there is none to choose from."
