"""The registries of every kind, and what `lcd list` reads of their entries."""

import subprocess
import sys

import pytest

from lcd.config.registries import KINDS, chosen, registry
from lcd.config.settings import schema_of, settings_for
from lcd.envs.errors import InputError
from lcd.envs.registry import Registry


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "contrast"])
def test_every_built_in_is_explained_in_one_line(kind):
    known = registry(kind)
    for name in known.names():
        assert known.explains(name)[-1:] in (".", "?"), name


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (None, ["a", "b", "c"]),
        (["all"], ["a", "b", "c"]),
        (["b", "my:own"], ["b", "my:own"]),
        (["all", "my:own"], ["a", "b", "c", "my:own"]),
        (["my:own", "c", "all", "my:own"], ["my:own", "c", "a", "b"]),
        ([], []),
    ],
)
def test_all_stands_for_what_is_registered_and_not_named(asked, meant):
    known = Registry("thing", "nobody.has.this")
    for name in "abc":
        known.add(name, name)
    assert chosen(known, asked) == meant


def test_explaining_imports_nothing_of_what_is_explained():
    code = (
        "import sys; from lcd.config.registries import KINDS, registry\n"
        "for kind in KINDS: [registry(kind).explains(name) for name in registry(kind).names()]\n"
        "print([name for name in ('torch', 'wandb', 'matplotlib', 'lcd.agents.ppo') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_a_module_says_of_its_objects(tmp_path, monkeypatch):
    (tmp_path / "things.py").write_text(
        '"""The module."""\n'
        "raise RuntimeError('it must not be imported')\n"
        "class Kind:\n    '''A kind.\n\n    More.'''\n"
        "MADE = Kind()\n"
        "NAMED = Kind()\n"
        "'''What is named.'''\n"
        "LATER = other()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    known = Registry("thing", "lcd.things")
    said = {name: known.explains(f"things:{name}") for name in ("Kind", "MADE", "NAMED", "LATER")}
    assert said == {"Kind": "A kind.", "MADE": "A kind.", "NAMED": "What is named.", "LATER": "The module."}
    assert known.explains("nowhere:thing") == ""


def test_who_declares_no_settings_has_none():
    def launch(function, calls, **common):
        """Without settings."""

    assert schema_of(launch) is None
    assert settings_for(launch, {}, "launcher", "launcher=mine") == {}
    with pytest.raises(
        InputError, match=r"^launcher.wrokers is not a setting of launcher=mine: did you mean 'workers'"
    ):
        settings_for(launch, {"wrokers": 3}, "launcher", "launcher=mine", ["workers", "threads"])
