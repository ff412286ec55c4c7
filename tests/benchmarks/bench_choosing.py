"""How long the analysis of a full family takes, and how near few points come to its overall performance.

Scores are cheap and real: random searches of linear policies for 576 cartpoles, of energy controllers for 180
pendulums, all points at once. With few seeds a good part of what differs between points is chance, which no choice of
points can know: what that alone makes wrong is printed, and the same is done with many seeds. What there is to set of
`quadrature` was set on other families than these. Studies that are named as arguments give the scores of the agents
that they trained instead.
"""

import sys
import time
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from lcd.analyses import Evidence
from lcd.analyses.families import families
from lcd.analyses.family_settings import FamilySettings
from lcd.curves.names import evaluated_name
from lcd.envs.families.benchmark import FAMILIES
from lcd.envs.families.family import point_name
from lcd.families.accuracy import errors
from lcd.families.choosing import Choice
from lcd.families.measured import measured_families
from lcd.families.quadrature import replayed, with_known
from lcd.pipelines.study.quarantine import read_finished
from lcd.pipelines.study.store import Study
from lcd.scores.diagnosis import diagnose_curves

# Table 5 of Jayawardana et al. (2022).
CARTPOLE = {
    "length": (0.05, 0.5, 3, 5),
    "masscart": (0.1, 1, 6, 10),
    "masspole": (0.01, 0.1, 0.5, 1),
    "force_mag": (1, 50, 100),
    "gravity": (0.1, 9.8, 19.6),
}
PENDULUM = {"mass": (0.4, 1, 1.5, 2, 3, 4), "length": (0.5, 1, 2, 4, 7, 10), "gravity": (2, 5, 10, 12, 15)}
METHODS = {"search4": (4, False), "search12": (12, False), "climb6": (6, True), "climb12": (12, True)}
"""Method → how many policies it tries, and whether it stays near the best one so far."""
SEEDS, MANY, EVALUATIONS = 3, 20, 11
BUDGETS = (16, 24, 32, 48, 64)
BLIND = "quadrature, of features alone"
TURNS = "quadrature, an agent a point"
PARTS = 10
"""Random three quarters of a family, each of which is one, too."""
LIMIT = 10.0
"""Seconds on an idle core for diagnosis and analysis of 576 points, 4 methods, 3 seeds, 11 evaluations, 2 splits."""

Simulator = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def cartpole(points: np.ndarray, policies: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The share of 500 steps that a linear policy keeps the pole up, one episode a row."""
    length, cart, pole, force, gravity = points.T
    total, state, alive = cart + pole, rng.uniform(-0.05, 0.05, (4, len(points))), np.ones(len(points), bool)
    steps = np.zeros(len(points))
    for _ in range(500):
        push = np.where((policies * state.T).sum(1) > 0, force, -force)
        cosine, sine = np.cos(state[2]), np.sin(state[2])
        pull = (push + pole * length * state[3] ** 2 * sine) / total
        turn = (gravity * sine - cosine * pull) / (length * (4 / 3 - pole * cosine**2 / total))
        state = state + 0.02 * np.stack([state[1], pull - pole * length * turn * cosine / total, state[3], turn])
        steps += alive
        alive &= (np.abs(state[0]) <= 2.4) & (np.abs(state[2]) <= np.radians(12))
        state[:, ~alive] = 0
    return steps / 500


def pendulum(points: np.ndarray, policies: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The return of 200 steps on a scale from 0 to 1: energy is pumped, and near the top a spring takes over."""
    mass, length, gravity = points.T
    angle, speed = rng.uniform(-np.pi, np.pi, len(points)), rng.uniform(-1, 1, len(points))
    total = np.zeros(len(points))
    for _ in range(200):
        energy = mass * length**2 / 6 * speed**2 + mass * gravity * length / 2 * (np.cos(angle) - 1)
        swing, hold = (
            -policies[:, 0] * np.sign(speed) * energy,
            -policies[:, 1] * np.sin(angle) - policies[:, 2] * speed,
        )
        torque = np.clip(np.where(np.cos(angle) > 0.85, hold, swing), -2, 2)
        total -= ((angle + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
        push = 3 * gravity / (2 * length) * np.sin(angle) + 3 / (mass * length**2) * torque
        speed = np.clip(speed + 0.05 * push, -8, 8)
        angle = angle + 0.05 * speed
    return np.clip(total / 1600 + 1, 0, 1)


def searched(
    simulate: Simulator, table: np.ndarray, scale: np.ndarray, method: str, seed: int, seeds: int = SEEDS
) -> np.ndarray:
    """(points, seeds): what a random search finds on each point, over five further episodes."""
    tries, near = METHODS[method]
    rng = np.random.default_rng(seed)
    points = np.repeat(table, seeds, axis=0)
    best, found = np.full(len(points), -np.inf), np.zeros((len(points), len(scale)))
    for step in range(tries):
        tried = rng.normal(size=found.shape) * scale
        tried = found + tried / 2 if near and step else tried
        score = simulate(points, tried, rng)
        found[score > best], best = tried[score > best], np.maximum(best, score)
    return np.mean([simulate(points, found, rng) for _ in range(5)], axis=0).reshape(-1, seeds)


def as_curves(grid: dict[str, tuple], scores: dict[str, np.ndarray]) -> pd.DataFrame:
    """Curves that rise to these scores, of both splits."""
    names = [point_name(dict(zip(grid, values, strict=True))) for values in product(*grid.values())]
    steps = np.linspace(0, 50_000, EVALUATIONS)
    parts = []
    for (agent, found), split in product(scores.items(), ("eval", "train")):
        rows = len(names) * SEEDS
        returns = found[:, :, None] * (1 - np.exp(-steps / 12_000))
        seeds = np.tile(np.repeat(np.arange(SEEDS), EVALUATIONS), len(names))
        columns = {"context": np.repeat(names, SEEDS * EVALUATIONS), "agent": agent, "split": split, "seed": seeds}
        parts.append(pd.DataFrame({**columns, "step": np.tile(steps, rows), "return_mean": returns.ravel()}))
    frame = pd.concat(parts).assign(task="bench/cartpole", view="state", reward_p=1.0, r_min=0.0, r_max=1.0)
    return frame.assign(trained_on=[evaluated_name("bench/cartpole", name) for name in frame["context"]])


def compare(
    name: str, table: np.ndarray, p: np.ndarray, scores: Mapping[str, np.ndarray], beforehand: np.ndarray | None
) -> None:
    """Print the error of each way to choose points, and of ours with half of the agents beside that of k-means.

    Each of k-means' N points has all seeds. Half as many agents stand on N/2 points, or, where points take turns at the
    seeds, on as many points as they are. On a whole grid `quadrature` gives one answer at each budget, which may be
    lucky: so the same is told of random parts of it, each a family of its own.

    Args:
        name: the family's.
        table: (points, features).
        p: the probability of each point.
        scores: method → (points, seeds).
        beforehand: (points, quantities): what is known of them before they are trained.
    """
    means = np.stack([mine.mean(1) for mine in scores.values()])
    seeds = min(mine.shape[1] for mine in scores.values())
    parts = [np.sort(np.random.default_rng(part).permutation(len(p))[: 3 * len(p) // 4]) for part in range(PARTS)]
    for what, chosen in ((f"{len(p)} points", [np.arange(len(p))]), (f"{PARTS} random three quarters of them", parts)):
        usual = [budget for budget in BUDGETS if budget <= len(chosen[0]) / 2]
        budgets = sorted({*usual, *(budget // 2 for budget in usual)})
        error = _errors_of_parts(table, p, means, beforehand, budgets, chosen)
        shown = error.unstack("N")
        if seeds > 1:
            chance = np.mean([(mine.var(1, ddof=1) / mine.shape[1]).mean() for mine in scores.values()])
            shown.loc["chance of seeds alone"] = [np.sqrt(chance * (1 / each - 1 / len(chosen[0]))) for each in budgets]
        print(f"{name}, {what}, {seeds} seeds: error of the overall performance\n{shown.round(4).to_string()}")
        for how in [how for how in ("quadrature", BLIND) if how in shown.index]:
            half = {budget: float(error[how, budget // 2] / error["kmeans", budget]) for budget in usual}
            print(f"{how} with N/2 points / kmeans with N:", {n: round(ratio, 2) for n, ratio in half.items()})
            print(f"geometric mean {_geometric(half):.2f}", flush=True)
        if seeds > 1:
            half = _half_the_agents(table, p, scores, beforehand, usual, chosen, error["kmeans"])
            print(f"{TURNS}, N/2 x {seeds} agents / kmeans with N:", {n: round(ratio, 2) for n, ratio in half.items()})
            print(f"geometric mean {_geometric(half):.2f}", flush=True)


def _geometric(ratios: Mapping[int, float]) -> float:
    return float(np.exp(np.mean(np.log(list(ratios.values())))))


def _half_the_agents(
    table: np.ndarray,
    p: np.ndarray,
    scores: Mapping[str, np.ndarray],
    beforehand: np.ndarray | None,
    usual: list[int],
    parts: list[np.ndarray],
    kmeans: pd.Series,
) -> dict[int, float]:
    """N → the error of half as many agents, each on a point of its own, in those of k-means with N points."""
    every = np.stack(list(scores.values()))
    seeds = every.shape[2]
    asked = [budget for budget in usual if budget * seeds // 2 <= min(map(len, parts))]
    off: dict[int, list[np.ndarray]] = {budget: [] for budget in asked}
    for number, part in enumerate(parts):
        weights = p[part] / p[part].sum()
        known = with_known(table[part], None if beforehand is None else beforehand[part])
        for repeat in range(max(1, 4 // len(parts))):
            rng = np.random.default_rng([number, repeat])
            turn = rng.permutation(len(part)) % seeds
            mine = every[:, part, turn]
            made = replayed(known, weights, [budget * seeds // 2 for budget in asked], mine, rng)
            for budget, choice in zip(asked, made, strict=True):
                off[budget].append(Choice(*choice).overall(mine) - every[:, part].mean(2) @ weights)
    return {budget: float(np.sqrt(np.mean(np.square(each))) / kmeans[budget]) for budget, each in off.items()}


def _errors_of_parts(
    table: np.ndarray,
    p: np.ndarray,
    means: np.ndarray,
    beforehand: np.ndarray | None,
    budgets: list[int],
    parts: list[np.ndarray],
) -> pd.Series:
    """(how, N) → the root mean square of the errors in all parts of a family."""
    often = {"with_replacement": 200, "without_replacement": 200, "kmeans": 12, "quadrature": 4}
    repeats = {how: max(1, number // len(parts)) for how, number in often.items()}
    found = []
    for seed, part in enumerate(parts):
        told = None if beforehand is None else beforehand[part]
        asked = (table[part], p[part] / p[part].sum(), means[:, part], budgets)
        found.append(errors(*asked, tuple(repeats), repeats, seed, told))
        if told is not None:
            found.append(errors(*asked, ("quadrature",), repeats, seed).assign(how=BLIND))
    every = pd.concat(found)
    return every.assign(error=every["error"] ** 2).groupby(["how", "N"])["error"].mean() ** 0.5


def of_trained(study: str) -> None:
    """The same of agents that a study has trained on all points, method by method and together."""
    store = Study(Path(study))
    diagnosis = diagnose_curves(read_finished(store.path, store).curves)
    for found in measured_families(diagnosis.points, diagnosis.curves):
        name = f"{found.task}, {', '.join(found.methods)}"
        compare(name, found.table, found.distribution, found.scores, found.beforehand)


def main() -> None:
    if studies := sys.argv[1:]:
        for study in studies:
            of_trained(study)
        return
    scales = {"cartpole": np.array([0.3, 0.5, 1, 1]), "pendulum": np.array([2.0, 10, 2])}
    slow = False
    for name, grid, simulate in (("cartpole", CARTPOLE, cartpole), ("pendulum", PENDULUM, pendulum)):
        table = np.array(list(product(*grid.values())), float)
        beforehand = FAMILIES.known_of_points(f"families/{name}", [dict(zip(grid, row, strict=True)) for row in table])
        for seeds in (MANY, SEEDS):
            scores = {method: searched(simulate, table, scales[name], method, 1, seeds) for method in METHODS}
            compare(name, table, np.full(len(table), 1 / len(table)), scores, beforehand)
        if name == "cartpole":
            frame = as_curves(grid, scores)
            start = time.perf_counter()
            diagnosis = diagnose_curves(frame)
            between = time.perf_counter()
            made = families(Evidence(diagnosis), FamilySettings())
            end = time.perf_counter()
            slow = end - start > LIMIT
            print(f"{len(frame):,} rows: diagnosis {between - start:.1f} s, {len(made)} analyses {end - between:.1f} s")
    if slow:
        raise SystemExit(f"the analysis of a family takes more than {LIMIT:g} s")


if __name__ == "__main__":
    main()
