"""Measuring front-ends on Procgen's paired views."""

import os
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from lcd.cli import main
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.frontends import make
from lcd.frontends.objectness import best_candidates
from lcd.pipelines.jobs.objectness import Objectness, baselines, maps_of, score
from lcd.report.seeing import FIGURE, OWN, summary, verdict

pytestmark = pytest.mark.skipif(
    find_spec("procgen") is None and not os.environ.get("CI"), reason="Procgen is not installed: see the README"
)
TASK = "procgen/bigfish"


@pytest.fixture(scope="module")
def objectness():
    return Objectness(get_benchmark("procgen"), [TASK], seed=3, videos=3)


def test_halves_are_of_different_videos_and_neighbours_of_one_episode(objectness):
    choosing, scoring = objectness.halves(TASK)
    assert set(choosing.video) == {0, 1, 2}
    assert set(scoring.video) == {3, 4, 5}
    # Bigfish's background stands still: neighbours differ in few pixels.
    assert np.abs(scoring.now.astype(int) - scoring.after).any(-1).mean() < 0.2
    assert 0 < (scoring.labels > 0).mean() < 0.5


class Oracle(nn.Module):
    """Sees the truth: looks up the labels of frames that it has been told."""

    def __init__(self, frames):
        super().__init__()
        self.known = {frame.tobytes(): labels for frame, labels in zip(frames.now, frames.labels, strict=True)}

    def maps(self, observations):
        labels = np.stack([self.known[frame.numpy().tobytes()] for frame in observations])
        return torch.from_numpy(np.stack([labels == 2, labels == 0, labels == 1], 1).astype(np.float32))


def test_truth_scores_one_and_beats_the_baselines(objectness):
    oracle = Oracle(objectness.frames[TASK])
    table = objectness.measure({OWN: lambda _: maps_of(oracle), **baselines(oracle)})
    own = table[table.by == OWN].set_index("class")
    assert set(own.index) == {FIGURE, "player", "other fish"}
    assert (own.iou == 1).all()
    assert (own.rand == 1).all()
    assert own.loc["player", "map"] == 2
    assert own.loc[FIGURE, ["map", "sign"]].tolist() == [1, -1]
    others = summary(table).set_index("by")["class IoU"].drop(OWN)
    assert (others < 1).all()
    assert all(line.startswith("better than") and "on 1 of 1 tasks" in line for line in verdict(table))


def test_scores_are_of_the_other_half(objectness):
    """Maps that know one half only are chosen well and score badly."""
    choosing, scoring = objectness.halves(TASK)
    masks = {FIGURE: scoring.labels > 0}
    knowing = (choosing.labels > 0)[:, None].astype(np.float32)
    (_, candidate) = best_candidates(knowing, {FIGURE: choosing.labels > 0})[FIGURE]
    blind = np.random.default_rng(0).random((len(scoring.now), 1, 64, 64)).astype(np.float32)
    assert score({FIGURE: candidate}, blind, scoring, masks).iou[0] < 0.3


def test_the_command_writes_a_table_and_sheets(tmp_path, capsys):
    sizes = [f"frontend.{key}={value}" for key, value in {"width": 4, "pyramid": 4, "hgru_steps": 2, "maps": 3}.items()]
    asked = ["measure", "procgen", f"tasks=[{TASK}]", "frontend=flow", "frontend.weights=untrained", "videos=2"]
    assert main([*asked, *sizes, f"out={tmp_path / 'seen'}"]) == 0
    assert "better than untrained on 0 of 1 tasks, by +0.000" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "seen" / "objectness.csv")
    assert set(table.by) == {OWN, "untrained", "colour k-means", "frame differences"}
    assert table.iou.between(0, 1).all()
    assert (tmp_path / "seen" / "procgen-bigfish.png").stat().st_size > 5000


def test_what_cannot_be_measured_is_told():
    with pytest.raises(InputError, match="has no maps to measure"):
        maps_of(make("identity"))
    with pytest.raises(InputError, match="benchmark=toy has no paired views"):
        Objectness(get_benchmark("toy"), ["toy/easy-sight-easy-reward"])
