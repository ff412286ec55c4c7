"""The kind `train`: an agent learns a task under one condition, for some seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from lcd.curves.names import evaluated_name
from lcd.pipelines.kinds.kind import Kind, Scale
from lcd.pipelines.study.configs import AgentEntry, RunConfig, agent_name, condition, population, task_name
from lcd.pipelines.study.evaluated import Evaluated, evaluated_by, stages_of
from lcd.pipelines.study.members import alone, members_of, points_of
from lcd.pipelines.study.promise import Promise, evaluation_steps

UNIT = 512
"""Steps between updates of agents that have no rollouts."""
SAMPLE_BYTES = 40
"""A step in a rollout: rewards, bootstrapped values, log-probabilities, values, an action, whether it counts."""
COPY_BYTES = 512
"""An environment copy: its part of the draws that are made at once."""
SHORT_ROLLOUT = 16
FAR_MORE = 1.25
"""Times the steps asked for that whole updates may take without a word."""
LEARNING_LATE = ("dqn", "rainbow", "sac", "td3", "traffic/mplight", "traffic/mplight_star")
LEARNING_LATE_SB3 = ("sb3/dqn", "sb3/qrdqn", "sb3/sac", "sb3/td3", "sb3/ddpg")
"""Agents that only collect for some steps: ours for `start`, the library's for the parameter `learning_starts`."""


def label(config: RunConfig) -> str:
    """A run's condition as a reader names it."""
    points = config.get("points")
    task = f"{task_name(config)} ({len(points)} points)" if points else task_name(config)
    parts = [task, config["view"], f"p={config['reward_p']:g}", agent_name(config["agent"])]
    usual = {"identity", "none"}
    parts += [name for name in (config["frontend"]["name"], config["shaping"]) if name not in usual]
    return "  ".join(parts)


def promise(config: RunConfig) -> Promise:
    """What a training's curve will hold."""
    named, evaluated = condition(config), evaluated_by(config)
    shared = {name: named[name] for name in ("view", "frontend", "reward_p", "shaping", "agent")}
    points = list(points_of(config))
    return Promise(
        promised_steps(config),
        [_task(config, point, each) for each in evaluated for point in points],
        config["seeds"],
        ("eval", "noise_free") if config["evaluation"].get("noise_free") else ("eval",),
        elsewhere={_task(config, point, each) for each in evaluated if not each.trained for point in points},
        numbers=("return_mean", "r_min", "r_max"),
        may_lack=("r_min", "r_max"),
        shared=shared,
        varying={
            "stage": [stage.name for stage in stages_of(config)],
            "trained_on": dict.fromkeys(evaluated_name(named["task"], point) for point in points),
            "task": list(dict.fromkeys(each.task for each in evaluated)),
            "context": dict.fromkeys([*points, *(each.context for each in evaluated if not each.trained)]),
        },
    )


def _task(config: RunConfig, point: str, evaluated: Evaluated) -> tuple[str, str]:
    """What is trained on a point, and what it is evaluated on."""
    name = evaluated_name(evaluated.task, point if evaluated.trained else evaluated.context)
    return evaluated_name(task_name(config), point), name


def promised_steps(config: RunConfig) -> list[int]:
    """The steps at which a training is evaluated; the last of them is the least at which it may end."""
    each, ends, end = iteration(config["agent"]), [], 0
    stages = config.get("curriculum", [config])
    for stage in stages:
        end += math.ceil(int(stage["steps"]) / each) * each
        ends.append(end)
    *inner, last = evaluation_steps(ends, int(config["evaluation"]["every"]), each)
    # A library trains for as long as its own iterations take.
    return [*inner, last if len(stages) > 1 else int(config["steps"])]


def rounded_up(config: RunConfig) -> str:
    """What is to be known of steps that are far fewer than an update takes; "" where they are not."""
    steps, agent = int(config["steps"]), config["agent"]
    trained = math.ceil(steps / iteration(agent)) * iteration(agent)
    if trained <= FAR_MORE * steps:
        return ""
    return (
        f"{steps:,} steps become {trained:,}, because an update of {agent_name(agent)} takes {agent['copies']} copies "
        f"x {agent['rollout']} steps: agent.copies= and agent.rollout= make it less."
    )


def iteration(agent: AgentEntry) -> int:
    """Steps of one seed in a rollout, of agents that have some."""
    return int(agent.get("copies", 1)) * int(agent.get("rollout", 1))


def unit_steps(config: RunConfig) -> int:
    """Steps of one seed between two updates."""
    return iteration(config["agent"]) if "rollout" in config["agent"] else UNIT


def evaluations(config: RunConfig) -> int:
    """Evaluations of a training, those at both ends included; there is at most one a rollout."""
    periods = math.ceil(config["steps"] / config["evaluation"]["every"])
    rollouts = math.ceil(config["steps"] / unit_steps(config))
    return 1 + (min(periods, rollouts) if "rollout" in config["agent"] else periods)


def rollout_bytes(config: RunConfig) -> int:
    """The least that an agent's rollouts take, or where it has none its environment copies."""
    agent = config["agent"]
    copies, rollout = agent.get("copies", 1), agent.get("rollout")
    if isinstance(rollout, int):
        return population(config) * copies * rollout * SAMPLE_BYTES
    # Such agents may train their seeds one by one.
    return copies * COPY_BYTES


def held_out_bytes(config: RunConfig) -> int:
    """The least that the held-out copies take."""
    return population(config) * config["evaluation"]["copies"] * COPY_BYTES


def is_config(config: Mapping[str, Any]) -> bool:
    """Whether what a file holds can be a training's config."""
    texts, parts = ("task", "view", "shaping"), ("knobs", "frontend", "agent", "evaluation")
    number = config.get("reward_p")
    return (
        all(isinstance(config.get(key), str) for key in texts)
        and all(isinstance(config.get(key), dict) for key in parts)
        and isinstance(number, int | float)
        and all(isinstance(config[part].get("name"), str) for part in ("frontend", "agent"))
        and all(isinstance(config[part].get("label") or "", str) for part in ("frontend", "agent"))
        and _are_points(config.get("points", {"": {}}))
    )


def _are_points(points: Any) -> bool:
    """Whether what a file holds can be points by their names."""
    return (
        isinstance(points, dict)
        and bool(points)
        and all(isinstance(name, str) and isinstance(point, dict) for name, point in points.items())
        and len({frozenset(point) for point in points.values()}) == 1
        and all(isinstance(value, int | float) for point in points.values() for value in point.values())
    )


def scaled_down(config: RunConfig) -> tuple[RunConfig, Scale]:
    """The training with one seed, short rollouts and one episode an evaluation, a short one if that can be.

    A population of points, or of what learns from a memory, stays as large as it is: it takes far less than as many
    times what one of it takes.
    """
    agent: AgentEntry = {**config["agent"]}
    whole = ("points" in config and "rollout" in agent) or agent["name"] in LEARNING_LATE
    members = 1 if whole else population(config)
    share = float(members)
    rollout, samples = agent.get("rollout", 0), int(agent.get("copies", 1)) * SHORT_ROLLOUT
    if rollout > SHORT_ROLLOUT and samples % int(agent.get("minibatches", 1)) == 0:
        share *= rollout / SHORT_ROLLOUT
        agent["rollout"] = SHORT_ROLLOUT
    evaluation = config["evaluation"]
    knobs, times = _short_episodes(config)
    # Copies play side by side: what they take together is between what one takes and as many times that.
    played = evaluation["copies"] * evaluation["episodes"] * members * times
    small: RunConfig = {
        **config,
        "agent": agent,
        "knobs": knobs,
        "evaluation": {**evaluation, "copies": 1, "episodes": 1},
    }
    return small if whole else alone(small, members_of(config)[0]), Scale(unit=share, evaluation=played, size=members)


def _short_episodes(config: RunConfig) -> tuple[dict[str, Any], float]:
    """The knobs of a run's task with episodes for a trial, and how many times as long its own are."""
    from lcd.envs.benchmarks import get_benchmark
    from lcd.envs.protocols import ShortEpisodes, offers

    benchmark = get_benchmark(config["benchmark"])
    if "curriculum" in config or not offers(benchmark, ShortEpisodes):
        return dict(config["knobs"]), 1.0
    return benchmark.short_episodes(config["task"], config["knobs"])


def shortened(config: RunConfig, units: int, every: int) -> RunConfig:
    """The training of so many units, of a curriculum its first stage, evaluated every so many units."""
    unit = unit_steps(config)
    short: RunConfig = {**config, "steps": units * unit, "evaluation": {**config["evaluation"], "every": every * unit}}
    if stages := short.pop("curriculum", None):
        short |= {"task": stages[0]["task"], "knobs": stages[0]["knobs"]}
    short["agent"] = _learning_at_once(config["agent"])
    return short


def _learning_at_once(agent: AgentEntry) -> AgentEntry:
    """An agent that does from the first steps on what it does of a long training in nearly all of them."""
    entry: dict[str, Any] = {**agent}
    if "phase" in entry:
        # As many auxiliary passes for each rollout as in the long run.
        entry["phase"] = 1
    if entry["name"] in LEARNING_LATE:
        entry["start"] = 1
    if entry["name"] in LEARNING_LATE_SB3:
        entry["params"] = {**entry.get("params", {}), "learning_starts": 0}
    return cast(AgentEntry, entry)


TRAINING = Kind(
    work="lcd.pipelines.jobs.train:train_run",
    label=label,
    is_config=is_config,
    promise=promise,
    condition=condition,
    shared=True,
    least_memory=lambda config: rollout_bytes(config) + held_out_bytes(config),
    unit_steps=unit_steps,
    evaluations=evaluations,
    scaled_down=scaled_down,
    shortened=shortened,
)
