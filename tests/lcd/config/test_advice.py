"""What an error's sentence proposes exists: commands, keys, extras."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from lcd import cli
from lcd.config.chosen_files import defaults
from lcd.config.keys import groups, schema_fields
from lcd.config.nested import flatten
from lcd.config.schemas import SCHEMAS

ROOT = Path(__file__).parents[3]
COMMAND = re.compile(r"['`]lcd ([a-z]+(?:-[a-z]+)*)")
KEY = re.compile(r"\b(?:give|or|add|set|takes|use) '?([a-z_]+(?:\.[a-z_]+)*)(?:\.[A-Z]+|\.\0)?=")
EXTRA = re.compile(r"extra '([a-z]+)'")
OWN_SETS = {"knob", "key", "restrict_themes"}
"""Words that stand for a key, and a knob of Procgen."""


def text_of(node):
    """The text of a string, with a zero character where a value is put in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "\0" for part in node.values)
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return ""


def sentences():
    """Every sentence that a command can say: what is raised or printed."""
    for folder in ("lcd", "pipelines", "envs", "frontends"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant | ast.JoinedStr) and " " in (text := text_of(node)):
                    yield path.relative_to(ROOT), text


def keys():
    for command in SCHEMAS:
        yield from groups(command)
        yield from (name for name, _ in schema_fields(SCHEMAS[command]))
        yield from flatten(defaults(command))


@pytest.fixture(scope="module")
def known():
    return {*keys()} | {"frontend.weights", "frontend.keep"} | OWN_SETS


def test_what_sentences_propose_exists(known):
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    proposed = {"command": 0, "key": 0, "extra": 0}
    for path, sentence in sentences():
        for kind, pattern, there in (
            ("command", COMMAND, set(cli.COMMANDS)),
            ("key", KEY, known),
            ("extra", EXTRA, extras),
        ):
            for name in pattern.findall(sentence):
                proposed[kind] += 1
                assert name in there, f"{path}: {sentence!r} proposes the {kind} {name}"
    assert min(proposed.values()) >= 1, proposed
