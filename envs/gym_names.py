"""What a benchmark of Gymnasium's environments is called: all that it is made of, so that its name makes it again.

gym:CartPole-v1                                 its own observations
gym:my_package:Cave-v0+my_package:Hall-v0       several, each registered by the module before its colon
gym:MiniGrid-Empty-5x5-v0?masks=info.objects    with labels (lcd.envs.masks), and so with views
    gym:CartPole-v1?masks=flow                      pixels, for a front-end that stands in for masks
"""

from __future__ import annotations

import re

from lcd.envs.errors import InputError

PREFIX, WITH, FLOW = "gym:", "?masks=", "flow"
MODULE_AND_ID = re.compile(r"[A-Za-z_][\w.]*:[\w./-]+-v\d+")
"""Gymnasium's own way to name an environment with the module that registers it; no object of Python's is called so."""


def canonical(name: str) -> str:
    """The name with its prefix, where it is Gymnasium's `module:Id-v0`; any other as it is."""
    return f"{PREFIX}{name}" if MODULE_AND_ID.fullmatch(name) and not name.startswith(PREFIX) else name


def parts_of(name: str) -> tuple[list[str], str]:
    """The ids and the masks that a benchmark's name says; "" for none."""
    ids, _, masks = name.removeprefix(PREFIX).partition(WITH)
    return ids.split("+"), masks


def with_masks(name: str, masks: str) -> str:
    """The name of a benchmark of Gymnasium's with masks."""
    if not name.startswith(PREFIX):
        raise InputError(f"masks={masks} is for benchmark=gym:ID: benchmark={name} has the views that it has.")
    return f"{PREFIX}{'+'.join(parts_of(name)[0])}{WITH}{masks}"


def code_in(name: str) -> tuple[str, ...]:
    """What a name has imported: the modules before ids' colons, and a function that says labels."""
    ids, masks = parts_of(name)
    own = (masks,) if ":" in masks and not masks.startswith("colours(") else ()
    return (*(each for each in ids if ":" in each), *own)
