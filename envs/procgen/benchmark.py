"""The benchmarks `procgen` (hard, 500 training levels: the paper's) and `procgen-easy` (easy, 200)."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import Any

from gymnasium.vector import VectorEnv

from lcd.envs.errors import InputError, nearest
from lcd.envs.families.family import Family, grid_family
from lcd.envs.procgen import skins
from lcd.envs.procgen.knobs import SHAPED, SHAPINGS, VIEWS, ProcgenKnobs
from lcd.envs.procgen.mask_tables import GAMES, TABLES

# R_min and R_max: Cobbe et al. 2020, "Leveraging procedural generation to benchmark reinforcement learning".
RANGES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "hard": {
        "bigfish": (0, 40),
        "bossfight": (0.5, 13),
        "caveflyer": (2, 13.4),
        "chaser": (0.5, 14.2),
        "climber": (1, 12.6),
        "coinrun": (5, 10),
        "dodgeball": (1.5, 19),
        "fruitbot": (-0.5, 27.2),
        "heist": (2, 10),
        "jumper": (1, 10),
        "leaper": (1.5, 10),
        "maze": (4, 10),
        "miner": (1.5, 20),
        "ninja": (2, 10),
        "plunder": (3, 30),
        "starpilot": (1.5, 35),
    },
    "easy": {
        "bigfish": (1, 40),
        "bossfight": (0.5, 13),
        "caveflyer": (3.5, 12),
        "chaser": (0.5, 13),
        "climber": (2, 12.6),
        "coinrun": (5, 10),
        "dodgeball": (1.5, 19),
        "fruitbot": (-1.5, 32.4),
        "heist": (3.5, 10),
        "jumper": (3, 10),
        "leaper": (3, 10),
        "maze": (5, 10),
        "miner": (1.5, 13),
        "ninja": (3.5, 10),
        "plunder": (4.5, 30),
        "starpilot": (2.5, 64),
    },
}


RANDOM_RETURNS = "random_returns.csv"
"""A random agent's mean held-out returns with their standard errors, as `lcd measure` gave them."""


@cache
def _measured() -> Mapping[tuple[str, str], float]:
    """Benchmark and task to a random agent's mean return."""
    lines = resources.files(__package__).joinpath(RANDOM_RETURNS).read_text(encoding="utf-8").splitlines()
    return {(row["benchmark"], row["task"]): float(row["r_min"]) for row in csv.DictReader(lines)}


ABOUT: Mapping[str, str] = {
    "bigfish": "eat smaller fish, and grow",
    "bossfight": "shoot a boss's ship between its shields, and dodge",
    "caveflyer": "fly through caves to a ship, past what kills",
    "chaser": "eat orbs in a maze away from foes; stars turn the tables",
    "climber": "climb platforms and take stars",
    "coinrun": "run and jump to the coin at the far right",
    "dodgeball": "hit foes with balls, then reach the door",
    "fruitbot": "steer through gaps, into fruit and not into the rest",
    "heist": "open locks by keys of their colour, to the gem",
    "jumper": "jump through caves to the carrot, by a compass",
    "leaper": "cross a road and a river",
    "maze": "find the cheese in a maze",
    "miner": "dig for diamonds under boulders, then to the exit",
    "ninja": "jump over ledges and bombs to the mushroom",
    "plunder": "sink the ships that the legend shows, and no others",
    "starpilot": "fly, dodge, and shoot what comes",
}


# The seven games with consistent motion: the paper's section 4.
MOVING = ("chaser", "leaper", "dodgeball", "climber", "bossfight", "starpilot", "bigfish")


class ProcgenBenchmark:
    """All 16 games under one mode and number of training levels; the rest of their levels are held out."""

    views: Sequence[str] = VIEWS
    tasks: Sequence[str] = tuple(f"procgen/{game}" for game in GAMES)
    about: Mapping[str, str] = {f"procgen/{game}": ABOUT[game] for game in GAMES}
    shapings: Sequence[str] = SHAPINGS
    moving_tasks: Sequence[str] = tuple(f"procgen/{game}" for game in MOVING)
    shaped_tasks: Mapping[str, Sequence[str]] = {"subgoals": tuple(f"procgen/{game}" for game in SHAPED)}

    def __init__(self, name: str, mode: str, num_levels: int) -> None:
        """Name a benchmark of Procgen's mode, trained on so many levels."""
        self.name = name
        self.knobs: dict[str, Any] = {"mode": mode, "num_levels": num_levels}
        self.r_min = {task: float(RANGES[mode][_game(task)][0]) for task in self.tasks}
        self.r_max = {task: float(RANGES[mode][_game(task)][1]) for task in self.tasks}
        self.range_sets = {
            "cobbe": {task: (self.r_min[task], self.r_max[task]) for task in self.tasks},
            "measured": {task: (_measured()[self.name, task], self.r_max[task]) for task in self.tasks},
        }

    def check_installed(self, task: str) -> None:
        """Refuse to play where Procgen's library is not there, or what binds it."""
        skins.wheel()
        if find_spec("gym3") is None:
            raise InputError(skins.NOT_INSTALLED)

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """Copies of a game; `knobs` override the benchmark's own."""
        from lcd.envs.procgen.vector import ProcgenVectorEnv

        return ProcgenVectorEnv(num_envs, seed, view=view, split=split, **self._knobs(task, knobs))

    def make_pairs(self, task: str, *, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """Copies that show all views of the same moments."""
        from lcd.envs.procgen.pairs import PairedViews

        return PairedViews(num_envs, seed, split=split, **self._knobs(task, knobs))

    def label_names(self, task: str, view: str) -> tuple[str, ...]:
        """What the labels of a mask stand for, from 0; empty for pixels."""
        return () if view == "pixels" else TABLES[_game(task)].names(view)

    def intensities(self, task: str, view: str) -> tuple[int, ...]:
        """The grey that each label of a mask is shown with."""
        return TABLES[_game(task)].intensities(view)

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """R_min and R_max of a game in the mode that is played; every seed has the same."""
        mode = ProcgenKnobs.from_dict(self._knobs(task, knobs)).mode
        if mode not in RANGES:
            raise InputError(
                f"mode is {mode!r}, for which no range of returns is published; {nearest(str(mode), RANGES)}"
            )
        return RANGES[mode][_game(task)]

    def family(self, task: str) -> Family:
        """The levels that are trained on, each a point: trained and evaluated on that level alone."""
        return _levels(self.knobs["num_levels"])

    def features_of(self, task: str) -> Mapping[str, float]:
        """Which levels a game has, each number with the benchmark's own value."""
        return dict(self.family(task).default)

    def _knobs(self, task: str, knobs: Mapping[str, Any]) -> dict[str, Any]:
        own = {"game": _game(task), **self.knobs}
        if knobs.get("mode") == "exploration":
            del own["num_levels"]
        return {**own, **knobs}


@cache
def _levels(count: int) -> Family:
    alone = {"num_levels": [1], "held_out": [0]}
    return grid_family({"start_level": range(count), **alone}, {"start_level": 0, "num_levels": count, "held_out": 1})


def _game(task: str) -> str:
    return task.removeprefix("procgen/")


PROCGEN = ProcgenBenchmark("procgen", "hard", 500)
"""Procgen's 16 games as the papers have them: hard, 500 levels to train on."""
PROCGEN_EASY = ProcgenBenchmark("procgen-easy", "easy", 200)
"""Procgen's 16 games, easy, 200 levels to train on."""
