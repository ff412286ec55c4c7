"""What the site has beside the files in docs/: pages made of the code, and documents that lie elsewhere.

mkdocs calls the functions `on_…` (`hooks` in mkdocs.yml). Links between documents are those that work in the
repository; here they are turned into the site's.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPO = Path(__file__).parent
ROOMS = {"lcd": "lcd", "envs": "lcd/envs", "frontends": "lcd/frontends", "pipelines": "lcd/pipelines"}
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
    "envs/ctgraph/README.md": "ctgraph.md",
}
"""Documents of the repository that are pages: where they lie, and what they are called in the site."""
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
API = {
    "python": {
        "The commands, from Python": ["lcd.studies.diagnose", "lcd.studies.load_study", "lcd.studies.import_curves"],
        "What they give": ["lcd.studies.Study", "lcd.scores.diagnosis.Diagnosis", "lcd.report.challenge_cards.Card"],
        "Parts": ["lcd.scores.diagnosis.diagnose_curves", "lcd.envs.benchmarks.get_benchmark"],
        "Training elsewhere": ["lcd.envs.rewards.wrap_rewards"],
        "What a card says": ["lcd.report.challenge_cards.Line"],
    },
    "python-analyses": {
        "An analysis": [
            "lcd.analyses.analysis.Evidence",
            "lcd.analyses.analysis.Analysis",
            "lcd.analyses.analysis.Drawing",
        ],
        "A section of the report": ["lcd.report.sections.Page"],
        "A question": ["lcd.scores.contrasts.Contrast", "lcd.scores.contrasts.Formula"],
    },
    "python-benchmarks": {"A benchmark": ["lcd.envs.protocols"]},
    "python-agents": {"An agent": ["lcd.agents.protocols"], "A front-end": ["lcd.frontends.protocols"]},
}
"""Page of the reference → heading → what stands below it."""
HEADS = {
    "python": "# Python\n\n`import lcd` has `lcd.diagnose`, `lcd.load_study`, `lcd.import_curves`, "
    "`lcd.diagnose_curves`, `lcd.get_benchmark`, `lcd.wrap_rewards`, `lcd.Study` and "
    "`lcd.Diagnosis`; everything has types.\n",
    "python-analyses": "# Python: analyses, sections, questions\n\n"
    "What functions of your own are given, and what they give.\n",
    "python-benchmarks": "# Python: benchmarks\n\nWhat a benchmark of yours has, and what it may offer.\n",
    "python-agents": "# Python: agents and front-ends\n\nWhat those of yours have, and what they may offer.\n",
}


@event_priority(100)
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lay the rooms where their names say, before mkdocstrings looks for them."""
    rooms = tempfile.TemporaryDirectory(prefix="lcd-rooms-")
    for room, place in ROOMS.items():
        shutil.copytree(REPO / room, Path(rooms.name) / place, ignore=shutil.ignore_patterns("__pycache__"))
    config.extra["rooms"] = rooms  # as long as the site is built
    python: Any = config.plugins["mkdocstrings"].config.handlers["python"]
    python["paths"] = [rooms.name]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and those that lie elsewhere."""
    pages = {
        "reference/commands.md": commands,
        "reference/names.md": names,
        "reference/files.md": schemas,
        **{f"reference/{name}.md": partial(python_page, name) for name in API},
    }
    for name, made in pages.items():
        files.append(File.generated(config, name, content=made()))
    for source, name in OUTSIDE.items():
        files.append(File.generated(config, name, content=(REPO / source).read_text("utf-8")))
    files.append(
        File.generated(config, "reference/challenge_card_1.json", content=json.dumps(_card_schema(), indent=2))
    )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into those of the site."""
    name = page.file.src_uri
    home = {site: source for source, site in OUTSIDE.items()}.get(name, f"docs/{name}")

    def turned(link: re.Match[str]) -> str:
        target, anchor = link["target"], link["anchor"] or ""
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        source = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
        if source in OUTSIDE:
            there = OUTSIDE[source]
        elif source.startswith("docs/"):
            there = source.removeprefix("docs/")
        elif (REPO / source).exists():
            # The site has no code: what is named stays named.
            return link["text"]
        else:
            return link[0]
        return f"[{link['text']}]({posixpath.relpath(there, posixpath.dirname(name) or '.')}{anchor})"

    return LINK.sub(turned, markdown)


def commands() -> str:
    """Every command's page of help."""
    from lcd.cli import COMMANDS
    from lcd.config.help import page_of
    from lcd.process.exits import exit_code_table

    parts = ["# Every command's keys\n\nThis is what `lcd <command> --help` prints.\n"]
    for name, command in COMMANDS.items():
        parts.append(f"## lcd {name}\n\n{command.meaning[0].upper()}{command.meaning[1:]}.\n")
        parts.append(f"```text\n{page_of(name, command.usage)}\n```\n")
    return "\n".join([*parts, "## Exit codes\n", "```text", *exit_code_table(), "```\n"])


def names() -> str:
    """Everything that `lcd list` lists."""
    from lcd.pipelines.publish.listing import LISTS

    parts = ["# What can be chosen\n\n`lcd list` says the same, with what installed packages add.\n"]
    for kind, (headings, rows) in LISTS.items():
        parts.append(f"## {kind.capitalize()}\n")
        parts.append(f"| {' | '.join(headings)} |\n| {' | '.join('---' for _ in headings)} |")
        parts += [f"| {' | '.join(_cell(text, place) for place, text in enumerate(row))} |" for row in rows()]
        parts.append("")
    return "\n".join(parts)


def _cell(text: str, place: int) -> str:
    plain = text.replace("|", "\\|").replace("<", "&lt;")
    return f"`{plain}`" if place == 0 else plain


def schemas() -> str:
    """The columns of curves, statuses, findings, and the schema of cards."""
    from lcd.curves.table import COLUMNS, DEFAULTS, NEEDED
    from lcd.scores.judging import STATUSES

    rows = [f"| `{name}` | {'needed' if name in NEEDED else repr(DEFAULTS.get(name, ''))} |" for name in COLUMNS]
    statuses = [f"| `{name}` | {words} |" for name, words in STATUSES.items()]
    return "\n".join(
        [
            "# Files and schemas\n",
            "What the files of a study are is told in [Design](../design.md#files).\n",
            "## Columns of a curve\n\n| column | left out, it is |\n| --- | --- |",
            *rows,
            "\n## Statuses\n\n| status | means |\n| --- | --- |",
            *statuses,
            "\n## Challenge cards\n\n`cards.json` beside each report keeps this schema "
            "([challenge_card_1.json](challenge_card_1.json)); its version goes up where a reader of the one before "
            "would misread it.\n",
            "```json",
            json.dumps(_card_schema(), indent=2, ensure_ascii=False),
            "```\n",
        ]
    )


def _card_schema() -> dict[str, Any]:
    from lcd.report.challenge_cards import card_schema

    return card_schema()


def python_page(name: str) -> str:
    """Public objects of one page, by their docstrings."""
    parts = [HEADS[name]]
    for title, objects in API[name].items():
        parts.append(f"## {title}\n")
        parts += [f"::: {name}\n" for name in objects]
    return "\n".join(parts)
