"""What φ and ψ are: the paper's definitions, and better-founded ones. docs/calibration.md derives them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from lcd.envs.errors import InputError, nearest

Areas = Mapping[str, np.ndarray]
"""Condition → mean AUC over seeds, of any shape, NaN where the condition is missing."""
REWARDS = ("semantic", "p0.75", "p0.5", "p0.25")


@dataclass(frozen=True)
class Definition:
    """One way of turning a task's mean AUCs into its scores.

    Parameters
    ----------
    name
        What the key `definition` calls it.
    phi, psi
        From areas and the least AUC that can be divided by to a score.
    formula
        Both in words, for a reader of the report.
    divides_by_pixels
        φ is undefined where nothing is learned from pixels.
    """

    name: str
    phi: Callable[[Areas, float], np.ndarray]
    psi: Callable[[Areas, float], np.ndarray]
    formula: str
    divides_by_pixels: bool


def gain(areas: Areas) -> np.ndarray:
    """What solving perception adds to the AUC: the mean of the two segmented views, less pixels."""
    return (areas["figure_ground"] + areas["semantic"]) / 2 - areas["pixels"]


def relative_gain(areas: Areas, least: float) -> np.ndarray:
    """The paper's φ (section 3): the gain as a share of the AUC on pixels, which it divides by."""
    # Resampled seeds may leave no signal on pixels although all seeds together have one.
    return gain(areas) / np.maximum(areas["pixels"], least)


def mean_change(areas: Areas, least: float) -> np.ndarray:
    """The paper's ψ (A.4): the mean of |AUC(p) − AUC(next p)|."""
    return np.abs(np.diff(_by_p(areas), axis=-1)).mean(-1)


def share_lost(areas: Areas, least: float) -> np.ndarray:
    """The share of what is learned once perception is solved that is lost on pixels."""
    solved = (areas["figure_ground"] + areas["semantic"]) / 2
    return gain(areas) / np.maximum(solved, least)


def shortfall(areas: Areas, least: float) -> np.ndarray:
    """What is missing to the best possible return, averaged over all reward probabilities."""
    return 1 - _by_p(areas).mean(-1)


def _by_p(areas: Areas) -> np.ndarray:
    return np.stack([areas[name] for name in REWARDS], axis=-1)


PAPER = Definition(
    "paper",
    relative_gain,
    mean_change,
    "φ = mean over figure_ground and semantic of (AUC_view − AUC_pixels) / AUC_pixels; "
    "ψ = mean |AUC(p) − AUC(next p)| over p = 1, .75, .5, .25",
    divides_by_pixels=True,
)
CALIBRATED = Definition(
    "calibrated",
    share_lost,
    shortfall,
    "φ = 1 − AUC_pixels / mean(AUC_figure_ground, AUC_semantic); ψ = 1 − mean of AUC(p) over p = 1, .75, .5, .25",
    divides_by_pixels=False,
)
DEFINITIONS = {definition.name: definition for definition in (PAPER, CALIBRATED)}


def get_definition(name: str) -> Definition:
    """The definition called `name`."""
    if name not in DEFINITIONS:
        raise InputError(f"definition={name} is unknown: {nearest(str(name), DEFINITIONS)}")
    return DEFINITIONS[name]
