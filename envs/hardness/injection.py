"""What the wrappers inject: the knobs that apply to environments whose inside is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from gymnasium import spaces

from lcd.envs.checks import (
    MOST_STEPS,
    is_number,
    refuse_unknown_knobs,
    require_finite_knob,
    require_one_of,
    require_whole_knob,
)
from lcd.envs.errors import InputError
from lcd.envs.hardness.image_knobs import MOST_PIXELS, parse_transforms
from lcd.envs.hardness.payment import Noise
from lcd.envs.hardness.transforms import ImageTransforms
from lcd.envs.spaces import is_image, number_of_actions

CLIPS: dict[str, Callable[[np.ndarray], np.ndarray] | None] = {
    "none": None,
    "sign": np.sign,
    "clip": lambda rewards: rewards.clip(-1.0, 1.0),
}


@dataclass(frozen=True)
class InjectionKnobs:
    """What is made harder. Names are MDP Playground's; every default leaves the environment as it is."""

    delay: int = 0
    """Steps by which rewards come late; what is left at the end of an episode is paid with its last step."""
    transition_noise: Noise = 0.0
    """Discrete actions: probability that another action is taken (or a function (observation, action, generator) ->
    probability). Continuous: standard deviation of the normal noise on the state, that is on what is observed, and in
    MuJoCo on positions and velocities themselves (or a function (observation, action, generator) -> what to add)."""
    reward_noise: Noise = 0.0
    """Standard deviation of the normal noise on every reward, or a function (observation, action, generator) ->
    noise."""
    reward_scale: float = 1.0
    """Factor of the reward and of its noise."""
    reward_shift: float = 0.0
    """Added to every step's reward, after the scale."""
    term_state_reward: float = 0.0
    """Added, times the scale, when an episode terminates (not when it is truncated)."""
    reward_clip: str = "none"
    """What an agent learns from, after all else: the rewards themselves (none), their signs (sign), or what is left of
    them between -1 and 1 (clip). Curves are of the rewards themselves."""
    irrelevant_features: bool | Mapping[str, Any] = False
    """A toy beside the environment, seen and acted on with it: true, or the toy's own knobs. It is never rewarded, and
    starts anew with the environment's episodes only."""
    irr_state_space_dim: int | None = None
    """Dimensions of a point mass beside a continuous environment: `irrelevant_features` in short."""
    image_transforms: Any = ()
    """Which of shift, scale, rotate and flip happen to image observations at random."""
    image_padding: int = 0
    """Width of the black border within which shifts happen; without one a quarter of the image is shifted out."""
    image_sh_quant: int = 1
    """Shifts are multiples of this many pixels."""
    image_ro_quant: int = 1
    """Rotations are multiples of this many degrees."""
    image_scale_range: tuple[float, float] = (0.5, 1.5)
    """Least and largest scale."""

    def __post_init__(self) -> None:
        require_whole_knob(self, "delay", 0, MOST_STEPS)
        require_whole_knob(self, "image_padding", 0, MOST_PIXELS)
        require_whole_knob(self, "image_sh_quant", 1, MOST_PIXELS)
        require_whole_knob(self, "image_ro_quant", 1, 360)
        for name in ("reward_scale", "reward_shift", "term_state_reward"):
            require_finite_knob(self, name)
        for name in ("transition_noise", "reward_noise"):
            value = getattr(self, name)
            if not callable(value) and (not is_number(value) or not 0 <= value < np.inf):
                raise InputError(f"{name} is {value!r}, but it must be a number of at least 0, or a function.")
        require_one_of("reward_clip", self.reward_clip, tuple(CLIPS))
        if self.irr_state_space_dim is not None:
            require_whole_knob(self, "irr_state_space_dim", 1)
            own = {} if isinstance(self.irrelevant_features, bool) else dict(self.irrelevant_features)
            object.__setattr__(self, "irrelevant_features", own | {"state_space_dim": self.irr_state_space_dim})
        if not isinstance(self.irrelevant_features, bool | Mapping):
            raise InputError(
                f"irrelevant_features is {self.irrelevant_features!r}, but it must be true or a toy's knobs."
            )
        ends = tuple(self.image_scale_range)
        if len(ends) != 2 or not all(map(is_number, ends)) or not 0 < ends[0] <= ends[1]:
            raise InputError(f"image_scale_range is {ends!r}, but it must be two rising numbers above 0.")
        object.__setattr__(self, "image_transforms", parse_transforms(self.image_transforms))
        object.__setattr__(self, "image_scale_range", ends)

    @classmethod
    def from_dict(cls, knobs: Mapping[str, Any]) -> InjectionKnobs:
        """Knobs from a table; the rest have their defaults."""
        refuse_unknown_knobs(knobs, [f.name for f in fields(cls)])
        return cls(**knobs)

    def check(self, observations: spaces.Space, actions: spaces.Space) -> None:
        """Refuse what these spaces cannot have."""
        image = is_image(observations)
        if self.image_transforms and not image:
            raise InputError(
                f"image_transforms is {','.join(self.image_transforms)!r}, but the environment's observations "
                f"({observations}) are no images."
            )
        if callable(self.transition_noise) or self.transition_noise == 0:
            return
        if isinstance(actions, spaces.Discrete | spaces.MultiDiscrete):
            if self.transition_noise > 1:
                raise InputError(
                    f"transition_noise is {self.transition_noise}, but with discrete actions it is a probability."
                )
            if number_of_actions(actions) < 2:
                raise InputError("transition_noise needs a second action, but the environment has one only.")
        elif image or not isinstance(observations, spaces.Box):
            raise InputError(
                f"transition_noise is {self.transition_noise}, but neither the actions ({actions}) are discrete nor "
                f"the observations ({observations}) a vector."
            )

    def transforms(self) -> ImageTransforms | None:
        """What happens to images, if anything does."""
        if not self.image_transforms:
            return None
        return ImageTransforms(
            self.image_transforms, self.image_padding, self.image_sh_quant, self.image_ro_quant, self.image_scale_range
        )
