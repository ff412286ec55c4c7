"""Curricula: what is trained when, what is evaluated, what a stop leaves, and what the commands say about them."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import torch

from lcd.agents.curriculum import CurriculumRollouts, Stage
from lcd.agents.ppo import PPO, PPOConfig
from lcd.cli import main
from lcd.config.compose import compose
from lcd.curves.table import read_curves
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.ctgraph.tasks import all_goals, curriculum
from lcd.envs.errors import InputError
from lcd.envs.population import make_population
from lcd.pipelines.jobs import record
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.runs import run_config_from, stages_from

DEVICE = Device("cpu")
TASK = "ctgraph/depth-1"
STAGES = curriculum(TASK, all_goals({"graph_shape": {"d": 1}}), steps=128)
NAMES = [stage["name"] for stage in STAGES]
# The same graph as its task's, seen and rewarded in another way.
BACK = [*STAGES, STAGES[0]]


def run_config(stages=BACK, agent="recurrent_ppo", **changes):
    return {
        "kind": "train",
        "benchmark": "ctgraph",
        "task": "curriculum",
        "knobs": {},
        "view": "state",
        "frontend": {"name": "identity"},
        "reward_p": 0.5,
        "shaping": "none",
        "agent": {"name": agent, "copies": 4, "rollout": 16, "epochs": 1, "minibatches": 2},
        "seeds": [3, 8],
        "steps": sum(stage["steps"] for stage in stages),
        "evaluation": {"every": 1000, "copies": 2, "episodes": 2},
        "curriculum": stages,
        **changes,
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train_run(run_config(), folder, {"name": "none"}, DEVICE)
    return folder


def test_every_task_is_evaluated_throughout(trained):
    curve = pd.read_csv(trained / "curve.csv")
    held_out = curve[curve.split == "eval"]
    moments = {0: NAMES[0], 128: NAMES[0], 256: NAMES[1], 384: NAMES[0]}
    for step, phase in moments.items():
        rows = held_out[held_out.step == step]
        assert set(zip(rows.task, rows.seed, strict=True)) == {(name, seed) for name in NAMES for seed in (3, 8)}
        assert set(rows.phase) == {phase}
    assert len(held_out) == len(moments) * 4
    training = curve[curve.split == "train"]
    assert (training.task == training.phase).all()
    # 32 steps of each of 4 copies a stage, in episodes of 2 to 4 steps.
    assert training.groupby(["seed", "step"]).episodes.sum().between(20, 64).all()


class Stop(Exception):
    pass


@pytest.mark.parametrize("stopped_at", [128, 192, 320])
def test_a_stopped_curriculum_goes_on_to_the_same_last_bit(trained, tmp_path, monkeypatch, stopped_at):
    monkeypatch.setattr(record, "CHECKPOINT_EVERY_S", 0)
    monkeypatch.setattr(record, "CHECKPOINT_SHARE", 1)
    save = record.Recorder.save

    def stopping(self, trainer, checkpoint):
        save(self, trainer, checkpoint)
        if self.rollouts.step == stopped_at:
            raise Stop

    monkeypatch.setattr(record.Recorder, "save", stopping)
    with pytest.raises(Stop):
        train_run(run_config(), tmp_path, {"name": "none"}, DEVICE)
    monkeypatch.undo()
    train_run(run_config(), tmp_path, {"name": "none"}, DEVICE)
    found, expected = (read_curves(f / "curve.csv").drop(columns="wall_s") for f in (tmp_path, trained))
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    ours, theirs = (torch.load(f / "checkpoints" / "last.ckpt", weights_only=True) for f in (tmp_path, trained))
    assert all(torch.equal(ours["state_dict"][name], theirs["state_dict"][name]) for name in theirs["state_dict"])


def test_stages_change_environments_and_streams():
    benchmark = get_benchmark("ctgraph")

    def env(goal):
        return make_population(benchmark, TASK, seeds=[0], copies=8, view="state", split="train", goal=goal)

    agent = PPO(PPOConfig(copies=8, rollout=8), (8,), 3, [0], torch.nn.Identity())
    stages = [Stage("one", env([1]), 2), Stage("two", env([2]), 1), Stage("one", env([1]), 1)]
    rollouts = CurriculumRollouts(stages, [0], agent, 8, 0.99, False)
    assert (rollouts.total, rollouts.steps, rollouts.phase) == (4, 256, "one")
    seen = []
    for rollout in rollouts:
        seen.append((rollouts.phase, rollouts.stage_ended, rollouts.env, rollout["inputs"]))
    assert [phase for phase, *_ in seen] == ["one", "one", "two", "one"]
    assert [ended for _, ended, *_ in seen] == [False, True, True, True]
    assert [env.goals[0, 0] for *_, env, _ in seen] == [1, 1, 2, 1]
    # A task that comes again is not trained on the same random numbers.
    assert not torch.equal(seen[0][3], seen[3][3])


def test_tasks_need_equal_spaces(tmp_path):
    stages = [{**STAGES[0]}, {"name": "deep", "task": "ctgraph/ct-fo-b1", "knobs": {}, "steps": 64}]
    with pytest.raises(InputError, match="have different spaces"):
        train_run(run_config(stages), tmp_path, {"name": "none"}, DEVICE)


def test_what_the_command_line_says():
    text = "[[ctgraph/depth-1,100],{task:ctgraph/depth-1,steps:50,knobs:{goal:[2]}}]"
    config = run_config_from(compose("train", ["benchmark=ctgraph", "view=state", f"curriculum={text}"]))
    assert config["steps"] == 150
    first, second = config["curriculum"]
    assert first == {"name": "ctgraph/depth-1", "task": "ctgraph/depth-1", "knobs": {}, "steps": 100}
    assert (second["name"], second["knobs"], second["steps"]) == ("ctgraph/depth-1[goal=[2]]", {"goal": [2]}, 50)
    assert "curriculum" not in run_config_from(compose("train", ["task=ctgraph/depth-1"]))
    with pytest.raises(InputError, match="cannot both be trained"):
        run_config_from(compose("train", ["task=ctgraph/depth-1", f"curriculum={text}"]))


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (3, "must be a list"),
        ("nowhere.yaml", "cannot be read"),
        ([["ctgraph/depth-1", 5]], "at least two stages"),
        (["ctgraph/depth-1", "x"], "is no stage"),
        ([["ctgraph/depth1", 5]] * 2, "did you mean 'ctgraph/depth-1'"),
        ([["ctgraph/depth-1", 0]] * 2, "steps=0 must be"),
        ([{"task": "ctgraph/depth-1", "steps": 5, "knob": {}}] * 2, "did you mean 'knobs'"),
        ([{"task": "ctgraph/depth-1", "steps": 5, "knobs": 3}] * 2, "knobs=3 must be"),
        ([{"task": "ctgraph/depth-1", "steps": 5, "name": "ctgraph/depth-5"}] * 2, "a task of its own"),
        ([{"task": f"ctgraph/depth-{n}", "steps": 5, "name": "x"} for n in (1, 5)], "two different tasks"),
    ],
)
def test_mistakes_are_one_sentence(stages, words):
    with pytest.raises(InputError, match=words):
        stages_from(stages, get_benchmark("ctgraph"))


def test_from_the_command_line_to_the_report(tmp_path, capsys):
    stages = [{"task": TASK, "steps": 64, "knobs": {"goal": [n]}, "name": f"goal {n}"} for n in (1, 2)]
    file = tmp_path / "a curriculum.json"
    file.write_text(json.dumps(stages))
    words = ["train", "benchmark=ctgraph", "agent=recurrent_ppo", "view=state", "seeds=2", "tracker=none"]
    words += ["agent.copies=4", "agent.rollout=16", "evaluation.copies=2", "device=cpu", f"out={tmp_path / 'study'}"]
    assert main([*words, "launcher.workers=1", f"curriculum={file}"]) == 0
    assert "goal 2, 1" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "study")]) == 0
    assert "forgetting" in capsys.readouterr().out
    (told,) = json.loads((tmp_path / "study" / "diagnosis" / "transfer.json").read_text())
    assert told["stages"] == ["goal 1", "goal 2"]
    assert "after goal 2" in (tmp_path / "study" / "diagnosis" / "report.html").read_text("utf-8")
