"""What runs have cost, and what a dry run says they will."""

import json
import re
import time

import pytest

from lcd import cli
from lcd.config import compose
from lcd.pipelines import cost, dry_run, runs, store

SMALL = ["study.tasks=[toy/easy-sight-easy-reward]", "study.seeds=2", "tracker=none", "launcher.workers=1"]


def made(folder, seeds, **status):
    run = store.Run(folder, {"seeds": seeds, "steps": 100})
    folder.mkdir()
    run.update(**status)
    return run


def test_hours_are_counted_by_cores_and_gpus(tmp_path):
    some = [
        made(tmp_path / "a", [0, 1], step=100, wall_s=1800.0, threads=2, device="cpu", state="done"),
        made(tmp_path / "b", [0], step=50, wall_s=3600.0, threads=1, device="cuda"),
        made(tmp_path / "c", [0]),
    ]
    found = cost.spent(some)
    assert found == {"runs": 3, "seeds": 4, "steps": 250, "wall_hours": 1.5, "core_hours": 2.0, "gpu_hours": 1.0}
    assert cost.told(found) == "3 runs, 250 environment steps, 2.0 h of a core, 60 min of a GPU"


@pytest.mark.parametrize(("hours", "words"), [(0.001, "4 s"), (0.5, "30 min"), (2000, "2,000.0 h")])
def test_hours_as_people_say_them(hours, words):
    assert cost.duration(hours) == words


def configs(*overrides):
    return runs.expand(compose("diagnose", [*SMALL, *overrides]))


def test_evaluations_are_those_of_the_recorder():
    (config, *_) = configs("study.steps=10240")
    assert dry_run.units(config) == 40
    assert dry_run.evaluations(config) == 11
    assert dry_run.evaluations(config | {"evaluation": config["evaluation"] | {"every": 1}}) == 41


def test_workers_share_the_runs_longest_first():
    config = configs()[0]
    pace = dry_run.Pace(0.0, 3600.0 / dry_run.units(config), 0.0, 0.0, 0.0, exact=True)
    paces = {dry_run.kind(config): pace}
    short = config | {"steps": config["steps"] // 2}
    # One run of an hour and three of half an hour: 1.5 hours with two workers, 2.5 with one.
    assert dry_run.hours([short, config, short, short], paces, 2)[0] == pytest.approx(1.5)
    expected, least, most = dry_run.hours([short, config, short, short], paces, 1)
    assert expected == pytest.approx(2.5)
    assert least < expected < most
    rough = {dry_run.kind(config): dry_run.Pace(**vars(pace) | {"exact": False})}
    assert dry_run.hours([config], rough, 1)[2] > dry_run.hours([config], paces, 1)[2]


def test_a_dry_run_leaves_nothing_and_is_right_within_a_factor_of_two(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    asked = [*SMALL, "study.reward_p=[1]", "study.views=[pixels,semantic]", "study.steps=5120", "out=study"]
    wanted = runs.expand(compose("diagnose", asked))
    paces = dry_run.probe(wanted, compose("diagnose", asked))
    assert list(tmp_path.iterdir()) == []
    assert cli.main(["diagnose", *asked, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert "20,480 of all seeds together" in told
    assert re.search(r"about .* with 1 worker here", told)

    began = time.perf_counter()
    assert cli.main(["diagnose", *asked]) == 0
    assert time.perf_counter() > began
    capsys.readouterr()
    diagnosis = json.loads((tmp_path / "study" / "diagnosis" / "diagnosis.json").read_text())
    taken = diagnosis["cost"]["wall_hours"]
    # How busy the machine is may change while the study runs: a probe on either side of it brackets the truth.
    again = dry_run.probe(wanted, compose("diagnose", asked))
    expected = [dry_run.hours(wanted, probed, 1)[0] for probed in (paces, again)]
    assert min(expected) / 2 < taken < max(expected) * 2
    assert diagnosis["cost"]["steps"] == 20480
    on_disk = sum(f.stat().st_size for f in (tmp_path / "study" / "runs").rglob("*") if f.is_file())
    size = sum(paces[dry_run.kind(config)].size(config) for config in wanted)
    assert on_disk / 2 < size < on_disk * 2

    assert cli.main(["diagnose", *asked, "dry_run=true"]) == 0
    assert "0 (2 more are done)" in capsys.readouterr().out


def test_one_run_can_be_dry_too(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["train", "task=toy/easy-sight-easy-reward", "seeds=1", "steps=512", "tracker=none", "--dry-run"]
    assert cli.main(asked) == 0
    assert "512 of all seeds together" in capsys.readouterr().out
    assert not (tmp_path / "studies").exists()


@pytest.mark.parametrize(("episode_s", "timed"), [(0.01, 5), (40.0, 1)])
def test_what_plays_slowly_is_timed_once(tmp_path, monkeypatch, episode_s, timed):
    """A second of starting, a tenth a unit of 128 steps, and episodes of a known length, one after the other."""
    config = configs("study.steps=10240")[0]
    calls = []

    def made_up(asked, count, folder, accelerator):
        calls.append(asked)
        play = episode_s * asked["evaluation"]["copies"] * asked["evaluation"]["episodes"] * len(asked["seeds"])
        unit = 0.1 * dry_run.unit_steps(asked) * len(asked["seeds"]) / 128
        return dry_run._Timed(1 + count * unit + 2 * play, play, 1000.0, 100.0)

    monkeypatch.setattr(dry_run, "_timed", made_up)
    pace = dry_run._time_run(config, tmp_path, "cpu", allowed=20.0)
    assert len(calls) == timed
    unit = 0.1 * dry_run.unit_steps(config) * 2 / 128
    played = config["evaluation"]["copies"] * config["evaluation"]["episodes"] * 2
    assert pace.evaluation_s == pytest.approx(episode_s * played)
    if timed == 1:
        # Starting cannot be told from training: it is counted with every unit, which is rough but not too little.
        assert pace.unit_s >= unit
        assert not pace.exact
    else:
        assert pace.unit_s == pytest.approx(unit)
        assert pace.fixed_s == pytest.approx(1.0)
        assert pace.exact
