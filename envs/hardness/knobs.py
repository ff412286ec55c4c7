"""The knobs of the discrete toy MDP, checked one by one and together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np

from lcd.envs.checks import (
    MOST_STEPS,
    floor_of_share,
    is_number,
    number_table,
    refuse_unknown_knobs,
    require_finite_knob,
    require_fitting_table,
    require_share,
    require_whole_knob,
    require_whole_number,
)
from lcd.envs.errors import InputError
from lcd.envs.hardness.image_knobs import ImageKnobs

MOST_POWER = 1000
"""The largest exponent that is worked out: what is beyond is more than anything is built of."""
MOST_SEQUENCES = 300_000
"""The largest number of possible sequences, or entries of a table indexed by sequences, that is built."""


def power(base: int, exponent: int) -> int:
    """base**exponent, cut off where the number itself would take long to work out."""
    return base ** min(exponent, MOST_POWER)


def steps_between_rewards(given: Any, default: bool, sequence_length: int) -> Any:
    """A number of steps, as MDP Playground's code has it; of the boolean of its paper's table 1, what it stands for."""
    given = default if given is None else given
    if isinstance(given, bool | np.bool_):
        return sequence_length if given else 1
    return given


Checked: TypeAlias = Any
"""What the user gives in one of several forms, or not at all, and what the checks turn into one form."""


@dataclass(frozen=True)
class HardnessKnobs:
    """What makes the toy hard. Names and defaults are MDP Playground's where it has the knob.

    After the checks sizes are numbers, user-given tables are nested tuples and defaults are filled in.
    """

    state_space_size: Checked = None
    """Number of states (8), or `action_space_size * diameter`; two numbers with `irrelevant_features`."""
    action_space_size: Checked = 8
    """Number of actions; the successors of a state all differ. Two numbers with `irrelevant_features`."""
    diameter: int | None = None
    """The states fall into this many sets of `action_space_size`; actions lead from each set to the next one.

    When it is not given, a state's successors are drawn from all states."""
    reward_density: float = 0.25
    """Share of the possible sequences that are rewarded (at least one in every set is)."""
    sequence_length: int = 1
    """How many states in a row have to be reached for a reward."""
    delay: int = 0
    """Steps between completing a sequence and being paid; what is due after the episode's end is dropped."""
    transition_noise: float | Callable[[int, int, np.random.Generator], float] = 0.0
    """Probability of landing in a random state other than the true successor (within the next set, if there are
    sets), or a function (state, action, generator) -> probability."""
    reward_noise: float | Callable[[int, int, np.random.Generator], float] = 0.0
    """Standard deviation of the normal noise on the reward of every step, or a function (state, action,
    generator) -> noise."""
    make_denser: bool = False
    """Pay i/n of a sequence's reward for its first i states, for all sequences under way, at every step."""
    reward_every_n_steps: Checked = None
    """Sequences count only when completed at a multiple of this step; true, the default, is `sequence_length`, and
    false 1."""
    reward_scale: float = 1.0
    """Factor of the reward and of its noise."""
    reward_shift: float = 0.0
    """Added to every step's reward, after the scale."""
    reward_dist: Sequence[float] | Callable[..., float] | None = None
    """Interval over which the sequences' rewards are spread evenly and at random, or a function (generator,
    {sequence: reward so far}) -> reward. By default every sequence is worth 1."""
    terminal_state_density: float = 0.25
    """Share of the states (of every set) that end the episode."""
    term_state_reward: float = 0.0
    """Added, times the scale, on reaching a state that ends the episode."""
    terminal_states: Checked = None
    """The states that end the episode, or a function that says so of a state; instead of the density."""
    init_state_dist: Sequence[float] | None = None
    """Probability of starting in each state; by default uniform over the states that are not terminal."""
    transition_function: Any = None
    """The user's own table [state][action] -> successor, or a function (state, action) -> successor."""
    reward_function: Any = None
    """The user's own table [state][action] -> reward, or a function (states, actions) -> reward of the last
    sequence_length + 1 states and sequence_length actions; instead of rewarded sequences."""
    irrelevant_features: bool = False
    """Add a second state and action with dynamics of their own, which no reward depends on."""
    horizon: int = 100
    """Steps after which an episode is truncated."""
    mdp_seed: int | None = None
    """Seed of the tables; by default the seed of the environment."""
    images: ImageKnobs = field(default_factory=ImageKnobs)
    """The knobs of what an image shows."""
    irrelevant_states: int = field(init=False, default=0)
    irrelevant_actions: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        for name, least in (("sequence_length", 1), ("delay", 0), ("horizon", 1)):
            require_whole_knob(self, name, least, MOST_STEPS)
        for name in ("diameter", "mdp_seed"):
            if getattr(self, name) is not None:
                require_whole_knob(self, name, 1 if name == "diameter" else 0)
        for name in ("reward_density", "terminal_state_density"):
            require_share(self, name)
        if not callable(self.transition_noise):
            require_share(self, "transition_noise")
        if not callable(self.reward_noise) and (
            not is_number(self.reward_noise) or not 0 <= self.reward_noise < np.inf
        ):
            raise InputError(f"reward_noise is {self.reward_noise!r}, but a standard deviation is at least 0.")
        for name in ("reward_scale", "reward_shift", "term_state_reward"):
            require_finite_knob(self, name)
        for name in ("make_denser", "irrelevant_features"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputError(f"{name} is {getattr(self, name)!r}, but it must be true or false.")
        self._set(reward_every_n_steps=steps_between_rewards(self.reward_every_n_steps, True, self.sequence_length))
        require_whole_knob(self, "reward_every_n_steps", 1, MOST_STEPS)
        self._set_sizes()
        self._set_tables()
        self._check_together()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _set_sizes(self) -> None:
        actions, more_actions = self._pair("action_space_size")
        states, more_states = self._pair("state_space_size")
        sets = self.diameter or 1
        if states is None:
            states = actions * sets if self.diameter else 8
        require_whole_number("state_space_size", states, 2)
        require_whole_number("action_space_size", actions, 1)
        self._check_sets(states, actions)
        self._set(state_space_size=int(states), action_space_size=int(actions))
        if self.irrelevant_features:
            more_actions = actions if more_actions is None else more_actions
            if more_states is None:
                more_states = states if more_actions == actions else more_actions * sets
            require_whole_number("state_space_size", more_states, 2)
            require_whole_number("action_space_size", more_actions, 1)
            self._check_sets(more_states, more_actions)
            self._set(irrelevant_states=int(more_states), irrelevant_actions=int(more_actions))

    def _pair(self, name: str) -> tuple[Any, Any]:
        """A size of the relevant part, and that of the irrelevant part where it is given."""
        value = getattr(self, name)
        if not isinstance(value, Sequence) or isinstance(value, str):
            return value, None
        if len(value) != 2 or not self.irrelevant_features:
            raise InputError(f"{name} is {value!r}, but only with irrelevant_features may it be two numbers.")
        return value[0], value[1]

    def _check_sets(self, states: int, actions: int) -> None:
        if self.diameter is not None and states != actions * self.diameter:
            raise InputError(
                f"state_space_size is {states}, but {self.diameter} sets (diameter) of {actions} states "
                f"(action_space_size) make {actions * self.diameter}: leave it out, or give that."
            )
        require_fitting_table(f"state_space_size is {states}", states * states, 8)
        if actions > states:
            raise InputError(
                f"action_space_size is {actions}, but a state has at most state_space_size={states} different "
                "successors."
            )

    def _set_tables(self) -> None:
        states, actions = self.state_space_size, self.action_space_size
        if self.transition_function is not None:
            found = number_table("transition_function", self.transition_function, states, actions)
            if not all(float(after).is_integer() and 0 <= after < states for row in found for after in row):
                raise InputError(f"transition_function leads out of the states, which are 0 to {states - 1}.")
            self._set(transition_function=tuple(tuple(int(after) for after in row) for row in found))
        if self.reward_function is not None and not callable(self.reward_function):
            self._set(reward_function=number_table("reward_function", self.reward_function, states, actions))
        if callable(self.terminal_states):
            self._set(terminal_states=[s for s in range(states) if self.terminal_states(s)])
        if self.terminal_states is not None:
            ends = tuple(sorted({int(s) for s in self.terminal_states}))
            if any(not 0 <= state < states for state in ends):
                raise InputError(f"terminal_states is {list(ends)}, but the states are 0 to {states - 1}.")
            self._set(terminal_states=ends)
        if self.init_state_dist is not None:
            chances = tuple(float(p) for p in self.init_state_dist)
            if len(chances) != states or min(chances) < 0 or abs(sum(chances) - 1) > 1e-6:
                raise InputError(f"init_state_dist is {list(chances)}, but it must be {states} probabilities of sum 1.")
            self._set(init_state_dist=chances)
        if self.reward_dist is not None and not callable(self.reward_dist):
            interval: Sequence[float] = self.reward_dist if isinstance(self.reward_dist, Sequence) else ()
            if len(interval) != 2 or not all(map(is_number, interval)) or not interval[0] <= interval[1]:
                raise InputError(
                    f"reward_dist is {self.reward_dist!r}, but it must be two rising numbers or a function."
                )
            self._set(reward_dist=(float(interval[0]), float(interval[1])))

    def _check_together(self) -> None:
        free = self.state_space_size - self.terminal_count
        if free < 1 or (self.diameter and self.terminal_states is None and free < self.diameter):
            raise InputError(
                f"terminal_state_density is {self.terminal_state_density}, but at least one of the "
                f"{self.set_size} states{' of every set' if self.sets > 1 else ''} must not be terminal."
            )
        if self.reward_function is None and self.sequence_length > free:
            raise InputError(
                f"sequence_length is {self.sequence_length}, but only {free}"
                " states are not terminal and a rewarded sequence repeats none."
            )
        if self.sequence_length + self.delay > self.horizon:
            raise InputError(
                f"horizon is {self.horizon}, but sequence_length + delay = {self.sequence_length + self.delay} steps "
                "are needed before the first reward."
            )
        if self.table_size > MOST_SEQUENCES:
            raise InputError(
                f"sequence_length is {self.sequence_length}, but the table of all sequences of states"
                f"{'' if self.reward_function is None else ' and actions'} may have at most {MOST_SEQUENCES} entries."
            )
        if self.transition_noise != 0 and min(self.set_size, self.irrelevant_set_size or 2) < 2:
            raise InputError(
                f"transition_noise is {self.transition_noise}, but a set of one state (action_space_size) leaves no "
                "other state to stray to."
            )
        if self.make_denser and self.reward_function is not None:
            raise InputError("make_denser is true, but a reward_function has no sequences whose parts could be paid.")

    @property
    def sets(self) -> int:
        """Number of sets that the states fall into."""
        return self.diameter or 1

    @property
    def set_size(self) -> int:
        """Number of states in a set."""
        return self.state_space_size // self.sets

    @property
    def irrelevant_set_size(self) -> int:
        """Number of states in a set of the irrelevant part (0: there is none)."""
        return self.irrelevant_states // self.sets

    @property
    def terminal_count(self) -> int:
        """Number of terminal states."""
        if self.terminal_states is not None:
            return len(self.terminal_states)
        return self.sets * floor_of_share(self.terminal_state_density, self.set_size)

    @property
    def table_size(self) -> int:
        """Entries of the reward table."""
        if callable(self.reward_function):
            return power(self.state_space_size, self.sequence_length + 1) * power(
                self.action_space_size, self.sequence_length
            )
        if self.reward_function is not None:
            return self.state_space_size**2 * self.action_space_size
        return self.sets * power(self.set_size, self.sequence_length)

    @classmethod
    def from_dict(cls, knobs: Mapping[str, Any]) -> HardnessKnobs:
        """Knobs, those of the images among them, from one flat table; the rest have their defaults."""
        own = [f.name for f in fields(cls) if f.init and f.name != "images"]
        of_images = [f.name for f in fields(ImageKnobs)]
        refuse_unknown_knobs(knobs, [*own, *of_images])
        images = ImageKnobs.from_dict({name: value for name, value in knobs.items() if name in of_images})
        return cls(images=images, **{name: value for name, value in knobs.items() if name in own})
