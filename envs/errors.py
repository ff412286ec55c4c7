"""Errors whose message is all that a user needs: one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """A user's mistake, told in one sentence that names the key, the value and what would be right."""


class NoTables(InputError):
    """A task of a benchmark some of whose tasks can be tabulated is none of these, whatever its knobs."""


class Diverged(ArithmeticError):
    """A run's numbers are not finite any more; the message says which, of which seed, and at which step."""


class Cancelled(RuntimeError):
    """Somebody wants a run to stop; the message says how it goes on."""


class Elsewhere(Exception):
    """What a command asked for is done after it and without it; the message says where."""


class Unfinished(RuntimeError):
    """Nothing is finished of what a command was to tell about, which is nobody's mistake: it ends with status 1."""


def nearest(name: str, options: Iterable[str]) -> str:
    """The end of an error's sentence: the option that was probably meant, or all of them when none is close."""
    options = sorted(map(str, options))
    close = get_close_matches(str(name), options, n=1, cutoff=0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"choose from: {', '.join(options)}." if options else "there is none to choose from."
