"""The benchmark `atari`: games whose things are drawn as masks, by tables of the console's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import TimeLimit

from lcd.envs.atari.memory_tables import GAMES
from lcd.envs.benchmarks import check_task, check_view
from lcd.envs.engines import FRAMES_A_STEP, SeededCopies, seeds_of_copies
from lcd.envs.errors import InputError, nearest
from lcd.envs.masks import FIGURE_GROUND, MASKED, VIEWS, Moment, greys
from lcd.envs.viewed import Viewed

SIDE, FRAMES = 84, 4
STICKY = 0.25
"""Probability that the console takes the last action again: without it every episode begins and goes on alike."""
LONGEST = 27000
"""Steps of an episode, half an hour of play."""

# Random agents: Mnih et al. 2015, "Human-level control through deep reinforcement learning". The best: the rules.
RANGES: Mapping[str, tuple[float, float]] = {
    "atari/Pong": (-20.7, 21.0),
    "atari/Breakout": (1.7, 864.0),
    "atari/Freeway": (0.0, 34.0),
    "atari/Boxing": (0.1, 100.0),
}
KNOBS = {"size": SIDE, "frames": FRAMES, "sticky": STICKY, "longest": LONGEST}


class MemoryMasks:
    """Labels by the console's memory."""

    def __init__(self, game: str) -> None:
        """Take a game's table."""
        self.game, self.names = GAMES[game], GAMES[game].names

    def __call__(self, moment: Moment) -> np.ndarray:
        """The class of each pixel of the screen."""
        return self.game.labels(moment.picture, moment.env.ale.getRAM())

    def __str__(self) -> str:
        return "the console's memory"


class Atari:
    """Four games in grey, four frames as channels, four skipped; their things are found in the console's memory."""

    name = "atari"
    tasks: Sequence[str] = tuple(RANGES)
    views: Sequence[str] = VIEWS
    r_min: Mapping[str, float] = {task: low for task, (low, _) in RANGES.items()}
    r_max: Mapping[str, float] = {task: high for task, (_, high) in RANGES.items()}
    masks_are = (
        "masks are drawn of where the console's memory says that things are (paddles, ball, bricks by their rows, "
        "cars, chickens, boxers); scores and walls are background. φ says how much better agents learn from these than "
        "from the grey screen."
    )

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """Copies of a game.

        Args:
            knobs: `size` and `frames` of pictures, `sticky` (how often an action is taken again), `longest` (steps).
        """
        check_task(self, task)
        check_view(self, task, view)
        return self._copies(task, [view], split, num_envs, seed, knobs, together=False)

    def make_pairs(
        self, task: str, *, split: str, num_envs: int, seed: int, views: Sequence[str] = VIEWS, **knobs: Any
    ) -> VectorEnv:
        """Copies that show several views of the same moments."""
        check_task(self, task)
        return self._copies(task, views, split, num_envs, seed, knobs, together=True)

    def label_names(self, task: str, view: str) -> tuple[str, ...]:
        """What the labels of a mask stand for; empty for pixels."""
        names: tuple[str, ...] = _game(task).names if view in MASKED else ()
        return (*names[:1], *["figure"] * (len(names) - 1)) if view == FIGURE_GROUND else names

    def intensities(self, task: str, view: str) -> tuple[int, ...]:
        """The grey that each label is shown with."""
        return greys(_game(task).names, view)

    def _copies(
        self,
        task: str,
        views: Sequence[str],
        split: str,
        num_envs: int,
        seed: int,
        knobs: Mapping[str, Any],
        together: bool,
    ) -> VectorEnv:
        for knob in knobs:
            if knob not in KNOBS:
                raise InputError(f"{task} has no knob '{knob}'; {nearest(knob, KNOBS)}")
        seeds = seeds_of_copies([seed], num_envs, split)
        make = partial(_made, task, tuple(views), {**KNOBS, **knobs}, together)
        return SeededCopies([make] * num_envs, seeds)


class FramesSkipped(gymnasium.Wrapper):
    """A step is several frames under one action; what flickers is shown by the brighter of the last two."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step."""
        total, shown = 0.0, []
        for _ in range(FRAMES_A_STEP):
            screen, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            shown.append(screen)
            if terminated or truncated:
                break
        return np.max(shown[-2:], axis=0), total, terminated, truncated, info


def _game(task: str) -> Any:
    return GAMES[task.removeprefix("atari/")]


def _made(task: str, views: tuple[str, ...], knobs: Mapping[str, Any], together: bool) -> gymnasium.Env:
    if find_spec("ale_py") is None:
        raise InputError(
            "benchmark=atari needs the games, which are not installed: pip install "
            "'learning-challenge-diagnosticator[atari]'."
        )
    game = task.removeprefix("atari/")
    env = gymnasium.make(
        f"ale_py:ALE/{game}-v5",
        frameskip=1,
        repeat_action_probability=knobs["sticky"],
        disable_env_checker=True,
    )
    limited = TimeLimit(FramesSkipped(env), max_episode_steps=knobs["longest"])
    how = {name: knobs[name] for name in ("size", "frames")}
    return Viewed(limited, views, MemoryMasks(game), **how, grey=True, together=together)


ATARI = Atari()
"""Pong, Breakout, Freeway and Boxing as they are usually learned, with masks by the console's memory."""
