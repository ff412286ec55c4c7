"""Sweeps are studies with a grid: they expand to the paper's, are trained and reported like any study."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.errors import InputError
from lcd.envs.hardness.task_names import parse_task, task_name
from lcd.pipelines.kinds.kind import trainings
from lcd.pipelines.study.runs import expand


@pytest.mark.parametrize(
    ("varied", "name"),
    [
        ({"sequence_length": 2, "delay": 4}, "hardness/discrete:delay=4,sequence_length=2"),
        ({"image_transforms": "shift,scale"}, "hardness/discrete:image_transforms=shift+scale"),
        ({"image_scale_range": [0.5, 2]}, "hardness/discrete:image_scale_range=0.5+2"),
        ({}, "hardness/discrete"),
    ],
)
def test_names_have_a_fixed_order_and_are_read_back(varied, name):
    order = ["delay", "sequence_length", "image_transforms", "image_scale_range"]
    assert task_name("discrete", varied, order) == name
    back = parse_task(name)[1]
    assert task_name("discrete", back, order) == name
    assert set(back) == set(varied)


def test_a_sweep_is_trained_reported_and_continued(tmp_path, capsys):
    line = ["sweep", "experiment=delay", "study.grid={knobs.delay: [4,0]}", "study.seeds=6", "study.steps=2000"]
    line += ["study.agents=[tabular/sarsa]", "study.evaluation.every=500", f"out={tmp_path / 's'}"]
    line += ["launcher.workers=1", "tracker=none"]
    assert cli.main(line) == 0
    tables = tmp_path / "s" / "diagnosis" / "tables"
    first = pd.read_csv(tables / "grid-areas.csv")
    assert set(first["metric"]) == {"train", "eval", "length"}
    assert len(first) == 2 * 6 * 3
    summary = pd.read_csv(tables / "grid.csv")
    # Bars stand in the order that was asked for, each with an interval over seeds.
    assert summary.loc[summary["metric"] == "eval", "delay"].tolist() == [4, 0]
    assert (summary["mean_low"] <= summary["mean"]).all()
    told = capsys.readouterr().out
    assert "delay" in told
    assert len(list((tables.parent / "figures").glob("grid-*.png"))) == 4
    assert "What changes with delay" in (tables.parent / "report.html").read_text()
    assert "All 2 runs" not in told
    assert cli.main(line) == 0
    assert "All 2 runs" in capsys.readouterr().out
    assert first.equals(pd.read_csv(tables / "grid-areas.csv"))
    config = next((tmp_path / "s" / "runs").glob("*/config.yaml"))
    assert yaml.safe_load(config.read_text())["agent"]["name"] == "tabular/sarsa"


def test_anybodys_study_file_has_a_grid_of_knobs(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "benchmark: toy\ntasks: [toy/easy-sight-easy-reward]\nviews: [semantic]\nreward_p: [1]\n"
        "grid: {knobs.delay: [0, 2], knobs.transition_noise: [0.1, 0.2]}\n"
    )
    runs = trainings(expand(compose("diagnose", [f"study={file}", "budget=smoke"])))
    points = [(run["knobs"]["delay"], run["knobs"]["transition_noise"]) for run in runs]
    assert points == [(0, 0.1), (0, 0.2), (2, 0.1), (2, 0.2)]
    assert {run["benchmark"] for run in runs} == {"toy"}


def test_agents_settings_are_axes_of_a_grid_as_knobs_are():
    """Figure 49 varies two of DQN's at once; what an agent's name tells already stays there."""
    runs = trainings(expand(compose("sweep", ["experiment=tuning-networks"])))
    # Two layers, which were the only choice once, are not written down.
    sizes = [(run["agent"].get("layers", 2), run["agent"]["width"]) for run in runs]
    assert sizes == [(layers, width) for layers in (1, 2, 3, 4) for width in (8, 32, 128)]
    assert {run["agent"]["target_every"] for run in runs} == {800}
    late = trainings(expand(compose("sweep", ["experiment=tuning-networks-late"])))
    found = {(run["agent"]["width"], run["agent"]["target_every"]) for run in late}
    assert found == {(width, every) for width in (128, 256, 512) for every in (80, 800, 8000)}


def test_a_grid_of_knobs_and_settings_is_drawn_over_both(tmp_path):
    grid = "study.grid={agent: {learning_rate: [0.05, 0.5]}, knobs: {delay: [0, 2]}}"
    line = ["sweep", "experiment=tabular-delay", grid, "study.agents=[tabular/sarsa]", "study.seeds=2"]
    line += ["study.steps=2000", "study.evaluation.every=1000", f"out={tmp_path}", "tracker=none", "device=cpu"]
    assert cli.main(line) == 0
    table = pd.read_csv(tmp_path / "diagnosis" / "tables" / "grid.csv")
    held_out = table[table["metric"] == "eval"].set_index(["delay", "agent.learning_rate"])
    assert sorted(held_out.index) == [(0, 0.05), (0, 0.5), (2, 0.05), (2, 0.5)]
    assert set(held_out["agent"]) == {"tabular/sarsa"}
    figures = {file.name for file in (tmp_path / "diagnosis" / "figures").glob("grid-*.png")}
    assert {"grid-discrete-eval-mean.png", "grid-discrete-eval-std.png"} <= figures


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["study.grid={agent.widht: [8]}"], ["widht", "width"]),
        (["study.grid={agent.width: [[8, 16]]}"], ["study.grid.agent.width", "numbers, words"]),
        (["study.grid={agent.width: 8}"], ["study.grid.agent.width=8", "list"]),
        (["study.grid={agent.width: [8], agent.batch: [8]}"], ["study.grid", "one or two"]),
        (["study.grid.knobs.dealy=[1]"], ["dealy", "delay"]),
        (["study.grid={knobs.delay: 3}"], ["study.grid.knobs.delay=3", "list"]),
        (["study.grid={view: [pixels]}"], ["study.grid.view", "keys"]),
        (["study.agents=[sb3/dqm]"], ["sb3/dqm"]),
        (["study.steps=0"], ["study.steps=0"]),
        (["study.tasks=[hardness/discreet]"], ["discreet"]),
        (["study.of={hardness/discrete: {sedes: 3}}"], ["study.of.hardness/discrete", "seeds"]),
        (["study.of={hardness/discrete: {agents: [ppo]}}"], ['agents=["ppo"]', "{dqn: dqn_points}"]),
        (["study.of={hardness/discrete: {seeds_per_run: 0}}"], ["seeds_per_run=0", "at least 1"]),
        (["experiment=dealy"], ["study=hardness/dealy", "hardness/delay"]),
        (["study.tests=[{claim: x}]"], ["study.tests[0]", "agent"]),
    ],
)
def test_mistakes_are_told_in_a_sentence(overrides, words):
    with pytest.raises(InputError) as mistake:
        expand(compose("sweep", overrides))
    assert all(word in str(mistake.value) for word in words), mistake.value


def areas_of(points, seeds=6):
    """Areas per seed of one base and agent: the place of the point, plus the seed's own."""
    rows = [
        {
            "base": "discrete",
            "agent": "a",
            "seed": seed,
            "metric": "eval",
            "value": value + 0.1 * seed,
            "delay": written,
        }
        for written, value in points.items()
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


def test_what_a_study_remembers_of_its_grid_is_read_with_care():
    from lcd.analyses.grids import KINDS, Grid

    plain = {key: kind() for key, kind in KINDS.items()}
    assert Grid.from_plain(plain).dimensions == []
    for key in KINDS:
        assert Grid.from_plain({**plain, key: 3.5}) is None
    assert Grid.from_plain({**plain, "tasks": {"a": {"base": "b"}}}) is None
    varied = {"a[b=1]": {"agent": "a", "point": {"agent.b": "1"}}}
    assert Grid.from_plain({**plain, "settings": varied}).settings == varied
    for wrong in (3.5, {"a[b=1]": {"point": {}}}, {"a[b=1]": {"agent": "a"}}):
        assert Grid.from_plain({**plain, "settings": wrong}) is None
    assert Grid.from_plain(None) is None


def test_a_claim_is_tested_over_seeds():
    from lcd.analyses.grids import run_tests

    claim = {"claim": "late is hard", "agent": "a", "greater": {"delay": 0}, "less": {"delay": 4}}
    (found,) = run_tests(areas_of({"0": 3.0, "4": 1.0}), [claim], ["delay"]).to_dict("records")
    assert found["holds"]
    assert found["p"] == pytest.approx(1 / 64)


def test_returns_of_one_scale():
    from lcd.analyses.grids import factor

    assert factor({"delay": 8}) == pytest.approx(100 / 92)
    assert factor({"sequence_length": 3}) == 3
    assert np.isclose(factor({"delay": 4, "sequence_length": 2}) * (100 - 4) / 2, 100)


def test_lcd_train_takes_a_task_with_what_is_varied_in_its_name(tmp_path):
    line = ["train", "benchmark=hardness", "task=hardness/discrete:delay=4,transition_noise=0.1", "view=state"]
    line += ["agent=tabular/q_learning", "seeds=2", "steps=500", "tracker=none", f"out={tmp_path / 'run'}"]
    assert cli.main(line) == 0
    curve = pd.read_csv(next((tmp_path / "run" / "runs").glob("*/curve.csv")))
    assert set(curve["task"]) == {"hardness/discrete:delay=4,transition_noise=0.1"}
    assert cli.main([*line[:2], "task=hardness/discrete:dealy=4", *line[3:]]) == 2
