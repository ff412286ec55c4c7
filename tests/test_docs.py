"""The docs: links lead somewhere, what they name is there, and the site is built without a warning."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [*REPO.glob("*.md"), *(REPO / "docs").glob("*.md"), *REPO.glob("examples/*.md"), *REPO.glob("envs/*/*.md")]
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"`(lcd(?:\.[a-z_0-9]+)+)(?:\.[A-Z]\w*)?`")


def anchors(page: Path) -> set[str]:
    """What headings of a page are called in an address: GitHub's way, which is the site's, too."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPO).as_posix())
def test_links_lead_somewhere(page):
    for target in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if "://" in target:
            continue
        place, _, anchor = target.partition("#")
        there = (page.parent / place).resolve() if place else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_the_readme_fits_two_screens_and_begins_with_two_commands():
    lines = (REPO / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 85
    assert [line.split()[:2] for line in lines[2:4]] == [["make", "diagnose"], ["make", "test"]]


def test_every_page_is_in_the_sites_navigation():
    told = (REPO / "mkdocs.yml").read_text("utf-8")
    assert [page.name for page in (REPO / "docs").glob("*.md") if f" {page.name}" not in told] == []


def test_modules_that_docs_name_are_there():
    from importlib.util import find_spec

    missing = set()
    for page in PAGES:
        for name in MODULE.findall(page.read_text("utf-8")):
            parts = name.split(".")
            parents = [".".join(parts[:length]) for length in (len(parts), len(parts) - 1)]
            if not any(_found(find_spec, parent) for parent in parents):
                missing.add(f"{page.name}: {name}")
    assert missing == set()


def _found(find_spec, name):
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=REPO, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr
    site = tmp_path / "site"
    api = (site / "reference/python.html").read_text("utf-8")
    assert "Train what a diagnosis needs" in api
    assert "What an analysis may look at" in (site / "reference/python-analyses.html").read_text("utf-8")
    assert "lcd import" in (site / "reference/commands.html").read_text("utf-8")
    assert (site / "reference/challenge_card_1.json").is_file()
