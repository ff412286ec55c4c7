"""Training on a third party's front-end, which a small installed distribution adds by an entry point."""

import math
import os
import shutil
from importlib.util import find_spec

import pandas as pd
import pytest
import torch
import yaml

from lcd.cli import main
from lcd.config.compose import compose
from lcd.envs.errors import InputError
from lcd.envs.population import make_population
from lcd.frontends import entry
from lcd.pipelines.jobs.build import build_agent, build_rollouts
from lcd.pipelines.jobs.phases import store_size
from lcd.pipelines.study.configs import run_id
from lcd.pipelines.study.runs import run_config_from

MODULE = """
import torch
from torch import nn


class Edges(nn.Module):
    channels, features = 7, None

    def __init__(self, weights=None, scale: float = 1.0):
        super().__init__()
        self.layer, self.scale = nn.Conv2d(3, 7, 3, padding=1), scale
        if weights is not None:
            self.layer.load_state_dict(torch.load(weights, weights_only=True))

    def forward(self, observations):
        return self.scale * self.layer(observations.permute(0, 3, 1, 2).float() / 255).relu()
"""
TRAIN = ["task=toy/easy-sight-easy-reward", "frontend=edges", "seeds=2", "steps=64", "evaluation.copies=2"]
QUICK = ["evaluation.every=64", "launcher.workers=1", "tracker=none", "device=cpu"]


@pytest.fixture(autouse=True)
def edges(tmp_path, monkeypatch):
    """A distribution as pip would leave it."""
    site = tmp_path / "site"
    info = site / "edges-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "edges_of_ours.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: edges\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lcd.frontends]\nedges = edges_of_ours:Edges\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))


def weights(path, seed=0):
    torch.manual_seed(seed)
    torch.save(torch.nn.Conv2d(3, 7, 3).state_dict(), path)
    return path


def asked(*overrides):
    return run_config_from(compose("train", [*TRAIN, *overrides]))


def test_a_run_is_its_weights_content_not_their_path(tmp_path):
    first = weights(tmp_path / "a.pt")
    moved = shutil.copy(first, tmp_path / "b.pt")
    other = weights(tmp_path / "c.pt", seed=1)
    one, two, three = (asked(f"frontend.weights={path}") for path in (first, moved, other))
    assert one["frontend"]["weights"]["file"] != two["frontend"]["weights"]["file"]
    assert run_id(one) == run_id(two) != run_id(three)
    assert run_id(asked()) not in (run_id(one), run_id(three))
    # Defaults are written down, and what policy learning does with the front-end.
    assert asked()["frontend"] == {"name": "edges", "weights": None, "scale": 1.0, **entry.USE}
    assert run_id(asked("frontend.scale=1.0")) == run_id(asked()) != run_id(asked("frontend.keep=observations"))
    assert run_id(asked("frontend.disk_gb=0")) == run_id(asked()) != run_id(asked("frontend.disk_gb=1"))


def test_a_file_that_changed_or_went_is_told(tmp_path):
    path = weights(tmp_path / "a.pt")
    recorded = asked(f"frontend.weights={path}")["frontend"]
    assert torch.equal(entry.build(recorded).layer.bias, torch.load(path)["bias"])
    weights(path, seed=1)
    with pytest.raises(InputError, match=r"a\.pt has changed since the run was asked for"):
        entry.build(recorded)
    path.unlink()
    with pytest.raises(InputError, match=r"a\.pt cannot be read .*training needs the file"):
        entry.build(recorded)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("frontend.keep=all", "frontend.keep=all is unknown: choose from"),
        ("frontend.precision=hlaf", "did you mean 'half'"),
        ("frontend.memory_gb=-1", "frontend.memory_gb=-1 must be a number of 0 or more"),
        ("frontend.disk_gb=much", "frontend.disk_gb=much must be a number of 0 or more"),
        ("frontend.scal=2", "frontend.scal=2 is no knob of 'edges': did you mean 'scale'"),
    ],
)
def test_mistakes_are_told(override, words, capsys):
    assert main(["train", *TRAIN, override]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_features_lie_where_they_are_told_and_agents_learn_the_same(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    curves = []
    for number, room in enumerate((["memory_gb=1"], ["memory_gb=0", "disk_gb=1"], ["memory_gb=0"])):
        words = [f"frontend.{each}" for each in room]
        assert main(["train", *TRAIN, *QUICK, *words, f"out={tmp_path / str(number)}"]) == 0
        (file,) = tmp_path.glob(f"{number}/runs/*/curve.csv")
        curves.append(pd.read_csv(file).drop(columns="wall_s"))
        # The file has no name, so nothing of it is left.
        assert {path.name for path in file.parent.iterdir()} <= {
            *("config.yaml", "status.json", "curve.csv", "train.csv", "log.txt", "checkpoints", "leases")
        }
    pd.testing.assert_frame_equal(curves[0], curves[1])
    told = capsys.readouterr().out
    assert told.count("in a file of the run's folder") == 1
    assert told.count("more than frontend.memory_gb=0 and frontend.disk_gb=0 allow") == 1


def test_it_trains_is_resumed_elsewhere_and_reported_without_its_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    path, out = weights(tmp_path / "a.pt"), tmp_path / "study"
    assert main(["train", *TRAIN, *QUICK, f"frontend.weights={path}", f"out={out}"]) == 0
    (run,) = (out / "runs").iterdir()
    curve = pd.read_csv(run / "curve.csv")
    assert set(curve.frontend) == {"edges"}
    assert set(curve[curve.split == "eval"].step) == {0, 256}
    content = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
    assert not [name for name in content["state_dict"] if "layer" in name]
    moved = path.rename(tmp_path / "elsewhere.pt")
    before = (run / "curve.csv").read_bytes()
    assert main(["train", *TRAIN, *QUICK, f"frontend.weights={moved}", f"out={out}"]) == 0
    assert (run / "curve.csv").read_bytes() == before
    assert yaml.safe_load((run / "config.yaml").read_text())["frontend"]["weights"]["file"] == str(moved)
    moved.unlink()
    assert main(["report", str(out)]) == 0
    capsys.readouterr()
    assert main(["train", *TRAIN, *QUICK, f"frontend.weights={moved}", f"out={out}"]) == 2
    assert "elsewhere.pt cannot be made (No such file or directory)" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("procgen") is None and not os.environ.get("CI"), reason="Procgen is not installed")
def test_procgen_is_learned_from_maps_that_do_not_fit_in_memory(tmp_path):
    sizes = {"width": 4, "pyramid": 4, "hgru_steps": 2, "maps": 3, "memory_gb": 0.001}
    flow = ["frontend=flow", "frontend.weights=untrained", *(f"frontend.{key}={value}" for key, value in sizes.items())]
    asked = ["task=procgen/bigfish", "seeds=2", "steps=32", "agent.copies=4", "agent.rollout=8", "evaluation.every=32"]
    run_config = run_config_from(compose("train", [*asked, *flow]))
    training = make_population("procgen", "procgen/bigfish", seeds=[0, 1], copies=4, view="pixels", split="train")
    try:
        agent = build_agent(run_config, training)
        assert agent.frontend.keep == "observations"
        (rollout, *_) = build_rollouts(run_config, [training], agent)
        assert rollout["inputs"].shape == (2, 8, 4, 64, 64, 3)
        assert rollout["inputs"].dtype == torch.uint8
        assert agent.features_of(rollout["inputs"].flatten(1, 2)).shape == (2, 32, 6, 64, 64)
        fits = {**run_config, "frontend": {**run_config["frontend"], "memory_gb": 1.0}}
        assert build_agent(fits, training).frontend.keep == "features"
    finally:
        training.close()


@pytest.mark.parametrize(
    ("use", "bytes_each"), [("precision=half", 7 * 2), ("precision=full", 7 * 4), ("keep=observations", 3)]
)
def test_ppg_keeps_what_the_front_end_says(use, bytes_each):
    """The room that is told before training is what a phase's inputs take: features, half of their bytes, or images."""
    run_config = asked("agent=ppg", "view=pixels", f"frontend.{use}")
    size = store_size(run_config)
    assert math.prod(size.shape) * size.itemsize == 20 * 20 * bytes_each
