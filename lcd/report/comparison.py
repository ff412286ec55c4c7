"""The page of a comparison of two studies."""

from functools import partial
from pathlib import Path

from lcd.analyses.analysis import Analysis
from lcd.files.atomic import write_atomic
from lcd.report import html as pages
from lcd.report.analysis_figures import differences
from lcd.report.figures import data_uri, draw_svg, save_figure
from lcd.report.plane_figures import shared_map


def write_comparison(folder: str | Path, found: Analysis | None, placed: Analysis, names: tuple[str, str]) -> Path:
    """Write `comparison.html`, which needs no other file, and its figure (PNG and SVG) into `figures/` beside it.

    Args:
        folder: where to write.
        found: what `lcd.analyses.against` found; None where no task is the same.
        placed: its tasks of both on one map.
        names: what the two studies are called.

    Returns:
        The page's.
    """
    folder = Path(folder)
    figures = {placed.key: ("Tasks of both by raw φ and ψ, with intervals", partial(shared_map, placed.table))}
    parts = [("Tasks", placed, placed.table)]
    if found is not None:
        figures[found.key] = ("Differences of the scores of each task, with intervals", partial(differences, found))
        scores = ~found.table["measure"].str.startswith("AUC")
        parts = [("Scores", found, found.table[scores]), ("Areas", found, found.table[~scores]), *parts]
    drawn = {}
    for name, (words, draw) in figures.items():
        _, drawing = save_figure(draw(), folder / "figures", name)
        drawn[name] = {
            "words": words,
            "wide": data_uri(drawing.read_bytes()),
            "narrow": data_uri(draw_svg(draw(narrow=True))),
        }
    page = pages.render(
        "comparison.html.j2",
        found=found,
        placed=placed,
        names=names,
        parts=[(title, of.columns(), [row for _, row in rows.iterrows()]) for title, of, rows in parts],
        drawn=drawn,
    )
    write_atomic(folder / "comparison.html", page)
    return folder / "comparison.html"
