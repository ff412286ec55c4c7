"""The analyses with φ and ψ by the paper's definition, whichever the headline follows: beside the paper's numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lcd.analyses.agreement import agreements
from lcd.analyses.analysis import Analysis, Evidence
from lcd.analyses.gains import frontend_gains, shaping_gains
from lcd.analyses.taxonomy import classes
from lcd.scores.contrasts import LETTER

PROCGEN = "procgen"
"""What the names of benchmarks begin with that the paper has numbers of."""
LOOK_AT_SCORES: Mapping[str, Callable[[Evidence], Sequence[Analysis | None]]] = {
    "taxonomy": lambda evidence: [classes(evidence)],
    "agreement": lambda evidence: [agreements(evidence)],
    "frontend": frontend_gains,
    "shaping": shaping_gains,
}
"""The analyses, of those that are compared with the paper, that look at φ or ψ."""
OF_SCORES = "φ and ψ are by the paper's definition here, whichever the headline follows."


def by_the_paper(evidence: Evidence) -> Sequence[Analysis]:
    """The analyses that are made, with the paper's φ and ψ in those that look at scores.

    Other benchmarks than Procgen, and scores whose curves are not known, have nothing to be compared with the paper.
    """
    diagnosis = evidence.diagnosis
    if diagnosis.definition == LETTER:
        return evidence.made
    curves = diagnosis.curves
    if curves.empty or not any(str(name).startswith(PROCGEN) for name in curves["benchmark"].unique()):
        return ()
    again = replace(evidence, diagnosis=diagnosis.by_the_letter)
    names = dict.fromkeys(each.made_by for each in evidence.made)
    anew = (each for name in names if name in LOOK_AT_SCORES for each in LOOK_AT_SCORES[name](again))
    kept = (each for each in evidence.made if each.made_by not in LOOK_AT_SCORES)
    return (*kept, *(each for each in anew if each is not None))
