"""The benchmark `hardness`: the toys, and environments of others, with any knobs in the task's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from lcd.envs.benchmarks import NativeBenchmark, check_view
from lcd.envs.checks import seed_list
from lcd.envs.engines import SeededCopies, atari
from lcd.envs.errors import InputError, NoTables, nearest
from lcd.envs.hardness.base import VIEWS
from lcd.envs.hardness.continuous import HardnessContinuousVectorEnv
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.image_knobs import ImageKnobs
from lcd.envs.hardness.injection import InjectionKnobs
from lcd.envs.hardness.knobs import HardnessKnobs
from lcd.envs.hardness.mdp import build_mdp
from lcd.envs.hardness.point import PointKnobs
from lcd.envs.hardness.solve import exact_range
from lcd.envs.hardness.tabular import as_tabular
from lcd.envs.hardness.task_names import PREFIX, parse_task, task_name
from lcd.envs.hardness.wrappers import HardnessVectorWrapper, HardnessWrapper
from lcd.envs.mujoco import MujocoHardness
from lcd.envs.population import SeedStack
from lcd.envs.streams import seed_sequence
from lcd.envs.tabular.mdp import TabularMDP

MUJOCO_KNOBS = ("time_unit", "action_space_max")
OWN_VIEW = {"atari": ("pixels",), "mujoco": ("state",), "gym": ("state",), "procgen": ("pixels",)}
KINDS = tuple(OWN_VIEW)
UNKNOWN = (float("nan"), float("nan"))


def knob_order(base: str) -> list[str]:
    """All knobs of a base, in the order that names of tasks keep."""
    if base == "discrete":
        kinds: list[Any] = [HardnessKnobs, ImageKnobs]
    elif base == "continuous":
        kinds = [PointKnobs]
    else:
        kinds = [InjectionKnobs]
    names = [f.name for kind in kinds for f in fields(kind) if f.init and f.name != "images"]
    if base.startswith("mujoco/"):
        return [name for name in names if name != "reward_clip"] + list(MUJOCO_KNOBS)
    return names


ABOUT: Mapping[str, str] = {
    f"{PREFIX}discrete": "MDP Playground's discrete toy; its knobs follow a colon, as in hardness/discrete:delay=4",
    f"{PREFIX}continuous": "MDP Playground's continuous toy: bring a point to a target",
}


class TaskNames(Sequence[str]):
    """The bases; but every well-formed name counts as one of them."""

    _bases = (f"{PREFIX}discrete", f"{PREFIX}continuous")

    def __getitem__(self, number: Any) -> Any:
        return self._bases[number]

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[str]:
        return iter(self._bases)

    def __contains__(self, name: object) -> bool:
        try:
            base, knobs = parse_task(str(name))
            check_base(base)
        except InputError:
            return False
        return all(knob in knob_order(base) for knob in knobs)


def check_base(base: str) -> None:
    """Refuse a base that there is not."""
    kind, _, rest = base.partition("/")
    if base not in ("discrete", "continuous") and (kind not in KINDS or not rest):
        options = ["discrete", "continuous", *(f"{kind}/…" for kind in KINDS)]
        raise InputError(f"'{base}' is nothing that can be made harder; {nearest(base, options)}")


class HardnessBenchmark(NativeBenchmark):
    """The toys and everybody's environments, with any knob in the task's name: `hardness/discrete:delay=4`.

    The tasks are `hardness/discrete`, `hardness/continuous`, and `hardness/<atari|mujoco|procgen|gym>/<name>`.
    """

    name = "hardness"
    tasks: Sequence[str] = TaskNames()
    about: Mapping[str, str] = ABOUT
    views: Sequence[str] = VIEWS

    def views_of(self, task: str) -> Sequence[str]:
        """The toys have all views, an environment of others the one that it shows."""
        base, _ = parse_task(task)
        return OWN_VIEW.get(base.partition("/")[0], VIEWS)

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """The exact mean returns of a random and of an optimal agent on the discrete toy; NaN where unknown."""
        base, varied = parse_task(task)
        check_base(base)
        found = _knobs_of(base, {**knobs, **varied})
        if base != "discrete":
            return UNKNOWN
        try:
            return exact_range(found, seed)
        except InputError:
            return UNKNOWN

    def tabular(self, task: str, seed: int, start: int | None = None, **knobs: Any) -> TabularMDP:
        """A seed's discrete toy as a tabular MDP that begins in the state `start`, where it is deterministic."""
        base, varied = parse_task(task)
        if base != "discrete":
            raise NoTables(f"task={task} has no tabular MDP: of this benchmark only {PREFIX}discrete has one.")
        return as_tabular(build_mdp(_knobs_of(base, {**knobs, **varied}), seed), task, start)

    def simulator(self, task: str, *, seed: int, copies: int, **knobs: Any) -> VectorEnv | None:
        """An Atari game as its emulator has it; what hardens a game is not in the emulator's state, and is refused."""
        base, varied = parse_task(task)
        check_base(base)
        kind, _, name = base.partition("/")
        if kind != "atari":
            return None
        given = {**knobs, **varied}
        if given:
            raise InputError(
                f"{next(iter(given))} is {next(iter(given.values()))!r}, but only the game itself can be put back to "
                f"where it was: give {PREFIX}{base} without knobs."
            )
        from lcd.envs.hardness.atari_states import AtariStates

        return AtariStates(name, copies, seed)

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse knobs that the task does not have, or values that they cannot have."""
        base, varied = parse_task(task)
        check_base(base)
        _knobs_of(base, {**knobs, **varied})

    def with_knobs(self, task: str, knobs: Mapping[str, Any]) -> str:
        """The task with some knobs set, which its name tells."""
        base, varied = parse_task(task)
        check_base(base)
        order = knob_order(base)
        for knob in knobs:
            if knob not in order:
                raise InputError(f"'{knob}' is no dimension of {base}; {nearest(knob, order)}")
        return task_name(base, {**varied, **knobs}, order)

    def make_population(
        self, task: str, *, seeds: Sequence[int], copies: int, view: str, split: str, **knobs: Any
    ) -> VectorEnv:
        """Copies of a task for several seeds, in one environment."""
        base, varied = parse_task(task)
        check_base(base)
        knobs = {**knobs, **varied}
        total = len(seeds) * copies
        if base in ("discrete", "continuous"):
            kind = HardnessDiscreteVectorEnv if base == "discrete" else HardnessContinuousVectorEnv
            return kind(total, view=view, split=split, seed=seeds, **knobs)
        check_view(self, task, view)
        return _complex(base, knobs, seed_list(seeds), copies, split)

    def without_noise(self, task: str, knobs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The same task without noise in transitions and rewards, and the knobs that are left."""
        base, varied = parse_task(task)
        still = {"transition_noise": 0, "reward_noise": 0}
        varied = {name: still.get(name, value) for name, value in varied.items()}
        return task_name(base, varied, knob_order(base)), {name: v for name, v in knobs.items() if name not in still}


def _knobs_of(base: str, given: Mapping[str, Any]) -> Any:
    """A base's knobs, checked."""
    kinds: dict[str, type[HardnessKnobs] | type[PointKnobs]] = {"discrete": HardnessKnobs, "continuous": PointKnobs}
    kind = kinds.get(base, InjectionKnobs)
    own = MUJOCO_KNOBS if base.startswith("mujoco/") else ()
    if own and "reward_clip" in given:
        raise InputError(f"reward_clip is {given['reward_clip']!r}, but {base} has none: it is Atari's and others'.")
    return kind.from_dict({name: value for name, value in given.items() if name not in own})


def _complex(base: str, knobs: dict[str, Any], seeds: list[int], copies: int, split: str) -> VectorEnv:
    """Copies of somebody's environment, seed by seed, with hardness injected."""
    kind, _, name = base.partition("/")
    branch = [seed_sequence(seed, "environment", "train" if split == "train" else "eval") for seed in seeds]
    streams = [int(number) for sequence in branch for number in sequence.generate_state(1)]
    if kind == "procgen":
        # One engine has one seed.
        engines = [gymnasium.make_vec(f"lcd/{name}-v0", num_envs=copies, seed=seed, split=split) for seed in seeds]
        return HardnessVectorWrapper(SeedStack(engines), streams, **knobs)
    every = [int(n) for sequence in branch for n in sequence.generate_state(copies + 1)[1:]]
    if kind == "mujoco":
        # Noise has to reach the simulation's state, so each copy is wrapped by itself.
        single = {name: knobs.pop(name) for name in MUJOCO_KNOBS if name in knobs}
        made = [partial(_harder_mujoco, name, single, seed, knobs) for seed in every]
        return SeededCopies(made, every)
    make = partial(atari, name) if kind == "atari" else partial(gymnasium.make, name)
    return HardnessVectorWrapper(SeededCopies([make] * len(every), every), streams, **knobs)


def _harder_mujoco(name: str, own: dict[str, float], seed: int, knobs: dict[str, Any]) -> gymnasium.Env:
    return HardnessWrapper(MujocoHardness(gymnasium.make(name), **own), seed, **knobs)


HARDNESS = HardnessBenchmark()
