"""Sweeps that ship are the paper's: their grids, agents, settings and budgets."""

from __future__ import annotations

from functools import cache

import pytest

from lcd.config.budgets import choices
from lcd.config.compose import compose
from lcd.envs.hardness.task_names import parse_task
from lcd.pipelines.kinds.kind import trainings
from lcd.pipelines.study import diagnose
from lcd.pipelines.study.runs import expand

DISCRETE = ("dqn", "rainbow", "a2c")
PICTURES = ("sb3/dqn", "rainbow", "a2c")
CONTINUOUS = ("sb3/ddpg", "sb3/td3", "sb3/sac")
TABULAR = ("tabular/q_learning", "tabular/double_q_learning", "tabular/sarsa")
DELAYS, LENGTHS = (0, 1, 2, 4, 8), (1, 2, 3, 4)
NOISE, REWARD_NOISE = (0, 0.01, 0.02, 0.1, 0.25), (0, 1, 5, 10, 25)
TRANSFORMS = (None, "shift", "scale", "flip", "rotate", ["shift", "scale", "rotate", "flip"])
ORDER = {"action_space_max": (0.1, 0.25, 0.5, 1), "time_unit": (0.01, 0.02, 0.05, 0.1, 0.25)}
SCALES = ([0.8, 1.25], [0.75, 1.3333], [0.6667, 1.5], [0.5, 2])

# Figure -> (experiment, base, grid, agents, seeds); the amounts are those on the axes of the paper's figures.
PAPER = {
    "4a": ("image-transforms", "discrete", {"image_transforms": TRANSFORMS}, PICTURES, 100),
    "4d": ("image-shift-quantisation", "discrete", {"image_sh_quant": (2, 4, 8, 16)}, PICTURES[:1], 100),
    "5a": ("time-unit", "continuous", {"time_unit": (0.1, 0.2, 0.5, 1, 2, 4, 8)}, CONTINUOUS, 100),
    "5c": ("action-range", "continuous", {"action_space_max": (0.1, 0.25, 0.5, 1, 2, 4, 8)}, CONTINUOUS, 100),
    "6a": ("target-radius", "continuous", {"target_radius": (0.05, 0.1, 0.25, 0.5, 1)}, CONTINUOUS, 100),
    "7a": ("transition-noise", "discrete", {"transition_noise": NOISE}, DISCRETE, 100),
    "8a": ("reward-noise", "discrete", {"reward_noise": REWARD_NOISE}, DISCRETE, 100),
    "9a": ("delay", "discrete", {"delay": DELAYS}, DISCRETE, 100),
    "9c": ("sequence-length", "discrete", {"sequence_length": LENGTHS}, DISCRETE, 100),
    "10": ("reward-density", "discrete", {"reward_density": (0.25, 0.5, 0.75)}, DISCRETE, 100),
    "14a": ("irrelevant-dimensions", "continuous", {"state_space_dim": (2, 3, 4, 6, 10)}, CONTINUOUS, 100),
    "14c": (
        "half-cheetah-irrelevant-dimensions",
        "mujoco/HalfCheetah-v5",
        {"irr_state_space_dim": (2, 4, 8, 16, 32)},
        CONTINUOUS[2:],
        5,
    ),
    "15b": ("action-range-time-unit-order-2", "continuous", ORDER, CONTINUOUS, 10),
    "16a": ("rainbow-ablation", "discrete", {"image_transforms": TRANSFORMS}, ("rainbow", "dqn"), (10 * 6, 10)),
    "16b": ("rainbow-ablation-beam-rider", "atari/BeamRider", {"delay": DELAYS}, ("rainbow", "dqn"), (5 * 5, 5)),
    "16 on states": ("rainbow-ablation-states", "discrete", {"delay": DELAYS}, ("rainbow",), 10 * 7),
    "17": ("vanilla", "discrete", {"delay": (0,)}, ("dqn", "a2c"), 100),
    "18a": ("image-scale-range", "discrete", {"image_scale_range": SCALES}, PICTURES[:1], 100),
    "18b": ("image-rotation-quantisation", "discrete", {"image_ro_quant": (2, 4, 9, 18, 36)}, PICTURES[:1], 100),
    "37": ("tabular-transition-noise", "discrete", {"transition_noise": NOISE}, TABULAR, 100),
    "38": ("tabular-reward-noise", "discrete", {"reward_noise": REWARD_NOISE}, TABULAR, 100),
    "39": ("tabular-delay", "discrete", {"delay": DELAYS}, TABULAR, 100),
    "40": ("tabular-sequence-length", "discrete", {"sequence_length": LENGTHS}, TABULAR, 100),
    "41": ("delay-sequence-length", "discrete", {"delay": DELAYS, "sequence_length": LENGTHS}, DISCRETE, 10),
    "43": (
        "transition-reward-noise",
        "discrete",
        {"transition_noise": NOISE, "reward_noise": REWARD_NOISE},
        DISCRETE,
        10,
    ),
    "49a": ("tuning-networks-early", "discrete", {}, ("dqn",), 3 * 12),
    "49c": ("tuning-target", "discrete", {}, ("dqn",), 3 * 15),
    "49e": ("tuning-networks", "discrete", {}, ("dqn",), 3 * 12),
    "appendix F": ("tuning-rates", "discrete", {}, ("dqn",), 3 * 20),
    "48": (
        "transition-noise-target-radius",
        "continuous",
        {"transition_noise": (0, 0.02, 0.1, 0.25, 0.5, 1, 2, 5), "target_radius": (0.1, 0.25, 0.5, 1)},
        CONTINUOUS,
        10,
    ),
}
for _first, _name, _task, _reaches, _units in (
    (34, "half-cheetah", "mujoco/HalfCheetah-v5", (0.1, 0.25, 0.5, 1, 2, 4, 8), (0.2, 0.4, 1, 2, 4)),
    (35, "pusher", "mujoco/Pusher-v5", (0.05, 0.1, 0.25, 0.5, 1, 2, 4), (0.2, 0.4, 1, 2, 4)),
    (36, "reacher", "mujoco/Reacher-v5", (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2), (0.5, 1, 2.5, 5, 10)),
):
    PAPER[f"{_first}a-c"] = (f"{_name}-action-range", _task, {"action_space_max": _reaches}, CONTINUOUS, 5)
    PAPER[f"{_first}d-f"] = (f"{_name}-time-unit", _task, {"time_unit": _units}, CONTINUOUS, 5)
for _dimension, _amounts, _complex, _figures in (
    ("delay", DELAYS, DELAYS, ("table 2", "9b", "11", "30a-c")),
    ("transition_noise", NOISE, NOISE, ("table 3", "7c", "12", "30d-f")),
    ("reward_noise", REWARD_NOISE, (0, 0.01, 0.05, 0.1, 0.25), ("table 4", "8c", "30g-i")),
):
    _name = f"atari-{_dimension.replace('_', '-')}"
    PAPER[_figures[0]] = (_name, "discrete", {_dimension: _amounts}, DISCRETE, 100)
    for _figure, _game in zip(_figures[1:], ("Qbert", "SpaceInvaders", "BeamRider"), strict=False):
        PAPER[_figure] = (_name, f"atari/{_game}", {_dimension: _complex}, DISCRETE, 5)
SHARED = "49b 49d 49f 4b 4c 5b 5d 5e 5f 6b 7b 8b 13 14b 15a 19 20 21 22 23 24 25 26 27 28 29 42 44 45 46 47"
SHARED = {*SHARED.split(), *(f"{game}{part}" for game in (31, 32, 33) for part in ("a-c", "d-f", "g-i"))}
"""Figures that another one's experiment gives too."""
LONG = {"a2c": 150_000}


@pytest.fixture(scope="module")
def known():
    """Name → the study's config."""
    names = [name.removeprefix("hardness/") for name in choices("study") if name.startswith("hardness/")]
    return {name: compose("sweep", [f"experiment={name}"]) for name in names}


@pytest.fixture(scope="module")
def runs_of(known):
    """Name → the configs of the study's runs, which many tests look at."""
    return cache(lambda name: trainings(expand(known[name])))


def test_every_figure_has_a_config(known):
    assert {figure for cfg in known.values() for figure in cfg.study.figures} == set(PAPER) | SHARED


@pytest.mark.parametrize("figure", ["4a", "4d", "16a", "18a", "18b"])
def test_pictures_of_the_papers_figures_are_the_packages(known, figure):
    for run in trainings(expand(known[PAPER[figure][0]])):
        assert run["knobs"]["image_defaults"] == "mdp-playground"
        assert not {"image_size", "image_channels", "image_radius", "image_double_flips"} & set(run["knobs"])


@pytest.mark.parametrize("figure", PAPER)
def test_grids_are_the_papers(known, runs_of, figure):
    name, base, grid, agents, seeds = PAPER[figure]
    assert figure in known[name].study.figures
    runs = [run for run in runs_of(name) if parse_task(run["task"])[0] == base]
    points = {tuple(map(str, (parse_task(run["task"])[1].get(k) for k in grid))) for run in runs}
    axes = [list(amounts) for amounts in grid.values()]
    expected = {tuple(map(str, point)) for point in _products(axes)}
    assert {tuple(map(_number, p)) for p in points} == {tuple(map(_number, p)) for p in expected}
    assert {run["agent"]["name"] for run in runs} == set(agents)
    each = seeds if isinstance(seeds, tuple) else (seeds,) * len(agents)
    for agent, count in zip(agents, each, strict=True):
        own = [run for run in runs if run["agent"]["name"] == agent]
        trained = {(run["task"], run["agent"].get("label"), s) for run in own for s in run["seeds"]}
        assert len(trained) == len(points) * count
        steps = {run["steps"] for run in own}
        if base == "discrete" and figure not in ("17", "16a"):
            assert steps == {LONG.get(agent, 20_000)}
        else:
            long = {"mujoco/HalfCheetah-v5": 3_000_000, "mujoco/Pusher-v5": 500_000, "mujoco/Reacher-v5": 500_000}
            games = 3_000_000 if figure == "16b" else 10_000_000
            own_steps = {"17": 150_000}.get(figure, long.get(base, games if "atari" in base else 20_000))
            assert steps == {own_steps}


AUTHORS = {"learning_rate": 6.25e-5, "adam_eps": 1.5e-4, "start": 20_000, "batch": 32, "epsilon": 0.01, "head": 512}
OF_GAMES = {
    "dqn": {**AUTHORS, "target_every": 8000, "exploration": 0.02, "encoder": "cnn"},
    "rainbow": {**AUTHORS, "target_every": 8000, "n_step": 4, "atoms": 51, "alpha": 0.5, "noisy": False},
    "a2c": {"learning_rate": 1e-4, "copies": 5, "rollout": 10, "value_weight": 2.5, "entropy": 0.01, "encoder": "cnn"},
}


@pytest.mark.parametrize(
    ("name", "of_games"),
    [
        (
            "delay",
            {
                ("Qbert", "dqn"): {"train_every": 4},
                ("Qbert", "rainbow"): {"train_every": 12},
                ("BeamRider", "rainbow"): {"target_every": 2000},
                ("Breakout", "dqn"): {"buffer": 50_000, "target_every": 2000, "train_every": 12},
            },
        ),
        (
            "transition-noise",
            {
                ("SpaceInvaders", "rainbow"): {"epsilon": 0.1},
                ("Qbert", "dqn"): {"epsilon": 0.05, "target_every": 2000},
                ("Breakout", "dqn"): {"train_every": 4},
            },
        ),
        (
            "reward-noise",
            {("BeamRider", "dqn"): {"target_every": 2000}, ("SpaceInvaders", "dqn"): {}, ("BeamRider", "a2c"): {}},
        ),
    ],
)
def test_games_and_the_toy_beside_them_have_agents_of_one_name_with_the_papers_settings(runs_of, name, of_games):
    found = {}
    for run in runs_of(f"atari-{name}"):
        found.setdefault((parse_task(run["task"])[0].rpartition("/")[2], run["agent"]["name"]), []).append(run)
    for (game, agent), own in of_games.items():
        expected = OF_GAMES[agent] | own
        for run in found[game, agent]:
            assert {key: run["agent"][key] for key in expected} == expected
            assert len(run["seeds"]) == 1
    alone = {run["agent"]["name"]: run["agent"] for run in runs_of("delay")}
    for agent in DISCRETE:
        assert all(run["agent"] == alone[agent] for run in found["discrete", agent])
        assert {len(run["seeds"]) for run in found["discrete", agent]} == {50}


def test_beam_riders_rainbows_lack_a_part_each_and_explore_by_it_alone_or_as_dqn_does(runs_of):
    runs = runs_of("rainbow-ablation-beam-rider")
    parts = ("noisy", "double", "dueling", "prioritised", "distributional")
    lacks = [tuple(part for part in parts if not run["agent"].get(part)) for run in runs if "n_step" in run["agent"]]
    assert set(lacks) == {(), ("noisy",), ("double",), ("dueling",), ("prioritised",)}
    explored = {(run["agent"].get("noisy", False), run["agent"]["epsilon"]) for run in runs}
    assert explored == {(True, 0.0), (False, 0.01)}


def test_agents_settings_are_a_tasks_own_and_other_agents_are_as_asked():
    words = ["study.tasks=[hardness/discrete,hardness/atari/Qbert]", "study.seeds=1", "budget=paper"]
    runs = trainings(expand(compose("sweep", ["experiment=atari-delay", "study.agents=[sb3/dqn]", *words])))
    assert {run["agent"]["name"] for run in runs} == {"sb3/dqn"}


def test_as_many_seconds_whatever_the_time_unit(known):
    """MDP Playground's processor of configs divides MuJoCo's total steps, and those between evaluations, by it."""
    plain = trainings(expand(known["half-cheetah-time-unit"]))
    cfg = compose("sweep", ["experiment=half-cheetah-time-unit", "study.steps_by_time_unit=true"])
    found = {
        parse_task(run["task"])[1]["time_unit"]: (run["steps"], run["evaluation"]["every"])
        for run in trainings(expand(cfg))
    }
    assert found == {
        0.2: (15_000_000, 300_000),
        0.4: (7_500_000, 150_000),
        1: (3_000_000, 60_000),
        2: (1_500_000, 30_000),
        4: (750_000, 15_000),
    }
    assert {run["steps"] for run in plain} == {3_000_000}


def _products(axes):
    return [(a, *rest) for a in axes[0] for rest in _products(axes[1:])] if axes else [()]


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def test_every_sweep_has_a_small_variant_or_is_one(known):
    for name in known:
        if not name.startswith("claims-"):
            small = trainings(expand(compose("sweep", [f"experiment={name}", "budget=smoke"])))
            assert sum(run["steps"] * len(run["seeds"]) for run in small) < 8_000_000


def test_the_papers_budget_is_what_the_file_says():
    asked, usual = (expand(compose("sweep", words)) for words in (["experiment=delay", "budget=paper"], []))
    assert [job.config for job in asked] == [job.config for job in usual]


def test_a_short_name_is_a_study():
    whole = compose("diagnose", ["study=hardness/delay", "study.seeds=3", "budget=smoke"])
    assert compose("sweep", ["experiment=delay", "study.seeds=3", "budget=smoke"]) == whole
    assert str(diagnose.default_out(compose("sweep"))) == "studies/hardness-delay"
    assert str(diagnose.default_out(compose("sweep", ["budget=smoke"]))) == "studies/hardness-delay-smoke"
    assert compose("ablate", ["study=shaping"]) == compose("diagnose", ["study=shaping"])
