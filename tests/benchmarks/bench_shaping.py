"""Do agents that are paid for sub-goals hoard them in place of finishing? Shaped and plain ones, trained and watched.

PPO learns a few levels of a game on the semantic view, with and without reward for sub-goals. Then both play, on the
levels of training and on others, in an environment that counts sub-goals. Whoever hoards finishes less often, or later,
with more sub-goals in the episodes that it finishes.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lcd.agents.stepping import Stepper
from lcd.envs.benchmarks import get_benchmark
from lcd.files.atomic import sha256_of
from lcd.pipelines.jobs.players import RandomPolicy, load_policy
from lcd.pipelines.study import store

VIEW = "semantic"
ELSEWHERE = 100_000
"""Where the levels begin that nobody was trained on; sub-goals are counted on the split `train` alone."""
SMALL = ("agent.copies=32", "agent.rollout=64", "agent.width=64", "agent.gamma=0.999")


def train(folder: Path, shaping: str, options: argparse.Namespace) -> store.Training:
    """The run of agents that learn with a shaping; what is trained already is kept."""
    knobs = f"{{mode: {options.mode}, num_levels: {options.levels}}}"
    command = [sys.executable, "-m", "lcd.cli", "train", f"task=procgen/{options.game}", "agent=ppo_cpu",
               f"view={VIEW}", f"task.knobs={knobs}", f"shaping={shaping}", f"seeds={options.seeds}",
               f"steps={options.steps}", *SMALL,
               f"evaluation.every={options.steps}", "evaluation.copies=16", "tracker=none", "device=cpu",
               f"out={folder}"]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(run for run in store.Study(folder).trainings() if run.config["shaping"] == shaping)


def episodes(
    player: Any, copies: int, seeds: int, each: int, split: str, options: argparse.Namespace
) -> Iterator[dict]:
    """As many episodes of every copy, told one by one: what it paid, its sub-goals, its steps.

    Args:
        player: from an environment to a policy.
        copies: of each seed.
        seeds: how many agents play.
        each: episodes of a copy.
        split: the levels of training (train), or others (eval).
        options: the game and its levels.
    """
    levels = {"num_levels": options.levels} if split == "train" else {"num_levels": 0, "start_level": ELSEWHERE}
    knobs = {"mode": options.mode, "shaping": "subgoals"} | levels
    task = f"procgen/{options.game}"
    env = get_benchmark("procgen").make_vec(task, view=VIEW, split="train", num_envs=copies * seeds, seed=17, **knobs)
    policy, stepper = player(env), Stepper(env)
    observations = stepper.reset(seed=17)
    policy.begin(copies * seeds)
    paid, steps, left = np.zeros(copies * seeds), np.zeros(copies * seeds), np.full(copies * seeds, each)
    while left.any():
        step = stepper.step(policy(observations))
        policy.stepped(step)
        observations = step.observations
        paid += step.rewards - step.infos["original_reward"]
        steps += 1
        for copy in np.flatnonzero(step.dones):
            if left[copy]:
                left[copy] -= 1
                yield {"seed": copy // copies, "return": step.infos["original_return"][copy],
                       "paid": paid[copy], "steps": steps[copy]}  # fmt: skip
            paid[copy] = steps[copy] = 0
    env.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", choices=("maze", "leaper", "heist"), default="maze")
    parser.add_argument("--mode", default="easy")
    parser.add_argument("--levels", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40_960)
    parser.add_argument("--episodes", type=int, default=4, help="of each of 16 copies a seed")
    parser.add_argument("--keep", type=Path, help="a folder for what is trained, instead of one that is removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        rows = []
        players: dict[str, Any] = {"random": lambda env: RandomPolicy(env, 0)}
        for shaping in ("none", "subgoals"):
            checkpoint = train(folder, shaping, options).path / "checkpoints" / "last.ckpt"
            weights = {"file": str(checkpoint), "sha256": sha256_of(checkpoint)}
            players[shaping] = lambda env, weights=weights: load_policy(weights, env, 0)
        for split in ("train", "eval"):
            for name, player in players.items():
                rows += [
                    {"levels": split, "agent": name} | each
                    for each in episodes(player, 16, options.seeds, options.episodes, split, options)
                ]
    told = pd.DataFrame(rows)
    told["finished"] = told["return"] > 0
    told["paid, finished"] = told["paid"].where(told["finished"])
    told["steps, finished"] = told["steps"].where(told["finished"])
    by_seed = told.groupby(["levels", "agent", "seed"], sort=False).mean(numeric_only=False)
    print(by_seed.round(3).to_string())
    print(by_seed.groupby(["levels", "agent"], sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main()
