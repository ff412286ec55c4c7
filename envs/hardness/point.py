"""The knobs of the continuous toy, a point mass, and the closed form of its motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import factorial
from typing import Any

import numpy as np

from lcd.envs.checks import (
    MOST_STEPS,
    is_number,
    refuse_unknown_knobs,
    require_finite_knob,
    require_one_of,
    require_whole_knob,
)
from lcd.envs.errors import InputError
from lcd.envs.hardness.image_knobs import MOST_PIXELS
from lcd.envs.hardness.knobs import Checked, steps_between_rewards

MOST_DIMENSIONS, MOST_ORDER, MOST_LENGTH = 1000, 20, 1e12
"""Beyond these numbers overflow, or a step takes for ever."""
TO_A_POINT, ALONG_A_LINE = "move_to_a_point", "move_along_a_line"


@dataclass(frozen=True)
class PointKnobs:
    """What makes the point mass hard to steer.

    Names are MDP Playground's, and so are defaults, but for `make_denser`.
    """

    state_space_dim: int = 2
    """Number of dimensions; each has an action of its own."""
    relevant_indices: Checked = None
    """The dimensions that reward and ends depend on; by default all of them."""
    state_space_max: float = 10.0
    """Positions lie between minus this and this; a border stops the point."""
    action_space_max: float = 1.0
    """Actions lie between minus this and this; what is beyond counts as the border."""
    transition_dynamics_order: int = 1
    """Which derivative of the position the action sets (times 1/inertia)."""
    inertia: Checked = 1.0
    """The point's mass, or one for each dimension."""
    time_unit: float = 1.0
    """How long an action is applied."""
    reward_function: str = TO_A_POINT
    """"move_to_a_point", or "move_along_a_line": minus the mean distance of the last sequence_length + 1 positions
    from the straight line nearest to them."""
    target_point: Checked = None
    """Where to go, in the relevant dimensions; by default the origin."""
    target_radius: float = 0.05
    """Nearer than this the target is reached and the episode ends."""
    make_denser: bool = True
    """Reward the distance that the point came nearer to the target; else 1 for reaching it. MDP Playground's default is
    false, and all of its paper's runs of the point mass say true."""
    action_loss_weight: float = 0.0
    """Times the length of the action, taken from the reward at once."""
    terminal_states: Checked = None
    """Centres of hypercubes, in the relevant dimensions, that end the episode."""
    term_state_edge: float = 1.0
    """Length of an edge of those hypercubes."""
    term_state_reward: float = 0.0
    """Added, times the scale, when an episode ends at the target or in a hypercube."""
    init_state_dist: Callable[[np.random.Generator], Sequence[float]] | None = None
    """A function generator -> position to start from; by default uniform where no episode ends."""
    sequence_length: int = 1
    """For "move_along_a_line": how many movements have to be along one line."""
    reward_every_n_steps: Checked = None
    """Rewards are earned at multiples of this step only: 1 by default, which is false; true is `sequence_length`."""
    delay: int = 0
    """Steps between earning and being paid; what is due after the episode's end is dropped."""
    transition_noise: float | Callable[..., Sequence[float]] = 0.0
    """Standard deviation of the normal noise on every position, from which the motion goes on; or a function
    (position, action, generator) -> what to add."""
    reward_noise: float | Callable[..., float] = 0.0
    """Standard deviation of the normal noise on every reward, or a function (position, action, generator) -> noise."""
    reward_scale: float = 1.0
    """Factor of the reward and of its noise."""
    reward_shift: float = 0.0
    """Added to every step's reward, after the scale."""
    horizon: int = 100
    """Steps after which an episode is truncated."""
    image_size: int = 100
    """Height of an image in pixels, and width of each of its halves; discs have a radius of 5 %."""

    def __post_init__(self) -> None:
        require_whole_knob(self, "state_space_dim", 1, MOST_DIMENSIONS)
        require_whole_knob(self, "transition_dynamics_order", 1, MOST_ORDER)
        require_whole_knob(self, "sequence_length", 1, MOST_STEPS)
        every = steps_between_rewards(self.reward_every_n_steps, False, self.sequence_length)
        object.__setattr__(self, "reward_every_n_steps", every)
        for name in ("reward_every_n_steps", "horizon"):
            require_whole_knob(self, name, 1, MOST_STEPS)
        require_whole_knob(self, "delay", 0, MOST_STEPS)
        require_whole_knob(self, "image_size", 20, MOST_PIXELS)
        for name in ("state_space_max", "action_space_max", "time_unit", "target_radius", "term_state_edge"):
            require_finite_knob(self, name)
            if not 0 < getattr(self, name) <= MOST_LENGTH:
                raise InputError(
                    f"{name} is {getattr(self, name)}, but it must be above 0 and at most {MOST_LENGTH:g}."
                )
        for name in ("action_loss_weight", "reward_scale", "reward_shift", "term_state_reward"):
            require_finite_knob(self, name)
        for name in ("transition_noise", "reward_noise"):
            value = getattr(self, name)
            if not callable(value) and (not is_number(value) or not 0 <= value < np.inf):
                raise InputError(f"{name} is {value!r}, but a standard deviation is at least 0.")
        require_one_of("reward_function", self.reward_function, (TO_A_POINT, ALONG_A_LINE))
        if self.reward_function == TO_A_POINT and self.sequence_length != 1:
            raise InputError(
                f"sequence_length is {self.sequence_length}, but how long it takes to a point is the agent's affair: "
                f"only {ALONG_A_LINE} has a length."
            )
        if self.sequence_length + self.delay > self.horizon:
            raise InputError(
                f"horizon is {self.horizon}, but sequence_length + delay = {self.sequence_length + self.delay} steps "
                "are needed before the first reward."
            )
        self._set_points()

    def _set_points(self) -> None:
        indices = tuple(range(self.state_space_dim) if self.relevant_indices is None else self.relevant_indices)
        for index in indices:
            if not isinstance(index, int | np.integer) or not 0 <= index < self.state_space_dim:
                raise InputError(
                    f"relevant_indices has {index!r}, but the dimensions are 0 to {self.state_space_dim - 1} "
                    f"(state_space_dim is {self.state_space_dim})."
                )
        if not indices or len(set(indices)) < len(indices):
            raise InputError(
                f"relevant_indices is {list(indices)}, but it must name one dimension or more, none twice."
            )
        target = (0.0,) * len(indices) if self.target_point is None else self.target_point
        centres = () if self.terminal_states is None else self.terminal_states
        inertia = [self.inertia] * self.state_space_dim if is_number(self.inertia) else self.inertia
        values: dict[str, Any] = {
            "relevant_indices": tuple(int(index) for index in indices),
            "target_point": _numbers("target_point", target, len(indices)),
            "terminal_states": tuple(_numbers("terminal_states", centre, len(indices)) for centre in centres),
            "inertia": _numbers("inertia", inertia, self.state_space_dim),
        }
        if max(map(abs, values["target_point"])) > self.state_space_max:
            raise InputError(
                f"target_point is {list(values['target_point'])}, but positions end at "
                f"state_space_max={self.state_space_max}."
            )
        if min(values["inertia"]) <= 0:
            raise InputError(f"inertia is {list(values['inertia'])}, but a mass is above 0.")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def irrelevant_indices(self) -> tuple[int, ...]:
        """The dimensions that nothing depends on."""
        return tuple(index for index in range(self.state_space_dim) if index not in self.relevant_indices)

    def motion(self) -> np.ndarray:
        """(order, order + 1): what each derivative (the last one is action / inertia) adds to each after an action."""
        order = self.transition_dynamics_order
        matrix = np.zeros((order, order + 1))
        for row in range(order):
            for j in range(order - row + 1):
                matrix[row, row + j] = self.time_unit**j / factorial(j)
        return matrix

    @classmethod
    def from_dict(cls, knobs: Mapping[str, Any]) -> PointKnobs:
        """Knobs from a table; the rest have their defaults."""
        refuse_unknown_knobs(knobs, [f.name for f in fields(cls)])
        return cls(**knobs)


def _numbers(name: str, given: Any, count: int) -> tuple[float, ...]:
    numbers = tuple(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else ()
    if len(numbers) != count or not all(is_number(n) and np.isfinite(n) for n in numbers):
        raise InputError(f"{name} is {given!r}, but it must have {count} numbers, one for each of its dimensions.")
    return tuple(float(n) for n in numbers)
