"""The contrasts that a study asks for, as its file writes them, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lcd.envs.errors import InputError, nearest
from lcd.scores.contrasts import AXES, CONTEXT, FORMULAS, HEADLINE, KNOB, STAGE, TRAINED_ON, Contrast, contrasts

OTHER_COLUMNS = (
    "benchmark",
    "task",
    "agent",
    "frontend",
    "shaping",
    "perception_level",
    "reward_level",
    "H",
    "H_low",
    "H_high",
    "seeds",
    "steps",
    "status",
    "validity",
)
MEASURES = ("auc_", "final_")
"""What a diagnosis' table has besides its contrasts' scores."""
KEYS = ("name", "axis", "baseline", "variants", "formula", "at", "sign", "asks")


def parse_contrast(given: Any, where: str) -> Contrast:
    """A contrast from what a study's file says.

    Args:
        given: A registered name, `module:object`, or a set of `KEYS`.
        where: The config key, for an error's sentence.
    """
    if isinstance(given, str):
        found = contrasts.resolve(given)
        if not isinstance(found, Contrast):
            raise InputError(f"{where}={given} is no contrast: give an lcd.scores.contrasts.Contrast.")
        return found
    if not isinstance(given, Mapping):
        raise InputError(f"{where}={given!r} must be a contrast's name or a set of keys: {', '.join(KEYS)}.")
    for key in given:
        if key not in KEYS:
            raise InputError(f"{where}.{key} is no key of a contrast: {nearest(str(key), KEYS)}")
    for key in ("name", "axis", "variants"):
        if key not in given:
            raise InputError(f"{where}.{key} is missing: a contrast needs name, axis and variants.")
    name = given["name"]
    if not isinstance(name, str) or not name.isidentifier() or name in contrasts.names():
        raise InputError(f"{where}.name={name} must be a word of letters, digits and _ that no other contrast has.")
    if name in OTHER_COLUMNS or name.startswith(MEASURES):
        raise InputError(f"{where}.name={name} is a column of every diagnosis: give the contrast another name.")
    variants, formula = given["variants"], given.get("formula", "mean_change")
    if not isinstance(variants, list) or not variants or any(isinstance(each, list | Mapping) for each in variants):
        raise InputError(f"{where}.variants={variants} must be a list of values.")
    if not isinstance(formula, str) or formula not in FORMULAS:
        raise InputError(f"{where}.formula={formula} is unknown: {nearest(str(formula), FORMULAS)}")
    _check_axes(given, where)
    return Contrast(
        name=name,
        sign=str(given.get("sign", name)),
        asks=str(given.get("asks", f"what changes with {given['axis']}")),
        axis=given["axis"],
        baseline=given.get("baseline", "" if given["axis"] == CONTEXT else None),
        variants=tuple(variants),
        formulas={formula: FORMULAS[formula]},
        at=dict(given.get("at") or {}),
    )


def _check_axes(given: Mapping[str, Any], where: str) -> None:
    """Refuse an axis that no run has, a baseline that is missing, and what is fixed and varied at once."""
    axis, fixed = given["axis"], given.get("at") or {}
    if not isinstance(fixed, Mapping):
        raise InputError(f"{where}.at={fixed} must be a set of keys: {', '.join(AXES)}.")
    for key, place in ((axis, "axis"), *((key, "at") for key in fixed)):
        if key not in AXES and not (str(key).startswith(KNOB) and len(str(key)) > len(KNOB)):
            raise InputError(f"{where}.{place}={key} is nothing that runs differ in: {nearest(str(key), AXES)}")
    if axis in fixed:
        raise InputError(f"{where}.at.{axis} is the contrast's axis: leave it out of `at`.")
    if STAGE in (axis, *fixed) and TRAINED_ON not in fixed:
        raise InputError(f"{where}.at.{TRAINED_ON} is missing: a stage is one of a curriculum, which is named there.")
    if given.get("baseline") is None and axis != CONTEXT and not axis.startswith(KNOB):
        raise InputError(f"{where}.baseline is missing: give the value of {axis} that the others are compared with.")
    for value in given["variants"]:
        _check_value(axis, value, f"{where}.variants")
    if given.get("baseline") is not None:
        _check_value(axis, given["baseline"], f"{where}.baseline")
    for key, value in fixed.items():
        _check_value(key, value, f"{where}.at.{key}")
    if given.get("baseline") in given["variants"]:
        raise InputError(f"{where}.variants={given['variants']} must not have the baseline among them.")
    if len(set(given["variants"])) < len(given["variants"]):
        raise InputError(f"{where}.variants={given['variants']} must have each value once.")


def _check_value(axis: str, value: Any, where: str) -> None:
    """Refuse what no run has on this axis."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if axis == "reward_p":
        right, kind = number and 0 < value <= 1, "a number in (0, 1]"
    elif axis.startswith(KNOB):
        right, kind = isinstance(value, str | int | float), "a text, a number, true or false"
    else:
        right, kind = isinstance(value, str), "a name"
    if not right:
        raise InputError(f"{where}: {value!r} is no value of {axis}, which must be {kind}.")


def parse_contrasts(given: Sequence[Any] | None, where: str = "study.contrasts") -> tuple[Contrast, ...]:
    """φ and ψ, and the further contrasts that a study asks for, each once."""
    found = list(HEADLINE)
    for place, each in enumerate(given or ()):
        contrast = parse_contrast(each, f"{where}[{place}]")
        if contrast not in found:
            for other in found:
                # "a_raw" is a column of the contrast "a".
                if f"{contrast.name}_".startswith(f"{other.name}_") or other.name.startswith(f"{contrast.name}_"):
                    raise InputError(
                        f"{where}[{place}].name={contrast.name} is taken, or begins like the contrast {other.name}: "
                        "give each contrast its own name."
                    )
            found.append(contrast)
    return tuple(found)
