"""Frozen perceptual encoders between a view and an agent.

A front-end is an `nn.Module` with a pure `forward(observations) -> features`. Observations are a batch of uint8
images (NHWC) or of float vectors. `channels` is the number of channels of its feature maps (NCHW), `features`
the length of its feature vectors; None means: as the observations.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

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

    name: a registered front-end or `module:object`.
    knobs: its own settings; an unknown one is an `InputError`.
    """
    build = frontends.resolve(name)
    parameters = inspect.signature(build).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        for knob, value in knobs.items():
            if knob not in parameters:
                raise InputError(f"frontend.{knob}={value} is no knob of '{name}': {nearest(knob, parameters)}")
    import torch

    # What a front-end draws when it is made without weights is the same wherever it is made.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(INITIALISATION)
        return build(**knobs).requires_grad_(False).eval()
