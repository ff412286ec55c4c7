"""A diagnosis as a cell of a notebook shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lcd.analyses.analysis import Analysis
from lcd.analyses.families import is_of_methods
from lcd.analyses.grids import KEY
from lcd.analyses.taxonomy import taxonomy
from lcd.report import html as pages
from lcd.report.asked import is_asked, statuses_of
from lcd.report.challenge_cards import GAINS
from lcd.report.figures import data_uri, draw_svg
from lcd.report.plane_figures import planes
from lcd.report.sections import shown_names
from lcd.report.sentences import group_sentences, of_two, verdict
from lcd.scores.challenge_table import GROUP
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.hard import FROM_HALF, HardFrom
from lcd.scores.validity import withheld


def study_html(
    diagnosis: Diagnosis, name: str, threshold: HardFrom = FROM_HALF, analyses: Sequence[Analysis] = ()
) -> str:
    """The verdict, the plane and the scores of every group, escaped; what else was asked where φ and ψ were not.

    Args:
        diagnosis: what is shown.
        name: what the study is called.
        threshold: from where on a scaled score is hard.
        analyses: what else the curves say; the first is what a study tells before all else.
    """
    classes = taxonomy(diagnosis, threshold).table
    drawn = {key: data_uri(draw_svg(figure)) for key, figure in planes(diagnosis, False, threshold)}
    groups = []
    for place, (key, rows) in enumerate(diagnosis.table.groupby(list(GROUP), sort=False)):
        mine = classes[(classes[list(GROUP)] == list(key)).all(axis=1)] if len(classes) else classes
        untold = rows[rows["phi"].notna() & rows["psi"].notna() & rows["validity"].map(withheld)]
        kinds = dict(zip(mine["task"], mine["class"], strict=True)) if len(mine) else {}
        groups.append(
            {
                "name": " · ".join(key),
                "verdict": verdict(mine, len(rows), len(untold)),
                "of_two": of_two(rows) if len(mine) else "",
                "reading": " ".join(group_sentences(rows)),
                "plane": drawn.get(f"challenge-{place}", ""),
                "rows": [
                    row | {"class": kinds.get(row["task"], "–"), "statuses": statuses_of(row, ())}
                    for row in rows.to_dict("records")
                ],
            }
        )
    leading = None if is_asked(diagnosis, diagnosis.table) else _leading(analyses)
    # What has no scores to compare is told by its analysis alone.
    shown = [] if leading else groups
    return pages.render("notebook.html.j2", name=name, groups=shown, leading=leading, warnings=diagnosis.warnings)


def _leading(analyses: Sequence[Analysis]) -> dict[str, Any] | None:
    """The first analysis that says what was asked in place of φ and ψ, as the template has it."""
    found = next((each for each in analyses if each.key in (*GAINS, KEY) or is_of_methods(each.key)), None)
    if found is None:
        return None
    drawn = [data_uri(draw_svg(each.draw(False))) for each in found.figures[:1]]
    rows = [row for _, row in found.table.iterrows()]
    return {"title": found.title, "says": found.says, "figures": drawn, "columns": shown_names(found), "rows": rows}
