"""What a run's config says of its front-end: every knob, and of a file of weights its content.

`entry_of` makes it of what a user asked for; `build` makes the front-end of it. A file of weights is recorded as
`{"file": …, "sha256": …}`: a run is told apart from others by the content, wherever the file lies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict, cast

from lcd.envs.errors import InputError, nearest
from lcd.envs.protocols import offers
from lcd.frontends import make, parameters_of
from lcd.frontends.protocols import HasLabel, HasLaterKnobs, HasPreprocessing, HasWeightsHash
from lcd.frontends.weight_files import open_regular

if TYPE_CHECKING:
    from torch import nn

WEIGHTS = "weights"
REPORTED = {"label": HasLabel, "sha256": HasWeightsHash, "preprocessing": HasPreprocessing}
"""What a front-end may tell of itself, all of it part of what a run is."""
KEEP = ("auto", "features", "observations")
PRECISIONS = ("auto", "full", "half")
ROOM = ("memory_gb", "disk_gb")
USE: dict[str, Any] = {"keep": "auto", "memory_gb": 2.0, "precision": "auto"}
"""How policy learning uses a front-end, whichever it is: `lcd.agents.frozen` says what these mean."""
LATER: dict[str, Any] = {"disk_gb": 0.0}
"""As `USE`; a run's config leaves out what came later where it is as before, so that runs keep their ids."""


class WeightsFile(TypedDict):
    """A file of weights: where it lies, and its content."""

    file: str
    sha256: str


class FrontendEntry(TypedDict, total=False):
    """A front-end by its name, with every knob that it has and how policy learning uses it; most knobs are its own."""

    name: Required[str]
    weights: str | Mapping[str, str] | None
    label: str
    sha256: str
    preprocessing: str
    keep: str
    memory_gb: float
    disk_gb: float
    precision: str


_PLAIN = (str, int, float, bool, list, dict, type(None))


def entry_of(name: str, **knobs: Any) -> FrontendEntry:
    """What a run's config keeps; the front-end is made once, so that a mistake is told before anything is written.

    Args:
        name: a registered front-end or `module:object`.
        knobs: its own, those left out are recorded with their defaults, and those of `USE` and `LATER`.
    """
    if name == "identity":
        make(name, **knobs)
        return {"name": name}
    use = {key: _checked(key, knobs.pop(key, default)) for key, default in {**USE, **LATER}.items()}
    use = {key: value for key, value in use.items() if key not in LATER or value != LATER[key]}
    own = _defaults(name) | {key: _with_content(value) if key == WEIGHTS else value for key, value in knobs.items()}
    try:
        made = make(name, **_arguments(own))
    except OSError as error:
        raise InputError(
            f"frontend={name} with frontend.weights={own.get(WEIGHTS)} cannot be made ({error.strerror or error}): "
            "give a file of weights that is there."
        ) from error
    later = made.later if offers(made, HasLaterKnobs) else {}
    own = {key: value for key, value in own.items() if key not in later or value not in (None, later[key])}
    return cast("FrontendEntry", {"name": name, **own, **_described(made), **use})


def build(recorded: Mapping[str, Any]) -> nn.Module:
    """The front-end of a run's config, with the very weights that it was recorded with."""
    own = {key: value for key, value in recorded.items() if key not in ("name", *REPORTED, *USE, *LATER)}
    weights = own.get(WEIGHTS)
    if isinstance(weights, Mapping) and _sha256(Path(weights["file"])) != weights["sha256"]:
        raise InputError(
            f"frontend.weights={weights['file']} has changed since the run was asked for: ask for it again, "
            "or put the file back."
        )
    made = make(recorded["name"], **_arguments(own))
    found = _described(made)
    for key in REPORTED:
        if recorded.get(key) != found.get(key):
            raise InputError(
                f"The {key} of frontend={recorded['name']} is not what it was when the run was asked for: "
                "ask for it again."
            )
    return made


def _described(made: nn.Module) -> dict[str, Any]:
    """What a front-end tells of itself, by name; what is None is not told."""
    offered = {name: getattr(made, name) for name, protocol in REPORTED.items() if offers(made, protocol)}
    return {name: value for name, value in offered.items() if value is not None}


def use(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """How policy learning uses the front-end of a run's config."""
    return {key: recorded.get(key, default) for key, default in {**USE, **LATER}.items()}


def _checked(key: str, value: Any) -> Any:
    options = {"keep": KEEP, "precision": PRECISIONS}.get(key)
    if options and value not in options:
        raise InputError(f"frontend.{key}={value} is unknown: {nearest(str(value), options)}")
    if key in ROOM and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        raise InputError(f"frontend.{key}={value} must be a number of 0 or more.")
    return float(value) if key in ROOM else value


def _defaults(name: str) -> dict[str, Any]:
    """A front-end's own defaults: a run must not become another one when they change."""
    parameters = parameters_of(name).values()
    given = {parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty}
    return {key: value for key, value in given.items() if isinstance(value, _PLAIN)}


def _with_content(weights: Any) -> Any:
    """A file as its place and content; anything else, a name of weights for example, as it is."""
    path = Path(weights).expanduser() if isinstance(weights, str) else None
    if path is None or not path.is_file():
        return weights
    return {"file": str(path.resolve()), "sha256": _sha256(path)}


def _arguments(knobs: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs as the front-end takes them."""
    return {key: value["file"] if _is_file(key, value) else value for key, value in knobs.items()}


def _is_file(key: str, value: Any) -> bool:
    return key == WEIGHTS and isinstance(value, Mapping) and "file" in value


def _sha256(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(
            f"frontend.weights={path} cannot be read ({error.strerror}): training needs the file of weights."
        ) from None
