"""How the tasks of `calibration-drawn` are drawn at random, and how their hardness is measured.

No definition was fitted to them, and nobody chose them: `SEED` did. Every dial of a kind is left as it is twice as
often as it is turned, and a turned one has any of its values. Sights and rewards are drawn, and refused, apart from
each other, so that one kind of hardness tells nothing of the other. What is refused is refused by the
yardstick, before anything is trained (`judged_sight`, `judged_reward`), and so are orders in which they are paired
(`paired`).

Left out are dials that turn both kinds of hardness (`state_space_size`, `diameter`, `irrelevant_features`) or none
(`reward_scale`, `reward_shift`, `image_size`, `image_channels`), what users bring (tables, functions, pictures),
`term_state_reward`, whose penalties ψ would thin as if they were rewards, and `reward_dist`, by which too much may be
due at once to be told exactly.

What was drawn and measured lies in `drawn.csv`, which this makes again (some minutes):

    python -m lcd.envs.drawn
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lcd.envs.calibration import CalibrationBenchmark, Truth, Turned
from lcd.envs.errors import InputError
from lcd.envs.hardness.image_knobs import TRANSFORMS
from lcd.envs.toy import COMMON
from lcd.envs.yardstick import COUNTS, reward_hardness, sight_hardness

NAME, STREAM, TABLE = "calibration-drawn", 2, "drawn.csv"
SEED = 20261120
"""Fixed in a commit of its own before any task was drawn with it."""
TASKS = 24
SEEDS = tuple(range(8))
"""Whose toys the rewards' numbers are means over: those that a diagnosis trains."""
READ = (0, 1)
"""Whose toys' frames the probe reads."""
VIEWS = ("pixels", "figure_ground", "semantic")
TURNED = 1 / 3
"""How often a dial is turned."""

LOOKS: Mapping[str, Sequence[Any]] = {
    "texture": (0.2, 0.4, 0.6, 0.8, 1.0),
    "contrast": (0.15, 0.25, 0.35, 0.5, 0.7),
    "distractors": (1, 2, 3, 4),
    "lookalikes": (1, 2),
    "image_radius": (0.25, 0.3, 0.4),
    "motion": (0.5, 1.0),
}
"""Dials of sights, and what they are turned to. Each transform of `TRANSFORMS` is a dial, too."""
OF_TRANSFORMS: Mapping[str, tuple[str, Sequence[Any]]] = {
    "shift": ("image_sh_quant", (1, 2, 3)),
    "scale": ("image_scale_range", ((0.75, 1.25), (0.5, 1.0), (0.9, 1.1))),
    "rotate": ("image_ro_quant", (15, 30, 45, 90)),
    "flip": ("image_double_flips", (True, False)),
}
"""How a transform that happens does."""
REWARDS: Mapping[str, Sequence[Any]] = {
    "delay": (1, 2, 3, 4),
    "reward_every_n_steps": (2, 3, 4, 5, 7, 10),
    "sequence_length": (2, 3),
    "reward_density": (0.34, 0.5),
    "transition_noise": (0.15, 0.45),
    "reward_noise": (0.25, 0.5, 1.0),
    "terminal_state_density": (0.17, 0.34),
    "action_space_size": (3, 4, 5),
}
"""Dials of rewards and dynamics, and what they are turned to. Sequences may have `make_denser`, too."""

MOST_BLIND = 0.55
"""What an agent that does not look may have of what the best has over random play, or looking hardly pays."""
MOST_SAMPLES = math.log2(10_240 / COMMON["state_space_size"])
"""Log₂ of the visits of a state in a training: random play tells nothing of actions that take more to be told apart."""

MOST_ALIKE, MOST_ORDERS = 0.05, 10_000
"""Spearman's ρ (either way) of both kinds of hardness at which sights and rewards are paired, and orders tried."""


def drawn_sight(draw: int, seed: int = SEED) -> dict[str, Any]:
    """The knobs of a draw of a sight; draws of a seed do not depend on each other."""
    rng = np.random.default_rng((seed, 0, draw))
    knobs = _turn(LOOKS, rng)
    happen = [name for name in TRANSFORMS if rng.random() < TURNED]
    for name in happen:
        knob, values = OF_TRANSFORMS[name]
        knobs[knob] = values[int(rng.integers(len(values)))]
    return knobs | ({"image_transforms": ",".join(happen)} if happen else {})


def drawn_reward(draw: int, seed: int = SEED) -> dict[str, Any]:
    """The knobs of a draw of rewards."""
    rng = np.random.default_rng((seed, 1, draw))
    knobs = {"reward_every_n_steps": 1} | _turn(REWARDS, rng)
    if rng.random() >= TURNED or "sequence_length" not in knobs:
        return knobs
    return knobs | {"make_denser": True, "reward_every_n_steps": 1}  # what is paid for beginnings comes at every step


def _turn(dials: Mapping[str, Sequence[Any]], rng: np.random.Generator) -> dict[str, Any]:
    # Every dial takes its two numbers from the generator, turned or not.
    drawn = {name: (rng.random(), int(rng.integers(len(values)))) for name, values in dials.items()}
    return {name: dials[name][place] for name, (chance, place) in drawn.items() if chance < TURNED}


def judged_sight(benchmark: CalibrationBenchmark, task: str) -> tuple[str, float]:
    """Why a sight is no task's, or "", and how hard it is to see: what no probe reads has no number."""
    try:
        seen = {view: sight_hardness(benchmark, task, view, READ) for view in ("semantic", "pixels")}
    except InputError:
        return "knobs that refuse each other", math.nan
    unread = [view for view, frames in seen.items() if np.isinf(frames)]
    return f"{unread[0]} are never read" if unread else "", seen["pixels"] - seen["semantic"]


def judged_reward(benchmark: CalibrationBenchmark, task: str) -> tuple[str, float]:
    """Why rewards are no task's, or "", and how hard they are: looking has to pay, training to tell actions apart."""
    try:
        found = reward_hardness(benchmark, task, SEEDS)
    except InputError:
        return "knobs that refuse each other", math.nan
    if not found.blind_share <= MOST_BLIND:
        return "blind agents gain too much", math.nan
    return "actions are not told apart" if found.samples > MOST_SAMPLES else "", found.to_learn


def benchmark_of(turned: Mapping[str, Turned]) -> CalibrationBenchmark:
    """The benchmark of drawn tasks."""
    return CalibrationBenchmark(NAME, turned, STREAM)


def names(count: int = TASKS) -> list[str]:
    """What tasks are called."""
    return [f"{NAME}/{place:02d}" for place in range(1, count + 1)]


@dataclass(frozen=True)
class Accepted:
    """What was drawn of one kind: the numbers of the draws, how hard each is, and how many were refused for what."""

    draws: list[int]
    hardness: list[float]
    refused: Counter[str]


def accepted(
    count: int, alone: Callable[[int], Turned], judged: Callable[[CalibrationBenchmark, str], tuple[str, float]]
) -> Accepted:
    """The first draws that are not refused, one a task.

    Args:
        count: how many tasks there are.
        alone: from the number of a draw to its task, with the other kind's dials as they are.
        judged: why it is no task's, or "", and how hard it is.
    """
    tasks, found, draw = names(count), Accepted([], [], Counter()), 0
    while len(found.draws) < count:
        here = dict.fromkeys(tasks, alone(draw))
        why, hardness = judged(benchmark_of(here), tasks[len(found.draws)])
        if why:
            found.refused[why] += 1
        else:
            found.draws.append(draw)
            found.hardness.append(hardness)
        draw += 1
    return found


def paired(sights: Sequence[float], rewards: Sequence[float], seed: int = SEED) -> list[int]:
    """Which sight each task's rewards get: the first random order in which neither kind of hardness tells of the other.

    By chance alone two dozen pairs may correlate at .3, and a score that is right about one kind would then seem to
    measure the other.
    """
    rng = np.random.default_rng((seed, 2))
    ours, theirs = (np.argsort(np.argsort(each)) for each in (sights, rewards))
    for _ in range(MOST_ORDERS):
        order = rng.permutation(len(sights))
        if abs(np.corrcoef(ours[order], theirs)[0, 1]) <= MOST_ALIKE:
            break
    return [int(place) for place in order]


def measured(benchmark: CalibrationBenchmark, task: str) -> dict[str, float]:
    """The yardstick's numbers of a task, `to_see` and `to_learn` first."""
    frames = {view: sight_hardness(benchmark, task, view, READ) for view in VIEWS}
    # What is never read takes at least twice the most frames that were tried.
    frames = {view: math.log2(2 * COUNTS[-1]) if np.isinf(each) else each for view, each in frames.items()}
    reward = reward_hardness(benchmark, task, SEEDS)
    return {
        "to_see": frames["pixels"] - frames["semantic"],
        "to_learn": reward.to_learn,
        **{f"frames_{view}": each for view, each in frames.items()},
        **asdict(reward),
    }


def draw_tasks(count: int = TASKS, seed: int = SEED) -> tuple[list[dict[str, Any]], dict[str, Accepted]]:
    """A row of `drawn.csv` for each task, and what was drawn of either kind."""
    unknown = Truth(math.nan, math.nan)
    sights = accepted(count, lambda n: Turned(drawn_sight(n, seed), {}, unknown), judged_sight)
    rewards = accepted(count, lambda n: Turned({}, drawn_reward(n, seed), unknown), judged_reward)
    order = paired(sights.hardness, rewards.hardness, seed)
    pairs = [(sights.draws[place], reward) for place, reward in zip(order, rewards.draws, strict=True)]
    turned = {
        task: Turned(drawn_sight(sight, seed), drawn_reward(reward, seed), unknown)
        for task, (sight, reward) in zip(names(count), pairs, strict=True)
    }
    rows = []
    for (task, each), (sight, reward) in zip(turned.items(), pairs, strict=True):
        told = {"task": task, "sight_draw": sight, "reward_draw": reward}
        knobs = {"sight": json.dumps(each.sight), "reward": json.dumps(each.reward)}
        numbers = measured(benchmark_of(turned), task)
        rows.append(told | knobs | {name: f"{number:.4f}" for name, number in numbers.items()})
    return rows, {"sights": sights, "rewards": rewards}


def main(given: Sequence[str] | None = None) -> None:
    """Draw, measure and write the table."""
    parser = argparse.ArgumentParser(description="Draw tasks, measure how hard they are, and write the table.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name(TABLE))
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(given)
    rows, drawn = draw_tasks(options.tasks, options.seed)
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for kind, found in drawn.items():
        reasons = ", ".join(f"{why}: {times}" for why, times in found.refused.items())
        print(f"{kind}: {len(found.draws) + found.refused.total()} drawn; refused: {reasons or 'none'}")


if __name__ == "__main__":
    main()
