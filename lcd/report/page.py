"""The report: one page that says what makes a benchmark's tasks hard, how sure that is, and what to do about it."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lcd.analyses import Analysis, Evidence, analyse
from lcd.analyses.analysis import joined_names
from lcd.analyses.taxonomy import MEANINGS, SUITS, SURE, recommendations, taxonomy
from lcd.analyses.transfer import MEASURES, Transfer
from lcd.curves.index import CurveIndex
from lcd.curves.reading import group_numbers, kept
from lcd.curves.table import CURVE, DEFAULTS
from lcd.files.atomic import write_atomic
from lcd.report import html as pages
from lcd.report import sections
from lcd.report.asked import families_alone, is_asked, is_compared, statuses_of
from lcd.report.challenge_cards import MEASURED, NOT_MEASURED, NOT_THERE, NOT_TOLD, Card, cards_of
from lcd.report.curve_figures import one_below_the_other
from lcd.report.curve_lines import curves_by_task
from lcd.report.drawers import drawing_beside
from lcd.report.figures import data_uri, draw_svg, save_figure, styles
from lcd.report.html import duration_text
from lcd.report.plane_figures import is_placed, planes
from lcd.report.sections import Page
from lcd.report.sentences import (
    ALONE,
    FURTHER_ALONE,
    IN_PLAIN_WORDS,
    certainty,
    group_sentences,
    of_two,
    verdict,
)
from lcd.report.transfer_figures import transfer_figures
from lcd.scores.challenge_table import GROUP
from lcd.scores.contrasts import DEFINITIONS, HEADLINE, PERCEPTION, Contrast
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.hard import FROM_HALF, HardFrom
from lcd.scores.judging import STATUSES
from lcd.scores.left_out import STATES
from lcd.scores.scoring import factor_columns
from lcd.scores.validity import withheld
from lcd.statistics.intervals import METHOD

Pictures = Mapping[str, Mapping[str, bytes]]
"""Task to view to what it shows, as the content of a PNG file."""
MARKS = {"perception": "◉", "reward": "★", "both": "◆", "neither": "○"}
ORDER = ("both", "perception", "reward", "neither")


def write_report(
    folder: str | Path,
    diagnosis: Diagnosis,
    curves: pd.DataFrame | None = None,
    provenance: Mapping[str, Any] | None = None,
    transfers: Sequence[Transfer] = (),
    analyses: Sequence[Analysis] | None = None,
    pictures: Pictures | None = None,
    threshold: HardFrom = FROM_HALF,
    first: str | None = None,
    names: Sequence[str] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Path:
    """Write `report.html`, which needs no other file, and the figures (PNG and SVG) into `figures/` beside it.

    Args:
        folder: where to write; a study's is `<study>/diagnosis`.
        diagnosis: what to tell.
        curves: the curves behind it, with the column `normalised`; needed only if the diagnosis was read back from
            JSON.
        provenance: how it was run, shown as it is: values may be text, numbers, lists or mappings. See
            `lcd.report.provenance`.
        transfers: the outcomes of curricula; with them the diagnosis may be empty.
        analyses: what else is told; None makes those that the curves allow.
        pictures: what each task looks like under its views.
        threshold: from where on scaled scores are hard.
        first: the key of the analysis that comes before all else: an ablation's.
        names: the page's sections, in their order; None: all that are registered.
        settings: section to its own settings.

    Returns:
        The page's.
    """
    folder = Path(folder)
    if diagnosis.curves.empty and curves is not None and "normalised" in curves:
        diagnosis = replace(diagnosis, curves=curves, index=CurveIndex(curves[curves["split"] == "eval"]))
    analyses = analyse(Evidence(diagnosis, threshold))[0] if analyses is None else analyses
    wide, narrow = _drawn(folder, diagnosis, transfers, threshold)
    subject = _subject(diagnosis, transfers)
    content = {
        "groups": _group_sections(diagnosis, pictures or {}, threshold, analyses),
        "diagnosis": diagnosis,
        "transfers": [_of_curriculum(place, transfer) for place, transfer in enumerate(transfers)],
        "measures": MEASURES,
        "subject": subject,
        "in_words": IN_PLAIN_WORDS[diagnosis.definition] if is_asked(diagnosis, diagnosis.table) else (),
        "family": families_alone(diagnosis, analyses),
        "conditions": _conditions(diagnosis),
        "further": diagnosis.contrasts[len(HEADLINE) :],
        "factors": factor_columns(diagnosis.contrasts, diagnosis.definition),
        "statuses": STATUSES,
        "method": METHOD,
        "definitions": DEFINITIONS,
        "threshold": threshold.words,
        "meanings": MEANINGS,
        "marks": MARKS,
        "sure": SURE,
        "wide": wide,
        "narrow": narrow,
        "effort": _training_amount(diagnosis.curves),
        "provenance": {key.replace("_", " "): _shown(value) for key, value in (provenance or {}).items()},
    }
    page = Page(diagnosis, analyses, transfers, first, partial(_picture, folder), content)
    found = sections.written(page, names, settings)
    script = pages.template_file("sort.js")
    whole = pages.render(
        "report.html.j2",
        sections=list(found.values()),
        links=sections.links(found),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **content,
    )
    write_atomic(folder / "report.html", whole)
    return folder / "report.html"


def _picture(folder: Path, name: str, caption: str, draw: Callable[[bool], Figure]) -> str:
    """A figure as HTML, written as PNG and SVG, too."""
    _, drawing = save_figure(draw(False), folder / "figures", name)
    wide, narrow = data_uri(drawing.read_bytes()), data_uri(draw_svg(draw(True)))
    return pages.render("figure.html.j2", name=name, caption=caption, wide={name: wide}, narrow={name: narrow})


def _drawn(
    folder: Path, diagnosis: Diagnosis, transfers: Sequence[Transfer], threshold: HardFrom
) -> tuple[dict[str, str], dict[str, str]]:
    """The figures of scores and curricula, written as PNG and SVG; their addresses for a wide and for a narrow page."""

    def figures(narrow: bool) -> Iterator[tuple[str, Any]]:
        return chain(planes(diagnosis, narrow, threshold), transfer_figures(transfers, narrow=narrow))

    place = folder / "figures"
    with drawing_beside(place, dict(curves_by_task(diagnosis))) as finish:
        wide = {name: save_figure(figure, place, name)[1].read_bytes() for name, figure in figures(False)}
        narrow = {name: draw_svg(figure) for name, figure in figures(True)}
        curves = finish()
    wide |= curves
    narrow |= {name: one_below_the_other(drawing) for name, drawing in curves.items()}
    for_wide, for_narrow = ({name: data_uri(svg) for name, svg in each.items()} for each in (wide, narrow))
    return for_wide, for_narrow


def _group_sections(
    diagnosis: Diagnosis, pictures: Pictures, threshold: HardFrom, analyses: Sequence[Analysis]
) -> list[dict[str, Any]]:
    """The groups that were trained under more than one condition, or all of them where none was."""
    cards = dict(zip(diagnosis.table.index, cards_of(diagnosis, analyses), strict=True))
    found = taxonomy(diagnosis, threshold)
    advice = recommendations(diagnosis, found) if len(diagnosis.table) else pd.DataFrame()
    further = diagnosis.contrasts[len(HEADLINE) :]
    every = list(enumerate(diagnosis.table.groupby(list(GROUP), sort=False)))
    compared = [(place, each) for place, each in every if is_compared(each[1]) or each[1]["status"].isin(STATES).all()]
    # The paper's own agent first; a sort keeps the order of the rest.
    ordered = sorted(compared or every, key=lambda each: (each[1][0][1] != "ppo", each[0]))
    return [
        {"order": order}
        | _group(
            place,
            key,
            rows,
            found.table,
            advice,
            pictures,
            diagnosis,
            is_asked(diagnosis, rows),
            further,
            cards,
        )
        for order, (place, (key, rows)) in enumerate(ordered, 1)
    ]


def _group(
    place: int,
    key: tuple,
    rows: pd.DataFrame,
    classes: pd.DataFrame,
    advice: pd.DataFrame,
    pictures: Pictures,
    diagnosis: Diagnosis,
    asked: bool,
    contrasts: Sequence[Contrast],
    cards: Mapping[Any, Card],
) -> dict[str, Any]:
    mine = classes[(classes[list(GROUP)] == list(key)).all(axis=1)] if len(classes) else classes
    kinds = {row["task"]: row for _, row in mine.iterrows()}
    untold = rows[rows["phi"].notna() & rows["psi"].notna() & rows["validity"].map(withheld)]
    further = () if asked or not is_compared(rows) else contrasts
    lost = [each for each in diagnosis.left_out if tuple(getattr(each, name) for name in GROUP) == key]
    return {
        "figure": f"challenge-{place}",
        "name": dict(zip(GROUP, key, strict=True)),
        "verdict": verdict(mine, len(rows), len(untold)) if asked else ALONE,
        "further_alone": FURTHER_ALONE if not asked and is_compared(rows) else "",
        "of_two": of_two(rows) if len(mine) else "",
        "certainty": certainty(mine),
        "on_plane": is_placed(rows).any(),
        "reading": group_sentences(rows),
        "tiles": [
            {"class": name, "tasks": [(task, row["sure"]) for task, row in kinds.items() if row["class"] == name]}
            | {"means": MEANINGS[name], "suits": SUITS[name]}
            for name in ORDER
            if any(row["class"] == name for row in kinds.values())
        ],
        "rows": [
            {"figure": f"curves-{index}", "class": kinds[row["task"]]["class"] if row["task"] in kinds else ""}
            | {"sure": kinds[row["task"]]["sure"] if row["task"] in kinds else np.nan}
            | {"advice": advice.loc[index].to_dict(), "pictures": _pictures(pictures.get(row["task"], {}))}
            | {"place": f"task-{index}", "withheld": withheld(row["validity"]), "statuses": statuses_of(row, further)}
            | {"left_out": [each for each in lost if each.task == row["task"]]}
            | _lines(cards[index])
            | {"tried": _tried(diagnosis, row["benchmark"])}
            | row
            for index, row in rows.to_dict("index").items()
        ],
    }


def _lines(card: Card) -> dict[str, Any]:
    """A card's lines but φ and ψ: what is known, what a command would measure, and what none can, by the reason."""
    lines = [line for line in card.lines if line.key not in {each.name for each in HEADLINE}]
    impossible: dict[str, list[str]] = {}
    for line in lines:
        if line.state == NOT_THERE:
            impossible.setdefault(line.why, []).append(line.asks)
    return {
        "lines": [line for line in lines if line.state in (MEASURED, NOT_TOLD)],
        "would": [line for line in lines if line.state == NOT_MEASURED],
        "impossible": [(joined_names(asks), why) for why, asks in impossible.items()],
    }


def _tried(diagnosis: Diagnosis, benchmark: str) -> set[str]:
    """The agents and front-ends that something of a benchmark was trained with."""
    table = diagnosis.table[diagnosis.table["benchmark"] == benchmark]
    return {*table["agent"], *table["frontend"], "–"}


def _pictures(by_view: Mapping[str, bytes]) -> list[tuple[str, str]]:
    views = PERCEPTION.values
    order = sorted(by_view, key=lambda view: (view not in views, views.index(view) if view in views else view))
    return [(view.replace("_", " "), pages.png_uri(by_view[view])) for view in order]


def _subject(diagnosis: Diagnosis, transfers: Sequence[Transfer]) -> str:
    """The benchmark that the page is about; the first of several."""
    if not len(diagnosis.table) and transfers:
        return _named(str(transfers[0].key["benchmark"]))
    known = next(each for each in (diagnosis.table, diagnosis.others, diagnosis.points) if len(each))
    return _named(str(known["benchmark"].iloc[0]))


def _named(benchmark: str) -> str:
    """A benchmark as a heading has it: of curves that name none there is no name."""
    return "these tasks" if benchmark == DEFAULTS["benchmark"] else benchmark


def _of_curriculum(place: int, transfer: Transfer) -> dict[str, Any]:
    after = [f"after {stage}" for stage in transfer.stages]
    measures = [
        {"name": name} | dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))
        for name, values in transfer.measures.items()
    ]
    return {
        "figure": f"transfer-{place}",
        "name": transfer.key,
        "tasks": transfer.tasks,
        "scale": transfer.scale,
        "rows": list(zip(["before training", *after], transfer.matrix, strict=True)),
        "measures": measures,
        "seeds": len(transfer.returns),
    }


def _training_amount(curves: pd.DataFrame) -> dict[str, Any]:
    """How much was trained, as far as the curves tell."""
    if curves.empty:
        return {}
    held_out = kept(curves, curves["split"] == "eval")
    numbers = pd.Series(group_numbers(held_out, CURVE), held_out.index)
    first = ~numbers.duplicated()
    ends = held_out.loc[first, list(CURVE)].set_index(numbers[first])
    ends = ends.join(held_out[["step", "wall_s"]].groupby(numbers, sort=False).max())
    # Seeds of a run train together, so that a condition's time is the longest of its seeds'.
    wall = ends["wall_s"].groupby(group_numbers(ends, CURVE[:-2])).max().sum(min_count=1)
    seeds = sorted(ends["seed"].unique().tolist())
    effort = {
        "conditions": len(ends.drop_duplicates(list(CURVE[:-2]))),
        "seeds": f"{len(seeds)} ({_seed_range(seeds)})",
    }
    effort |= {"steps a seed": _steps(ends["step"].max()), "steps in all": _steps(ends["step"].sum())}
    return effort | ({"training time, conditions added up": duration_text(wall)} if wall > 0 else {})


def _seed_range(seeds: list[int]) -> str:
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds[:20])) + (", …" if len(seeds) > 20 else "")


def _shown(value: Any) -> dict[str, Any]:
    """What the template makes a list of names and values, a block of text, or a line of."""
    if isinstance(value, Mapping) and not any(isinstance(inner, Mapping | list | tuple) for inner in value.values()):
        return {"kind": "pairs", "value": {str(key): str(inner) for key, inner in value.items()}}
    if isinstance(value, Mapping):
        return {"kind": "block", "value": json.dumps(value, indent=2, default=str, ensure_ascii=False)}
    if isinstance(value, list | tuple):
        return {"kind": "line", "value": ", ".join(map(str, value))}
    return {"kind": "block" if "\n" in str(value) else "line", "value": str(value)}


def _conditions(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Name, label and colour of every condition, each as the first contrast has it that compares it."""
    found: dict[str, tuple[str, str, str]] = {}
    for contrast in diagnosis.contrasts:
        for benchmark in diagnosis.solved:
            for each, (colour, _) in zip(diagnosis.conditions_of(contrast, benchmark), styles(contrast), strict=True):
                found.setdefault(each.name, (each.name, each.label, colour))
    return list(found.values())


def _steps(value: float) -> str:
    return f"{value:,.0f}".replace(",", "\u202f") if np.isfinite(value) else "–"
