"""Contrasts of third parties: listed, trained, scored, and what becomes of those that nobody may import."""

import shutil
from pathlib import Path

import fake_training
import pandas as pd
import pytest
import yaml

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.errors import InputError
from lcd.pipelines.kinds.kind import trainings
from lcd.pipelines.study.runs import expand

SMALL = ["study.tasks=[toy/easy-sight-easy-reward]", "study.views=[semantic]", "study.reward_p=[1]"]
QUICK = ["study.seeds=2", "study.steps=400", "tracker=none", "launcher.workers=1"]
MODULE = """
from lcd.scores.contrasts import FORMULAS, Contrast

LOSS = {"loss": FORMULAS["loss"]}
NOISE = Contrast("noise", "ν", "what chance costs", "knobs.transition_noise", 0.0, (0.3, 0.6), LOSS)
"""
OWN = "noise_of_ours:NOISE"


@pytest.fixture(autouse=True)
def made_up(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    fake_training.instead(monkeypatch)
    site = tmp_path / "site"
    site.mkdir()
    (site / "noise_of_ours.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(site))


@pytest.fixture
def installed(tmp_path):
    """A distribution as pip would leave it."""
    info = tmp_path / "site" / "noise-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noise\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lcd.contrasts]\nnoise = {OWN}\n")


def diagnosed(name, out):
    assert cli.main(["diagnose", f"study.contrasts=['{name}']", *SMALL, *QUICK, f"out={out}"]) == 0
    return pd.read_csv(out / "diagnosis" / "challenge.csv")


def test_a_packages_contrast_is_listed_and_scored(installed, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "160")
    assert cli.main(["list", "contrasts"]) == 0
    told = capsys.readouterr().out
    assert all(part in told for part in ("phi", "psi", "noise", "what chance costs"))
    out = tmp_path / "study"
    assert diagnosed("noise", out)["noise_raw"].notna().tolist() == [True]
    assert cli.main(["report", str(out)]) == 0
    assert "left out" not in capsys.readouterr().out


def test_a_contrast_by_module_and_object_is_scored_by_its_command_alone(tmp_path, capsys):
    out = tmp_path / "study"
    assert diagnosed(OWN, out)["noise_raw"].notna().tolist() == [True]
    capsys.readouterr()
    assert cli.main(["verify", str(out)]) == 0
    assert "its scores cannot be compared" in capsys.readouterr().out
    copied = shutil.copytree(out, tmp_path / "copy")
    assert cli.main(["report", str(copied)]) == 0
    assert f"The contrast '{OWN}' is left out" in " ".join(capsys.readouterr().out.split())
    assert "noise_raw" not in pd.read_csv(copied / "diagnosis" / "challenge.csv")


def test_two_requests_tell_a_contrast_once(tmp_path):
    file, out = tmp_path / "late.yaml", tmp_path / "study"
    file.write_text("contrasts: [{name: late, axis: knobs.delay, variants: [2, 4], formula: loss}]")
    for seeds in ("[0,1]", "[2,3]"):
        words = ["diagnose", f"study={file}", *SMALL, *QUICK, f"study.seeds={seeds}", f"out={out}"]
        assert cli.main(words) == 0
    table = pd.read_csv(out / "diagnosis" / "challenge.csv")
    assert table["seeds"].tolist() == [4]
    assert table.filter(regex="^late_raw$").shape == (1, 1)


def test_a_benchmark_of_states_alone_has_a_psi_with_an_interval(tmp_path):
    out = tmp_path / "states"
    words = ["benchmark=ctgraph", "study.tasks=[ctgraph/depth-1,ctgraph/ct-su-b1]", "study.views=[state]", *QUICK]
    assert cli.main(["diagnose", *words, f"out={out}"]) == 0
    table = pd.read_csv(out / "diagnosis" / "challenge.csv")
    assert set(table["psi_status"]) <= {"ok", "no_spread", "floor", "ceiling"}
    scored = table[table["psi_calibrated"].notna()]
    assert len(scored) == 2
    assert (scored["psi_calibrated_low"] < scored["psi_calibrated_high"]).all()


def test_ready_made_contrasts_train_what_they_compare():
    words = ["study.tasks=[toy/easy-sight-easy-reward]", "study.views=[semantic]", "study.reward_p=[1]"]
    found = trainings(expand(compose("diagnose", [*words, "study.contrasts=[memory_gain,delay_loss]"])))
    assert [(run["agent"]["name"], run["knobs"]) for run in found] == [
        ("ppo", {}),
        ("recurrent_ppo", {}),
        ("ppo", {"delay": 2}),
        ("ppo", {"delay": 4}),
    ]


@pytest.mark.parametrize(
    ("axis", "variants", "told"),
    [("knobs.nonsense", [2], "nonsense"), ("knobs.delay", [-1], "delay is -1"), ("knobs.delay", ["2"], "delay is '2'")],
)
def test_a_contrasts_wrong_knobs_are_refused_before_anything_is_written(tmp_path, axis, variants, told):
    contrast = {"name": "wrong", "axis": axis, "baseline": 0, "variants": variants, "formula": "loss"}
    file, out = tmp_path / "mine.yaml", tmp_path / "out"
    file.write_text(yaml.safe_dump({"contrasts": [contrast]}))
    with pytest.raises(InputError, match=told):
        expand(compose("diagnose", ["benchmark=toy", f"study={file}", *SMALL, *QUICK, f"out={out}"]))
    assert not out.exists()
