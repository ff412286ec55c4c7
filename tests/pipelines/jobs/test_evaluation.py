"""Agents evaluated on other tasks and in other contexts than they are trained in."""

from __future__ import annotations

import pandas as pd
import pytest

from lcd import cli
from lcd.config.compose import compose
from lcd.curves.table import read_curves
from lcd.envs.errors import InputError
from lcd.envs.toy import TOY
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.kinds.train import promise
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.evaluated import evaluated_by
from lcd.pipelines.study.evaluation import check_spaces
from lcd.pipelines.study.promise import broken_promise
from lcd.pipelines.study.runs import run_config_from
from lcd.scores.diagnosis import diagnose_curves

TASK, OTHER = "toy/easy-sight-easy-reward", "toy/easy-sight-hard-reward"
CONTEXTS = {"far": {"delay": 4}, "near": {"delay": 1}}
KEYS = ["split", "task", "context"]


def run_config(agent: str = "ppo", **evaluation):
    agents = {
        "ppo": {"name": "ppo", "copies": 4, "rollout": 16, "epochs": 1, "minibatches": 2},
        "tabular/q_learning": {"name": "tabular/q_learning"},
    }
    return {
        "kind": "train",
        "benchmark": "toy" if agent == "ppo" else "hardness",
        "task": TASK if agent == "ppo" else "hardness/discrete",
        "knobs": {},
        "view": "semantic" if agent == "ppo" else "state",
        "frontend": {"name": "identity"},
        "reward_p": 1.0,
        "shaping": "none",
        "agent": agents[agent],
        "seeds": [3, 8],
        "steps": 256,
        "evaluation": {"every": 128, "copies": 4, "episodes": 2, **evaluation},
    }


def trained(folder, config) -> pd.DataFrame:
    folder.mkdir(exist_ok=True)
    train_run(config, folder, {"name": "none"}, Device("cpu"))
    assert broken_promise(folder / "curve.csv", promise, config) == ""
    return pd.read_csv(folder / "curve.csv", keep_default_na=False).drop(columns="wall_s")


@pytest.fixture(scope="module")
def curves(tmp_path_factory) -> dict[str, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("runs")
    asked = {"plain": {}, "one": {"contexts": CONTEXTS}, "all": {"contexts": dict([*CONTEXTS.items()][::-1])}}
    asked["all"]["tasks"] = [OTHER]
    return {name: trained(folder / name, run_config(**evaluation)) for name, evaluation in asked.items()}


def test_what_is_evaluated_besides_disturbs_nothing(curves):
    own = curves["all"][(curves["all"].task == TASK) & (curves["all"].context == "")]
    pd.testing.assert_frame_equal(own.reset_index(drop=True), curves["plain"], check_exact=True)


def test_each_context_has_streams_of_its_own(curves):
    """So that neither their order nor what else is evaluated changes what one of them gives."""
    one, every = (
        curves[name][curves[name].context != ""].sort_values([*KEYS, "seed", "step"]).reset_index(drop=True)
        for name in ("one", "all")
    )
    pd.testing.assert_frame_equal(one, every, check_exact=True)
    branches = [each.branch for each in evaluated_by(run_config(contexts=CONTEXTS, tasks=[OTHER]))]
    assert len(set(branches)) == 4
    assert branches[0] == ("evaluation",)


def test_each_evaluated_task_and_context_has_its_range(curves):
    held_out = curves["all"][curves["all"].split == "eval"]
    assert held_out.groupby(["task", "context"]).size().tolist() == [6] * 4
    assert set(held_out.trained_on) == {TASK}
    made = {("far", TASK): {"delay": 4}, ("near", TASK): {"delay": 1}, ("", TASK): {}, ("", OTHER): {}}
    for (context, task, seed), rows in held_out.groupby(["context", "task", "seed"]):
        low, high = TOY.reward_range(task, seed, **made[context, task])
        assert set(zip(rows.r_min, rows.r_max, strict=True)) == {(low, high)}


def test_an_agent_that_trains_itself_is_evaluated_so_too(tmp_path):
    plain = trained(tmp_path / "plain", run_config("tabular/q_learning"))
    both = trained(tmp_path / "both", run_config("tabular/q_learning", contexts=CONTEXTS))
    pd.testing.assert_frame_equal(both[both.context == ""].reset_index(drop=True), plain, check_exact=True)
    assert set(both.context) == {"", *CONTEXTS}


def test_a_benchmark_that_does_not_know_r_max_is_trained(curves, tmp_path, monkeypatch):
    monkeypatch.setattr(type(TOY), "reward_range", lambda self, task, seed, **knobs: (0.0, None))
    curve = trained(tmp_path / "run", run_config())
    assert set(curve.r_min) == {0.0}
    assert set(curve.r_max) == {""}
    assert curve.return_mean.tolist() == curves["plain"].return_mean.tolist()
    found = diagnose_curves(read_curves(tmp_path / "run" / "curve.csv").assign(benchmark="theirs"))
    assert found.table["status"].tolist() == ["no_range"]


def test_a_curve_without_a_context_breaks_its_promise(curves, tmp_path):
    config = run_config(contexts=CONTEXTS, tasks=[OTHER])
    lacking = curves["all"].assign(wall_s=0.0)
    for wrong, words in (
        (lacking[lacking.context != "far"], f"lacks the evaluation of seed 3 at step 0 ({TASK}@far, eval"),
        (lacking[lacking.task != OTHER], f"lacks the evaluation of seed 3 at step 0 ({OTHER}, eval"),
        (lacking.replace({"context": {"near": "nearer"}}), "has context=nearer"),
        (lacking.assign(trained_on=OTHER), f"has trained_on={OTHER}"),
        (lacking.assign(stage="a"), "has stage=a"),
    ):
        wrong.to_csv(tmp_path / "curve.csv", index=False)
        found = broken_promise(tmp_path / "curve.csv", promise, config)
        assert found.startswith(words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["evaluation.tasks=[toy/easy]"], "evaluation.tasks: 'toy/easy' is not in the benchmark"),
        ([f"evaluation.tasks=[{OTHER},{OTHER}]"], "names '.*' twice"),
        (["evaluation.contexts={far:{}}"], "far={} must be a set of the task's knobs"),
        (["evaluation.contexts={far:4}"], "far=4 must be a set"),
        (["evaluation.contexts={a/b:{delay:4}}"], "'a/b' is no name of a context"),
        (["evaluation.contexts={far:{delai:4}}"], "far cannot be made: There is no knob 'delai'"),
        (["evaluation.contexts={far:{view:pixels}}"], "'view' is no knob"),
    ],
)
def test_mistakes_are_one_sentence(words, sentence):
    with pytest.raises(InputError, match=sentence):
        check_spaces([run_config_from(compose("train", [f"task={TASK}", *words]))])


def test_other_spaces_are_refused_before_anything_is_made(tmp_path, capsys):
    words = ["train", "task=ctgraph/depth-1", "view=state", "evaluation.tasks=[ctgraph/ct-fo-b1]", "tracker=none"]
    assert cli.main([*words, f"out={tmp_path / 'study'}"]) == 2
    assert "has other spaces than ctgraph/depth-1" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "study").exists()


def test_a_study_compares_two_contexts(tmp_path, capsys):
    study = """
tasks: [toy/easy-sight-easy-reward]
views: [semantic]
reward_p: [1]
evaluation: {contexts: {far: {delay: 4}, near: {delay: 2}}}
contrasts: [{name: late, axis: context, variants: [near, far], formula: loss}]
"""
    (tmp_path / "late.yaml").write_text(study)
    words = ["diagnose", "benchmark=toy", f"study={tmp_path / 'late.yaml'}", f"out={tmp_path / 'study'}"]
    words += ["study.seeds=2", "study.steps=1024", "tracker=none", "launcher.workers=1", "device=cpu"]
    assert cli.main(words) == 0
    assert len(list((tmp_path / "study" / "runs").iterdir())) == 1
    (row,) = pd.read_csv(tmp_path / "study" / "diagnosis" / "challenge.csv").to_dict("records")
    areas = [row[f"auc_{name}"] for name in ("semantic", "context=near", "context=far")]
    assert row["late_raw"] == pytest.approx(areas[0] - (areas[1] + areas[2]) / 2)
    assert (tmp_path / "study" / "diagnosis" / "tables" / "outcomes.csv").is_file()
    capsys.readouterr()
    (tmp_path / "late.yaml").write_text(study.replace("far: {delay: 4}, ", ""))
    assert cli.main([*words[:-1], "device=cpu", f"out={tmp_path / 'other'}"]) == 2
    assert "asks for the context 'far'" in " ".join(capsys.readouterr().err.split())
