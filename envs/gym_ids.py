"""`benchmark=gym:<id>`: any environment that is registered with Gymnasium, with masks of whoever has some."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import FlattenObservation

from lcd.envs.benchmarks import check_task, check_view
from lcd.envs.engines import SeededCopies, seeds_of_copies
from lcd.envs.errors import InputError
from lcd.envs.gym_names import FLOW, parts_of
from lcd.envs.masks import (
    ALL_WHITE,
    BACKGROUND,
    PIXELS,
    SEMANTIC,
    VIEWS,
    ColourMasks,
    GreysFigures,
    Masks,
    NamesLabels,
    OwnMasks,
    checked_names,
    figure_greys,
    greys,
    names_in,
    read_back,
)
from lcd.envs.protocols import offers
from lcd.envs.spaces import is_image
from lcd.envs.viewed import SIDE, STATE, Viewed

TASKS = "gym/"
"""What its tasks' names begin with."""
KNOWN_MODULES = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "ALE/": "ale_py"}
"""What ids begin with, and the installed package that registers them once it is imported."""
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
NUMBERS = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)
MOST_AS_THEY_ARE = 96
"""Height or width up to which observed images are shown as they are."""


class GymnasiumIds:
    """Environments by their ids; without masks each shows what it observes, as `pixels` or as `state`."""

    def __init__(self, name: str, masks: Masks | None = None, pictures: bool = False) -> None:
        """Take the ids of a name.

        Args:
            name: what the benchmark is called (`lcd.envs.gym_names`).
            masks: where labels come from.
            pictures: whether what observes no images shows pictures all the same.
        """
        self._pictures = pictures
        self.name, self.masks = name, masks
        self._ids = {f"{TASKS}{each.rpartition(':')[2]}": each for each in parts_of(name)[0]}
        self.tasks: Sequence[str] = tuple(self._ids)
        for each in self._ids.values():
            _registered(each)
        self._own = {task: _own_view(each) for task, each in self._ids.items()}
        every = [view for task in self.tasks for view in self.views_of(task)]
        self.views: Sequence[str] = tuple(dict.fromkeys(every))

    def views_of(self, task: str) -> Sequence[str]:
        """The views of a task: all with masks, and then its own observations too, where those are no images."""
        own = self._own[task]
        drawn = VIEWS if self.masks is not None else (PIXELS,) if self._pictures else ()
        return tuple(dict.fromkeys((*drawn, own)))

    @property
    def r_min(self) -> Mapping[str, float]:
        """Nobody knows it."""
        return {}

    @property
    def r_max(self) -> Mapping[str, float]:
        """Nobody knows it."""
        return {}

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """Copies of an environment.

        Args:
            knobs: `size` and `frames` of pictures (`lcd.envs.viewed.Viewed`); all others are gymnasium.make's.
        """
        check_task(self, task)
        check_view(self, task, view)
        return self._copies(task, [view], split, num_envs, seed, knobs, together=False)

    def _copies(
        self,
        task: str,
        views: Sequence[str],
        split: str,
        num_envs: int,
        seed: int,
        knobs: dict[str, Any],
        together: bool,
    ) -> VectorEnv:
        seeds = seeds_of_copies([seed], num_envs, split)
        how = {name: _whole(name, knobs[name]) for name in ("size", "frames") if knobs.get(name) is not None}
        given = {name: value for name, value in knobs.items() if name not in ("size", "frames")}
        make = partial(_made, self._ids[task], tuple(views), self.masks, how, given, together)
        return SeededCopies([make] * num_envs, seeds)


class MaskedGymnasiumIds(GymnasiumIds):
    """The same with masks, so that all views of one moment can be had."""

    masks: Masks

    def make_pairs(
        self, task: str, *, split: str, num_envs: int, seed: int, views: Sequence[str] = VIEWS, **knobs: Any
    ) -> VectorEnv:
        """Copies that show several views of the same moments."""
        check_task(self, task)
        return self._copies(task, views, split, num_envs, seed, knobs, together=True)

    def label_names(self, task: str, view: str) -> tuple[str, ...]:
        """What the labels of a mask stand for; empty for a view without masks, or where nobody says."""
        return names_in(self.masks.names, view, self.masks.ground, self.masks.figure)

    def intensities(self, task: str, view: str) -> tuple[int, ...]:
        """The grey that each label is shown with."""
        return greys(self.masks.names, view, self.masks.ground, self.masks.figure)


def unseen_classes(benchmark: object, task: str, semantic: np.ndarray) -> list[str] | None:
    """The classes of a table of colours that pictures under `semantic` do not have; None where there is no table."""
    if not isinstance(benchmark, MaskedGymnasiumIds) or not isinstance(benchmark.masks, ColourMasks):
        return None
    there = set(np.unique(semantic).tolist())
    named = zip(benchmark.intensities(task, SEMANTIC), benchmark.masks.names, strict=True)
    return [name for grey, name in named if name != BACKGROUND and grey not in there]


def _registered(each: str) -> str:
    """The id, once whatever registers it is imported."""
    module, _, name = each.rpartition(":")
    module = module or next((known for begin, known in KNOWN_MODULES.items() if name.startswith(begin)), "")
    if module:
        if not MODULE.fullmatch(module):
            raise InputError(f"benchmark=gym:{each} names no module before its colon: gym:my_package:Cave-v0 does.")
        try:
            import_module(module)
        except (Exception, SystemExit) as error:
            why = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
            raise InputError(f"benchmark=gym:{each}: {module} cannot be imported: {why.rstrip('.')}.") from error
    if name not in gymnasium.registry:
        close = get_close_matches(name, gymnasium.registry, n=1)
        meant = f"did you mean '{close[0]}'? " if close else ""
        raise InputError(
            f"benchmark=gym:{each}: Gymnasium has no environment '{name}'; {meant}One that a package of yours "
            "registers is named with it: gym:my_package:Cave-v0."
        )
    return name


def _own_view(each: str) -> str:
    """The view that shows what an environment observes."""
    space = _observed(each)
    if not is_image(space):
        return STATE
    shape: tuple[int, ...] = tuple(space.shape or ())
    if len(shape) == 3 and shape[-1] not in (1, 3):
        raise InputError(
            f"benchmark=gym:{each} observes images of shape {shape}, but a picture has (height, width), or its colours "
            "last (height, width, 3): observe one such picture, and stack frames by study.knobs.frames=4."
        )
    return PIXELS


def _observed(each: str) -> spaces.Space:
    env = _engine(each, {})
    try:
        return env.observation_space
    finally:
        env.close()


def _engine(each: str, knobs: Mapping[str, Any]) -> gymnasium.Env:
    name = _registered(each)
    try:
        env = gymnasium.make(name, disable_env_checker=True, **knobs)
    # Whoever registers an environment may need what is not there, and takes what it likes.
    except (Exception, SystemExit) as why:
        told = str(why).split("\n")[0].rstrip(".")
        raise InputError(f"The environment '{name}' cannot be made here ({type(why).__name__}: {told}).") from why
    if isinstance(env.observation_space, spaces.Box) and is_image(env.observation_space):
        return env
    if isinstance(env.observation_space, spaces.Dict):
        env = _WithoutText(env)
        if not env.kept:
            raise InputError(f"'{name}' observes a dictionary without numbers, and agents here do not read.")
    if not isinstance(env.observation_space, spaces.Box) or len(env.observation_space.shape) != 1:
        try:
            env = FlattenObservation(env)
        except NotImplementedError as why:
            raise InputError(
                f"'{name}' observes a {type(env.observation_space).__name__}, which no array holds."
            ) from why
    return env


class _WithoutText(gymnasium.ObservationWrapper):
    """The parts of a dictionary that are numbers: agents here do not read."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        # What is none of these is text, by whatever name: MiniGrid's mission.
        self.kept = [key for key, space in env.observation_space.spaces.items() if isinstance(space, NUMBERS)]
        self.observation_space = spaces.Dict({key: env.observation_space[key] for key in self.kept})

    def observation(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """The observation without its texts."""
        return {key: observation[key] for key in self.kept}


def _made(
    each: str, views: tuple[str, ...], masks: Masks | None, how: dict[str, int], knobs: dict[str, Any], together: bool
) -> gymnasium.Env:
    """One copy under its views."""
    if masks is None and not together and not how and views == (STATE,):
        return _engine(each, knobs)
    renders = {} if views == (STATE,) else {"render_mode": "rgb_array"}
    env = _engine(each, {**renders, **knobs})
    own = env.observation_space
    side = max(own.shape[:2]) if is_image(own) else SIDE
    size = how.get("size", side if side <= MOST_AS_THEY_ARE else SIDE)
    return Viewed(env, views, masks, size=size, frames=how.get("frames", 1), together=together)


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} is {value!r}, but it must be a whole number of at least 1.")
    return value


def gymnasium_benchmark(name: str, function_at: Callable[..., Any]) -> GymnasiumIds:
    """The benchmark of a name.

    Args:
        name: what it is called (`lcd.envs.gym_names`).
        function_at: imports a `module:function` that says labels; its second argument is what errors call it.
    """
    _, text = parts_of(name)
    if text in ("", FLOW):
        return GymnasiumIds(name, pictures=text == FLOW)
    found: Masks | None = read_back(text)
    if found is None and ":" in text:
        function = function_at(text, "function of masks")
        if not callable(function):
            raise InputError(f"masks={text} is no function: give module:function, which says the labels of a moment.")
        names = checked_names(function.names if offers(function, NamesLabels) else (), text)
        said = function.figure if offers(function, GreysFigures) else ALL_WHITE
        figure = figure_greys(said, names, f"masks={text}: figure")
        found = OwnMasks(text, function, names, figure)
    if found is None:
        raise InputError(f"masks={text} is not understood: give module:function, a YAML file of colours, or info.KEY.")
    return MaskedGymnasiumIds(name, found)
