"""The page of a comparison of two studies."""

from pathlib import Path

from lcd.analyses.analysis import Analysis
from lcd.files.atomic import write_atomic
from lcd.report import html as pages
from lcd.report.analysis_figures import differences
from lcd.report.figures import data_uri, draw_svg, save_figure


def write_comparison(folder: str | Path, found: Analysis, names: tuple[str, str]) -> Path:
    """Write `comparison.html`, which needs no other file, and its figure (PNG and SVG) into `figures/` beside it.

    Args:
        folder: where to write.
        found: what `lcd.analyses.against` found.
        names: what the two studies are called.

    Returns:
        The page's.
    """
    folder = Path(folder)
    _, drawing = save_figure(differences(found), folder / "figures", found.key)
    scores = found.table[~found.table["measure"].str.startswith("AUC")]
    areas = found.table[found.table["measure"].str.startswith("AUC")]
    page = pages.render(
        "comparison.html.j2",
        found=found,
        names=names,
        columns=found.columns(),
        parts=[("Scores", [row for _, row in scores.iterrows()]), ("Areas", [row for _, row in areas.iterrows()])],
        wide=data_uri(drawing.read_bytes()),
        narrow=data_uri(draw_svg(differences(found, narrow=True))),
    )
    write_atomic(folder / "comparison.html", page)
    return folder / "comparison.html"
