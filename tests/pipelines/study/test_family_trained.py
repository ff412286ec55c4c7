"""Studies that train points of a family, from the command to the report."""

import contextlib
import io

import numpy as np
import pandas as pd
import pytest
from family_studies import AGENT, DEFAULT, QUICK, SMALL, asked
from point_worlds import TASK
from rich.console import Console

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.errors import InputError
from lcd.families.quadrature import by_quadrature
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import dry_run, runs
from lcd.pipelines.study.family_written import default_as_point
from lcd.pipelines.study.quarantine import read_finished, sort_out
from lcd.pipelines.study.store import FAILED, Study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study in two runs, made by the command."""
    folder = tmp_path_factory.mktemp("studies") / "study"
    family = f"{{task: {TASK}, contexts: {{delay: [0, 2, 4], transition_noise: [0, 0.3]}}, default: {DEFAULT}}}"
    words = [*SMALL[2:], *QUICK, *AGENT, f"study.family={family}", "study.points_per_run=4", f"out={folder}"]
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert cli.main(["diagnose", *words]) == 0, told.getvalue()
    return folder, words


def test_a_study_of_points_is_made_and_verified(study, capsys):
    folder, words = study
    made = Study(folder).trainings()
    assert [run.done for run in made] == [True, True]
    assert any("(4 points)" in run.label for run in made)
    assert cli.main(["verify", str(folder)]) == 0
    assert "Nothing is wrong" in capsys.readouterr().out
    assert cli.main(["diagnose", *words]) == 0
    assert "All 2 runs of the study" in capsys.readouterr().out
    curves = sort_out(made, "it").curves
    assert curves.trained_on.nunique() == 6


def test_a_point_and_seed_is_not_trained_twice(study):
    folder, words = study
    store = Study(folder)
    whole = [word for word in words if "points_per_run" not in word]
    with pytest.raises(InputError, match=r"already has seeds \[0, 1\]"), store.at_work():
        store.ask({}, [Job(config) for config in asked(*_of_study(whole))])
    fresh = [*whole, "study.seeds=[5]", "study.points_per_run=1"]
    assert {run.config["seeds"][0] for run in store.trainings()} == {0}
    assert len(asked(*_of_study(fresh))) == 6


def _of_study(words):
    return [word for word in words if not word.startswith("out=")]


def test_a_dry_run_counts_members(study, tmp_path):
    _, words = study
    cfg = compose("diagnose", [*_of_study(words), f"out={tmp_path / 'none'}", "launcher.workers=1"])
    told = io.StringIO()
    assert dry_run.print_estimate(runs.expand(cfg), cfg, tmp_path / "none", Console(file=told, width=150)) == 0
    assert f"{6 * 2 * 64:,} of all seeds together" in told.getvalue()


def test_points_that_are_left_out_do_not_take_the_task_with_them(study):
    runs_made = Study(study[0]).trainings()
    without = next(run for run in runs_made if "" not in run.config["points"])
    status = without.status
    try:
        without.update(state=FAILED, error="it broke")
        finished = sort_out(runs_made, "it")
    finally:
        without.update(state=status["state"], error=None)
    assert [(each.task, each.aside) for each in finished.left_out] == [(f"{TASK}@2 points", True)]
    assert set(pd.unique(finished.curves.context)) >= {""}


def test_the_default_counts_where_a_family_of_the_study_has_it(tmp_path, capsys):
    task, folder = "toy/easy-sight-hard-reward", tmp_path / "it"
    words = [f"study.family={{task: {task}, contexts: {{delay: [0, 1]}}}}", "study.views=[semantic]", *SMALL[3:]]
    assert cli.main(["diagnose", "benchmark=toy", *words, *QUICK, *AGENT, f"out={folder}", "launcher.workers=1"]) == 0
    made = Study(folder)
    assert len({name for run in made.trainings() for name in run.config["points"]}) == 2
    curves = read_finished(folder, made).curves
    (point,) = set(curves.context) - {"", *made.trainings()[0].config["points"]}
    own, again = (
        curves[curves.context == name].drop(columns=["context", "trained_on"]).reset_index(drop=True)
        for name in ("", point)
    )
    pd.testing.assert_frame_equal(own, again)
    assert set(curves.trained_on[curves.context == point]) == {f"{task}@{point}"}
    assert cli.main(["verify", str(folder)]) == 0
    # Of a choice, too, it is one point by two names.
    (other,) = set(curves.context) - {"", point}
    made.note(point_choices={task: {"choose": "kmeans", "seed": 0, "weights": {"": 0.25, other: 0.75}}})
    weights = read_finished(folder, made).curves.groupby("context", observed=True)["weight"].unique()
    assert {name: each.tolist() for name, each in weights.items()} == {"": [0.25], point: [0.25], other: [0.75]}


@pytest.mark.parametrize(
    ("asked_for", "name"),
    [
        ({"env": "A", "contexts": {"g": [1, 2.0]}}, "g=2"),
        ({"env": "A", "contexts": {"g": [1, 3]}}, ""),
        ({"env": "B", "contexts": {"g": [1, 2]}}, ""),
        ({"env": "A", "contexts": "all"}, ""),
        ("A", ""),
    ],
)
def test_whether_a_default_is_a_point(asked_for, name):
    assert default_as_point(asked_for, "families/gym:A", {"g": 2}) == name


def learn(folder, points, *more):
    """The exit code and the output of a study of chosen points."""
    words = [*SMALL, *QUICK, *AGENT, f"study.points={points}", f"out={folder}", *more]
    with contextlib.redirect_stdout(io.StringIO()) as told:
        return cli.main(["diagnose", *words]), told.getvalue()


def overall(folder):
    return pd.read_csv(folder / "diagnosis" / "tables" / "families.csv").set_index("agent").loc["ppo", "overall"]


def by_hand(folder, one_each=False):
    """Σ w_i s_i of a study's last scores; with the first agent of each point alone, if these are wanted."""
    weights = Study(folder).record["point_choices"][TASK]["weights"]
    curves = read_finished(folder, Study(folder)).curves
    last = curves[(curves["split"] == "eval") & (curves["step"] == curves["step"].max())]
    last = last.sort_values("seed").drop_duplicates("context") if one_each else last
    scores = ((last["return_mean"] - last["r_min"]) / (last["r_max"] - last["r_min"])).groupby(last["context"]).mean()
    return sum(weight * scores[context] for context, weight in weights.items())


def test_the_weights_of_a_choice_reach_the_report(tmp_path, monkeypatch):
    folder = tmp_path / "study"
    points = "{choose: kmeans, budget: 3}"
    with monkeypatch.context() as killed:
        killed.setattr("lcd.pipelines.study.diagnose.train_missing", lambda *_: False)
        assert learn(folder, points)[0] != 0
    first = Study(folder).record["point_choices"]
    assert sum(first[TASK]["weights"].values()) == pytest.approx(1)
    assert learn(folder, points)[0] == 0
    assert Study(folder).record["point_choices"] == first
    told = overall(folder)
    assert told == pytest.approx(by_hand(folder))
    assert cli.main(["report", str(folder)]) == 0
    assert overall(folder) == told
    assert cli.main(["verify", str(folder)]) == 0


def test_a_larger_budget_goes_on_from_what_was_scored(tmp_path, monkeypatch):
    folder = tmp_path / "study"
    assert learn(folder, "{choose: quadrature, budget: 2}")[0] == 0
    before = {run.path.name for run in Study(folder).trainings()}
    (chosen,) = Study(folder).record["point_choices"][TASK]["rounds"]
    known = []
    monkeypatch.setattr("lcd.families.choosing.by_quadrature", _noting(known))
    assert learn(folder, "{choose: quadrature, budget: 4}")[0] == 0
    rounds = Study(folder).record["point_choices"][TASK]["rounds"]
    assert rounds[0] == chosen
    assert [len(each) for each in rounds] == [2, 2]
    # Chosen with the scores of the first two; weighed, after training, with those of all four.
    assert [sum(map(np.isfinite, scores)) for scores in known] == [2, 4]
    after = Study(folder).trainings()
    assert before < {run.path.name for run in after}
    assert len(after) == 2
    assert overall(folder) == pytest.approx(by_hand(folder))
    assert learn(folder, "{choose: quadrature, budget: 4}")[1].startswith("All 2 runs of the study")
    with pytest.raises(InputError, match="is less than the 4 points that the study"):
        runs.choices_of(compose("diagnose", [*SMALL, "study.points={choose: quadrature, budget: 3}"]), folder=folder)


def test_points_that_take_turns_go_on_with_the_same_seeds(tmp_path):
    folder, points = tmp_path / "study", "{choose: quadrature, budget: %d, seeds: turns}"
    assert learn(folder, points % 2)[0] == 0
    before = {run.path.name: run.config for run in Study(folder).trainings()}
    assert learn(folder, points % 5)[0] == 0
    after = {run.path.name: run.config for run in Study(folder).trainings()}
    assert before.items() <= after.items()
    agents = [(name, seed) for each in after.values() for name in each["points"] if name for seed in each["seeds"]]
    assert len(agents) == len({name for name, _ in agents}) >= 4
    told = pd.read_csv(folder / "diagnosis" / "tables" / "families.csv").set_index("agent").loc["ppo"]
    assert told["overall"] == pytest.approx(by_hand(folder, one_each=True))
    assert told["overall_low"] <= told["overall"] <= told["overall_high"]
    assert told["seeds"] == 2
    assert cli.main(["verify", str(folder)]) == 0
    for other in (("{choose: quadrature, budget: 5}",), (points % 5, "study.seeds=3")):
        words = [*SMALL, f"study.points={other[0]}", *other[1:]]
        with pytest.raises(InputError, match=r"took turns at the seeds \[0, ?1\], and the further ones would"):
            runs.choices_of(compose("diagnose", words), folder=folder)


def _noting(known):
    """Quadrature that notes which scores it gets."""

    def noting(table, distribution, budget, scores, rng):
        known.append([float(np.mean(score)) for score in scores.values()])
        return by_quadrature(table, distribution, budget, scores, rng)

    return noting
