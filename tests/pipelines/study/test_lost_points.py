"""A member that diverges costs its point: the run goes on, the others get what they would have got, and it is told."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import poisoned
import pytest
import torch
from small_runs import toy_run

from lcd import cli
from lcd.agents.ars import ARS
from lcd.agents.ppo import PPO
from lcd.envs.errors import Diverged
from lcd.pipelines.jobs import learn
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.jobs.worker import do_under_lease
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import Device, run_id
from lcd.pipelines.study.quarantine import sort_out

HERE = str(Path(__file__).parents[1])
TASK = "toy/easy-sight-easy-reward"
POINTS = {"": {"delay": 0}, "delay=2": {"delay": 2}, "delay=4": {"delay": 4}}
AGENTS = {
    "ppo": {"name": "ppo", "copies": 4, "rollout": 25, "epochs": 1, "minibatches": 2, "width": 8},
    "ars": {"name": "ars", "copies": 2, "directions": 2, "top": 1},
    "sb3/a2c": {"name": "sb3/a2c", "copies": 2, "params": {}},
}
LOST = 3
"""The member of seed 8 on the second point."""
SMALL = {"benchmark": "hardness", "task": "hardness/discrete", "view": "state"}


def config_of(agent, **changes):
    evaluation = {"every": 100, "copies": 1, "episodes": 2}
    return toy_run(AGENTS[agent], steps=500, evaluation=evaluation, points=POINTS) | changes


def poison(patch, members=(LOST,), after=2):
    """From some training on these members' weights are not finite."""
    step, move = PPO.training_step, ARS._move

    def training_step(self, rollout, index):
        step(self, rollout, index)
        if index >= after:
            with torch.no_grad():
                next(iter(self.networks.parameters()))[list(members)] = torch.nan

    def _move(self, chosen):
        move(self, chosen)
        self.weights[list(members)] = np.nan

    patch.setattr(PPO, "training_step", training_step)
    patch.setattr(ARS, "_move", _move)


def train(folder, config):
    train_run(config, folder, {"name": "none"}, Device("cpu"))
    return curve_of(folder)


def curve_of(folder):
    return pd.read_csv(folder / "curve.csv", keep_default_na=False).drop(columns="wall_s")


def kept(folder, config, without):
    """The run's folder as a study has it, and that its other points are as they would have been."""
    run = store.Training(config, folder)
    assert (run.done, run.whole) == (True, False)
    curve = curve_of(folder)
    others = without[without.context != "delay=2"].reset_index(drop=True)
    pd.testing.assert_frame_equal(curve[curve.context != "delay=2"].reset_index(drop=True), others, check_exact=True)
    return run


@pytest.mark.parametrize(("agent", "where"), [("ppo", {}), ("ars", SMALL)])
def test_the_run_goes_on_without_the_point(tmp_path, monkeypatch, agent, where):
    config = config_of(agent, **where)
    (tmp_path / "whole").mkdir()
    without = train(tmp_path / "whole", config)
    poison(monkeypatch)
    folder = tmp_path / run_id(config)
    folder.mkdir()
    train(folder, config)
    run = kept(folder, config, without)
    name = f"{config['task']}@delay=2"
    assert list(run.lost) == [name]
    assert "of seed 8 is not finite at step" in run.lost[name]
    finished = sort_out([run], "it")
    assert sorted(set(finished.curves["context"])) == ["", "delay=4"]
    (left_out,) = finished.left_out
    assert (left_out.state, left_out.task, left_out.part) == ("diverged", f"{config['task']}@1 of 3 points", True)
    assert run.lost[name] in left_out.reason


def test_a_point_that_diverges_at_once_never_gets_a_row_and_a_stopped_run_remembers(tmp_path, monkeypatch):
    config = config_of("ppo")
    (tmp_path / "whole").mkdir()
    without = train(tmp_path / "whole", config)
    poison(monkeypatch, after=1)
    step, seen = PPO.training_step, []

    def training_step(self, rollout, index):
        seen.append(index)
        if len(seen) == 4:
            raise KeyboardInterrupt
        step(self, rollout, index)

    monkeypatch.setattr("lcd.pipelines.jobs.record.CHECKPOINT_EVERY_S", 0)
    monkeypatch.setattr("lcd.pipelines.jobs.record.CHECKPOINT_SHARE", 1)
    monkeypatch.setattr(PPO, "training_step", training_step)
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        train(folder, config)
    assert list(store.read_status(folder)["diverged"]) == [f"{TASK}@delay=2"]
    train(folder, config)
    assert seen[3:5] == [3, 3]
    run = kept(folder, config, without)
    assert set(curve_of(folder).query("context == 'delay=2'").step) == {0, 100}
    assert list(run.lost) == [f"{TASK}@delay=2"]


def test_members_that_are_trained_one_by_one_go_on_without_the_point(tmp_path, monkeypatch):
    config = config_of("sb3/a2c", **SMALL, steps=60, evaluation={"every": 30, "copies": 1, "episodes": 1})
    (tmp_path / "whole").mkdir()
    without = train(tmp_path / "whole", config)
    fine = learn._Session.train

    def trained(self, *arguments):
        if list(self.run_config["points"]) == ["delay=2"]:
            raise Diverged("the policy of seed 3 is not finite at step 20")
        return fine(self, *arguments)

    monkeypatch.setattr(learn._Session, "train", trained)
    folder = tmp_path / "run"
    folder.mkdir()
    curve = train(folder, config)
    run = kept(folder, config, without)
    assert run.lost == {"hardness/discrete@delay=2": "the policy of seed 3 is not finite at step 20"}
    assert "delay=2" not in set(curve.context)
    # Of the lost point nothing is tried again but on request.
    monkeypatch.setattr(learn._Session, "train", lambda *arguments: pytest.fail("trained again"))
    train(folder, config)
    assert not run.needs_training(retry=False)
    assert run.needs_training(retry=True)


def test_a_run_without_any_point_left_has_diverged(tmp_path, monkeypatch):
    poison(monkeypatch, members=(0, 2, 5))
    work = "lcd.pipelines.jobs.train:train_run"
    with pytest.raises(Diverged, match="a weight of seed 3 is not finite at step 300"):
        do_under_lease(work, config_of("ppo"), str(tmp_path), {"name": "none"}, Device("cpu"))
    assert store.read_status(tmp_path)["state"] == "diverged"


def test_a_status_that_hides_what_was_lost_is_not_believed(tmp_path, monkeypatch):
    poison(monkeypatch)
    config = config_of("ppo")
    folder = tmp_path / run_id(config)
    folder.mkdir()
    train(folder, config)
    run = store.Training(config, folder)
    store.update_status(folder, diverged={})
    assert "lacks the evaluation of seed 3" in run.broken_promise()
    strange = {f"{TASK}@delay=2": "\x1b[2Jgone", "elsewhere": "never asked for", f"{TASK}@delay=4": 7}
    store.update_status(folder, diverged=strange)
    (left_out,) = sort_out([run], "it").left_out
    assert "\x1b" not in left_out.sentence
    assert left_out.task == f"{TASK}@1 of 3 points"


def test_a_study_tells_which_points_are_left_out_and_trains_them_anew_on_request_only(tmp_path, monkeypatch, capsys):
    out = tmp_path / "s"
    line = ["diagnose", "study=family", "study.tasks=[toy/easy-sight-easy-reward]", "benchmark=toy", "tracker=none"]
    line += ["study.points=2", "study.points_per_run=3", "study.seeds=2", "study.steps=300", "launcher.workers=1"]
    line += [f"agent.{key}={value}" for key, value in AGENTS["ppo"].items() if key != "name"]
    line += ["agent=poisoned:Poisoned"]
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.setenv(poisoned.MEMBERS, str(LOST))
    line += ["study.evaluation.every=100", "study.evaluation.copies=1", "study.views=[semantic]", f"out={out}"]
    assert cli.main(line) == 1
    said = capsys.readouterr().out
    assert "1 point diverged and is left out" in said
    assert "retry=true" in said
    (run,) = store.Study(out).trainings()
    (name,) = run.lost
    assert name in said
    point = name.partition("@")[2]
    told = json.loads((out / "diagnosis" / "diagnosis.json").read_text())
    assert [(each["state"], each["part"]) for each in told["left_out"]] == [("diverged", True)]
    assert f"{point} (a weight of seed" in (out / "diagnosis" / "report.html").read_text()
    assert cli.main(["verify", str(out)]) == 0
    assert "went on without points that diverged" in capsys.readouterr().out
    before = (run.path / "curve.csv").read_bytes()
    assert cli.main(line) == 1
    assert (run.path / "curve.csv").read_bytes() == before
    monkeypatch.delenv(poisoned.MEMBERS)
    assert cli.main([*line, "retry=true"]) == 0
    assert (run.whole, run.lost) == (True, {})


def test_the_task_itself_is_marked_where_it_is_what_diverged(tmp_path, monkeypatch):
    poison(monkeypatch, members=(0,))
    config = config_of("ppo")
    folder = tmp_path / run_id(config)
    folder.mkdir()
    train(folder, config)
    (left_out,) = sort_out([store.Training(config, folder)], "it").left_out
    assert (left_out.task, left_out.aside) == (TASK, False)
