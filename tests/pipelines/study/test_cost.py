"""What runs have cost, and what a dry run says they will."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from lcd import cli
from lcd.config.compose import compose
from lcd.pipelines.kinds.kind import Job, kind_of, trainings
from lcd.pipelines.kinds.train import evaluations, unit_steps
from lcd.pipelines.study import cost, dry_run, probe, runs, store
from lcd.pipelines.study.configs import run_id

SMALL = ["study.tasks=[toy/easy-sight-easy-reward]", "study.seeds=2", "tracker=none", "launcher.workers=1"]


def made(folder, seeds, **status):
    run = store.Run({"kind": "train", "seeds": seeds, "steps": 100}, folder)
    folder.mkdir()
    run.update(**status)
    return run


def test_hours_are_counted_by_cores_and_gpus(tmp_path):
    some = [
        made(tmp_path / "a", [0, 1], step=100, wall_s=1800.0, threads=2, device="cpu", state="done"),
        made(tmp_path / "b", [0], step=50, wall_s=3600.0, threads=1, device="cuda"),
        made(tmp_path / "c", [0]),
    ]
    found = cost.cost_so_far(some)
    assert found == {"runs": 3, "seeds": 4, "steps": 250, "wall_hours": 1.5, "core_hours": 2.0, "gpu_hours": 1.0}
    assert cost.cost_sentence(found) == "3 runs, 250 environment steps, 2.0 h of a core, 60 min of a GPU"


@pytest.mark.parametrize(("hours", "words"), [(0.001, "4 s"), (1 / 40, "90 s"), (0.5, "30 min"), (2000, "2,000.0 h")])
def test_hours_as_people_say_them(hours, words):
    assert cost.hours_text(hours) == words


def configs(*overrides):
    return trainings(runs.expand(compose("diagnose", [*SMALL, *overrides])))


def test_evaluations_are_those_of_the_recorder():
    (config, *_) = configs("study.steps=10240")
    assert cost.units(config) == 40
    assert evaluations(config) == 11
    assert evaluations(config | {"evaluation": config["evaluation"] | {"every": 1}}) == 41


def paces(start_s, *timed):
    return probe.Paces(start_s, [(probe.likeness(config), pace) for config, pace in timed])


def test_workers_start_once_and_share_the_runs_longest_first():
    config = configs()[0]
    short = config | {"steps": config["steps"] // 2}
    pace = probe.Pace(0.0, 3600.0 / cost.units(config), 0.0, 0.0, 0.0, exact=True)
    others = [short | {"task": f"toy/{name}"} for name in "ab"]
    jobs = [Job(each) for each in (short, config, *others)]
    # One run of an hour and three of half an hour: 1.5 hours with two workers, 2.5 with one.
    assert paces(60.0, (config, pace)).seconds(jobs, 2) == pytest.approx(1.5 * 3600 + 60)
    assert paces(60.0, (config, pace)).seconds(jobs, 1) == pytest.approx(2.5 * 3600 + 60)


def test_what_waits_for_another_job_starts_after_it():
    first, second = (each | {"task": f"toy/{name}"} for each, name in zip([configs()[0]] * 2, "ab", strict=True))
    second = second | {"knobs": {"map": {"job": Job(first).id, "file": "map.txt"}}}
    pace = probe.Pace(0.0, 3600.0 / cost.units(first), 0.0, 0.0, 0.0, exact=True)
    assert paces(0.0, (first, pace)).seconds([Job(second), Job(first)], 2) == pytest.approx(2 * 3600)


def test_a_run_has_the_pace_of_the_timed_ones_that_are_most_like_it():
    pixels, semantic = (configs("study.reward_p=[1]")[number] for number in (0, 2))
    other = semantic | {"task": "toy/other"}
    fast, slow = (probe.Pace(0.0, unit, 0.0, 0.0, 0.0, exact=True) for unit in (1.0, 3.0))
    found = paces(0.0, (pixels, slow), (semantic, fast))
    assert found.of(pixels).unit_s == 3.0
    assert found.of(other).unit_s == 1.0
    assert found.of(semantic | {"view": "figure_ground"}).unit_s == 2.0


def test_what_is_timed_first_tells_most():
    wanted = trainings(runs.expand(compose("diagnose", ["study.agents=[ppo,recurrent_ppo]", "tracker=none"])))
    first = probe.spread(wanted)
    assert {config["agent"]["name"] for config in first[:2]} == {"ppo", "recurrent_ppo"}
    assert len({probe.likeness(config)[:2] for config in first[:6]}) == 6
    assert {config["task"] for config in first} == {config["task"] for config in wanted}


def test_a_kind_that_was_not_timed_is_as_slow_a_step_not_a_rollout():
    (config, *_) = configs()
    agent = config["agent"] | {"name": "recurrent_ppo", "rollout": config["agent"]["rollout"] // 4}
    shorter = config | {"agent": agent}
    pace = probe.Pace(0.0, 8.0, 0.0, 0.0, 0.0, exact=True, unit_steps=unit_steps(config))
    found = paces(0.0, (config, pace))
    assert found.of(shorter).unit_s == 2.0
    assert found.of(shorter).seconds(shorter) == pytest.approx(found.of(config).seconds(config))


class Slow:
    """Trains by sleeping: each rollout and each evaluation take a known time, and the first run of a process more."""

    first_s, fixed_s, unit_s, evaluation_s = 1.0, 0.1, 0.1, 0.2
    runs = 0

    def __call__(self, config, folder, tracker, device):
        self.runs += 1
        time.sleep(self.fixed_s + self.first_s * (self.runs == 1))
        seeds, evaluation = config["seeds"], config["evaluation"]
        share = config["agent"]["rollout"] / 16 * len(seeds)
        episodes = evaluation["copies"] * evaluation["episodes"] * len(seeds) / 64
        lines, began = ["seed,split,step,wall_s"], time.perf_counter()
        for step in range(0, config["steps"] + 1, unit_steps(config)):
            time.sleep(self.unit_s * share * (step > 0))
            if step % evaluation["every"] == 0 or step == config["steps"]:
                time.sleep(self.evaluation_s * episodes)
                wall_s = time.perf_counter() - began
                lines += [f"{seed},eval,{step},{wall_s}" for seed in seeds]
        (folder / "curve.csv").write_text("\n".join(lines))


def timed(config, slow, folder, monkeypatch, allowed):
    monkeypatch.setattr(probe, "resolve", lambda target: slow)
    probe.time_runs([config], 1, str(folder), {}, {}, allowed, time.time() - 7)
    start_s, ((_, pace),) = json.loads((folder / "paces.json").read_text())
    return start_s, probe.Pace(**pace)


def test_kinds_of_runs_that_there_is_no_time_for_are_taken_to_be_as_slow_as_the_slowest(tmp_path, monkeypatch):
    first, second = probe.spread(
        trainings(runs.expand(compose("diagnose", ["study.agents=[ppo,recurrent_ppo]", "tracker=none"])))
    )[:2]
    slow = Slow()
    monkeypatch.setattr(probe, "resolve", lambda target: slow)
    probe.time_runs([first, second], 2, str(tmp_path), {}, {}, 0.05, time.time())
    _, found = json.loads((tmp_path / "paces.json").read_text())
    assert [number for number, _ in found] == [0]
    told = paces(0.0, (first, probe.Pace(**found[0][1])))
    assert told.lacking([Job(first), Job(second)]) == [second]
    # Its rollouts are twice as long, and take as long a step.
    assert unit_steps(second) == 2 * unit_steps(first)
    assert told.of(second).unit_s == pytest.approx(2 * told.of(first).unit_s)
    assert not told.of(second).exact


def test_what_is_slow_only_the_first_time_is_the_workers_start(tmp_path, monkeypatch):
    config = configs("study.steps=10240")[0]
    slow = Slow()
    share = config["agent"]["rollout"] / 16 * 2
    episodes = config["evaluation"]["copies"] * config["evaluation"]["episodes"] * 2 / 64
    start_s, pace = timed(config, slow, tmp_path, monkeypatch, allowed=8.0)
    assert start_s == pytest.approx(7 + slow.first_s, abs=0.5)
    assert pace.exact
    assert pace.unit_s == pytest.approx(slow.unit_s * share, rel=0.3)
    assert pace.evaluation_s == pytest.approx(slow.evaluation_s * episodes, rel=0.5)
    assert pace.seconds(config) == pytest.approx(
        slow.fixed_s + 40 * slow.unit_s * share + 11 * slow.evaluation_s * episodes, rel=0.3
    )


def test_what_plays_slowly_is_timed_once(tmp_path, monkeypatch):
    config = configs("study.steps=10240")[0]
    slow = Slow()
    slow.evaluation_s = 20.0
    _, pace = timed(config, slow, tmp_path, monkeypatch, allowed=0.5)
    assert slow.runs == 1
    assert not pace.exact
    played = config["evaluation"]["copies"] * config["evaluation"]["episodes"] * 2
    assert pace.evaluation_s == pytest.approx(20.0 / 64 * played, rel=0.3)


def test_long_episodes_are_tried_as_short_ones():
    words = ["benchmark=traffic", "study=traffic/full", "study.points=2", "tracker=none"]
    whole = trainings(runs.expand(compose("diagnose", words)))[0]
    (small, scale), (same, scale_of_short) = (
        kind_of(config).scaled_down(config) for config in (whole, {**whole, "knobs": {"horizon": 600}})
    )
    assert small == same
    assert scale.evaluation == 6 * scale_of_short.evaluation  # of an hour
    assert scale.unit == scale_of_short.unit


class Late(Slow):
    """Trains by sleeping, but only once it has collected for a while; collecting takes no time."""

    first_s, fixed_s, unit_s, evaluation_s = 0.0, 0.0, 0.05, 0.01

    def __call__(self, config, folder, tracker, device):
        agent, unit = config["agent"], unit_steps(config)
        begins = agent["start"] if "start" in agent else agent["params"].get("learning_starts", 100)
        lines, began = ["seed,split,step,wall_s"], time.perf_counter()
        for step in range(0, config["steps"] + 1, unit):
            time.sleep(self.unit_s * len(config["seeds"]) * (step > begins))
            if step % config["evaluation"]["every"] == 0 or step == config["steps"]:
                time.sleep(self.evaluation_s)
                wall_s = time.perf_counter() - began
                lines += [f"{seed},eval,{step},{wall_s}" for seed in config["seeds"]]
        (folder / "curve.csv").write_text("\n".join(lines))


@pytest.mark.parametrize("agent", ["sb3/td3", "dqn"])
def test_agents_that_learn_only_after_a_while_are_timed_while_they_learn(tmp_path, monkeypatch, agent):
    late = "agent.params.learning_starts=2000" if agent == "sb3/td3" else "agent.start=2000"
    config = configs("study.steps=10240", f"agent={agent}", late, "study.evaluation.every=1024")[0]
    _, pace = timed(config, Late(), tmp_path, monkeypatch, allowed=1.0)
    assert pace.unit_s == pytest.approx(Late.unit_s * 2, rel=0.3)


def run_lcd(folder, *words):
    """A command in a fresh interpreter that compiles all it imports; what it printed, and its seconds."""
    cold = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(folder / "none"), "COLUMNS": "200"}
    began = time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-m", "lcd.cli", *words], cwd=folder, env=cold, capture_output=True, text=True, check=True
    ).stdout
    return told, time.perf_counter() - began


def test_a_cold_dry_run_leaves_nothing_and_tells_the_time_that_the_command_takes(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    asked = [*SMALL, "study.reward_p=[1]", "study.views=[pixels,semantic]", "study.steps=5120", "out=study"]
    told, _ = run_lcd(tmp_path, "diagnose", *asked, "--dry-run")
    # An empty folder for compiled networks is torch's, which makes it when it is imported.
    assert [left for left in tmp_path.iterdir() if not left.name.startswith("torchinductor_")] == []
    assert "Probing how fast this machine is: 1 worker at a little of a run (about 20 s" in told
    assert "Timing the report of invented curves …" in told
    assert "20,480 of all seeds together" in told
    expected = seconds(re.search(r"about (.*) with 1 worker here", told)[1])
    _, taken = run_lcd(tmp_path, "diagnose", *asked)
    # How busy the machine is may change in between; a start that was taken for training would be off by far more.
    assert expected / 3 < taken < expected * 3
    on_disk = sum(f.stat().st_size for f in (tmp_path / "study" / "runs").rglob("*") if f.is_file())
    size, unit = re.search(r"disk +([\d.,]+) (kB|MB)", told).groups()
    assert on_disk / 2 < float(size) * {"kB": 1e3, "MB": 1e6}[unit] < on_disk * 2


def seconds(words):
    number, unit = words.split()
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


@pytest.mark.parametrize("more", ["study.steps=20000", "study.evaluation.every=777", "study.steps=300"])
def test_curves_that_are_made_up_for_a_rehearsal_are_what_their_runs_promise(tmp_path, more):
    jobs = runs.expand(compose("diagnose", [*SMALL, more]))
    for run in store.Study(tmp_path / "study", create=True).ask({}, jobs):
        dry_run._write_made_up_curve(run.path, run.config)
        assert run.broken_promise() == ""


def test_a_dry_run_of_what_is_done_asks_for_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store.Run, "done", True)
    asked = [*SMALL, "study.reward_p=[1]", "study.views=[pixels]", "out=study"]
    for config in trainings(runs.expand(compose("diagnose", asked))):
        (tmp_path / "study" / "runs" / run_id(config)).mkdir(parents=True)
    assert cli.main(["diagnose", *asked, "--dry-run"]) == 0
    assert "0 (1 more are done)" in capsys.readouterr().out


@pytest.mark.parametrize(("agent", "members"), [("dqn", 100), ("rainbow", 100), ("tabular/sarsa", 1)])
def test_a_trial_of_what_learns_from_a_memory_has_all_its_seeds(agent, members):
    config = {"kind": "train", "benchmark": "hardness", "task": "hardness/discrete", "knobs": {}, "view": "state"}
    config |= {"agent": {"name": agent, "copies": 1, "start": 1000}, "seeds": list(range(100)), "steps": 20_000}
    config |= {"evaluation": {"every": 1000, "copies": 10, "episodes": 1}}
    small, scale = kind_of(config).scaled_down(config)
    assert len(small["seeds"]) == members
    assert scale.unit == 100 / members
