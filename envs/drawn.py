"""The benchmark `calibration-drawn`: toys whose sights and rewards are drawn at random, and whose hardness is measured.

No definition was fitted to them, and nobody chose them: `SEED` did. Every dial of a kind is left as it is twice as
often as it is turned, and a turned one has any of its values. Sights and rewards are drawn, and refused, apart from
each other, so that one kind of hardness tells nothing of the other but by chance. What is refused is refused by the
yardstick, before anything is trained: see `refused_sight` and `refused_reward`.

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
from dataclasses import asdict
from importlib import resources
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


def refused_sight(benchmark: CalibrationBenchmark, task: str) -> str:
    """Why a sight is no task's, or "": what no probe reads has no number, and is hard to see for everybody."""
    try:
        seen = {view: sight_hardness(benchmark, task, view, READ) for view in ("semantic", "pixels")}
    except InputError:
        return "knobs that refuse each other"
    unread = [view for view, frames in seen.items() if np.isinf(frames)]
    return f"{unread[0]} are never read" if unread else ""


def refused_reward(benchmark: CalibrationBenchmark, task: str) -> str:
    """Why rewards are no task's, or "": looking has to pay, and training has to last for telling actions apart."""
    try:
        found = reward_hardness(benchmark, task, SEEDS)
    except InputError:
        return "knobs that refuse each other"
    if not found.blind_share <= MOST_BLIND:
        return "blind agents gain too much"
    return "actions are not told apart" if found.samples > MOST_SAMPLES else ""


def benchmark_of(turned: Mapping[str, Turned]) -> CalibrationBenchmark:
    """The benchmark of drawn tasks."""
    return CalibrationBenchmark(NAME, turned, STREAM)


def names(count: int = TASKS) -> list[str]:
    """What tasks are called."""
    return [f"{NAME}/{place:02d}" for place in range(1, count + 1)]


def accepted(
    count: int,
    drawn: Callable[[int], dict[str, Any]],
    alone: Callable[[dict[str, Any]], Turned],
    refused: Callable[[CalibrationBenchmark, str], str],
) -> tuple[list[int], Counter[str]]:
    """The first draws that are not refused, one a task, and how many were for which reason.

    Args:
        count: how many tasks there are.
        drawn: from the number of a draw to its knobs.
        alone: the task of these knobs with the other kind's dials as they are.
        refused: why it is no task's.
    """
    tasks, found, told, draw = names(count), list[int](), Counter[str](), 0
    while len(found) < count:
        here = dict.fromkeys(tasks, alone(drawn(draw)))
        why = refused(benchmark_of(here), tasks[len(found)])
        told[why] += 1
        found += [] if why else [draw]
        draw += 1
    return found, told


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


def draw_tasks(count: int = TASKS, seed: int = SEED) -> tuple[list[dict[str, Any]], dict[str, Counter[str]]]:
    """A row of `drawn.csv` for each task, and how often draws were refused, by kind and reason."""
    unknown = Truth(math.nan, math.nan)
    sights, of_sights = accepted(
        count, lambda n: drawn_sight(n, seed), lambda knobs: Turned(knobs, {}, unknown), refused_sight
    )
    rewards, of_rewards = accepted(
        count, lambda n: drawn_reward(n, seed), lambda knobs: Turned({}, knobs, unknown), refused_reward
    )
    turned = {
        task: Turned(drawn_sight(sight, seed), drawn_reward(reward, seed), unknown)
        for task, sight, reward in zip(names(count), sights, rewards, strict=True)
    }
    rows = []
    for task, each, *draws in zip(turned, turned.values(), sights, rewards, strict=True):
        knobs = {"sight": json.dumps(each.sight), "reward": json.dumps(each.reward)}
        numbers = {name: f"{number:.4f}" for name, number in measured(benchmark_of(turned), task).items()}
        rows.append({"task": task, **dict(zip(("sight_draw", "reward_draw"), draws, strict=True)), **knobs, **numbers})
    return rows, {"sights": of_sights, "rewards": of_rewards}


def kept_rows() -> list[dict[str, str]]:
    """The rows of `drawn.csv`."""
    lines = resources.files(__package__).joinpath(TABLE).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(lines))


def _kept() -> CalibrationBenchmark:
    return benchmark_of(
        {
            row["task"]: Turned(
                json.loads(row["sight"]), json.loads(row["reward"]), Truth(float(row["to_see"]), float(row["to_learn"]))
            )
            for row in kept_rows()
        }
    )


def main(given: Sequence[str] | None = None) -> None:
    """Draw, measure and write the table."""
    parser = argparse.ArgumentParser(description="Draw tasks, measure how hard they are, and write the table.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name(TABLE))
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(given)
    rows, refused = draw_tasks(options.tasks, options.seed)
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for kind, told in refused.items():
        reasons = ", ".join(f"{why}: {times}" for why, times in told.items() if why)
        print(f"{kind}: {told.total()} drawn; {reasons or 'none refused'}")


if __name__ == "__main__":
    main()
