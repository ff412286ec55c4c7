"""Curricula: what is trained when, what is evaluated, what a stop leaves, and what the commands say about them."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import torch
from small_runs import toy_run, train_in_a_folder

from lcd.agents.curriculum import CurriculumRollouts, TrainedStage
from lcd.agents.ppo import PPO, PPOConfig
from lcd.analyses.transfer import transfers
from lcd.cli import main
from lcd.config.compose import compose
from lcd.curves.table import read_curves
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.ctgraph.tasks import all_goals, curriculum
from lcd.envs.errors import InputError
from lcd.envs.population import make_population
from lcd.pipelines.jobs import record
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.runs import curriculum_from, run_config_from
from lcd.pipelines.study.store import Study
from lcd.scores.diagnosis import diagnose_curves

DEVICE = Device("cpu")
TASK = "ctgraph/depth-1"
STAGES = curriculum(TASK, all_goals({"graph_shape": {"d": 1}}), steps=128)
NAMES = [stage["name"] for stage in STAGES]
# The same graph as its task's, seen and rewarded in another way.
BACK = [*STAGES, STAGES[0]]


def run_config(stages=BACK, agent="recurrent_ppo", **changes):
    sizes = {"copies": 4, "rollout": 16, "epochs": 1, "minibatches": 2}
    steps = sum(stage["steps"] for stage in stages)
    evaluation = {"every": 1000, "copies": 2, "episodes": 2}
    run = toy_run({"name": agent, **sizes}, steps=steps, evaluation=evaluation, curriculum=stages)
    return run | {"benchmark": "ctgraph", "task": "curriculum", "view": "state"} | changes


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_in_a_folder(tmp_path_factory, run_config())


def test_every_task_is_evaluated_throughout(trained):
    curve = pd.read_csv(trained / "curve.csv")
    held_out = curve[curve.split == "eval"]
    moments = {0: NAMES[0], 128: NAMES[0], 256: NAMES[1], 384: f"{NAMES[0]} (2)"}
    for step, stage in moments.items():
        rows = held_out[held_out.step == step]
        assert set(zip(rows.task, rows.seed, strict=True)) == {(name, seed) for name in NAMES for seed in (3, 8)}
        assert set(rows.stage) == {stage}
    assert len(held_out) == len(moments) * 4
    training = curve[curve.split == "train"]
    assert (training.task == training.stage.str.removesuffix(" (2)")).all()
    assert set(curve.trained_on) == {"curriculum"}
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
    stages = [
        TrainedStage("one", "1", env([1]), 2),
        TrainedStage("two", "2", env([2]), 1),
        TrainedStage("one (2)", "1", env([1]), 1),
    ]
    rollouts = CurriculumRollouts(stages, [0], agent, 8, 0.99, False)
    assert (rollouts.total, rollouts.steps, rollouts.stage) == (4, 256, "one")
    seen = []
    for rollout in rollouts:
        seen.append((rollouts.stage, rollouts.stage_ended, rollouts.env, rollout["inputs"]))
    assert [stage for stage, *_ in seen] == ["one", "one", "two", "one (2)"]
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
        ({"name": "", "stages": [["ctgraph/depth-1", 5]] * 2}, "must be a name"),
        ({"name": "ctgraph/depth-1", "stages": [["ctgraph/depth-1", 5]] * 2}, "no task of the benchmark"),
        ({"name": "x", "stage": []}, "did you mean 'stages'"),
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
        curriculum_from(stages, get_benchmark("ctgraph"))


def test_curricula_have_names_of_their_own(tmp_path):
    ctgraph, pair = get_benchmark("ctgraph"), [["ctgraph/depth-1", 100], ["ctgraph/ct-su-b1", 50]]
    name, stages = curriculum_from(pair, ctgraph)
    assert name == curriculum_from(stages, ctgraph)[0]
    others = [pair[::-1], [*pair, pair[0]], [[task, 2 * steps] for task, steps in pair]]
    assert len({name, *(curriculum_from(other, ctgraph)[0] for other in others)}) == 4
    assert curriculum_from({"name": "deeper", "stages": pair}, ctgraph) == ("deeper", stages)
    words = "curriculum={name: deeper, stages: [[ctgraph/depth-1,100],[ctgraph/ct-su-b1,50]]}"
    assert run_config_from(compose("train", ["benchmark=ctgraph", "view=state", words]))["task"] == "deeper"
    file = tmp_path / "c.yaml"
    file.write_text("name: deeper\nstages: [[ctgraph/depth-1, 100], [ctgraph/ct-su-b1, 50]]\n")
    assert curriculum_from(str(file), ctgraph) == ("deeper", stages)


def test_another_curriculum_of_the_same_name_is_refused(tmp_path):
    study = Study(tmp_path, create=True)
    first = run_config(task="deeper")
    other = run_config(BACK[:2], task="deeper", seeds=[1])
    with study.at_work():
        study.ask({}, [Job(first)])
        study.ask({}, [Job(run_config(task="deeper", seeds=[1]))])
        with pytest.raises(InputError, match="already has another curriculum called 'deeper'"):
            study.ask({}, [Job(other)])


def test_two_curricula_of_the_same_tasks_are_two(tmp_path):
    orders = {"there": STAGES, "back": STAGES[::-1]}
    tables = []
    for name, stages in orders.items():
        train_run(run_config(stages, task=name), tmp_path / name, {"name": "none"}, DEVICE)
        tables.append(read_curves(tmp_path / name / "curve.csv"))
    found = transfers(diagnose_curves(pd.concat(tables)).others)
    assert {each.key["trained_on"]: each.stages for each in found} == {"there": (*NAMES,), "back": (*NAMES[::-1],)}


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
