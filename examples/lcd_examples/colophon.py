"""A section of the report: who made it."""

from dataclasses import dataclass
from html import escape

from lcd.report.sections import Page


@dataclass(frozen=True)
class ColophonSettings:
    """Settings: `'section_params={colophon: {author: "A. Researcher"}}'`.

    Attributes:
        author: who made the report.
    """

    author: str = "somebody"


def colophon(page: Page, settings: ColophonSettings) -> str:
    """Who made the report.

    Args:
        page: what the report tells; it also draws (`page.picture`).
        settings: what the user sets.

    Returns:
        HTML, or "" where there is nothing to tell.
    """
    tasks = len(page.diagnosis.table)
    return f'<section id="colophon"><h2>Colophon</h2><p>{escape(settings.author)}: {tasks} tasks.</p></section>'
