"""The knobs of a CT-graph, in the layout of the authors' JSON file, checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lcd.envs.checks import is_number, require_whole_knob
from lcd.envs.ctgraph import theory
from lcd.envs.ctgraph.compare import DISTRIBUTIONS
from lcd.envs.ctgraph.goals import checked_goal
from lcd.envs.ctgraph.layout import Range, place_sets
from lcd.envs.errors import InputError, nearest

LAST_ID = 2**31 - 1


@dataclass(frozen=True)
class GraphShape:
    """The tree."""

    b: int = 2
    """Branches of a decision state."""
    d: int = 2
    """Decision states in a row."""
    p: float = 0.0
    """Probability of remaining in a wait state (nothing to do with reward p)."""

    def __post_init__(self) -> None:
        theory.check_shape(self.b, self.d, self.p, "graph_shape.")


@dataclass(frozen=True)
class Reward:
    """What is paid on arrival at an end or fail state."""

    high_r: float = 1.0
    """Reward at the goal."""
    fail_r: float = 0.0
    """Reward at the fail state."""
    step_r: float = 0.0
    """Added to the reward of every step (section 2.5 of the paper); at least 0, so that going on is never worse."""
    std_r: float = 0.0
    """Standard deviation of the normal noise that is added to the reward of every end state."""
    reward_distribution: str = "needle_in_haystack"
    """needle_in_haystack: the goal only; gradient: other ends too, the less the farther (linear means the same)."""
    min_static_reward_episodes: int = -1
    """The goal stays for at least this many episodes of a copy; below 1, for ever."""
    max_static_reward_episodes: int = -1
    """The goal stays for fewer than this many episodes of a copy; below 1, for ever."""

    def __post_init__(self) -> None:
        for name in ("high_r", "fail_r", "step_r", "std_r"):
            value = getattr(self, name)
            if not is_number(value) or not abs(value) < float("inf"):
                raise InputError(f"reward.{name} is {value!r}, but it must be a finite number.")
        if self.high_r <= max(self.fail_r, 0.0):
            raise InputError(f"reward.high_r is {self.high_r}, but it must be above 0 and above fail_r={self.fail_r}.")
        if self.step_r < 0:
            raise InputError(
                f"reward.step_r is {self.step_r}, but it must be at least 0, or failing early may be best."
            )
        if self.std_r < 0:
            raise InputError(f"reward.std_r is {self.std_r}, but a standard deviation is at least 0.")
        object.__setattr__(self, "reward_distribution", _distribution(self.reward_distribution))
        for name in ("min_static_reward_episodes", "max_static_reward_episodes"):
            require_whole_knob(self, name, -1, LAST_ID)
        if self.goal_changes and self.min_static_reward_episodes >= self.max_static_reward_episodes:
            raise InputError(
                f"reward.min_static_reward_episodes is {self.min_static_reward_episodes}, but it must be below "
                f"max_static_reward_episodes={self.max_static_reward_episodes}."
            )

    @property
    def goal_changes(self) -> bool:
        """Does the goal change while an environment runs?"""
        return self.min_static_reward_episodes >= 1 and self.max_static_reward_episodes >= 1


def _distribution(given: Any) -> str:
    name = {"linear": "gradient", "needle": "needle_in_haystack"}.get(str(given), str(given))
    if name not in DISTRIBUTIONS:
        raise InputError(f"reward.reward_distribution is {given!r}, but there is none; {nearest(name, DISTRIBUTIONS)}")
    return name


@dataclass(frozen=True)
class Observations:
    """Which observation ids each kind of state shows: [first, last], both included; null: as many as are needed."""

    MDP_D: bool = False
    """Has each decision state an id of its own?"""
    MDP_W: bool = False
    """Has each wait state an id of its own? (With both, each end state has one too, as far as E_IDs reach.)"""
    W_IDs: Range | None = None
    """Wait states."""
    D_IDs: Range | None = None
    """Decision states."""
    E_IDs: Range | None = None
    """End states."""
    H_IDs: Range | None = None
    """The home state."""
    F_IDs: Range | None = None
    """The fail state."""

    def __post_init__(self) -> None:
        for name in ("MDP_D", "MDP_W"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"observations.{name} is {getattr(self, name)!r}, but it must be true or false.")
        for name in ("W_IDs", "D_IDs", "E_IDs", "H_IDs", "F_IDs"):
            object.__setattr__(self, name, _range(f"observations.{name}", getattr(self, name)))


def _range(name: str, given: Any) -> Range | None:
    if given is None:
        return None
    ends = list(given) if isinstance(given, list | tuple) else []
    if len(ends) != 2 or not all(isinstance(e, int) and not isinstance(e, bool) for e in ends):
        raise InputError(f"{name} is {given!r}, but it must be two whole numbers, the first and the last id.")
    if not 0 <= ends[0] <= ends[1] <= LAST_ID:
        raise InputError(f"{name} is {given!r}, but ids go from 0 to {LAST_ID} and the last is not below the first.")
    return ends[0], ends[1]


@dataclass(frozen=True)
class ImageDataset:
    """What an observation id looks like in the views that are images."""

    seed: int = 1
    """Seed of the image set, which nothing else depends on."""
    one_d: bool = False
    """Is the one-hot vector (view=state) shown where no view is asked for? In files it is called 1D."""
    nr_of_images: int | None = None
    """Number of observation ids; by default the highest in use and one."""
    noise_on_read: float = 0.0
    """Greatest noise on a pixel when an image is shown: a share of full brightness; above 1, grey levels of 255. A
    `config` file has whole grey levels, and what is beyond the point is left out, as by the authors' code."""
    rotation_on_read: float = 0.0
    """Greatest rotation, in degrees, when an image is shown."""
    path: str | None = None
    """Images of your own: a folder (a file or sub-folder a class) or an .npz file with `images` and `labels`."""

    def __post_init__(self) -> None:
        require_whole_knob(self, "seed", 0)
        if not isinstance(self.one_d, bool):
            raise InputError(f"image_dataset.1D is {self.one_d!r}, but it must be true or false.")
        if self.nr_of_images is not None:
            require_whole_knob(self, "nr_of_images", 1, LAST_ID)
        for name, most in (("noise_on_read", 255), ("rotation_on_read", 360)):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value <= most:
                raise InputError(f"image_dataset.{name} is {value!r}, but it must be a number from 0 to {most}.")
        if self.noise_on_read > 1:
            object.__setattr__(self, "noise_on_read", self.noise_on_read / 255)
        if self.path is not None and not isinstance(self.path, str):
            raise InputError(f"image_dataset.path is {self.path!r}, but it must be a path.")


@dataclass(frozen=True)
class GraphKnobs:
    """Everything that makes a CT-graph what it is."""

    graph_shape: GraphShape = field(default_factory=GraphShape)
    reward: Reward = field(default_factory=Reward)
    observations: Observations = field(default_factory=Observations)
    image_dataset: ImageDataset = field(default_factory=ImageDataset)
    goal: tuple[int, ...] | None = None
    """The optimal decisions, 1..b, of which there are d; by default random ones."""
    goal_seed: int | None = None
    """Seed of random goals; by default the seed of the environment."""
    general_seed: int | None = None
    """The environment's seed where none is given otherwise."""
    id_sets: dict[str, tuple[int, int]] = field(init=False, compare=False, repr=False)
    num_ids: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("goal_seed", "general_seed"):
            if getattr(self, name) is not None:
                require_whole_knob(self, name, 0)
        if self.goal is not None:
            object.__setattr__(self, "goal", checked_goal(self.goal, self.graph_shape.b, self.graph_shape.d))
        observations, images = self.observations, self.image_dataset
        sets = place_sets(self.graph_shape.b, self.graph_shape.d, observations)
        highest = max(last for _, last in sets.values())
        if images.nr_of_images is not None and images.nr_of_images <= highest:
            raise InputError(
                f"image_dataset.nr_of_images is {images.nr_of_images}, but the observation ids go up to {highest}."
            )
        object.__setattr__(self, "id_sets", sets)
        object.__setattr__(self, "num_ids", images.nr_of_images or highest + 1)

    @classmethod
    def from_dict(cls, knobs: Mapping[str, Any]) -> GraphKnobs:
        """Knobs from plain values in the file's layout; `config` may name a JSON file, which the others override."""
        plain = canonical(knobs)
        if (path := plain.pop("config", None)) is not None:
            plain = merge(load_json(path), plain)
        parts = {name: kind(**plain.pop(name)) for name, kind in SECTIONS.items() if name in plain}
        return cls(**parts, **plain)


SECTIONS: dict[str, type] = {
    "graph_shape": GraphShape,
    "reward": Reward,
    "observations": Observations,
    "image_dataset": ImageDataset,
}
ALIASES = {
    "": {"seed": "general_seed", "image_set": "image_dataset", "images": "image_dataset"},
    "observations": {"graph_ends": "E_IDs"},
    "image_dataset": {"nr_images": "nr_of_images", "1d": "one_d"},
}
"""Other spellings, in lower case and with underscores: the paper's table 3 and the authors' file differ in places."""


def load_json(path: str | Path) -> dict[str, Any]:
    """The knobs in a JSON file of the authors' layout, which mean there what they mean to the authors' code."""
    try:
        content = json.loads(Path(path).expanduser().read_text("utf-8"))
    except OSError as error:
        raise InputError(f"config is '{path}', which cannot be read ({error.strerror}): give a JSON file.") from None
    except ValueError as error:
        raise InputError(f"config is '{path}', which is no JSON: {error}.") from None
    if not isinstance(content, dict):
        raise InputError(f"config is '{path}', which holds no JSON object: graph_shape, reward, … are expected.")
    knobs = canonical(content)
    images = knobs.get("image_dataset", {})
    if is_number(noise := images.get("noise_on_read")) and 0 <= noise <= 255:
        knobs["image_dataset"] = {**images, "noise_on_read": int(noise) / 255}
    return knobs


def canonical(knobs: Mapping[str, Any]) -> dict[str, Any]:
    """The same knobs under their own names, whatever spelling they were given by; values are not checked yet.

    `graph_shape.d` is the knob `d` of the section `graph_shape`, as features of a family write it.
    """
    known = [entry.name for entry in fields(GraphKnobs) if entry.init]
    result: dict[str, Any] = {}
    for given, value in knobs.items():
        if "." in str(given):
            continue
        name = _known(given, "", [*known, "config"])
        if name in SECTIONS:
            if not isinstance(value, Mapping):
                raise InputError(f"{given} is {value!r}, but it must hold some of {', '.join(_inside(name))}.")
            value = {_known(key, name, _inside(name)): inner for key, inner in value.items()}
        if name in result:
            raise InputError(f"{given} is given twice, under two spellings: give one.")
        result[name] = value
    for given in (str(given) for given in knobs if "." in str(given)):
        section, _, knob = given.partition(".")
        name = _known(section, "", list(SECTIONS))
        knob, others = _known(knob, name, _inside(name)), result.get(name, {})
        if knob in others:
            raise InputError(f"{given} is given twice, under two spellings: give one.")
        result[name] = {**others, knob: knobs[given]}
    return result


def _inside(section: str) -> list[str]:
    return [entry.name for entry in fields(SECTIONS[section])]


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Knobs put together section by section; later ones override."""
    result: dict[str, Any] = {}
    for layer in map(canonical, layers):
        for name, value in layer.items():
            result[name] = {**result.get(name, {}), **value} if name in SECTIONS else value
    return result


def _known(given: str, section: str, options: list[str]) -> str:
    plain = str(given).strip().lower().replace(" ", "_").replace("-", "_")
    plain = ALIASES.get(section, {}).get(plain, plain)
    for option in options:
        if plain.lower() == option.lower():
            return option
    where = f"{section}.{given}" if section else given
    raise InputError(f"'{where}' is no knob of a CT-graph; {nearest(str(given), options)}")
