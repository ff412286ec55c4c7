"""The sections of a report, in order: ours, then others' by entry point or `module:object`.

A section is a function of `Page` that gives HTML, or "" where there is nothing to tell. It draws with `page.picture`.
A parameter `settings` that is annotated with a dataclass has what a user sets (`section_params`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lcd.analyses.analysis import Analysis
from lcd.analyses.families import answers, is_of_methods
from lcd.config.registries import analyses, chosen, sections
from lcd.config.settings import settings_for
from lcd.envs.errors import InputError
from lcd.files.slugs import slug
from lcd.report import html
from lcd.report.analysis_figures import curve_grid
from lcd.scores.challenge_table import GROUP
from lcd.scores.contrasts import HEADLINE, PERCEPTION
from lcd.scores.diagnosis import Diagnosis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lcd.analyses.transfer import Transfer

LINKS = {
    "families": ("over-the-family", "Over the family"),
    "scores": ("tasks-1", "Task by task"),
    "comparisons": ("analyses", "Comparisons"),
    "run": ("run", "How it was run"),
    "methods": ("methods", "How to read it"),
}
"""Section of ours to what links to it at the top of the page."""


@dataclass(frozen=True)
class Page:
    """What a section may tell of.

    Attributes:
        diagnosis: the scores, and the curves behind them where they are known.
        analyses: what else was found.
        transfers: the outcomes of curricula.
        first: the key of the analysis that comes before all else: an ablation's.
        picture: draws a figure for wide and narrow pages, keeps it in `figures/`, and gives its HTML. It takes a name
            for the files, a caption, and a function of whether the page is narrow.
        content: what our own templates are made with.
        sections: the sections of this page.
    """

    diagnosis: Diagnosis
    analyses: Sequence[Analysis]
    transfers: Sequence[Transfer]
    first: str | None
    picture: Callable[[str, str, Callable[[bool], Figure]], str]
    content: Mapping[str, Any]
    sections: Sequence[str] = ()

    def template(self, name: str, **more: Any) -> str:
        """One of our templates, filled in."""
        return html.render(name, **self.content, **more)


def written(
    page: Page, names: Sequence[str] | None = None, settings: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, str]:
    """Section → HTML, of those that have something to tell.

    Args:
        page: what they tell of.
        names: sections, registered or `module:object`, in their order; `all`: the other registered ones; None: all.
        settings: section to its own settings.
    """
    found = {}
    page = replace(page, sections=chosen(sections, names))
    for name in page.sections:
        function = sections.resolve(name)
        given = settings_for(
            function, (settings or {}).get(name, {}), f"section_params.{name}", f"the section '{name}'"
        )
        text = function(page, **given)
        if not isinstance(text, str):
            raise InputError(f"The section '{name}' gives a {type(text).__name__}: a section gives HTML as a text.")
        if text:
            found[name] = f'<div id="{place_of(name)}">{text}</div>' if is_own(name) else text
    return found


def links(found: Mapping[str, str]) -> list[tuple[str, str]]:
    """What the page's navigation leads to: the place of each section that has one, and its words.

    Args:
        found: section to its HTML, as `written` gives them.
    """
    ours = {name: LINKS[name] for name in found if name in LINKS}
    others = {name: (place_of(name), html.heading(text) or name) for name, text in found.items() if is_own(name)}
    return [(ours | others)[name] for name in found if name in ours or name in others]


def is_own(name: str) -> bool:
    """Whether a section is somebody else's."""
    return not sections.is_built_in(name)


def place_of(name: str) -> str:
    """What a link within the page calls the place of somebody else's section."""
    return f"section-{slug(name)}"


def not_shown(
    found: Sequence[Analysis], asked: Sequence[str] | None, names: Sequence[str] | None, first: str | None
) -> list[str]:
    """Sentences on analyses that a command names and that no section of ours shows.

    Args:
        found: all analyses.
        asked: those that the command names; None: it names none.
        names: the page's sections; None: all that are registered.
        first: the key of the analysis that comes before all else.
    """
    on_page = chosen(sections, names)
    if "comparisons" in on_page:
        return []
    leads = first if first and "leading" in on_page else "\0"
    above = "families" in on_page
    lost = [each for each in found if not each.key.startswith(leads) and not (above and answers(each.key))]
    return [
        f"The analysis '{name}' is in the tables, but in no section of the page: analyses are in 'comparisons', which "
        f"sections=[{','.join(names or ())}] leaves out."
        for name in dict.fromkeys(each.made_by for each in lost)
        if name in (asked or ())
    ]


def validity(page: Page) -> str:
    """Whether the scores mean what they say: what is missing, and the findings of the checks."""
    found = page.diagnosis.findings or page.diagnosis.cautions
    return page.template("validity.html.j2") if found else ""


def leading(page: Page) -> str:
    """An ablation's own analysis, before all scores."""
    return "\n".join(_told(page, found) for found in page.analyses if _leads(page, found))


def families(page: Page) -> str:
    """Does what was measured on default MDPs hold over their families? Before all scores."""
    found = [each for each in page.analyses if answers(each.key) and not _leads(page, each)]
    told = [_told(page, each, lead=is_of_methods(each.key)) for each in found]
    return page.template("families.html.j2", told=told) if told else ""


def scores(page: Page) -> str:
    """What makes tasks hard: verdict, plane and table of each group, and a card a task with its learning curves."""
    return "\n".join(page.template("group.html.j2", group=group) for group in page.content["groups"])


def comparisons(page: Page) -> str:
    """The analyses, with their figures."""
    above = "families" in page.sections
    others = [
        _told(page, found) for found in page.analyses if not _leads(page, found) and not (above and answers(found.key))
    ]
    return page.template("comparisons.html.j2", others=others) if others else ""


def training(page: Page) -> str:
    """Learning curves on the levels that were trained on."""
    curves = page.diagnosis.curves
    if curves.empty or curves["task"].nunique() < 2:
        return ""
    plain = curves[(curves["frontend"] == "identity") & (curves["shaping"] == "none") & (curves["split"] == "train")]
    grids, words = [], "return, training levels"
    for agent, mine in plain.groupby("agent", sort=True, observed=True):
        for contrast in HEADLINE:
            if curve_grid(mine, contrast, words) is not None:
                name = f"training-{'views' if contrast is PERCEPTION else 'rewards'}-{slug(agent)[:40]}"
                what = "by view" if contrast is PERCEPTION else "by reward p"
                caption = f"Normalised returns on training levels, {what}, of {agent}"
                grids.append(page.picture(name, caption, partial(curve_grid, mine, contrast, words)))
    return page.template("training.html.j2", grids=grids) if grids else ""


def curricula(page: Page) -> str:
    """What learning one task does to the others."""
    return page.template("transfer.html.j2") if page.transfers else ""


def run(page: Page) -> str:
    """How the study was run: effort, cost, versions, requests."""
    return page.template("run.html.j2")


def methods(page: Page) -> str:
    """How to read the report: what every score, interval and status means."""
    return page.template("methods.html.j2") if page.content["groups"] else ""


def _leads(page: Page, found: Analysis) -> bool:
    return page.first is not None and found.key.startswith(page.first)


def _told(page: Page, found: Analysis, lead: bool = False) -> str:
    figures = [page.picture(each.name, each.caption, each.draw) for each in found.figures]
    rows = [row for _, row in found.table.iterrows()]
    columns = shown_names(found)
    return page.template("analysis.html.j2", found=found, figures=figures, columns=columns, rows=rows, lead=lead)


def shown_names(analysis: Analysis) -> list[str]:
    """Columns that say something: of ours, a name that is the same in all rows is left out."""
    names = {*GROUP, "view", "reward_p"} if analyses.is_built_in(analysis.made_by) else ()
    return [name for name in analysis.columns() if name not in names or analysis.table[name].nunique() > 1]
