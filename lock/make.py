"""Locks what constraints.txt lists: the hashes of the files that may be installed, and the bill of materials.

    python lock/make.py [--index URL]      (or: make lock)

Reads the package index (PEP 503) that pip is set to, or the one named. Writes, beside this file:

build.txt            what builds packages; installed first
linux-x86_64.txt     everything else: the hashes of all wheels for Linux on x86_64 and Python 3.11 or 3.12, or of the
                     source where there is no wheel
sbom.json            the same as a CycloneDX bill of materials

No address is written: whichever index the files come from, they must have these hashes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

HERE = Path(__file__).parent
REPO = HERE.parent
BUILD = ("setuptools", "wheel", "packaging")
"""What `pip install --no-build-isolation` needs before everything else."""
PYTHONS = (11, 12)
SOURCES = (".tar.gz", ".zip")
HEAD = "# Made by `make lock` from constraints.txt: change that one.\n"


class _Links(HTMLParser):
    """The files of a page of the index: their names and hashes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in a link."""
        address = urllib.parse.urlsplit(dict(attrs).get("href") or "")
        if tag == "a" and (sha256 := re.fullmatch(r"sha256=([0-9a-f]{64})", address.fragment)):
            self.found[urllib.parse.unquote(address.path.rpartition("/")[2])] = sha256[1]


def files_of(index: str, name: str) -> dict[str, str]:
    """All files of a package: name -> SHA-256."""
    request = urllib.request.Request(f"{index.rstrip('/')}/{canonicalize_name(name)}/", headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        links = _Links()
        links.feed(answer.read().decode())
    return links.found


def fits(tag: Tag) -> bool:
    """Can a wheel of this tag be installed on Linux on x86_64 by one of our Pythons?"""
    if tag.platform != "any" and not re.fullmatch(r"(many)?linux.*_x86_64", tag.platform):
        return False
    if re.fullmatch(r"py3\d*", tag.interpreter):
        return tag.interpreter == "py3" or int(tag.interpreter[3:]) <= max(PYTHONS)
    if not (given := re.fullmatch(r"cp3(\d+)", tag.interpreter)):
        return False
    return int(given[1]) in PYTHONS or (tag.abi == "abi3" and int(given[1]) < max(PYTHONS))


def hashes(name: str, version: str, files: dict[str, str]) -> list[str]:
    """The hashes of the files of one version that may be installed: of wheels, else of its source."""
    wheels, sources = set(), set()
    for file, sha256 in files.items():
        if file.endswith(".whl"):
            try:
                _, of, _, tags = parse_wheel_filename(file)
            except InvalidWheelFilename:
                continue
            if str(of) == version and any(map(fits, tags)):
                wheels.add(sha256)
        elif file.endswith(SOURCES):
            stem = file.removesuffix(".tar.gz").removesuffix(".zip")
            if canonicalize_name(stem) == canonicalize_name(f"{name}-{version}"):
                sources.add(sha256)
    if not (found := wheels or sources):
        raise SystemExit(f"{name}=={version}: the index has no file for Linux on x86_64. Change constraints.txt.")
    return sorted(found)


def pinned() -> Iterator[tuple[str, str]]:
    """What constraints.txt lists."""
    for line in (REPO / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            yield name, version


def bill(locked: dict[tuple[str, str], list[str]]) -> str:
    """A CycloneDX bill of materials; the same lock gives the same one."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    components = [
        {
            "type": "library",
            "bom-ref": (purl := f"pkg:pypi/{canonicalize_name(name)}@{version}"),
            "name": name,
            "version": version,
            "purl": purl,
            "hashes": [{"alg": "SHA-256", "content": sha256} for sha256 in found],
        }
        for (name, version), found in locked.items()
    ]
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(components)).urn,
        "version": 1,
        "metadata": {"component": {"type": "application", "name": project["name"], "version": project["version"]}},
        "components": components,
    }
    return json.dumps(content, indent=1) + "\n"


def default_index() -> str:
    """The index that pip is set to."""
    told = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True)
    if told.returncode == 0:
        return told.stdout.decode().strip()
    from pip._internal.models.index import PyPI

    return PyPI.simple_url


def main() -> None:
    """Ask the index and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", default=None, help="of packages, as PEP 503 has it; else what pip is set to")
    index = parser.parse_args().index or default_index()
    wanted = list(pinned())
    with ThreadPoolExecutor(8) as pool:
        pages = pool.map(lambda each: files_of(index, each[0]), wanted)
        locked = {each: hashes(*each, files) for each, files in zip(wanted, pages, strict=True)}
    parts: dict[str, list[str]] = {"build.txt": [], "linux-x86_64.txt": []}
    for (name, version), found in locked.items():
        lines = [f"{name}=={version}", *(f"    --hash=sha256:{sha256}" for sha256 in found)]
        parts["build.txt" if name in BUILD else "linux-x86_64.txt"].append(" \\\n".join(lines) + "\n")
    for file, entries in parts.items():
        (HERE / file).write_text(HEAD + "".join(entries))
    (HERE / "sbom.json").write_text(bill(locked))


if __name__ == "__main__":
    main()
