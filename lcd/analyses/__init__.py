"""What a study says beyond φ and ψ: the paper's analyses, and others' by entry point or `module:object`.

An analysis is a function of `lcd.analyses.analysis.Evidence` that gives an `Analysis`, several, or None where the
curves do not allow it. It brings its figures along. A parameter `settings` that is annotated with a dataclass has
what a user sets (`analysis_params`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lcd.analyses.analysis import Analysis, Drawing, Evidence
from lcd.config.registries import analyses, chosen
from lcd.config.settings import settings_for
from lcd.envs.errors import InputError

__all__ = ["Analysis", "Drawing", "Evidence", "analyse"]


def analyse(
    evidence: Evidence,
    names: Sequence[str] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    first: str | None = None,
) -> tuple[list[Analysis], list[str]]:
    """All analyses that a study's curves allow.

    Args:
        evidence: what is analysed.
        names: analyses, registered or `module:object`, in their order; `all`: the other registered ones; None: all.
        settings: analysis to its own settings.
        first: the key of the analysis that comes first: an ablation's.

    Returns:
        The analyses, and sentences on those that are left out though they were asked for.
    """
    made: list[Analysis] = []
    notes: list[str] = []
    for name in chosen(analyses, names):
        function = analyses.resolve(name)
        given = settings_for(
            function, (settings or {}).get(name, {}), f"analysis_params.{name}", f"the analysis '{name}'"
        )
        try:
            given_back = _several(function(replace(evidence, made=tuple(made)), **given))
            made += [replace(each, made_by=name) for each in given_back]
            if name in (names or ()) and not any(len(each.table) for each in given_back):
                notes.append(f"The analysis '{name}' is left out: these curves do not allow it.")
        except InputError as impossible:
            # Curves of different lengths cannot be compared with each other; each is diagnosed all the same.
            told = f"An analysis is left out: {impossible}"
            # Several analyses may lack the same.
            notes += [] if told in notes else [told]
        except Exception as error:
            if analyses.is_built_in(name):
                raise
            notes.append(f"The analysis '{name}' is left out: {type(error).__name__}: {error}")
    made = [analysis for analysis in made if len(analysis.table)]
    return sorted(made, key=lambda analysis: not analysis.key.startswith(first or "\0")), notes


def _several(given: Analysis | Iterable[Analysis] | None) -> list[Analysis]:
    if given is None or isinstance(given, Analysis):
        return [] if given is None else [given]
    return list(given)
