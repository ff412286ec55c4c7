"""MDP Playground's delay experiment (figure 9a of its paper): 5 delays x 100 seeds x 20,000 steps.

`--agent dqn` is the paper's own: DQN with its appendix G's settings; PPO has `agent=ppo`'s.

Seeds are shared out among runs, so that every core has as much to do. Every run goes through the product's own
pipeline: evaluation every 1,000 steps over 10 episodes a seed, the curve of each seed kept on disk. stable-baselines3's
PPO is trained on a few of the same MDPs with the same evaluation, and the areas under the curves are compared.
"""

import argparse
import json
import resource
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from lcd.config.budgets import read
from lcd.curves.table import read_curves
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.pipelines.launch.launchers import Call, launch
from lcd.pipelines.study.configs import Device

DELAYS = (0, 1, 2, 4, 8)
STEPS, EVERY, EPISODES, COPIES = 20_000, 1_000, 10, 8
SEEDS_PER_RUN = 50
"""As in the study `hardness/delay`: so many that two cores have as much to do each."""
AGENTS = {"ppo": {"name": "ppo", "copies": COPIES, "rollout": 125}, "dqn": read("agent", "dqn_mdp_playground")}


class DelayExperiment:
    """The experiment's MDPs as a benchmark: 8 states, 8 actions, one rewarding state, the state observed."""

    name, views = "delay-experiment", ("state",)
    tasks = tuple(f"delay-{delay}" for delay in DELAYS)
    r_min = dict.fromkeys(tasks, 0.0)
    r_max = {f"delay-{delay}": 100.0 - delay for delay in DELAYS}

    def make_vec(self, task, *, view, split, num_envs, seed, **knobs):
        delay = int(task.split("-")[1])
        return HardnessDiscreteVectorEnv(num_envs, view=view, split=split, seed=seed, delay=delay, **knobs)

    def make_population(self, task, *, seeds, copies, **kwargs):
        return self.make_vec(task, num_envs=len(seeds) * copies, seed=seeds, **kwargs)


BENCHMARK = DelayExperiment()


def run_config(delay: int, seeds: list[int], agent: str, steps: int = STEPS) -> dict:
    """One run of the experiment."""
    return {
        "kind": "train",
        "benchmark": "bench_delay:BENCHMARK",
        "task": f"delay-{delay}",
        "knobs": {},
        "view": "state",
        "frontend": {"name": "identity"},
        "reward_p": 1.0,
        "shaping": "none",
        "agent": AGENTS[agent],
        "seeds": seeds,
        "steps": steps,
        "evaluation": {"every": EVERY, "copies": EPISODES, "episodes": 1},
    }


def ours(folder: Path, seeds: int, agent: str, steps: int) -> pd.DataFrame:
    """The whole experiment; returns its held-out curves."""
    calls, places = [], []
    for delay, first in product(DELAYS, range(0, seeds, SEEDS_PER_RUN)):
        run_dir = folder / f"delay-{delay}-{first}"
        run_dir.mkdir()
        places.append(run_dir / "curve.csv")
        config = run_config(delay, list(range(first, min(first + SEEDS_PER_RUN, seeds))), agent, steps)
        calls.append(Call((config, str(run_dir), {"name": "none"}, Device("cpu")), run_dir / "log.txt"))
    for outcome in launch("local", "lcd.pipelines.jobs.train:train_run", calls):
        if outcome.error:
            raise RuntimeError(outcome.error)
    curves = pd.concat([read_curves(place) for place in places])
    return curves[curves.split == "eval"]


def throughput(folder: Path, seeds: int, agent: str) -> float:
    """Agent-steps a second of one run of some seeds in one process, with its evaluations."""
    run_dir = folder / f"speed-{seeds}"
    run_dir.mkdir()
    call = Call((run_config(0, list(range(seeds)), agent, 10_000), str(run_dir), {"name": "none"}, Device("cpu")))
    launch("local", "lcd.pipelines.jobs.train:train_run", [call], workers=1)
    return seeds * 10_000 / json.loads((run_dir / "status.json").read_text())["wall_s"]


def areas(curves: pd.DataFrame) -> pd.Series:
    """Mean area under the normalised curves, by task."""
    normalised = curves.assign(score=curves.return_mean / curves.task.map(DelayExperiment.r_max))
    by_seed = normalised.groupby(["task", "seed"])[["step", "score"]].apply(
        lambda rows: np.trapezoid(rows.score, rows.step) / np.ptp(rows.step)
    )
    return by_seed.groupby("task").agg(["mean", "sem"])


def peer(delay: int, seed: int) -> list[dict]:
    """The held-out curve of stable-baselines3's PPO (its defaults) on one of the MDPs."""
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    rows = []

    class Evaluate(BaseCallback):
        def evaluate(self):
            held_out = HardnessDiscreteVectorEnv(EPISODES, view="state", split="eval", seed=seed, delay=delay)
            observations, _ = held_out.reset(seed=self.num_timesteps)
            totals, playing = np.zeros(EPISODES), np.ones(EPISODES, dtype=bool)
            while playing.any():
                actions, _ = self.model.predict(observations, deterministic=False)
                observations, rewards, terminated, truncated, _ = held_out.step(actions)
                totals += rewards * playing
                playing &= ~(terminated | truncated)
            step = self.num_timesteps
            rows.append({"task": f"delay-{delay}", "seed": seed, "step": step, "return_mean": totals.mean()})

        def _on_training_start(self):
            self.evaluate()

        def _on_step(self):
            if self.num_timesteps % EVERY == 0:
                self.evaluate()
            return True

    env = gymnasium.make("lcd/hardness-discrete-v0", view="state", seed=seed, delay=delay)
    PPO("MlpPolicy", env, seed=seed, device="cpu").learn(STEPS, callback=Evaluate())
    return [row for row in rows if row["step"] <= STEPS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--agent", choices=AGENTS, default="ppo")
    parser.add_argument(
        "--peer", type=int, default=1, metavar="SEEDS", help="seeds of stable-baselines3's PPO beside ours, 0: none"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        started = time.perf_counter()
        curves = ours(folder, options.seeds, options.agent, options.steps)
        seconds = time.perf_counter() - started
        limit = {"ppo": 120, "dqn": 180}[options.agent]
        whole = f"{len(DELAYS)} x {options.seeds} seeds x {options.steps} steps"
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cores = f"{used.ru_utime + used.ru_stime:.1f} s of cores"
        print(f"delay experiment, {options.agent}: {whole} in {seconds:.1f} s (limit {limit} s), {cores}")
        print(areas(curves).round(3).to_string())
        for seeds in (1, 10, 100):
            rate = throughput(folder, seeds, options.agent)
            print(f"one process, S = {seeds:3d}: {rate:9,.0f} agent-steps/s with evaluation")
    if options.peer and options.agent == "ppo":
        started = time.perf_counter()
        rows = [row for delay in DELAYS for seed in range(options.peer) for row in peer(delay, seed)]
        seconds = (time.perf_counter() - started) / (len(DELAYS) * options.peer)
        theirs, same = pd.DataFrame(rows), curves[curves.seed < options.peer]
        print(f"stable-baselines3 PPO: {seconds:.1f} s a run with evaluation; areas (ours on the same seeds beside):")
        print(areas(theirs).join(areas(same).add_suffix(" ours")).round(3).to_string())


if __name__ == "__main__":
    main()
