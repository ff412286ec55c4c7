"""How a study asks for points of a family."""

import numpy as np
import pandas as pd
import pytest
from family_studies import SMALL, WORLD, asked, names
from point_worlds import OTHER, TASK, WORLDS

from lcd.config.compose import compose
from lcd.curves.names import evaluated_name
from lcd.envs.errors import InputError
from lcd.envs.families.benchmark import FAMILIES
from lcd.envs.families.family import Family, grid_family, point_name
from lcd.envs.families.random_returns import random_return
from lcd.families.choosing import WAYS, choose_points
from lcd.pipelines.study import runs
from lcd.pipelines.study.configs import population, run_id
from lcd.pipelines.study.family_points import listed_points, points_asked
from lcd.pipelines.study.point_choices import Asked, choose
from lcd.pipelines.study.point_weights import own_seeds, weighed

GRID = grid_family({"far": [0, 1, 2], "near": [0.5, 1.5]}, {"far": 1, "near": 0.5})


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


def test_points_take_turns_at_seeds_and_the_task_itself_has_all():
    words = [*SMALL[:-1], "study.seeds=[3,5,8]", "study.points={choose: quadrature, budget: 5, seeds: turns}"]
    configs = asked(*words)
    own, turns = configs[0], configs[1:]
    assert (list(own["points"]), own["seeds"]) == ([""], [3, 5, 8])
    assert sorted(config["seeds"] for config in turns) == [[3], [5], [8]]
    trained = [name for config in turns for name in config["points"]]
    chosen = runs.choices_of(compose("diagnose", words))[TASK]
    assert sorted(trained) == sorted(chosen.own_seeds)
    (in_order,) = chosen.record["rounds"]
    assert len(trained) == len(set(trained)) == 5 - ("" in in_order)
    # What was chosen one after the other has one seed after the other.
    for place, name in enumerate(in_order):
        assert not name or chosen.own_seeds[name] == (3, 5, 8)[place % 3]
    by_run = asked(*words, "study.points_per_run=1")
    assert {len(config["points"]) for config in by_run} == {1}
    assert len(by_run) == len(trained) + 1


def test_of_points_that_take_turns_the_agents_of_their_turn_count():
    names, turns = ["near=1", "near=2", "near=3"], [4, 6]
    agents = [("near=1", 4), ("near=1", 6), ("near=2", 6), ("near=3", 6), ("near=9", 5), ("", 4), ("", 6)]
    curves = pd.DataFrame(agents, columns=["context", "seed"]).assign(
        benchmark="b", task=TASK, trained_on=[evaluated_name(TASK, name) for name, _ in agents], view="state",
        frontend="identity", reward_p=1.0, shaping="none", agent="ppo",
    )  # fmt: skip
    choice = {"turns": turns, "rounds": [names[:1], ["", *names[1:]]], "weights": dict.fromkeys(names, 1 / 3)}
    assert own_seeds(choice) == {"near=1": 4, "near=2": 4, "near=3": 6}
    kept = weighed(curves, {"point_choices": {TASK: choice}})
    # One that has no agent of its turn keeps those that it has.
    assert list(zip(kept["context"], kept["seed"], strict=True)) == [agents[0], *agents[2:]]
    assert len(weighed(curves, {"point_choices": {"another": choice}})) == len(agents)
    for junk in ("abc", [], None, [1.5], [True], {"a": 1}, [[4]]):
        assert own_seeds(choice | {"turns": junk}) == {}
        assert len(weighed(curves, {"point_choices": {TASK: choice | {"turns": junk}}})) == len(agents)
    for junk in ("abc", [], None, [1], ["near=1"], {"a": 1}):
        assert own_seeds(choice | {"rounds": junk}) == {}
    assert own_seeds(choice | {"rounds": [[3, ["near=1"], {}]]}) == {}


@pytest.mark.parametrize(
    ("command", "points", "told"),
    [
        ("diagnose", "study.points={choose: kmeans, budget: 2, seeds: some}", "study.points.seeds=some must be all"),
        ("diagnose", "study.points={choose: kmeans, budget: 2, seeds: 3}", "study.points.seeds=3 must be all or turns"),
        ("train", "points={choose: kmeans, budget: 2, seeds: turns}", "points.seeds=turns: one run has all seeds"),
    ],
)
def test_turns_that_cannot_be_taken_are_refused(command, points, told):
    words = SMALL if command == "diagnose" else [WORLD, f"task={TASK}", "view=semantic"]
    make = runs.expand if command == "diagnose" else runs.run_config_from
    with pytest.raises(InputError, match=told):
        make(compose(command, [*words, points]))


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


def test_quadrature_alone_is_told_what_a_random_agent_returns_at_each_point():
    words = ["study=families/pendulum", "study.agents=[ppo]"]
    chosen = runs.choices_of(compose("diagnose", [*words, "study.points={choose: quadrature, budget: 5}"]))
    (found,) = chosen.values()
    returns = [random_return("families/pendulum", point) for point in found.family.points]
    assert found.beforehand[:, 0].tolist() == returns
    assert len({round(mean) for mean in returns}) > 90
    (other,) = runs.choices_of(compose("diagnose", [*words, "study.points=5"])).values()
    assert other.beforehand is None


def test_a_curriculum_has_no_points():
    with pytest.raises(InputError, match="cannot both be trained"):
        runs.run_config_from(compose("train", ["benchmark=toy", f"curriculum=[[{TASK},9],[{OTHER},9]]", "points=all"]))


def test_one_run_trains_points_too():
    words = [WORLD, f"task={TASK}", "view=semantic", "seeds=2"]
    config = runs.run_config_from(compose("train", [*words, "points=all"]))
    (of_study,) = asked(*SMALL, "study.points=all")
    assert config["points"] == of_study["points"]
    assert "points" not in runs.run_config_from(compose("train", words))
    chosen = runs.choices_of_run(compose("train", [*words, "points={choose: quadrature, budget: 3}"]))
    assert sum(chosen[TASK].record["weights"].values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("study", "methods", "points"),
    [
        ("cartpole", "ppo trpo dqn ars", 577),  # whose default is none of the 576
        ("cartpole-carl", "ppo trpo dqn ars", 145),
        ("pendulum", "ppo trpo sac td3", 180),
        ("mountain-car", "ppo trpo sac td3", 36),
    ],
)
def test_a_study_of_a_family_trains_the_papers_methods_on_all_of_its_points(study, methods, points):
    configs = asked(f"study=families/{study}")
    assert {config["task"] for config in configs} == {f"families/{study}"}
    for method in methods.split():
        mine = [config for config in configs if config["agent"]["name"] == method]
        assert len({name for config in mine for name in config["points"]}) == points
        assert {len(config["seeds"]) for config in mine} == {3}
    assert len({config["agent"]["name"] for config in configs}) == 4


def test_carls_cartpoles_are_the_different_ones_of_the_papers_grid():
    points = [point for config in asked("study=families/cartpole-carl") for point in config["points"].values()]
    family = FAMILIES.family("families/cartpole-carl")
    alike = {tuple(value for name, value in sorted(point.items()) if name != "masscart") for point in family.points}
    assert {tuple(value for name, value in sorted(point.items()) if name != "masscart") for point in points} >= alike
    assert len(alike) == len(family.points) / 4 == 144


@pytest.mark.parametrize(("budget", "points"), [("cpu", (8, 4, 8)), ("paper", (180, 120, 36))])
def test_the_suite_of_table_6_has_each_tasks_own_settings(budget, points):
    configs = asked("study=families/three-tasks", f"budget={budget}")
    for task, count in zip(
        ("pendulum", "half-cheetah", "mountain-car"), points,
        strict=True,
    ):  # fmt: skip
        own = asked(f"study=families/{task}")
        for agent in ("ppo", "trpo", "sac", "td3"):
            mine = [each for each in configs if (each["task"], each["agent"]["name"]) == (f"families/{task}", agent)]
            assert len({name for each in mine for name in each["points"]} - {""}) in (count, count - 1)
            settings = [{k: v for k, v in each["agent"].items() if k != "label"} for each in mine]
            same = next(each["agent"] for each in own if each["agent"]["name"] == agent)
            assert settings[0] == {k: v for k, v in same.items() if k != "label"}
            assert {each["agent"].get("label") for each in mine} == {None}  # one name on all three tasks
    if budget == "paper":
        assert {each["steps"] for each in configs if each["task"] == "families/half-cheetah"} == {2_000_000}
