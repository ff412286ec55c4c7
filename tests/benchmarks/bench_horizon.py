"""Tabular MDPs and the effective horizon: steps/s of `lcd/tabular-v0`, building, exact analysis, GORP.

Run it as a script. GORP's ratio is against the package `effective-horizon` in the same run where it is installed with
Stable-Baselines3, else against the 96,000 steps/s measured for it on a 2-core machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np

from lcd.envs.tabular.closure import build
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.vector import TabularVectorEnv
from lcd.horizon.analysis import Settings, analyse
from lcd.horizon.exact import solve
from lcd.horizon.gorp import Gorp
from lcd.horizon.layers import Layers
from lcd.horizon.ties import Ties

PEER_REFERENCE = 96_000.0
MEASUREMENTS = 5
ACTIONS = 5


def best_rate(work: Callable[[], float]) -> float:
    """The best of several measurements of what `work` returns (steps) by the second."""
    rates = []
    for _ in range(MEASUREMENTS):
        began = time.perf_counter()
        rates.append(work() / (time.perf_counter() - began))
    return max(rates)


def world(states: int, horizon: int, corridor: int = 4) -> TabularMDP:
    """Many states that pay nothing, a small reward at once, and a greater one at the end of a corridor of one way."""
    rng = np.random.default_rng(0)
    transitions = rng.integers(corridor + 1, states, size=(states, ACTIONS))
    rewards = np.zeros((states, ACTIONS))
    for place in range(corridor):
        transitions[place, place % ACTIONS] = place + 1
    rewards[corridor, corridor % ACTIONS] = 10.0
    rewards[0, 4] = 1.0
    return TabularMDP(transitions, rewards, horizon, name=f"{states:,} states")


def stepping() -> None:
    """Steps per second of the vector environment."""
    print("\nlcd/tabular-v0, 1,024 copies, random actions, observation=number")
    for states, ends in ((1_000, 0.0), (1_000, 0.02), (100_000, 0.02), (1_000_000, 0.0)):
        mdp = world(states, 50)
        rng = np.random.default_rng(1)
        after = np.where(rng.random(mdp.transitions.shape) < ends, -1, mdp.transitions)
        env = TabularVectorEnv(1024, TabularMDP(after, mdp.rewards, 50), observation="number")
        env.reset()
        actions = rng.integers(ACTIONS, size=(64, 1024))

        def play(env: TabularVectorEnv = env, actions: np.ndarray = actions) -> float:
            for number in range(2000):
                env.step(actions[number % 64])
            return 2000 * 1024

        print(f"  {states:>9,} states, {ends:4.0%} of the steps end: {best_rate(play):14,.0f} steps/s")


def building() -> None:
    """Seconds and memory of a closure."""

    def rules(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        after = np.stack([(codes * a + b) % 4_000_000 for a, b in ((1, 1), (5, 3), (7, 11), (3, 2), (11, 5))], 1)
        return after, (after % 97 == 0).astype(np.float32), np.zeros(after.shape, bool)

    began = time.perf_counter()
    mdp = build(rules, 0, 50)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\nclosure of {mdp.num_states:,} states: {time.perf_counter() - began:.1f} s, {memory:.2f} GB at most")


def analysing(states: int) -> None:
    """Seconds of the exact analysis up to the smallest k."""
    mdp, began = world(states, 50), time.process_time()
    result = analyse(mdp, Settings(timesteps=0))
    print(
        f"\nexact analysis of {states:,} states x {ACTIONS} actions x T = 50, up to k = {result.solvable.k}: "
        f"{result.seconds:.1f} s ({time.process_time() - began:.1f} s of CPU), {result.memory / 1e9:.2f} GB at most"
    )


def running_gorp() -> None:
    """Simulated steps per second of GORP, and the ratio to the peer."""
    peer = peer_rate()
    told = "measured in this run" if peer else "not installed; reference figure"
    print(f"\nGORP; effective-horizon {peer or PEER_REFERENCE:,.0f} steps/s ({told})")
    for states in (500, 100_000):
        mdp = world(states, 50)
        layers, ties = Layers(mdp), Ties.of(mdp)
        gorp = Gorp(layers, solve(layers, ties, 0.99), ties, np.random.default_rng(0))
        for k, m in ((1, 1000), (3, 50)):

            def run(gorp: Gorp = gorp, k: int = k, m: int = m) -> float:
                before = gorp.simulated
                gorp.successes(k, m, 16)
                return gorp.simulated - before

            rate = best_rate(run)
            ratio = rate / (peer or PEER_REFERENCE)
            print(f"  {states:>8,} states, k={k}, m={m:>5,}: {rate:14,.0f} steps/s {ratio:8.0f}x")


def peer_rate() -> float | None:
    """Steps per second of the peer's own GORP on an environment of ours, or None where it cannot be run."""
    package = importlib.util.find_spec("effective_horizon")
    if package is None or package.origin is None:
        return None
    # The package imports Atari, Procgen and MiniGrid in versions of their time; its algorithm needs none of them.
    file = Path(package.origin).parent / "sb3" / "algorithms" / "gorp.py"
    try:
        spec = importlib.util.spec_from_file_location("peer_gorp", file)
        peer = importlib.util.module_from_spec(spec)
        sys.modules["peer_gorp"] = peer
        spec.loader.exec_module(peer)
        env = gymnasium.make("lcd/tabular-v0", mdp=world(500, 50), observation="number")
        learner = peer.GORP("ActionSequencePolicy", env, planning_depth=1, episodes_per_action_sequence=100)
        began = time.perf_counter()
        learner.learn(total_timesteps=100_000)
    except Exception as error:
        print(f"\n(effective-horizon does not run here: {type(error).__name__}: {error})")
        return None
    return learner.num_timesteps / (time.perf_counter() - began)


def building_a_game(task: str = "connect-four-7x4-4") -> None:
    """Seconds and memory of the MDP whose two-player solution has the most positions, from nothing."""
    from lcd.envs.ehc.games.recipes import RECIPES

    recipe = next(recipe for recipe in RECIPES if recipe.name == task)
    began, used = time.perf_counter(), time.process_time()
    mdp = recipe.make()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"\n{task}, {mdp.num_states:,} states: {time.perf_counter() - began:.1f} s "
        f"({time.process_time() - used:.1f} s of CPU), {memory:.2f} GB at most"
    )


PARTS: dict[str, Callable[[], None]] = {
    "stepping": stepping, "gorp": running_gorp, "analysis": partial(analysing, 1_000_000), "closure": building,
    "game": building_a_game,
}  # fmt: skip


def main() -> None:
    """Print everything, or the parts that are named: memory is that of all parts until then."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    for part in parser.parse_args().parts:
        PARTS[part]()


if __name__ == "__main__":
    main()
