"""`study=paper` from the command line to the report: real training on Procgen, front-ends with tiny weights."""

import json
import os
from importlib.util import find_spec

import pandas as pd
import pytest
import torch

from lcd import cli
from lcd.pipelines.study import store

pytestmark = pytest.mark.skipif(
    find_spec("procgen") is None and not os.environ.get("CI"), reason="Procgen is not installed: see the README"
)
open_clip = pytest.importorskip("open_clip")
MODEL = "paper-test-clip"
SIZES = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
    "text_cfg": {"context_length": 5, "vocab_size": 7, "width": 64, "heads": 1, "layers": 1},
}
SMALL = ["study.seeds=1", "study.steps=64", "study.evaluation.copies=1", "study.evaluation.episodes=1"]
# One rollout is the whole training.
AGENT = "{copies:2,rollout:32,minibatches:2,width:16}"


@pytest.fixture
def clip_weights(tmp_path, monkeypatch):
    from open_clip import factory

    monkeypatch.setitem(factory._MODEL_CONFIGS, MODEL, SIZES)
    path = tmp_path / "clip.pt"
    torch.save(open_clip.create_model(MODEL, force_quick_gelu=True).state_dict(), path)
    return path


def test_the_papers_study_runs_through_on_procgen(tmp_path, clip_weights, monkeypatch):
    # In this process, because the tiny model's name is known only here.
    monkeypatch.setattr("lcd.pipelines.study.attempts.launch", _in_this_process)
    out = tmp_path / "study"
    words = ["benchmark=procgen", "study=paper", "budget=smoke", "study.tasks=[procgen/leaper]"]
    words += [*SMALL, f"study.agent_params={{ppo:{AGENT},ppg:{AGENT[:-1]},auxiliary_rollouts:2}}}}"]
    words += [f"study.frontend_params={{clip:{{model:{MODEL},weights:'{clip_weights}'}}}}"]
    assert cli.main(["diagnose", *words, "tracker=none", f"out={out}"]) == 0
    made = store.Study(out).trainings()
    # Two agents under six conditions, two front-ends, and shaping.
    assert len(made) == 2 * 6 + 2 + 1
    (pretrained,) = store.Study(out).pretrainings()
    assert all(run.done for run in [*made, pretrained])
    (flow,) = [run for run in made if run.config["frontend"]["name"] == "flow"]
    assert flow.config["frontend"]["weights"] == {"job": pretrained.path.name, "file": "flow.pt"}
    assert flow.status["inputs"] == {f"{pretrained.path.name}/flow.pt": pretrained.status["seal"]["flow.pt"]}
    tables = json.loads((out / "diagnosis" / "tables" / "analyses.json").read_text())
    assert {"synergy", "frontend", "frontend-by-hardness", "shaping", "final", "published"} <= set(tables)
    frontends = pd.read_csv(out / "diagnosis" / "tables" / "frontend.csv")
    assert len(frontends) == 2
    assert set(pd.read_csv(out / "diagnosis" / "tables" / "shaping.csv")["task"]) == {"procgen/leaper"}
    page = (out / "diagnosis" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2 * 3  # two agents' cards, three views
    assert "Learning to see and to act" in page


def _in_this_process(name, function, calls, *, watch, **_):
    from lcd.pipelines.launch.launchers import Outcome
    from lcd.process.children import resolve

    outcomes = []
    for call in calls:
        assert set(call.after) <= {outcome.call.name for outcome in outcomes}
        resolve(function)(*call.arguments)
        watch()
        outcomes.append(Outcome(call, None))
    return outcomes
