"""The parts of `bench_ppo.py` that are about small networks: Lightning's overhead, many seeds, CartPole against SB3."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from ppo_cases import Clock, trainer
from torch import Tensor, nn

from lcd.agents.ppo import PPO, PPOConfig
from lcd.agents.rollout import Rollouts, loader
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.population import make_population
from lcd.frontends import make
from lcd.pipelines.launch.launchers import keep_freed_memory

ITERATIONS, WARM_UP, ROUNDS = 16, 3, 3
TASKS = {
    "MLP": ("hardness", "hardness/discrete", "state"),
    "small CNN": ("toy", "toy/easy-sight-delayed-reward", "pixels"),
}
SEEDS = (1, 4, 16)
SB3_STEPS = 16_384
CARTPOLE = {
    "8 copies x 128, 4 epochs of 4 minibatches": {},
    "8 copies x 2,048, 10 epochs of 256 minibatches": {"rollout": 2048, "epochs": 10, "minibatches": 256},
}


class BarePPO(PPO):
    """The same agent without Lightning: its training step calls PyTorch's optimiser and backward pass themselves."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.plain = self.configure_optimizers()

    def optimizers(self) -> torch.optim.Optimizer:
        """PyTorch's own."""
        return self.plain

    def manual_backward(self, loss: Tensor, *_: Any, **__: Any) -> None:
        """PyTorch's own."""
        loss.backward()

    def _unscale(self, optimizer: Any) -> None:
        """Nothing is scaled."""


def population(task: str, seeds: int, copies: int) -> VectorEnv:
    """The training population of a small task."""
    benchmark, name, view = TASKS[task]
    return make_population(
        get_benchmark(benchmark), name, seeds=list(range(seeds)), copies=copies, view=view, split="train"
    )


def made(kind: type[PPO], env: VectorEnv, seeds: int, config: PPOConfig) -> tuple[PPO, Rollouts]:
    """An agent and its rollouts."""
    frontend, numbers = make("identity"), list(range(seeds))
    shape = frontend(torch.from_numpy(np.zeros((1, *env.single_observation_space.shape), np.uint8))).shape[1:]
    agent = kind(config, tuple(shape), int(env.single_action_space.n), numbers, frontend)
    return agent, Rollouts(env, numbers, agent, config.rollout, ITERATIONS, config.gamma, normalise=True)


def with_lightning(env: VectorEnv, seeds: int, config: PPOConfig) -> float:
    """Seconds of an iteration as our runs train."""
    agent, rollouts = made(PPO, env, seeds, config)
    clock = Clock()
    trainer("32-true", clock).fit(agent, loader(rollouts))
    return float(np.median(clock.seconds[WARM_UP:]))


def in_a_bare_loop(env: VectorEnv, seeds: int, config: PPOConfig) -> float:
    """Seconds of an iteration in a plain loop."""
    agent, rollouts = made(BarePPO, env, seeds, config)
    seconds = []
    for number in range(ITERATIONS):
        started = time.perf_counter()
        agent.training_step(rollouts.collect(), number)
        rollouts.iteration += 1
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds[WARM_UP:]))


def in_turns(cases: dict[Any, Callable[[], float]]) -> dict[Any, float]:
    """The fastest of a few rounds of every case, in turns: other work only makes a round slower."""
    rounds = [{name: case() for name, case in cases.items()} for _ in range(ROUNDS)]
    return {name: min(found[name] for found in rounds) for name in cases}


def overhead() -> Iterator[str]:
    """Lightning against a bare loop."""
    config = PPOConfig()
    for task in TASKS:
        found = in_turns(
            {
                run: lambda run=run, task=task: run(population(task, 1, config.copies), 1, config)
                for run in (with_lightning, in_a_bare_loop)
            }
        )
        ratio = found[with_lightning] / found[in_a_bare_loop] - 1
        bare = found[in_a_bare_loop] * 1e3
        yield f"Lightning's overhead, {task}, one seed: {ratio:+.1%} of {bare:.0f} ms an iteration (goal: 5 %)"


def many_seeds() -> Iterator[str]:
    """S seeds together against S runs of one seed."""
    config = PPOConfig(copies=16, rollout=16)
    for task in TASKS:
        found = in_turns(
            {s: lambda s=s, task=task: with_lightning(population(task, s, config.copies), s, config) for s in SEEDS}
        )
        for s in SEEDS:
            share = found[s] / (s * found[1])
            yield f"{task}, {s:2d} seeds: {found[s] * 1e3:6.1f} ms an iteration, {share:.2f} of {s} separate runs"


def cartpole() -> Iterator[str]:
    """Steps a second on CartPole-v1 against Stable-Baselines3's PPO with the same settings: our defaults, and its."""
    for whose, own in CARTPOLE.items():
        config = PPOConfig(encoder="mlp", **own)
        found = in_turns(
            {
                "ours": lambda config=config: ours_on_cartpole(config),
                "sb3": lambda config=config: stable_baselines(config),
            }
        )
        yield (
            f"CartPole-v1, {whose}: {1 / found['ours']:,.0f} steps/s, "
            f"{found['sb3'] / found['ours']:.2f} of Stable-Baselines3's {1 / found['sb3']:,.0f}"
        )


def ours_on_cartpole(config: PPOConfig) -> float:
    """Seconds of a step of our PPO."""
    benchmark, task = get_benchmark("hardness"), "hardness/gym/CartPole-v1"
    env = make_population(benchmark, task, seeds=[0], copies=config.copies, view="state", split="train")
    agent = PPO(config, (4,), 2, [0], nn.Identity())
    steps = config.copies * config.rollout
    total = WARM_UP + max(1, SB3_STEPS // steps)
    rollouts = Rollouts(env, [0], agent, config.rollout, total, config.gamma, normalise=True)
    clock = Clock()
    trainer("32-true", clock).fit(agent, loader(rollouts))
    return float(np.median(clock.seconds[WARM_UP:])) / steps


def stable_baselines(config: PPOConfig) -> float:
    """Seconds of a step of SB3's PPO."""
    from stable_baselines3 import PPO as Peer
    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env("CartPole-v1", n_envs=config.copies, seed=0)
    batch = config.copies * config.rollout // config.minibatches
    peer = Peer("MlpPolicy", env, n_steps=config.rollout, batch_size=batch, n_epochs=config.epochs, device="cpu")
    peer.learn(2 * config.copies * config.rollout)
    started = time.perf_counter()
    peer.learn(SB3_STEPS, reset_num_timesteps=False)
    return (time.perf_counter() - started) / SB3_STEPS


def main() -> None:
    """Print everything, measured on one core, as a run of many has it."""
    keep_freed_memory()
    torch.set_num_threads(1)
    for part in (overhead, many_seeds, cartpole):
        for line in part():
            print(line, flush=True)


if __name__ == "__main__":
    main()
