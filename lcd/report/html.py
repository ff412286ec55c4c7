"""How pages are made of the templates: names escaped, numbers and times as a reader reads them."""

import base64
from collections.abc import Mapping
from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from lcd.analyses.analysis import cell_text, ends_text
from lcd.report.terminal import two_decimals
from lcd.scores.factors import factor_and_ends


def render(template: str, **content: Any) -> str:
    """A page: the template of that name, with its content."""
    return _templates().get_template(template).render(content)


def template_file(name: str) -> str:
    """What a file beside the templates holds."""
    templates = _templates()
    return templates.loader.get_source(templates, name)[0]  # type: ignore[union-attr]


@cache
def _templates() -> Environment:
    made = Environment(loader=PackageLoader("lcd.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters |= {
        "score": score_text,
        "between": bounds_text,
        "duration": duration_text,
        "cell": cell_text,
        "ends": ends_text,
    }
    made.filters["factor_and_ends"] = factor_and_ends
    made.filters["in_place"] = in_place_of_a_number
    return made


def in_place_of_a_number(line: Any) -> str:
    """What a card's line says where it has no number; see `lcd.report.challenge_cards`."""
    from lcd.report.challenge_cards import told

    return told(line)


def png_uri(content: bytes) -> str:
    """A PNG file's content as an address that needs no file."""
    return "data:image/png;base64," + base64.b64encode(content).decode()


def heading(text: str) -> str:
    """What the first heading in some HTML says; empty where there is none."""
    reader = _FirstHeading()
    reader.feed(text)
    return " ".join("".join(reader.words).split())


class _FirstHeading(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.within = ""
        self.done = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if not self.done and not self.within and tag in ("h1", "h2", "h3"):
            self.within = tag

    def handle_endtag(self, tag: str) -> None:
        if self.within and tag == self.within:
            self.done, self.within = True, ""

    def handle_data(self, data: str) -> None:
        if self.within:
            self.words.append(data)


def score_text(value: float) -> str:
    """A score with two digits, or a dash."""
    return two_decimals(value).replace("-", "−") if np.isfinite(value) else "–"


def bounds_text(row: Mapping[str, Any], name: str) -> str:
    """A score's bounds, or nothing."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{score_text(low)} to {score_text(high)}" if np.isfinite(low) and np.isfinite(high) else ""


def duration_text(seconds: float) -> str:
    """Seconds as a reader says them: "1 h 02 min", "3 min 20 s", "12 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
