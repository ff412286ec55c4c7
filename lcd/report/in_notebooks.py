"""A diagnosis as a cell of a notebook shows it."""

from __future__ import annotations

from lcd.analyses.taxonomy import taxonomy
from lcd.report import html as pages
from lcd.report.asked import statuses_of
from lcd.report.figures import data_uri, draw_svg
from lcd.report.page import group_sentences, verdict
from lcd.report.plane_figures import planes
from lcd.scores.challenge_table import GROUP
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.hard import FROM_HALF, HardFrom
from lcd.scores.validity import withheld


def study_html(diagnosis: Diagnosis, name: str, threshold: HardFrom = FROM_HALF) -> str:
    """The verdict, the plane and the scores of every group, escaped.

    Args:
        diagnosis: what is shown.
        name: what the study is called.
        threshold: from where on a scaled score is hard.
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
                "reading": " ".join(group_sentences(rows)),
                "plane": drawn.get(f"challenge-{place}", ""),
                "rows": [
                    row | {"class": kinds.get(row["task"], "–"), "statuses": statuses_of(row, ())}
                    for row in rows.to_dict("records")
                ],
            }
        )
    return pages.render("notebook.html.j2", name=name, groups=groups, warnings=diagnosis.warnings)
