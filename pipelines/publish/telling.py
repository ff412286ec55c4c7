"""What is told of curves, before it is written anywhere: their diagnosis, analyses and curricula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcd.envs.errors import InputError
from lcd.pipelines.study import cost, dynamics, longer, stopping, store
from lcd.pipelines.study.adaptive import recommended
from lcd.pipelines.study.quarantine import Finished, read_finished
from lcd.pipelines.study.remembered import definition_of
from lcd.scores.hard import HardFrom

if TYPE_CHECKING:
    import pandas as pd

    from lcd.analyses import Analysis
    from lcd.analyses.transfer import Transfer
    from lcd.scores.contrasts import Contrast
    from lcd.scores.diagnosis import Diagnosis


SMOKE = "smoke"
"""The budget under which nothing is learned."""
NAMELESS = (
    "The curves name no benchmark: give lcd import map.benchmark=NAME, or the curves a column benchmark, and it is "
    "called by its name here."
)


@dataclass(frozen=True)
class ReportOptions:
    """How a diagnosis is told.

    Attributes:
        definition: of the headline's φ and ψ; None: the study's own.
        threshold: from where on scaled scores are hard.
        formats: what tables are written in besides CSV.
        first: the key of the analysis that is told before all else: an ablation's.
        ranges: those of tasks' returns, as `lcd.curves.ranges.ranges_from` takes them.
        analyses, sections: which are made, in their order; `all`: the other registered ones; None: all.
        analysis_params, section_params: of each by name its own settings.
        horizons: task to its effective horizon and the bounds on it, as far as a file tells them.
    """

    definition: str | None = None
    threshold: HardFrom = field(default_factory=HardFrom)
    formats: Sequence[str] = ()
    first: str | None = None
    ranges: str | Mapping[str, Any] | None = None
    analyses: Sequence[str] | None = None
    sections: Sequence[str] | None = None
    analysis_params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    section_params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    horizons: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """All that there is to be told.

    Attributes:
        finished: the curves, and what is left out of them.
        diagnosis: of these curves.
        curricula: what learning one task does to the others.
        analyses: what else the curves say.
        how: as it was asked, and as the study wants it.
    """

    finished: Finished
    diagnosis: Diagnosis
    curricula: list[Transfer]
    analyses: list[Analysis]
    how: ReportOptions


def tell(
    source: Path,
    study: store.Study | None,
    how: ReportOptions,
    curves: pd.DataFrame | None = None,
    notes: Sequence[str] = (),
) -> Told:
    """What is told of the curves at `source`.

    Args:
        source: a study's folder, or a file.
        study: the study that the curves belong to, if they do.
        how: what is asked.
        curves: what was read of `source` where that is no file.
        notes: what a reader should know of how they were read.
    """
    from lcd.analyses import Evidence, analyse
    from lcd.analyses.grids import Grid
    from lcd.analyses.transfer import transfers
    from lcd.curves.ranges import range_sets, ranges_from
    from lcd.curves.table import DEFAULTS, evaluated_names
    from lcd.scores.horizons import note_of_strangers
    from lcd.scores.leaving_floor import floor_sentences

    finished = read_finished(source, study) if curves is None else Finished(curves)
    tasks = evaluated_names(finished.curves)
    ranges = ranges_from(how.ranges, tasks, range_sets(finished.curves))
    strangers = note_of_strangers(how.horizons, tasks)
    diagnosis = diagnosed(finished, study, how, ranges)
    curricula = transfers(diagnosis.others, diagnosis.curves)
    known: dict[str, Any] = {}
    if study is not None:
        known = recommended(study) | {"grid": Grid.from_plain(study.record.get("grid")), "read": finished.curves}
        how = replace(how, first=first_of(study))
    evidence = Evidence(diagnosis, how.threshold, **known)
    analyses, left_out = analyse(evidence, how.analyses, how.analysis_params, how.first)
    cautions = () if study is None else tuple(_cautions(study, finished))
    if how.analyses is not None:
        from lcd.report.sections import not_shown

        left_out += not_shown(analyses, how.analyses, how.sections, how.first)
    nameless = [NAMELESS] if study is None and (diagnosis.table["benchmark"] == DEFAULTS["benchmark"]).any() else []
    of_scores = (*floor_sentences(diagnosis), *diagnosis.notes, *([strangers] if strangers else []))
    said = (*notes, *nameless, *of_scores, *left_out)
    return Told(finished, replace(diagnosis, notes=said, cautions=cautions), curricula, analyses, how)


def _cautions(study: store.Study, finished: Finished) -> Iterator[str]:
    """What a reader should know before all scores."""
    if finished.waiting:
        still = f"{finished.waiting} of {finished.runs} runs are" if finished.waiting > 1 else "A run is"
        yield (
            f"{still} not trained yet: what is told is of the others alone. The command that asked for them, given "
            "again, goes on."
        )
    budgets = {each.get("budget") for each in study.record["requests"] if isinstance(each, dict)}
    if budgets == {SMOKE}:
        yield (
            f"The study was asked for with budget={SMOKE}, which is for trying out commands: it trains far too little "
            "for its scores to mean anything."
        )


def first_of(study: store.Study) -> str | None:
    """The analysis that a study tells before all else; a stranger's file may hold anything."""
    first = study.record.get("first")
    return first if isinstance(first, str) and first else None


def diagnosed(
    finished: Finished,
    study: store.Study | None,
    how: ReportOptions,
    ranges: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """The diagnosis of curves, and of the study that they belong to what it has cost."""
    from lcd.scores.diagnosis import Diagnosis, diagnose_curves
    from lcd.scores.marking import mark

    known = {} if study is None else _remembered(study)
    known |= {"definition": how.definition or definition_of(study), "horizons": how.horizons}
    try:
        diagnosis = diagnose_curves(finished.curves, ranges, **known)
    except InputError as impossible:
        # Areas of a grid need no ranges; of somebody's environment nobody may know them.
        if study is None or study.record.get("grid") is None:
            raise
        diagnosis = replace(Diagnosis.empty(), notes=(f"No task is diagnosed: {impossible}",))
    notes = [
        f"The contrast '{name}' is left out: no installed package has it, and only lcd diagnose imports code."
        for name in (() if study is None else contrasts_of(study)[1])
    ]
    notes += [
        f"runs/{path.name} is left out: there is no readable config.yaml in it. Put it back as it was, or give the "
        "command again that made the study."
        for path in (() if study is None else study.strangers())
        if path.is_dir() and not path.name.startswith(".")
    ]
    notes += [finished.note] if finished.note else []
    diagnosis = replace(diagnosis, notes=(*diagnosis.notes, *notes))
    if finished.left_out:
        diagnosis = mark(diagnosis, finished.left_out)
    return diagnosis if study is None else replace(diagnosis, cost=cost.cost_so_far(longer.longest(study.runs())))


def _remembered(study: store.Study) -> dict[str, Any]:
    """What a study remembers that a diagnosis needs, as arguments of `diagnose_curves`."""
    return {
        "levels": stopping.levels(study),
        "dynamics": dynamics.recorded_differences(study),
        "contrasts": contrasts_of(study)[0],
    }


def contrasts_of(study: store.Study) -> tuple[tuple[Contrast, ...], tuple[str, ...]]:
    """What the study asks of its tasks, and the names of contrasts that are not to be had here.

    Those are a package's that is not installed, or code that the study's file names and the command does not.
    """
    from lcd.scores.asked_contrasts import parse_contrasts
    from lcd.scores.contrasts import HEADLINE, contrasts

    found = {each.name: each for each in HEADLINE}
    unknown: dict[str, None] = {}
    for request in study.record["requests"]:
        asked = request.get("study") if isinstance(request, dict) else None
        given = asked.get("contrasts") if isinstance(asked, dict) else None
        known = [each for each in given or () if not isinstance(each, str) or contrasts.may_resolve(each)]
        found |= {each.name: each for each in parse_contrasts(known)}
        unknown |= {each: None for each in given or () if isinstance(each, str) and not contrasts.may_resolve(each)}
    return tuple(found.values()), tuple(unknown)
