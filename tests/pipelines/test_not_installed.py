"""What needs a package that is not installed is refused before anything is written."""

import importlib.util

import pytest

from lcd import cli

SUMO = "SUMO is not installed, which simulates traffic: pip install 'learning-challenge-diagnosticator[traffic]'."


@pytest.fixture
def without(monkeypatch):
    """Hides packages: they are not found, and cannot be imported."""
    found = importlib.util.find_spec

    def hide(*names: str) -> None:
        for module in ("traffic.benchmark", "procgen.benchmark", "procgen.skins", "families.benchmark"):
            monkeypatch.setattr(f"lcd.envs.{module}.find_spec", lambda name: None if name in names else found(name))

    return hide


@pytest.mark.parametrize(
    "words",
    [
        ["diagnose", "benchmark=traffic"],
        ["diagnose", "study=traffic/quick"],
        ["diagnose", "study=traffic/rules", "--dry-run"],
        ["sweep", "benchmark=traffic", "experiment=lanes.yaml"],
        ["train", "task=traffic/intersections", "view=state"],
        ["view", "traffic/intersections"],
        ["measure", "benchmark=traffic"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_without_sumo_every_command_says_what_to_install(words, without, capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lanes.yaml").write_text("grid: {knobs.lanes: [1, 2]}\ntasks: [traffic/intersections]\n")
    without("libsumo", "sumo")
    assert cli.main([*words, *(["tracker=none"] if words[0] in ("diagnose", "sweep", "train") else [])]) == 2
    told = capfd.readouterr()
    assert told.err == f"lcd: {SUMO}\n"
    assert not told.out
    assert [each.name for each in tmp_path.iterdir()] == ["lanes.yaml"]


@pytest.mark.parametrize(
    ("package", "words", "sentence"),
    [
        ("mujoco", ["train", "task=families/half-cheetah", "view=state"], "MuJoCo, which is not installed"),
        ("procgen", ["train", "task=procgen/heist", "view=semantic"], "Procgen is not installed"),
        ("gym3", ["pretrain", "frontend=flow", "benchmark=procgen"], "Procgen is not installed"),
    ],
)
def test_other_engines_are_missed_as_early(package, words, sentence, without, capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    without(package)
    assert cli.main([*words, "tracker=none"]) == 2
    told = capfd.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())
