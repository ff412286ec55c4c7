"""The knobs of a Procgen environment, checked, and what they mean for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from lcd.envs.checks import is_number, require_whole_number
from lcd.envs.errors import InputError, nearest
from lcd.envs.procgen.mask_tables import GAMES, MASKS

VIEWS = ("pixels", *MASKS)
LABELS = "labels"
SPLITS = ("train", "eval")
SHAPINGS = ("none", "subgoals")
SHAPED = ("heist", "leaper", "maze")

# Procgen's number of each mode, and the games that have it ("easy" and "hard" are for all).
MODES = {"easy": 0, "hard": 1, "extreme": 2, "memory": 10, "exploration": 1}
# Exploration is one level, in hard mode.
EXPLORATION_LEVELS = {
    "coinrun": 1949448038,
    "caveflyer": 1259048185,
    "leaper": 1318677581,
    "jumper": 1434825276,
    "maze": 158988835,
    "heist": 876640971,
    "climber": 1561126160,
    "ninja": 1123500215,
}
GAMES_OF_MODE = {
    "easy": GAMES,
    "hard": GAMES,
    "extreme": ("chaser", "dodgeball", "leaper", "starpilot"),
    "memory": ("caveflyer", "dodgeball", "heist", "jumper", "maze", "miner"),
    "exploration": tuple(EXPLORATION_LEVELS),
}
TRAINING_LEVELS = 500
LAST_LEVEL = 2**31 - 1
MOST_THREADS = 256
"""The engine ends the whole process where a system refuses it a thread."""


@dataclass(frozen=True)
class ProcgenKnobs:
    """What an environment can be made with.

    Attributes:
        game: one of the 16 games.
        view: pixels, figure_ground, semantic, or labels (the semantic mask as label numbers, one channel).
        split: train, or eval: levels that are not trained on.
        mode: easy, hard, extreme, memory or exploration; not every game has each.
        num_levels: how many levels are trained on (500 unless given); 0 means all there are.
        start_level: the first of them; those of `eval` begin where they end.
        held_out: whether `eval` has other levels than those that are trained on (true or 1), or the same (false or 0).
        shaping: none, or subgoals: extra reward in training, for heist, leaper and maze.
        key_reward, door_reward: heist's extra reward for a key picked up and for a door opened.
        lane_reward: leaper's for a lane of the road or a row of the river that is reached first in an episode.
        cell_reward: maze's for a cell that is entered first in an episode. With these three as they are, all
            of a level's sub-goals together are worth less than its own goal (10), in every mode.
        cache: where skins are kept; see `lcd.envs.procgen.skins.cache_folder`.
        num_threads: threads that step the copies.
        center_agent, use_backgrounds, use_monochrome_assets, restrict_themes, use_generated_assets, paint_vel_info,
        use_sequential_levels, debug_mode: Procgen's own options. Masks have no backgrounds, are never monochrome boxes
            and show no velocities; they cannot be made of generated assets.
        render_mode: None, or rgb_array: `render` gives the frames of the view.
    """

    game: str
    view: str = "pixels"
    split: str = "train"
    mode: str = "hard"
    num_levels: int | None = None
    start_level: int | None = None
    held_out: bool | int = True
    shaping: str = "none"
    key_reward: float = 1.0
    door_reward: float = 1.0
    lane_reward: float = 0.5
    cell_reward: float = 0.015
    cache: str | None = None
    num_threads: int = 4
    center_agent: bool = True
    use_backgrounds: bool = True
    use_monochrome_assets: bool = False
    restrict_themes: bool = False
    use_generated_assets: bool = False
    paint_vel_info: bool = False
    use_sequential_levels: bool = False
    debug_mode: int = 0
    render_mode: str | None = None

    @classmethod
    def from_dict(cls, knobs: Mapping[str, Any]) -> ProcgenKnobs:
        """The knobs by name; one that there is not is a user's mistake."""
        known = [field.name for field in fields(cls)]
        for name in knobs:
            if name not in known:
                raise InputError(f"{name} is no knob of a Procgen environment; {nearest(name, known)}")
        if "game" not in knobs:
            raise InputError(f"game is missing; {nearest('', GAMES)}")
        return cls(**knobs)

    def __post_init__(self) -> None:
        _one_of("game", self.game, GAMES)
        _one_of("view", self.view, (*VIEWS, LABELS))
        _one_of("split", self.split, SPLITS)
        _one_of("mode", self.mode, MODES)
        _one_of("shaping", self.shaping, SHAPINGS)
        if self.game not in (having := GAMES_OF_MODE[self.mode]):
            raise InputError(f"mode is {self.mode!r}, which {self.game} does not have; {', '.join(having)} have it.")
        require_whole_number("debug_mode", self.debug_mode, 0, LAST_LEVEL)
        require_whole_number("num_threads", self.num_threads, 0, MOST_THREADS)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "bool" and not isinstance(value, bool):
                raise InputError(f"{field.name} is {value!r}, but it must be true or false.")
            if field.type == "float" and not is_number(value):
                raise InputError(f"{field.name} is {value!r}, but it must be a number.")
        if self.render_mode not in (None, "rgb_array"):
            raise InputError(f"render_mode is {self.render_mode!r}, but it must be None or 'rgb_array'.")
        if self.held_out not in (0, 1):
            raise InputError(f"held_out is {self.held_out!r}, but it must be true or false, or 1 or 0.")
        self._check_levels()
        self._check_masks()

    def _check_levels(self) -> None:
        for name in ("num_levels", "start_level"):
            if (value := getattr(self, name)) is not None:
                require_whole_number(name, value, 0)
                if self.mode == "exploration":
                    raise InputError(f"{name} is {value}, but mode='exploration' is one level that is fixed.")
        start, count = self.training_levels
        if start + count > LAST_LEVEL:
            raise InputError(f"start_level + num_levels is {start + count}, but it must be at most {LAST_LEVEL}.")
        if self.split == "eval" and self.held_out and (count == 0 or start + count == LAST_LEVEL):
            raise InputError(
                f"num_levels is {count}, so that every level is trained on and split='eval' has none left: give the "
                "number of levels to train on, or let both have the same ones by the knob held_out (false)."
            )

    def _check_masks(self) -> None:
        if self.shaping != "none" and self.game not in SHAPED:
            raise InputError(
                f"shaping is {self.shaping!r}, but only {', '.join(SHAPED[:-1])} and {SHAPED[-1]} have sub-goals."
            )
        if self.use_generated_assets and self.shaping != "none":
            raise InputError("shaping reads the game's state, which Procgen cannot give for use_generated_assets=True.")
        if self.view == "pixels":
            return
        if self.use_generated_assets:
            raise InputError(
                f"use_generated_assets is True, but view={self.view!r} is made of the games' own sprites: only "
                "view='pixels' shows generated ones."
            )
        if self.restrict_themes and self.game == "bossfight" and self.view != "figure_ground":
            raise InputError(
                f"restrict_themes is True, but then both sides of bossfight shoot the same laser, which "
                f"view={self.view!r} has to tell apart: choose view='figure_ground' or restrict_themes=False."
            )

    @property
    def mask(self) -> str | None:
        """Which mask is drawn, if any."""
        return {"pixels": None, LABELS: "semantic"}.get(self.view, self.view)

    @property
    def training_levels(self) -> tuple[int, int]:
        """The first training level and their number (0: all)."""
        if self.mode == "exploration":
            return EXPLORATION_LEVELS[self.game], 1
        count = TRAINING_LEVELS if self.num_levels is None else int(self.num_levels)
        return int(self.start_level or 0), count

    @property
    def levels(self) -> tuple[int, int]:
        """The first level of the split and their number.

        Procgen ignores the start where the number is 0, so that held-out levels are the largest number of others.
        """
        start, count = self.training_levels
        if self.split == "train" or not self.held_out:
            return start, count
        return start + count, LAST_LEVEL - start - count

    def options(self, rand_seed: int) -> dict[str, Any]:
        """What Procgen's library is made with."""
        start, count = self.levels
        drawn = self.mask is None
        return {
            "env_name": self.game,
            "num_levels": count,
            "start_level": start,
            "num_actions": 15,
            "use_sequential_levels": self.use_sequential_levels,
            "debug_mode": int(self.debug_mode),
            "rand_seed": rand_seed,
            "num_threads": int(self.num_threads),
            "render_human": False,
            "center_agent": self.center_agent,
            "use_generated_assets": self.use_generated_assets,
            "use_monochrome_assets": self.use_monochrome_assets and drawn,
            "restrict_themes": self.restrict_themes,
            "use_backgrounds": self.use_backgrounds and drawn,
            "paint_vel_info": self.paint_vel_info and drawn,
            "distribution_mode": MODES[self.mode],
        }


def _one_of(name: str, value: Any, options: Any) -> None:
    if value not in options:
        raise InputError(f"{name} is {value!r}, which is none of its values; {nearest(value, options)}")
