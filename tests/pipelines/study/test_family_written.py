"""Families that a study writes, of a task or of anybody's environment."""

import types

import gymnasium
import pytest
import yaml
from family_studies import SMALL, WORLD, asked
from point_worlds import OTHER, TASK

from lcd.envs.ctgraph.benchmark import task_knobs
from lcd.envs.errors import InputError
from lcd.envs.families.benchmark import FAMILIES
from lcd.pipelines.study.evaluated import evaluated_by, points_at


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


def test_a_feature_said_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"^study.family has the key 'length' twice: leave one of them out"):
        asked("study.family={env: CartPole-v1, contexts: {length: [1], length: [2]}}")
    (tmp_path / "poles.yaml").write_text("family:\n  env: CartPole-v1\n  contexts:\n    length: [1]\n    length: [2]\n")
    with pytest.raises(InputError, match=r"poles.yaml cannot be read \(it has the key 'length' twice: see line 5\)"):
        asked(f"study={tmp_path / 'poles.yaml'}")
