"""Benchmarks of an installed engine's single environments, and those of them that are shown under views."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar

import gymnasium
from gymnasium.vector import VectorEnv

from lcd.envs.benchmarks import check_task, check_view
from lcd.envs.checks import require_whole_number
from lcd.envs.engines import SeededCopies, seeds_of_copies
from lcd.envs.errors import InputError, nearest
from lcd.envs.hardness.image_knobs import MOST_PIXELS
from lcd.envs.masks import VIEWS, Masks, greys, names_in
from lcd.envs.viewed import STATE, Viewed

PICTURES = {"size": MOST_PIXELS, "frames": 100}
"""Knobs of what is shown, and the most that each may be; all others are the task's."""


class SingleBenchmark(ABC):
    """Tasks that are single environments, whose copies are stepped one after the other.

    Attributes:
        knobs: the knobs that all tasks have, with what they are unless they are given.
        needs: the packages without which nothing can be made, and the extra that has them.
        of_engine: whether knobs that are none of these go to the engine, which refuses what it does not know.
    """

    name: str
    tasks: Sequence[str]
    views: Sequence[str] = (STATE,)
    knobs: Mapping[str, Any] = {}
    needs: ClassVar[tuple[tuple[str, ...], str]]
    of_engine: ClassVar[bool] = False

    @property
    @abstractmethod
    def r_min(self) -> Mapping[str, float]:
        """Task → the mean return of a random agent, where it is known."""

    @property
    @abstractmethod
    def r_max(self) -> Mapping[str, float]:
        """Task → the best mean return there is, where it is known."""

    @abstractmethod
    def single(self, task: str, knobs: Mapping[str, Any]) -> gymnasium.Env:
        """One copy as it is, with all knobs said."""

    def check_installed(self, task: str) -> None:
        """Refuse to make anything without the engine."""
        packages, extra = self.needs
        if any(find_spec(package) is None for package in packages):
            raise InputError(
                f"benchmark={self.name} needs {' and '.join(packages)}, which {'is' if len(packages) == 1 else 'are'} "
                f"not installed: pip install 'learning-challenge-diagnosticator[{extra}]'."
            )

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse knobs that the task does not have."""
        for knob in knobs:
            if knob not in self.knobs and not self.of_engine:
                raise InputError(f"{task} has no knob '{knob}'; {nearest(knob, self.knobs)}")

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """Copies of a task."""
        check_task(self, task)
        check_view(self, task, view)
        return self.copies(task, [view], split, num_envs, seed, knobs)

    def copies(
        self,
        task: str,
        views: Sequence[str],
        split: str,
        num_envs: int,
        seed: int,
        knobs: Mapping[str, Any],
        together: bool = False,
    ) -> VectorEnv:
        """Copies under one view, or under several together."""
        self.check_installed(task)
        self.check_knobs(task, knobs)
        make = self.maker(task, tuple(views), {**self.knobs, **knobs}, together)
        return SeededCopies([make] * num_envs, seeds_of_copies([seed], num_envs, split))

    def maker(self, task: str, views: tuple[str, ...], knobs: Mapping[str, Any], together: bool) -> Any:
        """What makes one copy under its views."""
        return partial(self.single, task, knobs)


class ViewedBenchmark(SingleBenchmark):
    """The same with labels of pixels, and so with views.

    Attributes:
        grey: whether pictures have one channel.
    """

    views: Sequence[str] = VIEWS
    grey: ClassVar[bool] = False

    @abstractmethod
    def masks(self, task: str, knobs: Mapping[str, Any]) -> Masks:
        """Where its labels come from."""

    def pictured(self, env: gymnasium.Env, masks: Any) -> gymnasium.Env:
        """A copy that observes, or renders, what `pixels` are, where it does not do so as it is."""
        return env

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse knobs that the task does not have, and pictures of no size or too large a one."""
        super().check_knobs(task, knobs)
        for knob, most in PICTURES.items():
            require_whole_number(knob, knobs.get(knob, 1), 1, most)

    def make_pairs(
        self, task: str, *, split: str, num_envs: int, seed: int, views: Sequence[str] = VIEWS, **knobs: Any
    ) -> VectorEnv:
        """Copies that show several views of the same moments."""
        check_task(self, task)
        return self.copies(task, views, split, num_envs, seed, knobs, together=True)

    def label_names(self, task: str, view: str) -> tuple[str, ...]:
        """What the labels of a mask stand for; empty for a view without masks."""
        self.check_installed(task)
        masks = self.masks(task, self.knobs)
        return names_in(masks.names, view, masks.ground, masks.figure)

    def intensities(self, task: str, view: str) -> tuple[int, ...]:
        """The grey that each label is shown with."""
        self.check_installed(task)
        masks = self.masks(task, self.knobs)
        return greys(masks.names, view, masks.ground, masks.figure)

    def maker(self, task: str, views: tuple[str, ...], knobs: Mapping[str, Any], together: bool) -> Any:
        """What makes one copy under its views; all share where labels come from."""
        how = {name: knobs[name] for name in PICTURES}
        rest = {name: value for name, value in knobs.items() if name not in PICTURES}
        if views == (STATE,) and not together:
            return partial(self.single, task, rest)
        masks = self.masks(task, knobs)

        def made() -> gymnasium.Env:
            env = self.pictured(self.single(task, rest), masks)
            return Viewed(env, views, masks, **how, grey=self.grey, together=together)

        return made
