"""Tables that take long to make are kept, checked, and made anew where what is kept is not right."""

import numpy as np
import pytest

from lcd.envs.ehc import kept
from lcd.envs.ehc.recipe import Recipe
from lcd.envs.tabular.files import digest
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.pictures import BoardRenderer


class Maker:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return TabularMDP([[1, 0], [-1, 0]], [[0, 0], [1, 0]], 3, codes=np.array([5, 7]), name="two")


def drawn(codes):
    return BoardRenderer(lambda states: codes[states][:, None] % 2, ("man",), (1, 1))


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A recipe that counts as slow, and the folder in which it is kept."""
    monkeypatch.setattr(kept, "SLOW_S", 0.0)
    monkeypatch.setenv(kept.SETTING, str(tmp_path / "tables"))
    return Recipe("two", "test", "puzzle", Maker(), "", drawn), tmp_path / "tables"


def test_what_is_kept_is_read_again_with_its_pictures(slow):
    recipe, folder = slow
    one, again = kept.made(recipe), kept.made(recipe)
    assert recipe.make.calls == 1
    assert digest(one) == digest(again)
    assert again.renderer.cells(np.arange(2)).tolist() == [[1], [1]]
    assert [path.suffix for path in folder.iterdir()] == [".npz"]


def test_it_can_be_switched_off(slow, monkeypatch):
    recipe, folder = slow
    monkeypatch.setenv(kept.SETTING, "off")
    kept.made(recipe), kept.made(recipe)
    assert recipe.make.calls == 2
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["truncated", "other", "renamed"])
def test_what_is_not_right_is_made_anew(slow, damage, monkeypatch):
    recipe, folder = slow
    right = digest(kept.made(recipe))
    (path,) = folder.iterdir()
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:100])
    elif damage == "other":
        kept.save(recipe.make().changed(horizon=2), path)
    else:
        monkeypatch.setattr(kept, "code_hash", lambda: "0" * 16)
    before = recipe.make.calls
    assert digest(kept.made(recipe)) == right
    assert recipe.make.calls == before + 1
    assert digest(kept.made(recipe)) == right
    assert recipe.make.calls == before + 1


def test_a_folder_that_cannot_be_written_stops_nothing(slow, monkeypatch, tmp_path):
    recipe, _ = slow
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(kept.SETTING, str(tmp_path / "file"))
    assert kept.made(recipe).num_states == 2


def test_the_folder_is_the_user_s(monkeypatch, tmp_path):
    monkeypatch.delenv(kept.SETTING, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept.folder() == tmp_path / "lcd" / "tables"
    monkeypatch.setenv(kept.SETTING, "off")
    assert kept.folder() is None


def test_what_is_made_fast_is_not_kept(slow, monkeypatch):
    recipe, folder = slow
    monkeypatch.setattr(kept, "SLOW_S", 60.0)
    kept.made(recipe)
    assert not folder.exists()
