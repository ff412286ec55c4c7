"""What no machine could hold or finish is refused before anything is made of it."""

import pytest

from lcd.config.compose import compose
from lcd.config.schema_parts import VideosConfig
from lcd.config.schemas import ViewConfig
from lcd.config.values import seed_list
from lcd.envs.errors import InputError
from lcd.pipelines.study import needs
from lcd.pipelines.study.runs import expand, run_config_from
from lcd.process import limits

TASK = ["task=toy/easy-sight-easy-reward", "seeds=2", "tracker=none"]


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setattr(limits, "machine_memory", lambda: 64 * 10**9)


@pytest.mark.parametrize("count", [4294967296, 10**18, 10**400])
def test_more_seeds_than_memory(count):
    with pytest.raises(
        InputError, match=rf"^study\.seeds={count} would take at least .* GB of memory, .* give less\.$"
    ):
        seed_list("study.seeds", count)
    with pytest.raises(InputError, match=r"seeds=4294967296 would take at least 4,398\.0 GB"):
        compose("train", [*TASK, "seeds=4294967296"])


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("agent.copies=4000000000", r"2 seeds of agent\.copies=4000000000 and agent\.rollout=16 would take .* GB"),
        ("agent.rollout=4000000000", r"agent\.rollout=4000000000 would take at least .* GB of memory"),
        (
            "agent.width=1000000000",
            r"2 seeds of agent\.copies=16 and agent\.width=1000000000 would take at least 128\.0 GB",
        ),
        ("agent.epochs=1000000000000", r"agent\.epochs=1000000000000, .* would take at least .* GB of memory"),
        ("evaluation.copies=1000000000000", r"2 seeds of evaluation\.copies=1000000000000 would take .* GB of memory"),
        ("evaluation.episodes=1000000000000", r"evaluation\.episodes=1000000000000, .* would take at least .* days"),
        ("steps=1000000000000000000", r"2 seeds of steps=1000000000000000000 would take at least .* days"),
    ],
)
def test_runs_that_do_not_fit_or_do_not_end(asked, sentence):
    cfg = compose("train", [*TASK, asked])
    with pytest.raises(InputError, match=sentence):
        run_config_from(cfg)


def test_studies_are_refused_the_same_way():
    cfg = compose("diagnose", ["study.seeds=2", "study.evaluation.episodes=1000000000000"])
    with pytest.raises(InputError, match=r"would take at least .* days"):
        expand(cfg)


def test_videos_measurements_and_sheets():
    with pytest.raises(InputError, match=r"videos\.count=1000000000000 .* of 1 task would take at least 64,000\.0 GB"):
        needs.check_videos(VideosConfig(count=10**12), 1, 16, 100)
    with pytest.raises(InputError, match=r"pretraining\.batch=1000000000000"):
        needs.check_videos(VideosConfig(), 1, 10**12, 100)
    with pytest.raises(InputError, match="episodes=1000000000000"):
        needs.check_measurement(10**12)
    with pytest.raises(InputError, match="frames=10000000 of 3 views"):
        needs.check_sheets(ViewConfig(frames=10**7), 3)
    needs.check_videos(VideosConfig(count=10**6), 16, 64, 10**6)
    needs.check_measurement(10**6)
    needs.check_sheets(ViewConfig(steps=100, frames=1000), 4)


def test_the_papers_study_is_served():
    agent = {"name": "ppo", "copies": 256, "rollout": 256}
    evaluation = {"every": 1_000_000, "copies": 64, "episodes": 8}
    task = {"task": "procgen/heist", "knobs": {}}
    needs.check_run({**task, "seeds": [0, 1, 2], "agent": agent, "steps": 200_000_000, "evaluation": evaluation})


@pytest.mark.parametrize(
    ("task", "knob"),
    [("discrete", "delay=-4"), ("continuous", "delay=-4"), ("gym/CartPole-v1", "delay=-4"), ("discrete", "nosuch=1")],
)
def test_a_wrong_knob_is_told_before_anything_is_written(task, knob):
    cfg = compose("train", [f"task=hardness/{task}", "view=state", f"task.knobs.{knob}"])
    with pytest.raises(InputError, match=knob.partition("=")[0]):
        run_config_from(cfg)


def test_a_wrong_knob_in_a_tasks_name_is_told_before_anything_is_written():
    cfg = compose(
        "diagnose", ["benchmark=hardness", "study.tasks=['hardness/discrete:delay=-4']", "study.views=[state]"]
    )
    with pytest.raises(InputError, match="delay is -4"):
        expand(cfg)
