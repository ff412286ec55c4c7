"""What a run is made of: its agent, its environments, its rollouts, from the run's config."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gymnasium.spaces import Box, Discrete
from gymnasium.vector import VectorEnv
from lightning.pytorch import LightningModule

from lcd.agents import agents, validate
from lcd.agents.curriculum import CurriculumRollouts, TrainedStage
from lcd.agents.evaluate import Evaluator, EveryTask
from lcd.agents.finite import Lost
from lcd.agents.frozen import freeze
from lcd.agents.protocols import LearnsFromFiles, phase_of, ranks_of
from lcd.agents.ranks import ALONE, Ranks
from lcd.agents.rollout import Rollouts
from lcd.config.nested import without
from lcd.envs.benchmarks import get_benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.population import make_points, make_population
from lcd.envs.protocols import KnowsFailures, WithoutNoise, offers
from lcd.frontends import entry
from lcd.pipelines.study.configs import RunConfig, agent_name, agent_of, frontend_name, population
from lcd.pipelines.study.evaluated import Evaluated, Stage, evaluated_by, points_at, stages_of
from lcd.pipelines.study.members import members_of, points_of, seeds_of, trained_by


def build_agent(
    run_config: RunConfig, env: VectorEnv, ranks: Ranks = ALONE, folder: Path | None = None
) -> LightningModule:
    """The agent of a run, its front-end and networks shaped by the environment's spaces.

    Args:
        run_config: the run's.
        env: its training population.
        ranks: the processes that train it; what is made is of this one.
        folder: on whose disk features are kept that do not fit into memory; None: where temporary files lie.
    """
    name, params = agent_of(run_config)
    actions = env.single_action_space
    if not isinstance(actions, Discrete | Box):
        raise InputError(
            f"task={run_config['task']} has the action space {actions}: agent={name} needs a discrete one or a box."
        )
    config, kind = validate(name, params), agents.resolve(name)
    use = entry.use(run_config["frontend"])
    if not (offers(kind, LearnsFromFiles) and kind.learns_from_files):
        use["disk_gb"] = 0.0
    frontend, shape = freeze(
        entry.build(run_config["frontend"]),
        env.single_observation_space,
        copies=env.num_envs,
        # PPG keeps the rollouts of a whole phase.
        steps=population(run_config) * config.copies * config.rollout * phase_of(config),
        **use,
    )
    frontend.folder = folder
    actions = int(actions.n) if isinstance(actions, Discrete) else actions
    if ranks.world > 1:
        config = replace(config, copies=config.copies // ranks.world)
    agent = kind(config, shape, actions, seeds_of(run_config), frontend)
    agent.lost = losable(run_config, ranks.world == 1)
    if ranks.world > 1:
        agent.ranks = ranks
    return agent


def losable(run_config: RunConfig, tolerant: bool = True) -> Lost:
    """The members of a run, of which none has diverged yet; several processes would have to agree on who has."""
    return Lost(seeds_of(run_config), [trained_by(run_config, each) for each in members_of(run_config)], tolerant)


def build_rollouts(run_config: RunConfig, training: Sequence[VectorEnv], agent: LightningModule) -> Rollouts:
    """The run's training data: as many rollouts as its steps, or each stage's, need."""
    config, seeds = agent.config, seeds_of(run_config)
    how = {"length": config.rollout, "gamma": config.gamma, "normalise": config.normalise_rewards}
    steps_each = config.copies * config.rollout * ranks_of(agent).world
    stages = [
        TrainedStage(stage.name, stage.task, env, math.ceil(stage.steps / steps_each))
        for stage, env in zip(stages_of(run_config), training, strict=True)
    ]
    if "curriculum" in run_config:
        return CurriculumRollouts(stages, seeds, agent, **how)
    return Rollouts(stages[0].env, seeds, agent, total=stages[0].rollouts, **how)


def build_environments(
    run_config: RunConfig, copies: int, evaluates: bool = True
) -> tuple[list[VectorEnv], dict[str, list[VectorEnv]]]:
    """The training population of each stage (rewards thinned), and by their split those of each task held out."""
    evaluation = run_config["evaluation"]
    training = [build_environment(run_config, stage, "train", copies) for stage in stages_of(run_config)]
    if not evaluates:
        return training, {}
    splits = {"eval": evaluated_by(run_config)}
    if evaluation.get("noise_free"):
        splits["noise_free"] = [_without_noise(run_config, each) for each in splits["eval"] if each.trained]
    held_out = {
        split: [build_environment(run_config, each, "eval", evaluation["copies"]) for each in of_split]
        for split, of_split in splits.items()
    }
    return training, held_out


def build_evaluators(run_config: RunConfig, held_out: Mapping[str, Sequence[VectorEnv]]) -> dict[str, EveryTask]:
    """What plays the held-out environments of `build_environments`, by their split."""
    seeds = seeds_of(run_config)
    evaluated, evaluation = evaluated_by(run_config), run_config["evaluation"]
    how: dict[str, Any] = {"episodes": evaluation["episodes"], "greedy": evaluation.get("greedy", False)}
    how["measured"] = next(iter(measured_besides(run_config)), None)
    return {
        split: EveryTask(
            # Without noise the trained tasks alone are played, which come first.
            [Evaluator(env, seeds, branch=each.branch, **how) for env, each in zip(envs, evaluated, strict=False)]
        )
        for split, envs in held_out.items()
    }


def measured_besides(run_config: RunConfig) -> tuple[str, ...]:
    """The columns that a run's curve has beside those of any curve."""
    benchmark = get_benchmark(run_config["benchmark"])
    return (benchmark.failure[0],) if offers(benchmark, KnowsFailures) else ()


def _without_noise(run_config: RunConfig, evaluated: Evaluated) -> Evaluated:
    benchmark = get_benchmark(run_config["benchmark"])
    if not offers(benchmark, WithoutNoise):
        name = run_config["benchmark"]
        raise InputError(f"benchmark={name} has no tasks without noise: give study.noise_free=false.")
    made, knobs = benchmark.without_noise(evaluated.made, evaluated.knobs)
    for name, features in points_of(run_config).items():
        if benchmark.without_noise(made, {**features, **knobs}) != (made, {**features, **knobs}):
            raise InputError(f"The point {name} sets the noise itself: give study.noise_free=false.")
    return replace(evaluated, made=made, knobs=knobs)


def build_environment(run_config: RunConfig, stage: Stage | Evaluated, split: str, copies: int) -> VectorEnv:
    """The population of one task: with rewards thinned to train in, or held out with rewards as they are."""
    knobs = dict(stage.knobs)
    # Only benchmarks that have shaping know the knob; it is never on in held-out copies.
    if split == "train" and run_config["shaping"] != "none":
        knobs["shaping"] = run_config["shaping"]
    how: dict[str, Any] = {"seeds": run_config["seeds"], "copies": copies, "view": run_config["view"], "split": split}
    how |= {"reward_p": run_config["reward_p"]}
    benchmark = get_benchmark(run_config["benchmark"])
    if "points" not in run_config:
        return make_population(benchmark, stage.made, **how, **knobs)
    points = points_at(run_config, stage)
    return make_points(benchmark, stage.made, points=points, **how, **without(knobs, points[0]))


def shared_columns(run_config: RunConfig) -> dict[str, list[dict[str, Any]]]:
    """Split → the columns that all rows of what is evaluated and of a member share, in the order of the evaluators."""
    benchmark = get_benchmark(run_config["benchmark"])
    shared = {
        "benchmark": benchmark.name,
        "view": run_config["view"],
        "frontend": frontend_name(run_config),
        "reward_p": run_config["reward_p"],
        "shaping": run_config["shaping"],
        "agent": agent_name(run_config["agent"]),
    }
    rows: dict[str, list[dict[str, Any]]] = {"eval": [], "noise_free": [], "train": []}
    for each in evaluated_by(run_config):
        for member in members_of(run_config):
            r_min, r_max = reward_range(benchmark, each.made, member.seed, each.at(member.features))
            context = member.point if each.trained else each.context
            named = {"task": each.task, "context": context, "seed": member.seed}
            named["trained_on"] = trained_by(run_config, member)
            for split in rows if each.trained else ("eval",):
                # What is not known stays empty in the file.
                ranged = {name: None if math.isnan(x) else x for name, x in (("r_min", r_min), ("r_max", r_max))}
                rows[split].append({**shared, **named, **ranged})
    return rows
