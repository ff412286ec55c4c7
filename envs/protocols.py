"""What a benchmark and its environments have to have, and what they may offer besides: each offer is a protocol.

`offers(benchmark, Shapings)` asks for one. No code asks an object for an attribute by name; the functions at the end
give what holds of a benchmark without the offer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar

import numpy as np
from gymnasium.vector import VectorEnv

if TYPE_CHECKING:
    from lcd.envs.families.family import Family, Point
    from lcd.envs.lone import LoneCopy
    from lcd.envs.state import State
    from lcd.envs.tabular.mdp import TabularMDP

Bound = float | Callable[[int], float]
"""A return, or, where every seed is another MDP, a function from the seed to a return."""
NO_SHAPING = "none"
_Offer = TypeVar("_Offer")


def offers(thing: object, protocol: type[_Offer]) -> TypeGuard[_Offer]:
    """Whether a thing has every attribute that a protocol declares."""
    return not missing(thing, protocol)


def missing(thing: object, protocol: type[Any]) -> list[str]:
    """The attributes that a protocol declares and a thing does not have, in the protocol's order."""
    return [name for name in _members(protocol) if not hasattr(thing, name)]


def _members(protocol: type[Any]) -> list[str]:
    declared = [vars(part) for part in protocol.__mro__ if part not in (Protocol, object)]
    names = [name for part in declared for name in (*part.get("__annotations__", ()), *part)]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


class Benchmark(Protocol):
    """What a benchmark has to have.

    Attributes:
        name: what commands call it.
        tasks: the names of its tasks.
        views: what its environments can show: `pixels`, `figure_ground`, `semantic`, `state`, or others.
    """

    name: str
    tasks: Sequence[str]
    views: Sequence[str]

    @property
    def r_min(self) -> Mapping[str, Bound]:
        """Task → the mean return of a random agent."""
        ...

    @property
    def r_max(self) -> Mapping[str, Bound]:
        """Task → the best mean return there is."""
        ...

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """A vector environment of `num_envs` copies of a task."""
        ...


# What a benchmark may offer


class Populations(Protocol):
    """All seeds of a run in one environment; without it, one environment a seed is stacked."""

    def make_population(
        self, task: str, *, seeds: Sequence[int], copies: int, view: str, split: str, **knobs: Any
    ) -> VectorEnv:
        """`copies` copies a seed, those of a seed side by side; every seed gets what it would get alone."""
        ...


class RangesByKnobs(Protocol):
    """Ranges of returns that depend on knobs; without it, `r_min` and `r_max` hold whatever the knobs."""

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """R_min and R_max of a task for a seed; NaN where unknown."""
        ...


class RangeSets(Protocol):
    """Ranges of returns by where they come from, the benchmark's own first; without it there are only its own."""

    range_sets: Mapping[str, Mapping[str, tuple[float, float]]]


class ExplainsTasks(Protocol):
    """What each task is: task → a line for `lcd list tasks`."""

    about: Mapping[str, str]


class ViewsByTask(Protocol):
    """Tasks that do not have all of the benchmark's views."""

    def views_of(self, task: str) -> Sequence[str]:
        """The views of a task."""
        ...


class SolvedView(Protocol):
    """The view in which perception is out of the way: ψ's; without it, the most solved of the benchmark's views."""

    solved_view: str | None


class Shapings(Protocol):
    """Extra training rewards for sub-goals by name, `none` among them; environments then take a knob `shaping`."""

    shapings: Sequence[str]


class ShapedTasks(Protocol):
    """Which tasks have a shaping; without it, all have all."""

    shaped_tasks: Mapping[str, Collection[str]]


class SaysMasks(Protocol):
    """What the benchmark's masks are made of, and so what φ means there: a sentence for the report."""

    masks_are: str


class MovingTasks(Protocol):
    """The tasks whose videos motion can be learned from; without it, all."""

    moving_tasks: Sequence[str]


class Pairs(Protocol):
    """All views of the same moments, and what masks stand for: for pictures, and to measure objectness."""

    def make_pairs(
        self, task: str, *, split: str, num_envs: int, seed: int, views: Sequence[str], **knobs: Any
    ) -> VectorEnv:
        """An environment whose observations are dictionaries from view to image."""
        ...

    def label_names(self, task: str, view: str) -> tuple[str, ...]:
        """What the classes of a view's masks are called; empty for a view without masks."""
        ...

    def intensities(self, task: str, view: str) -> tuple[int, ...]:
        """The grey of each class in a view's masks."""
        ...


class KnownHardness(Protocol):
    """How hard tasks are: task → an object with `perception` and `reward`, which grow with it; NaN is not known."""

    truth: Mapping[str, Any]


class NamesKnobs(Protocol):
    """Tasks whose names tell the knobs that are set in them."""

    def with_knobs(self, task: str, knobs: Mapping[str, Any]) -> str:
        """The task with some knobs set; an `InputError` where it has no such knob."""
        ...


class ChecksKnobs(Protocol):
    """Knobs that can be checked without making anything; without it, `reward_range` refuses wrong ones."""

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse knobs that the task does not have, or values that they cannot have, by an `InputError`."""
        ...


class WithoutNoise(Protocol):
    """The same tasks without noise: what a policy that was trained under noise is also evaluated on."""

    def without_noise(self, task: str, knobs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The task without noise in transitions and rewards, and the knobs that are left."""
        ...


class NeedsPackages(Protocol):
    """Tasks that need what may not be installed; without it, all that they need is."""

    def check_installed(self, task: str) -> None:
        """Refuse a task that cannot be made here, by an `InputError` that says what to install; it imports nothing."""
        ...


class ShortEpisodes(Protocol):
    """Tasks whose episodes are so long that a trial is made with shorter ones."""

    def short_episodes(self, task: str, knobs: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
        """The knobs of a task with short episodes, and how many times as long its own are."""
        ...


class Graphs(Protocol):
    """The graph behind a task, which `lcd view` draws."""

    def graph(self, task: str, seed: int, **knobs: Any) -> tuple[Any, Any]:
        """The knobs of a task's graph (`lcd.envs.ctgraph.knobs.GraphKnobs`), and a seed's goal in it."""
        ...


class KnownHorizons(Protocol):
    """Tasks whose effective horizon is known: task → an object with `h`, `low` and `high`, NaN where unknown."""

    horizons: Mapping[str, Any]


class Families(Protocol):
    """Tasks that are underspecified: each is one point of a family of MDPs. Features of the context are knobs."""

    def family(self, task: str) -> Family | None:
        """The family of a task; None where it is the only one of its kind."""
        ...


class KnowsFailures(Protocol):
    """Tasks that measure more of an episode than its return, and say when a point of their family fails.

    `failure` is what is measured, a key of the infos of an episode's last step, and the mean above which a point fails.
    """

    failure: tuple[str, float]


class KnowsFeatures(Protocol):
    """Tasks that say which numbers of theirs a family may vary; without it, a study says their defaults."""

    def features_of(self, task: str) -> Mapping[str, float]:
        """Feature → its value in the task as it is."""
        ...


class KnowsPoints(Protocol):
    """Tasks of which something is known at every point of their family before any is trained."""

    def known_of_points(self, task: str, points: Sequence[Point]) -> np.ndarray:
        """(points, quantities), as what a random agent returns there; NaN where finding it out would take long."""
        ...


class PointPopulations(Protocol):
    """Several points of a family in one environment; without it, one population a point is stacked."""

    def make_points(
        self,
        task: str,
        *,
        points: Sequence[Point],
        seeds: Sequence[int],
        copies: int,
        view: str,
        split: str,
        **knobs: Any,
    ) -> VectorEnv:
        """`copies` copies of each seed of each point: points first, then seeds, then copies.

        Every seed of a point gets what it would get where the point's features are knobs of the task.
        """
        ...


class Tabular(Protocol):
    """Tasks that are also to be had as tables of transitions and rewards, where nothing in them is left to chance."""

    def tabular(self, task: str, seed: int, **knobs: Any) -> TabularMDP:
        """A seed's task as a table.

        Raises:
            NoTables: where no knobs would give it any.
            InputError: where something in it is left to chance, which the sentence names.
        """
        ...


class Simulates(Protocol):
    """Tasks that have a simulator of their own for who looks ahead, which `make_vec` does not give."""

    def simulator(self, task: str, *, seed: int, copies: int, **knobs: Any) -> VectorEnv | None:
        """Copies of one episode that keep their state (`KeepsState`); None: those of `make_vec` are all there is."""
        ...


# What an environment may offer


class KeepsState(Protocol):
    """A run continues within an episode; without it, new episodes start where a run is continued."""

    def get_state(self) -> State:
        """Everything that the future depends on."""
        ...

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        ...


class StepsAlone(Protocol):
    """A vector environment whose only copy can be stepped in plain numbers."""

    def lone(self) -> LoneCopy | None:
        """The only copy; None where arrays are as good."""
        ...


class KnowsItsSeeds(Protocol):
    """A population that knows of how many seeds it is."""

    num_seeds: int


class OneHotStates(Protocol):
    """Observations that are one-hot vectors side by side, so that tabular agents can number them; None: others."""

    one_hot_sizes: tuple[int, ...] | None


class RestsCopies(Protocol):
    """Copies that need not be stepped any more until all are reset: they go on showing what they show, unpaid."""

    def rest(self, copies: np.ndarray) -> None:
        """Leave out these copies, booleans of all; those that were left out before stay so."""
        ...


class Drawn(Protocol):
    """Copies that can be drawn where their view is no image."""

    def pictures(self) -> np.ndarray:
        """A picture a copy, as uint8."""
        ...


# What holds of every benchmark


def views_of(benchmark: Benchmark, task: str) -> Sequence[str]:
    """The views of a task."""
    return benchmark.views_of(task) if offers(benchmark, ViewsByTask) else benchmark.views


def check_installed(benchmark: Benchmark, tasks: Iterable[str]) -> None:
    """Refuse tasks that cannot be made for want of a package."""
    if offers(benchmark, NeedsPackages):
        for task in tasks:
            benchmark.check_installed(task)


def shapings_of(benchmark: Benchmark) -> Sequence[str]:
    """The names of a benchmark's shapings, `none` where it has no others."""
    return benchmark.shapings if offers(benchmark, Shapings) else (NO_SHAPING,)


def has_shaping(benchmark: Benchmark, task: str, shaping: str) -> bool:
    """Whether a task has a shaping that its benchmark offers."""
    having = benchmark.shaped_tasks if offers(benchmark, ShapedTasks) else {}
    return task in having.get(shaping, (task,))


def moving_tasks_of(benchmark: Benchmark) -> Sequence[str]:
    """The tasks whose videos motion can be learned from."""
    return benchmark.moving_tasks if offers(benchmark, MovingTasks) else benchmark.tasks


def known_of_points(benchmark: Benchmark, task: str, points: Sequence[Point]) -> np.ndarray | None:
    """(points, quantities): what is known of points before any is trained; None where that is nothing."""
    return benchmark.known_of_points(task, points) if offers(benchmark, KnowsPoints) else None
