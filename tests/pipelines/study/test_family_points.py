"""How a study asks for points of a family, and what it makes of them."""

import contextlib
import io
import types

import gymnasium
import numpy as np
import pandas as pd
import pytest
import yaml
from point_worlds import OTHER, TASK, WORLDS
from rich.console import Console

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.ctgraph.benchmark import task_knobs
from lcd.envs.errors import InputError
from lcd.envs.families.benchmark import FAMILIES
from lcd.envs.families.family import Family, grid_family, point_name
from lcd.families.choosing import WAYS, choose_points
from lcd.families.quadrature import by_quadrature
from lcd.pipelines.kinds.kind import Job, trainings
from lcd.pipelines.study import dry_run, runs
from lcd.pipelines.study.configs import population, run_id
from lcd.pipelines.study.evaluated import evaluated_by, points_at
from lcd.pipelines.study.family_points import listed_points, points_asked
from lcd.pipelines.study.family_written import default_as_point
from lcd.pipelines.study.point_choices import Asked, choose
from lcd.pipelines.study.quarantine import read_finished, sort_out
from lcd.pipelines.study.store import FAILED, Study

WORLD = "benchmark=point_worlds:WORLDS"
SMALL = [WORLD, f"study.tasks=[{TASK}]", "study.views=[semantic]", "study.reward_p=[1.0]", "study.seeds=2"]
QUICK = [
    "study.steps=64",
    *(f"study.evaluation.{key}" for key in ("every=64", "copies=2", "episodes=1")),
    "tracker=none",
    "device=cpu",
]
AGENT = ["agent.copies=2", "agent.rollout=16", "agent.minibatches=2", "agent.epochs=1"]
DEFAULT = "{delay: 0, transition_noise: 0.3}"
GRID = grid_family({"far": [0, 1, 2], "near": [0.5, 1.5]}, {"far": 1, "near": 0.5})


def asked(*words, command="diagnose"):
    return trainings(runs.expand(compose(command, words)))


def names(configs):
    return [list(config.get("points", ())) for config in configs]


def test_a_study_trains_the_task_and_the_points_that_it_asks_for():
    everything = [point_name(point) for point in WORLDS.family(TASK).points]
    (config,) = asked(*SMALL, "study.points=all")
    assert list(config["points"]) == ["", *(name for name in everything if name != "delay=0,transition_noise=0.3")]
    assert config["points"][""] == {"delay": 0, "transition_noise": 0.3}
    assert population(config) == 6 * 2
    assert names(asked(*SMALL)) == [[]]
    by_name = "study.points=['transition_noise=0.0,delay=4','delay=0,transition_noise=0.3']"
    assert names(asked(*SMALL, by_name)) == [["", "delay=4,transition_noise=0"]]
    both = [*SMALL, f"study.tasks=[{TASK},{OTHER}]", f"study.points={{{TASK}: 2}}"]
    assert names(asked(*both))[1] == []
    assert len(names(asked(*both))[0]) in (2, 3)  # the task itself may be one of the two


def test_a_run_without_points_stays_what_it_was():
    (before,), (now,) = asked("benchmark=toy", *SMALL[1:]), asked("benchmark=toy", *SMALL[1:], "study.points=null")
    assert run_id(before) == run_id(now)
    assert "points" not in now


def test_whole_numbers_are_the_same_point_however_they_are_written():
    floats = Family(({"a": 1.0},), {"a": 2.0})
    whole = Family(({"a": 1},), {"a": 2})
    assert repr(points_asked("all", "t", floats)) == repr(points_asked("all", "t", whole))


def test_points_are_shared_out_to_runs():
    whole = asked(*SMALL, "study.points=all")[0]["points"]
    split = asked(*SMALL, "study.points=all", "study.points_per_run=4")
    assert [len(each) for each in names(split)] == [4, 2]
    assert {name: point for config in split for name, point in config["points"].items()} == whole
    assert {tuple(config["seeds"]) for config in split} == {(0, 1)}
    alone = asked(*SMALL, "study.points=all", "agent=sb3/dqn")
    assert [len(each) for each in names(alone)] == [1] * 6


def test_a_number_of_points_is_drawn_by_their_distribution():
    family = WORLDS.family(TASK)
    for count in range(1, 6):
        (points,) = points_asked(count, TASK, family)
        assert [points] == points_asked({"choose": "without_replacement", "budget": count}, TASK, family)
        # As studies drew them before there were other ways, so that they go on.
        drawn = np.random.default_rng(0).choice(6, count, replace=False, p=family.distribution)
        assert list(points) == list(
            dict.fromkeys(["", *(family.context_of(family.points[at]) for at in sorted(drawn))])
        )
        assert dict(family.points[5]) not in [dict(point) for point in points.values()]  # it has no weight
    with pytest.raises(InputError, match=r"study.points: 6 is more than the 5 points"):
        points_asked(6, TASK, family)


@pytest.mark.parametrize("way", WAYS)
def test_points_are_chosen_as_the_evaluation_says_and_weigh_what_their_choice_says(way):
    family = WORLDS.family(TASK)
    choice = choose_points(family, 4, way, seed=7)
    chosen = choose(family, Asked(way, 4, 7), "it")
    scores = np.random.default_rng(1).normal(size=6)
    assert sum(weight * scores[place] for place, weight in chosen.weights.items()) == pytest.approx(
        choice.overall(scores)
    )
    (points,) = points_asked({"choose": way, "budget": 4, "seed": 7}, TASK, family)
    assert {*points} == {"", *(family.context_of(family.points[place]) for place in choice.places)}
    assert sum(chosen.record["weights"].values()) == pytest.approx(1)


def test_points_come_from_a_file(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("near,far,why\n0.5,2,hard\n0.25,1,new\n")
    assert listed_points(GRID, str(file)) == [{"far": 2, "near": 0.5}, {"far": 1, "near": 0.25}]
    for text, told in {
        "near\n1\n": "the columns far, near",
        "": "the columns far, near",
        "near,far\n1,x\n": "row 1 has a feature that is no number",
        "near,far\n1,1\n1,nan\n": "row 2 has a feature",
        "near,far\n1\n": "row 1 has a feature",
        "near,far\n1,2,3\n": "row 1 has more cells than there are columns",
        "near,far,near\n1,2,3\n": "has the column near twice",
    }.items():
        file.write_text(text)
        with pytest.raises(InputError, match=told):
            listed_points(GRID, str(file))
    with pytest.raises(InputError, match="cannot be read"):
        listed_points(GRID, str(tmp_path / "none.csv"))
    file.write_text("near,far\n" + "1,1\n" * 100_001)
    with pytest.raises(InputError, match="has more than 100,000 rows"):
        listed_points(GRID, str(file))
    with file.open("wb") as endless:
        endless.truncate(10**12)
    with pytest.raises(InputError, match="it has more than 64,000,000 bytes"):
        listed_points(GRID, str(file))


def test_a_refused_point_is_named_with_the_key_that_asked_for_it(tmp_path):
    (file := tmp_path / "points.csv").write_text("delay,transition_noise\n0,0\n2,7\n")
    with pytest.raises(InputError, match=r"study.points: the point .*noise=7.: transition_noise is 7"):
        asked(*SMALL, f"study.points={file}")


def test_features_within_sections_are_written_with_dots_or_within_their_section():
    words = ["benchmark=ctgraph", "study.views=[semantic]", "study.reward_p=[1.0]"]
    family = "study.family={task: ctgraph/depth-1, contexts: "
    (dotted,) = asked(*words, family + "{graph_shape.d: [1, 2], graph_shape.p: [0.5]}}")
    (nested,) = asked(*words, family + "{graph_shape: {d: [1, 2], p: [0.5]}}}")
    assert dotted == nested
    assert list(dotted["points"]) == ["", *(f"graph_shape.d={d},graph_shape.p=0.5" for d in (1, 2))]
    with pytest.raises(InputError, match=r"study.family.contexts.graph_shape.d=\[1.5\]: graph_shape.d is 1.5"):
        asked(*words, family + "{graph_shape.d: [1.5]}}")
    with pytest.raises(InputError, match=r"study.knobs.graph_shape.p is a feature of ctgraph/depth-1's points"):
        asked(*words, family + "{graph_shape.p: [0.5]}}", "study.knobs.graph_shape.p=0.7")
    # A context of evaluation changes the member's own point, however it is written.
    deeper = {"deeper": {"graph_shape": {"d": 3}}}
    changed = evaluated_by({**dotted, "evaluation": {**dotted["evaluation"], "contexts": deeper}})[-1]
    for features in dotted["points"].values():
        task_knobs("ctgraph/depth-1", changed.at(features))
    assert [point["graph_shape.d"] for point in points_at(dotted, changed)] == [3, 3, 3]


def test_a_study_writes_a_family_of_its_own():
    words = [
        *SMALL[2:],
        "study.family={task: toy/easy-sight-easy-reward, contexts: {delay: [1, 0]}, default: {delay: 0}}",
    ]
    (config,) = asked(*words)
    assert config["benchmark"] == "toy"
    assert [point["delay"] for point in config["points"].values()] == [0, 1]
    (config,) = asked(*words, WORLD)
    assert config["points"]["delay=1,transition_noise=0.3"] == {"delay": 1, "transition_noise": 0.3}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([f"study.points={{{OTHER}: all}}", f"study.tasks=[{OTHER}]"], "is no point of a family"),
        (["study.points={toy/none: all}"], "study.points.toy/none: 'toy/none' is no task that is trained here"),
        (["study.points=0"], "study.points=0 must be all, a number of points"),
        (["study.points={choose: means, budget: 2}"], "study.points.choose=means is no way to choose points"),
        (["study.points={budget: 2}"], "study.points.choose=null is no way"),
        (["study.points={choose: kmeans, budget: 0}"], "study.points.budget=0 must be a whole number of at least 1"),
        (["study.points={choose: kmeans, budget: 7}"], "study.points: 7 is more than the 6 points"),
        (["study.points={choose: kmeans, buget: 2}"], "'buget' is no part of a choice: did you mean 'budget'"),
        (["study.points={choose: kmeans, budget: 2, seed: -1}"], "study.points.seed=-1 must be"),
        (["study.points=true"], "must be all, a number of points"),
        (["study.points=[]"], "must be all, a number of points"),
        (["study.points=[delay]"], "'delay' is no point of the family"),
        (["study.points=all", "study.knobs={delay: 1}"], "study.knobs.delay is a feature of"),
        (["study.family={contexts: {delay: [1]}}"], "must name one env of Gymnasium's or one task"),
        ([f"study.family={{task: {TASK}, env: A, contexts: {{delay: [1]}}}}"], "must name one env"),
        ([f"study.family={{task: {TASK}}}"], "must have env or task, and contexts"),
        ([f"study.family={{task: {TASK}, contexts: {{delay: 1}}}}"], "must be a list of different numbers"),
        ([f"study.family={{task: {TASK}, contexts: {{delay: [1, 1.0]}}}}"], "must be a list of different numbers"),
        ([f"study.family={{task: {TASK}, contexts: {{delay: [yes]}}}}"], "must be a list of different numbers"),
        ([f"study.family={{task: {TASK}, contexts: {{}}}}"], "must be a set of features"),
        (
            [f"study.family={{task: {TASK}, contexts: {{delay: [0, -1]}}}}"],
            r"study.family.contexts.delay=\[0, -1\]: delay",
        ),
        (
            [f"study.family={{task: {TASK}, contexts: {{delay: [1]}}, default: {{delay: -2}}}}"],
            'default={"delay": -2}: ',
        ),
        ([f"study.family={{task: {TASK}, contexts: {{speed: [1]}}}}"], "study.family.default has no speed"),
        ([f"study.family={{task: {TASK}, contexts: {{speed: [1]}}, default: {{speed: 1}}}}"], "no knob 'speed'"),
        ([f"study.family={{task: {TASK}, contexts: {{delay: [1]}}, default: {{speed: 1}}}}"], "default.speed=1"),
        ([f"study.family={{task: {TASK}, contexts: {{seed: [1]}}}}"], "'seed' is no knob"),
        ([f"study.family={{task: {TASK}, contexts: {{delay: [1]}}, default: 5}}"], "study.family.default=5 must be a"),
        (["study.family={env: 'os:system', contexts: {a: [1]}}"], "study.family.env=os:system must name an"),
        ([f"study.family={{task: {TASK}, context: {{delay: [1]}}}}"], "did you mean 'contexts'"),
        ([f"study.family={{task: {OTHER}, contexts: {{delay: [1]}}}}"], "leave one of them out"),
    ],
)
def test_what_is_no_family_or_none_of_its_points_is_refused_in_a_sentence(words, told):
    with pytest.raises(InputError, match=told) as caught:
        asked(*SMALL, *words)
    assert str(caught.value).count(". ") == 0


def test_anybodys_environment_is_a_family_and_says_its_own_default(tmp_path):
    family = {"env": "CartPole-v1", "contexts": {"length": [0.25, 0.5], "gravity": [9.8]}}
    file = tmp_path / "poles.yaml"
    file.write_text(yaml.safe_dump({"family": family, "reward_p": [1.0]}))
    (config,) = asked(f"study={file}")
    assert (config["benchmark"], config["task"]) == ("families", "families/gym:CartPole-v1")
    assert config["points"] == {
        "": {"length": 0.5, "gravity": 9.8},
        "gravity=9.8,length=0.25": {"length": 0.25, "gravity": 9.8},
    }
    for name, told in {"lenth": "did you mean 'length'", "gravity.x": "is no feature of the task"}.items():
        family["contexts"] = {name: [1.0]}
        file.write_text(yaml.safe_dump({"family": family, "reward_p": [1.0]}))
        with pytest.raises(InputError, match=told):
            asked(f"study={file}")
    file.write_text(yaml.safe_dump({"family": {**family, "env": "CartPole-v2000"}}))
    with pytest.raises(InputError, match="CartPole"):
        asked(f"study={file}")


class Arm(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.arm = types.SimpleNamespace(length=1.5)


@pytest.fixture
def arm():
    gymnasium.register("tests/Arm-v0", Arm)
    yield "tests/Arm-v0"
    gymnasium.registry.pop("tests/Arm-v0")


def test_an_attribute_of_an_object_is_a_feature(arm):
    (config,) = asked(f"study.family={{env: {arm}, contexts: {{arm.length: [1.5, 2]}}}}", "study.reward_p=[1.0]")
    assert config["points"] == {"": {"arm.length": 1.5}, "arm.length=2": {"arm.length": 2}}
    made = FAMILIES.make_points(
        config["task"], points=[*config["points"].values()], seeds=[0], copies=1, view="state", split="train"
    )
    assert [env.unwrapped.arm.length for env in made.unwrapped.envs] == [1.5, 2]


def test_what_one_run_asks_for_is_called_by_its_own_key():
    words = ["benchmark=families", "task=families/cartpole", "view=state"]
    for word, told in {
        "points=0": "points=0 must be all",
        "points={families/quad: all}": "points.families/quad: ",
        "task.knobs.length=0.05": "task.knobs.length is a feature of",
    }.items():
        with pytest.raises(InputError, match=rf"^{told}"):
            runs.run_config_from(compose("train", [*words, "points=3", word]))


@pytest.mark.parametrize(
    ("word", "told"),
    {
        "task.knobs.masspole=0": "task.knobs.masspole=0: masspole is 0, but it must be a number from",
        "task.knobs.lenght=1": "task.knobs.lenght=1: There is no knob 'lenght' .*did you mean 'length'",
        "task.knobs={gravity: 1, length: 0}": "task.knobs.length=0: length is 0",
        "task.knobs.length=nan": "task.knobs.length holds nan",
    }.items(),
)
def test_a_bad_feature_is_called_as_the_user_wrote_it(word, told):
    with pytest.raises(InputError, match=rf"^{told}"):
        runs.run_config_from(compose("train", ["task=families/cartpole", "view=state", word]))
    with pytest.raises(InputError, match=rf"^{told.replace('task.', 'study.')}"):
        asked("benchmark=families", "study.tasks=[families/cartpole]", word.replace("task.", "study."))


def test_a_feature_said_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"^study.family has the key 'length' twice: leave one of them out"):
        asked("study.family={env: CartPole-v1, contexts: {length: [1], length: [2]}}")
    (tmp_path / "poles.yaml").write_text("family:\n  env: CartPole-v1\n  contexts:\n    length: [1]\n    length: [2]\n")
    with pytest.raises(InputError, match=r"poles.yaml cannot be read \(it has the key 'length' twice: see line 5\)"):
        asked(f"study={tmp_path / 'poles.yaml'}")


def test_what_stands_in_a_list_or_a_text_is_no_key():
    words = ["study.agent_params={ppo: {gamma: 0.9}, ars: {gamma: 0.8}}", "study.agents=[ppo, 'dqn[gamma=0.9]']"]
    assert compose("diagnose", ["benchmark=families", *words]).study.agent_params["ars"] == {"gamma": 0.8}


@pytest.mark.parametrize(("study", "steps"), {"quad": 2, "pendulum-five": 2, "swimmer": 5}.items())
def test_full_presets_train_as_long_as_the_paper(study, steps):
    configs = asked(f"study=families/{study}", "budget=paper")
    assert {config["steps"] for config in configs} == {steps * 1_000_000}
    assert {config["agent"]["name"] for config in configs} == {"ppo", "trpo", "sb3/td3"}  # figures 3 and 12
    for agent in ("ppo", "trpo", "sb3/td3"):
        assert len({name for each in configs if each["agent"]["name"] == agent for name in each["points"]}) == 5


def test_a_curriculum_has_no_points():
    with pytest.raises(InputError, match="cannot both be trained"):
        runs.run_config_from(compose("train", ["benchmark=toy", f"curriculum=[[{TASK},9],[{OTHER},9]]", "points=all"]))


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


def by_hand(folder):
    """Σ w_i s_i of a study's last scores."""
    weights = Study(folder).record["point_choices"][TASK]["weights"]
    curves = read_finished(folder, Study(folder)).curves
    last = curves[(curves["split"] == "eval") & (curves["step"] == curves["step"].max())]
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


def _noting(known):
    """Quadrature that notes which scores it gets."""

    def noting(table, distribution, budget, scores, rng):
        known.append([float(np.mean(score)) for score in scores.values()])
        return by_quadrature(table, distribution, budget, scores, rng)

    return noting


def test_one_run_trains_points_too():
    words = [WORLD, f"task={TASK}", "view=semantic", "seeds=2"]
    config = runs.run_config_from(compose("train", [*words, "points=all"]))
    (of_study,) = asked(*SMALL, "study.points=all")
    assert config["points"] == of_study["points"]
    assert "points" not in runs.run_config_from(compose("train", words))
    chosen = runs.choices_of_run(compose("train", [*words, "points={choose: quadrature, budget: 3}"]))
    assert sum(chosen[TASK].record["weights"].values()) == pytest.approx(1)
