"""What φ means on a benchmark whose masks are not the paper's: a sentence for the report."""

from __future__ import annotations

from collections.abc import Iterable

from lcd.envs.benchmarks import registered_benchmark
from lcd.envs.errors import InputError
from lcd.envs.gym_names import FLOW, PREFIX, parts_of
from lcd.envs.masks import ColourMasks, InfoMasks, read_back
from lcd.envs.protocols import SaysMasks, offers


def masks_told(benchmarks: Iterable[str]) -> list[str]:
    """A sentence for each benchmark that says what its masks are made of; of a name nothing is imported."""
    return [told for name in benchmarks if (told := _sentence(name)) is not None]


def _sentence(name: str) -> str | None:
    if not name.startswith(PREFIX):
        known = registered_benchmark(name)
        return f"{name}: {known.masks_are}" if known is not None and offers(known, SaysMasks) else None
    ids, masks = parts_of(name)
    which = f"{PREFIX}{'+'.join(ids)}"
    if masks == FLOW:
        return (
            f"{which}: there are no masks, and so no φ. The contrast frontend_gain stands in for it: what agents gain "
            "that see pixels through maps of what moves together. What does not move is not in it."
        )
    if not masks:
        return f"{which}: there are no masks, and so no φ: ψ is asked on what the environment itself observes."
    try:
        found = read_back(masks)
    except InputError:
        return None
    if isinstance(found, ColourMasks):
        made = f"of the exact colours of its pictures ({', '.join(found.names[1:])}); all other colours are background"
    elif isinstance(found, InfoMasks):
        made = f"of the labels that it tells itself, under '{found.key}'; label 0 is background"
    else:
        made = f"of the labels that {masks} says; label 0 is background"
    return f"{which}: masks are made {made}. φ says how much better agents learn from these than from its pictures."
