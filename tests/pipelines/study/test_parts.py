"""Studies of several parts: which runs they make, what is left out, what is refused."""

import itertools
import json

import pytest

from lcd.config.compose import compose
from lcd.envs.errors import InputError
from lcd.frontends import frontends
from lcd.frontends.identity import Identity
from lcd.pipelines.kinds.kind import trainings
from lcd.pipelines.study import diagnose, runs
from lcd.pipelines.study.configs import canonical, condition, run_id

TOY = "study.tasks=[toy/easy-sight-easy-reward]"
DIM = "dim"


class Dim(Identity):
    """A front-end with a knob."""

    def __init__(self, turned: str = "none") -> None:
        super().__init__()


@pytest.fixture(autouse=True)
def known_frontend(monkeypatch):
    monkeypatch.setitem(frontends._built_in, DIM, Dim)


def conditions(*overrides):
    found = trainings(runs.expand(compose("diagnose", overrides)))
    names = ("task", "view", "reward_p", "shaping")
    return [(*(c[n] for n in names), c["agent"]["name"], c["frontend"]["name"]) for c in found]


def test_a_study_without_parts_is_the_same_as_ever():
    """The ids of runs and the folders of studies that exist already."""
    configs = trainings(runs.expand(compose("diagnose", ["budget=smoke", TOY, "study.seeds=[0]"])))
    assert list(configs[0]) == [
        "kind", "benchmark", "task", "knobs", "view", "frontend", "reward_p", "shaping", "agent", "seeds", "steps",
        "evaluation",
    ]  # fmt: skip
    assert str(diagnose.default_out(compose("diagnose", ["budget=smoke"]))) == "studies/toy-lcd-smoke"


def test_parts_are_crosses_that_default_to_the_studys_own():
    parts = "study.parts=[{},{agents:[recurrent_ppo],views:[pixels],reward_p:[1]}]"
    found = conditions(TOY, parts, "study.views=[pixels,semantic]", "study.reward_p=[1,0.5]")
    task = "toy/easy-sight-easy-reward"
    assert found == [
        (task, "pixels", 1.0, "none", "ppo", "identity"),
        (task, "semantic", 1.0, "none", "ppo", "identity"),
        (task, "semantic", 0.5, "none", "ppo", "identity"),
        (task, "pixels", 1.0, "none", "recurrent_ppo", "identity"),
    ]


def test_what_two_parts_share_is_trained_once():
    whole = conditions(TOY)
    assert conditions(TOY, "study.parts=[{},{views:[semantic]}]") == whole
    cfg = compose("diagnose", [TOY, "study.parts=[{},{views:[semantic]}]"])
    ids = [run_id(config) for config in trainings(runs.expand(cfg))]
    assert ids == [run_id(config) for config in trainings(runs.expand(compose("diagnose", [TOY])))]


def test_the_full_cross_is_made():
    found = conditions(TOY, "study.agents=[ppo,recurrent_ppo]", f"study.frontends=[identity,{DIM}]")
    assert len(found) == len(set(found)) == 2 * 2 * 6
    assert {c[4:] for c in found} == set(itertools.product(("ppo", "recurrent_ppo"), ("identity", DIM)))


def test_agents_and_frontends_of_parts_take_their_own_knobs():
    knobs = ["study.agent_params={recurrent_ppo:{gamma:0.5}}", f"study.frontend_params={{{DIM}:{{turned:left}}}}"]
    cfg = compose(
        "diagnose", [TOY, "study.agents=[ppo,recurrent_ppo]", f"study.frontends=[{DIM}]", "agent.gamma=0.7", *knobs]
    )
    gammas = {config["agent"]["name"]: config["agent"]["gamma"] for config in trainings(runs.expand(cfg))}
    assert gammas == {"ppo": 0.7, "recurrent_ppo": 0.5}
    assert {config["frontend"]["name"] for config in trainings(runs.expand(cfg))} == {DIM}
    assert {config["frontend"]["turned"] for config in trainings(runs.expand(cfg))} == {"left"}


def test_an_agents_settings_are_an_axis():
    names = ["ppo", "ppo[rollout=32]", "ppo[rollout=32,gamma=5e-1]", "sb3/dqn[params.exploration_fraction=1.0]"]
    words = ["study.views=[semantic]", "study.reward_p=[1]", "study.evaluation.greedy=true", "agent.width=32"]
    cfg = compose("diagnose", [TOY, f"study.agents={json.dumps(names)}", *words])
    cfg.study.steps = {"ppo[rollout=32]": 7, "default": 5}
    found = {condition(config)["agent"]: config for config in trainings(runs.expand(cfg))}
    assert list(found) == names
    agents = [config["agent"] for config in found.values()]
    assert [(each["rollout"], each["gamma"], each["width"]) for each in agents[:3]] == [
        (16, 0.8, 32), (32, 0.8, 32), (32, 0.5, 32),
    ]  # fmt: skip
    assert agents[3]["params"]["exploration_fraction"] == 1.0
    assert [config["steps"] for config in found.values()] == [5, 7, 5, 5]
    assert "label" not in agents[0], "an agent as it is keeps its run's id"
    assert all(config["evaluation"]["greedy"] is True for config in found.values())


@pytest.mark.parametrize(
    "name",
    [
        "ppo[rollout]",
        "ppo[name=x]",
        "ppo[nosuch=1]",
        "ppo[rollout=x]",
        "nosuch[a=1]",
        "ppo[rollout=*x]",
        "ppo[rollout={]",
        "ppo[a..b=1]",
        "ppo[rollout.x=1]",
        "ppo[=1]",
        "ppo[width=${oc.env:HOME}]",
    ],
)
def test_wrong_settings_of_an_agent_are_refused(name):
    cfg = compose("diagnose", [TOY, f"study.agents={json.dumps([name])}"])
    with pytest.raises(InputError):
        runs.expand(cfg)


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ([], {"ppo": 200_000_000, "ppg": 100_000_000}),
        (["study.steps=200000000"], {"ppo": 200_000_000, "ppg": 200_000_000}),
        (["study.steps=100000000"], {"ppo": 100_000_000, "ppg": 100_000_000}),
        (["study.steps={ppg: 7}"], {"ppo": 200_000_000, "ppg": 7}),
        (["study.steps={ppg: 7, default: 5}"], {"ppo": 5, "ppg": 7}),
        (["budget=smoke"], {"ppo": 4096, "ppg": 4096}),
        (["budget=smoke", "study.steps=200000000"], {"ppo": 200_000_000, "ppg": 200_000_000}),
    ],
)
def test_an_agent_is_trained_for_the_steps_that_are_said_or_else_for_its_own(words, steps):
    asked = ["benchmark=procgen", "study.tasks=[procgen/heist]", "study.agents=[ppo,ppg]"]
    found = trainings(runs.expand(compose("diagnose", [*asked, *words])))
    assert {(config["agent"]["name"], config["steps"]) for config in found} == set(steps.items())


def test_shaping_is_crossed_where_the_benchmark_has_it():
    cfg = ["benchmark=procgen", "study=shaping", "study.steps=64"]
    found = conditions(*cfg)
    assert {(c[0], c[3]) for c in found} == {
        (f"procgen/{game}", shaping) for game in ("heist", "leaper", "maze") for shaping in ("none", "subgoals")
    }
    assert {c[1:3] for c in found} == {("semantic", 1.0)}


def test_an_optional_part_is_left_out_where_the_benchmark_lacks_it():
    part = "{shapings:[subgoals],views:[semantic],reward_p:[1]"
    assert conditions(TOY, f"study.parts=[{{}},{part},optional:true}}]") == conditions(TOY)
    with pytest.raises(InputError, match=r"study.parts\[1\].shapings: 'subgoals' is not in the benchmark 'toy'"):
        conditions(TOY, f"study.parts=[{{}},{part}}}]")
    with pytest.raises(InputError, match="has no runs on the benchmark 'toy'"):
        conditions(TOY, f"study.parts=[{part},optional:true}}]")


def test_no_frontends_are_no_runs_of_that_part():
    parts = "study.parts=[{frontends:[identity]},{views:[pixels],reward_p:[1]}]"
    assert conditions(TOY, parts, "study.frontends=[]") == conditions(TOY)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["study.parts=[3]"], r"study.parts\[0\]=3 must be a set of keys"),
        (["study.parts=[{agent:ppo}]"], "study.parts.0..agent is no key of a part: did you mean 'agents'"),
        (["study.parts=[{agents:ppo}]"], "must be a list of names"),
        (["study.parts=[{reward_p:[2]}]"], r"must lie in \(0, 1\]"),
        (["study.parts=[{views:[pixels]}]"], "needs the semantic view"),
        (["study.parts=[{optional:7}]"], "must be true or false"),
        (["study.agents=[ppo,ppo]"], "names 'ppo' twice"),
        (["study.agents=[pppo]"], "agent=pppo is unknown: did you mean 'ppo'"),
        (["study.agent_params={ppo:3}"], "must be a set of keys"),
        (["study.frontend_params={identity:{depth:3}}"], "no knob of 'identity'"),
        (["benchmark=procgen", "study=shaping", "study.tasks=[procgen/ninja]"], "none of the study's tasks has it"),
    ],
)
def test_a_part_that_cannot_be_is_one_sentence(overrides, sentence):
    with pytest.raises(InputError, match=sentence) as mistake:
        trainings(runs.expand(compose("diagnose", overrides)))
    assert "\n" not in str(mistake.value)


def test_lcd_ablate_is_lcd_diagnose_with_another_study():
    cfg = compose("ablate")
    assert (cfg.study.name, cfg.study.frontends, cfg.study.views) == ("frontend", ["identity", "flow"], ["pixels"])
    assert compose("ablate", ["study=shaping"]).study.shapings == ["none", "subgoals"]


@pytest.mark.parametrize("agent", ["ppo", "tabular/q_learning"])
def test_seeds_are_shared_out_among_runs_whatever_the_agent(agent):
    words = [f"agent={agent}", "study.seeds=5"]
    configs = trainings(runs.expand(compose("diagnose", ["budget=smoke", TOY, *words, "study.seeds_per_run=2"])))
    together = trainings(runs.expand(compose("diagnose", ["budget=smoke", TOY, *words])))
    assert {tuple(config["seeds"]) for config in together} == {(0, 1, 2, 3, 4)}
    assert len(configs) == 3 * len(together)
    for first in range(0, len(configs), 3):
        assert [config["seeds"] for config in configs[first : first + 3]] == [[0, 1], [2, 3], [4]]
        assert len({canonical({**config, "seeds": None}) for config in configs[first : first + 3]}) == 1
