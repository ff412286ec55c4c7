"""Contrasts: the questions that a study asks of each task.

A contrast compares conditions that differ along one axis, all else equal, and turns their areas into a number. φ and ψ
are two of them. Everything that trains, scores, draws or tells is derived from a study's contrasts: nothing else spells
the values that they compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lcd.curves.names import FAMILY
from lcd.envs.errors import InputError, nearest
from lcd.envs.protocols import SolvedView, offers
from lcd.envs.registry import Registry

SOLVED = "solved"
"""Stands for the view in which perception is out of the way: the benchmark says which that is."""
TRAINED_ON, STAGE, CONTEXT = "trained_on", "stage", "context"
AXES = ("view", "reward_p", "frontend", "shaping", "agent", TRAINED_ON, STAGE, CONTEXT)
KNOB = "knobs."
SETTING = "agent."
"""How a grid's axes begin that are settings of the agents."""
USUAL: dict[str, Any] = {"view": SOLVED, "reward_p": 1.0}
"""What a contrast's conditions have where it does not say otherwise; `trained_on` is the evaluated task."""

Score = Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class Formula:
    """How the areas of a contrast's conditions become its score.

    Attributes:
        score: From mean areas (..., values), the baseline's first, and the least area that may be divided by.
        words: The formula for a reader.
        needs: Where something must have been learned for the score to exist: in the "baseline", in the "variants", in
            "any" of its conditions, or, where it is empty, nowhere.
    """

    score: Score
    words: str
    needs: str = "any"


@dataclass(frozen=True)
class StepsFormula:
    """How many times the steps one condition needs of those that another does, for the same return; in log₂.

    Attributes:
        pairs: From how many values the contrast has to (slow, fast) places among them; the score is their mean.
        words: As of `Formula`.
        needs: As of `Formula`.
    """

    pairs: Callable[[int], Sequence[tuple[int, int]]]
    words: str
    needs: str = "any"


def of_baseline(count: int) -> list[tuple[int, int]]:
    """The baseline's steps as a multiple of each variant's."""
    return [(0, variant) for variant in range(1, count)]


def of_variants(count: int) -> list[tuple[int, int]]:
    """Each variant's steps as a multiple of the baseline's."""
    return [(variant, 0) for variant in range(1, count)]


def of_last(count: int) -> list[tuple[int, int]]:
    """The last variant's steps as a multiple of the baseline's."""
    return [(count - 1, 0)]


def gain(areas: np.ndarray, least: float = 0.0) -> np.ndarray:
    """What the variants add to the baseline, on average."""
    return areas[..., 1:].mean(-1) - areas[..., 0]


def relative_gain(areas: np.ndarray, least: float) -> np.ndarray:
    """The gain as a share of the baseline, which it divides by."""
    # Resampled seeds may leave no signal in the baseline although all seeds together have one.
    return gain(areas) / np.maximum(areas[..., 0], least)


def share_lost(areas: np.ndarray, least: float) -> np.ndarray:
    """The share of what is learned in the variants that is lost in the baseline."""
    return gain(areas) / np.maximum(areas[..., 1:].mean(-1), least)


def mean_change(areas: np.ndarray, least: float = 0.0) -> np.ndarray:
    """The mean of |area − next area| along the axis."""
    return np.abs(np.diff(areas, axis=-1)).mean(-1)


def shortfall(areas: np.ndarray, least: float = 0.0) -> np.ndarray:
    """What is missing to the best possible return, averaged over all values of the axis."""
    return 1 - areas.mean(-1)


def loss(areas: np.ndarray, least: float = 0.0) -> np.ndarray:
    """What the variants lose against the baseline, on average."""
    return -gain(areas)


def spread(areas: np.ndarray, least: float = 0.0) -> np.ndarray:
    """The greatest area less the least."""
    return areas.max(-1) - areas.min(-1)


FORMULAS: dict[str, Formula | StepsFormula] = {
    "gain": Formula(gain, "mean AUC(variant) − AUC(baseline)"),
    "loss": Formula(loss, "AUC(baseline) − mean AUC(variant)"),
    "relative_gain": Formula(relative_gain, "mean of (AUC(variant) − AUC(baseline)) / AUC(baseline)", needs="baseline"),
    "share_lost": Formula(share_lost, "1 − AUC(baseline) / mean AUC(variant)", needs="variants"),
    "mean_change": Formula(mean_change, "mean |AUC(value) − AUC(next value)|"),
    "shortfall": Formula(shortfall, "1 − mean AUC(value)", needs=""),
    "spread": Formula(spread, "greatest AUC − least AUC"),
    "samples_saved": StepsFormula(of_baseline, "mean log₂ of steps(baseline) / steps(variant) to a return"),
    "samples_added": StepsFormula(of_variants, "mean log₂ of steps(variant) / steps(baseline) to a return"),
    "samples_to_last": StepsFormula(of_last, "log₂ of steps(last variant) / steps(baseline) to a return"),
}
"""What a study's file may call a formula."""


@dataclass(frozen=True, eq=False)
class Contrast:
    """One question: what changes along an axis, all else equal.

    Attributes:
        name: Its column in tables.
        sign: How a reader meets it ("φ").
        asks: What it measures, in a few words.
        axis: What varies: one of `AXES` (a key of a run, or of what is evaluated), or `knobs.<knob>` of the task; null
            leaves a knob as it is, and the context "" is that of training.
        baseline: The axis' first value, with which the others are compared.
        variants: The other values, in order.
        formulas: Name → formula: those of the definitions, or, where there are none, one that serves for all. Further
            ones are reported beside the score.
        at: What its conditions have besides: keys of `AXES` and their values; the rest is as `USUAL` says.
        lacks: The status of a task that was not trained at all of its values.
    """

    name: str
    sign: str
    asks: str
    axis: str
    baseline: Any
    variants: tuple[Any, ...]
    formulas: Mapping[str, Formula | StepsFormula]
    at: Mapping[str, Any] = field(default_factory=dict)
    lacks: str = "missing_values"

    @property
    def values(self) -> tuple[Any, ...]:
        """The axis' values, the baseline first."""
        return (self.baseline, *self.variants)

    def formula_under(self, definition: str) -> str:
        """The name of the formula that its score follows under a definition."""
        return definition if definition in self.formulas else next(iter(self.formulas))

    def label(self, value: Any) -> str:
        """A value of the axis as a reader meets it."""
        if self.axis == "reward_p":
            return f"p = {value:g}"
        if self.axis.startswith(KNOB):
            return f"{self.axis.removeprefix(KNOB)} {'as it is' if value is None else value}"
        if self.axis == CONTEXT and value in ("", FAMILY):
            return "over the family" if value else "default point" if FAMILY in self.variants else "as trained"
        # Front-ends and agents are called by the names that commands take.
        return str(value).replace("_", " ") if self.axis == "view" else str(value)

    @property
    def follows_stages(self) -> bool:
        """Whether its values come one after the other in a run, so that each is measured over steps of its own."""
        return self.axis == STAGE

    @property
    def ordered(self) -> bool:
        """Whether its values are amounts, which have an order."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.variants)

    def conditions(self, solved: str) -> tuple[Condition, ...]:
        """What is trained for each of its values.

        Args:
            solved: The benchmark's view in which perception is out of the way.
        """
        fixed = {**USUAL, **self.at}
        return tuple(condition({**fixed, self.axis: value}, solved) for value in self.values)


@dataclass(frozen=True)
class Condition:
    """What the runs of one value of a contrast have in common, within one task, agent, front-end and shaping.

    Attributes:
        name: Its part of a column's name ("semantic", "p0.5", "delay=2").
        label: What a reader meets.
        where: The keys of a run and their values; a knob that is left as it is has none.
    """

    name: str
    label: str
    where: tuple[tuple[str, Any], ...]

    @property
    def view(self) -> str:
        return dict(self.where)["view"]

    @property
    def reward_p(self) -> float:
        return dict(self.where)["reward_p"]

    @property
    def knobs(self) -> dict[str, Any]:
        """The task's knobs that it sets."""
        return {key.removeprefix(KNOB): value for key, value in self.where if key.startswith(KNOB)}


def condition(where: Mapping[str, Any], solved: str) -> Condition:
    """The condition with these values; `solved` takes the place of `SOLVED`."""
    # What is left as it is needs no name: a knob of the task, or the context of training.
    found = {
        key: value
        for key, value in where.items()
        if not (key.startswith(KNOB) and value is None) and (key, value) != (CONTEXT, "")
    }
    if found["view"] == SOLVED:
        found["view"] = solved
    found["reward_p"] = float(found["reward_p"])
    names, labels = [], []
    if found["view"] != solved or found["reward_p"] == 1.0:
        names.append(found["view"])
        labels.append(found["view"].replace("_", " "))
    if found["reward_p"] != 1.0:
        names.append(f"p{found['reward_p']:g}")
        labels.append(f"p = {found['reward_p']:g}")
    for key, value in found.items():
        if key not in USUAL:
            short = key.rpartition(".")[2]
            names.append(f"{short}={value}")
            labels.append(f"{short} {value}")
    # A knob's or a front-end's value says enough where the view is the usual one.
    if len(names) > 1 and names[0] == solved:
        del names[0], labels[0]
    return Condition("_".join(names), ", ".join(labels), tuple(found.items()))


PERCEPTION = Contrast(
    name="phi",
    sign="φ",
    asks="how hard it is to see",
    axis="view",
    baseline="pixels",
    variants=("figure_ground", "semantic"),
    formulas={
        # The paper's section 3.
        "paper": Formula(
            relative_gain,
            "mean over figure_ground and semantic of (AUC_view − AUC_pixels) / AUC_pixels",
            needs="baseline",
        ),
        "calibrated": Formula(share_lost, "1 − AUC_pixels / mean(AUC_figure_ground, AUC_semantic)", needs="variants"),
        "gain": FORMULAS["gain"],
        "samples": StepsFormula(
            of_baseline,
            "mean over figure_ground and semantic of log₂ of steps(pixels) / steps(view) to a return",
        ),
    },
    lacks="missing_view",
)
REWARD = Contrast(
    name="psi",
    sign="ψ",
    asks="how hard it is to learn from reward",
    axis="reward_p",
    baseline=1.0,
    variants=(0.75, 0.5, 0.25),
    formulas={
        # The paper's A.4.
        "paper": Formula(mean_change, "mean |AUC(p) − AUC(next p)| over p = 1, .75, .5, .25"),
        "calibrated": Formula(shortfall, "1 − mean of AUC(p) over p = 1, .75, .5, .25", needs=""),
        "samples": StepsFormula(of_last, "log₂ of steps(p = .25) / steps(p = 1) to a return"),
    },
    lacks="missing_p",
)
HEADLINE = (PERCEPTION, REWARD)
"""The two contrasts that place a task on the plane of its challenges."""
COMPARED = {
    name: "; ".join(f"{each.sign} = {each.formulas[name].words}" for each in HEADLINE) for name in REWARD.formulas
}
"""What both φ and ψ are computed by, for a reader; docs/calibration.md derives and compares them."""
SAMPLES = "samples"
DEFINITIONS = {name: words for name, words in COMPARED.items() if name != SAMPLES}
"""Those that the headline may follow."""
USUAL_DEFINITION = "calibrated"
"""The one that it follows where nobody asks for another (docs/preregistered.md says why)."""
LETTER = "paper"
"""The one that follows the paper to the letter."""

_GAIN = {"gain": FORMULAS["gain"]}
# By name, sign, what it asks, axis, baseline, variants, formulas.
FRONTEND_GAIN = Contrast(
    "frontend_gain", "front-end", "what the flow front-end adds", "frontend", "identity", ("flow",), _GAIN,
    at={"view": PERCEPTION.baseline},
)  # fmt: skip
SHAPING_GAIN = Contrast(
    "shaping_gain", "shaping", "what reward for sub-goals adds", "shaping", "none", ("subgoals",), _GAIN
)
MEMORY_GAIN = Contrast(
    "memory_gain", "μ", "what remembering earlier observations adds", "agent", "ppo", ("recurrent_ppo",), _GAIN
)
DELAY_LOSS = Contrast(
    "delay_loss", "δ", "what a late reward costs", "knobs.delay", None, (2, 4), {"loss": FORMULAS["loss"]}
)
NOISE_LOSS = Contrast(
    "noise_loss", "ν", "what transitions at random cost", "knobs.transition_noise", None, (0.1, 0.25),
    {"loss": FORMULAS["loss"]},
)  # fmt: skip
SEQUENCE_LOSS = Contrast(
    "sequence_loss", "σ", "what it costs that rewards want several states in a row", "knobs.sequence_length", None,
    (2, 3), {"loss": FORMULAS["loss"]},
)  # fmt: skip
# A task of which n steps are left has an effective horizon of at most n.
HORIZON_LOSS = Contrast("horizon_loss", "η", "what a long effective horizon costs", "knobs.left", None, (4, 8), _GAIN)
FAMILY_LOSS = Contrast(
    "family_loss", "f", "what is lost between the default point and the family", CONTEXT, "", (FAMILY,),
    {"loss": FORMULAS["loss"]},
)  # fmt: skip


contrasts = Registry("contrast", "lcd.contrasts")
DIALS = (DELAY_LOSS, NOISE_LOSS, SEQUENCE_LOSS)
"""Of ready-made contrasts those that turn a dial of hardness."""
for _each in (*HEADLINE, FRONTEND_GAIN, SHAPING_GAIN, MEMORY_GAIN, *DIALS, HORIZON_LOSS, FAMILY_LOSS):
    contrasts.add(_each.name, _each)


def check_definition(name: Any) -> str:
    """The name, refused where no definition is called so."""
    if not isinstance(name, str) or name not in DEFINITIONS:
        raise InputError(f"definition={name} is unknown: {nearest(str(name), DEFINITIONS)}")
    return name


def all_conditions(asked: Sequence[Contrast], solved: str) -> dict[str, Condition]:
    """The conditions of several contrasts by name, each once, in the order of the contrasts and their values."""
    return {found.name: found for contrast in asked for found in contrast.conditions(solved)}


def solved_view(benchmark: Any) -> str:
    """The view of a benchmark in which perception is out of the way: what it says, else its most solved view."""
    own = benchmark.solved_view if offers(benchmark, SolvedView) else None
    return own or most_solved(benchmark.views)


def most_solved(views: Sequence[str]) -> str:
    """Of φ's views the last that is there; where none is, the last view."""
    return next((view for view in reversed(PERCEPTION.values) if view in views), list(views)[-1])
