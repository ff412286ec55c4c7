"""A recipe: a name that makes the same tabular MDP again, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lcd.envs.tabular.mdp import Renderer, TabularMDP


@dataclass(frozen=True)
class Recipe:
    """How one MDP is made.

    Attributes:
        name: of the MDP within its benchmark (`slide-a`, `go-4x4-b`).
        family: the rules that it is a case of (`slide`, `go`).
        kind: whether there is an opponent.
        make: makes it; the same arrays every time, on every machine.
        about: what sets this case apart from others of the family, in one line: start, level, temperature, seed.
        draw: states' codes -> what draws them, of an MDP that takes long to make: its tables are then kept in a file,
            without its renderer.
    """

    name: str
    family: str
    kind: Literal["puzzle", "game"]
    make: Callable[[], TabularMDP]
    about: str
    draw: Callable[[np.ndarray], Renderer] | None = None
