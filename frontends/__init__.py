"""Frozen perceptual encoders between a view and an agent.

A front-end is an `nn.Module` with a pure `forward(observations) -> features`. Observations are a batch of uint8
images (NHWC) or of float vectors; features are maps (NCHW), vectors, or images again. Agents take whatever shape it
gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from lcd.envs.checks import of_kind
from lcd.envs.errors import InputError, nearest
from lcd.envs.registry import Registry

if TYPE_CHECKING:
    from torch import nn

INITIALISATION = 0
frontends = Registry("front-end", "lcd.frontends")
frontends.add("identity", "lcd.frontends.identity:Identity")
frontends.add("clip", "lcd.frontends.backbone:Clip")
frontends.add("backbone", "lcd.frontends.backbone:Backbone")
frontends.add("flow", "lcd.frontends.flow.frontend:Flow")


def make(name: str, **knobs: Any) -> nn.Module:
    """The front-end called `name`, frozen.

    Args:
        name: a registered front-end or `module:object`.
        knobs: its own settings; an unknown one is an `InputError`.
    """
    build = frontends.resolve(name)
    parameters = parameters_of(name)
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        for knob, value in knobs.items():
            if knob not in parameters:
                raise InputError(f"frontend.{knob}={value} is no knob of '{name}': {nearest(knob, parameters)}")
    hints = _hints_of(build)
    knobs = {knob: of_kind(f"frontend.{knob}", value, hints.get(knob, Any)) for knob, value in knobs.items()}
    import torch
    from torch import nn

    # What a front-end draws when it is made without weights is the same wherever it is made.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(INITIALISATION)
        try:
            made = build(**knobs)
        except (InputError, OSError, MemoryError):
            raise
        except Exception as error:
            given = ", ".join(f"frontend.{knob}={value}" for knob, value in knobs.items()) or "no knobs"
            raise InputError(
                f"frontend={name} cannot be made with {given} ({type(error).__name__}: {error}): give other values."
            ) from error
        if not isinstance(made, nn.Module):
            raise InputError(f"frontend={name} makes a {type(made).__name__}: a front-end is a torch.nn.Module.")
        return made.requires_grad_(False).eval()


def _hints_of(build: Any) -> dict[str, Any]:
    """What kind of value each knob takes, as far as whoever wrote it says so in plain types."""
    try:
        hints = get_type_hints(build.__init__ if inspect.isclass(build) else build)
    except (TypeError, NameError, AttributeError):
        return {}
    plain = (str, int, float, bool, NoneType)
    return {name: hint for name, hint in hints.items() if all(each in plain for each in get_args(hint) or (hint,))}


def parameters_of(name: str) -> Mapping[str, inspect.Parameter]:
    """What the class or function behind a front-end's name takes."""
    build = frontends.resolve(name)
    try:
        return inspect.signature(build).parameters
    except (TypeError, ValueError):
        kind = type(build).__name__
        raise InputError(f"frontend={name} is a {kind}: a front-end is a class of torch.nn.Module.") from None
