"""The sizes of the flow front-end's networks and the settings of its loss, and what they may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from lcd.envs.errors import InputError, nearest

STEMS = (1, 2, 4)
LEVELS = 4
CONVOLUTIONS, FPN = "convolutions", "fpn"
DECODERS = (CONVOLUTIONS, FPN)
RECURRENT, GROUPS = "recurrent", "groups"
ENCODERS = (RECURRENT, GROUPS)
OF_GROUPS = ("width", "pyramid", "maps")
"""The sizes that an encoder of groups has; the others are the paper's networks'."""
FEWEST_GROUPED = 6
"""Maps: three in each group, so that two things are told from what is none."""
KINDS = {"decoder_kind": DECODERS, "encoder_kind": ENCODERS}
SAID = {"decoder_kind": "pretraining.decoder"}
"""What users call it, where that is not `frontend.…`."""
LEAST_SIDE = 8
"""Frames smaller than this leave nothing for the coarsest level to see."""


@dataclass(frozen=True)
class LossConfig:
    """Weights of the loss's parts; the defaults are the paper's."""

    mse: float = 1.0
    """Weight of the mean squared error."""
    l1: float = 0.0
    """Weight of the mean absolute error (Liu et al. 2021: 0.15)."""
    ssim: float = 0.0
    """Weight of (1 − SSIM) / 2 over 3×3 windows (Liu et al. 2021: 0.85)."""
    smoothness: float = 0.0
    """Weight of the flow's mean absolute difference between neighbours, less where frame t + 1 has an edge."""
    occlusion: bool = False
    """Leave out pixels whose flow leaves the frame, and those that no pixel of the frame moves to."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name == "occlusion":
                if not isinstance(value, bool):
                    raise InputError(f"loss.occlusion={value} must be true or false.")
            elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise InputError(f"loss.{entry.name}={value} must be a number of at least 0.")
        if not self.mse + self.l1 + self.ssim > 0:
            raise InputError("loss.mse, loss.l1 and loss.ssim are all 0: give one of them a weight.")


@dataclass(frozen=True)
class FlowConfig:
    """Sizes; the defaults are ResNet-18, its FPN and the paper's 16 maps and 8 steps."""

    width: int = 64
    """Channels of the ResNets' first stage; 64 is ResNet-18."""
    stem: int = 2
    """Pixels that one of the finest level spans: 4 is ResNet-18 as it is, 2 takes what comes before its pooling as a
    level, too, 1 keeps every pixel."""
    pyramid: int = 256
    """Channels of the object encoder's FPN."""
    maps: int = 16
    """Channels of the recurrent unit: the maps that agents see."""
    hgru_kernel: int = 9
    """Side of the recurrent unit's horizontal connections."""
    hgru_steps: int = 8
    """Time steps of the recurrent unit."""
    motion: int = 64
    """Channels of the flow encoder's FPN."""
    motion_stride: int = 8
    """Pixels that one of the flow encoder's features spans; coarser than the maps, so that these must draw borders."""
    decoder: int = 64
    """Channels of the decoder's convolutions."""
    bound: float | None = None
    """Greatest flow in pixels; null: none."""
    decoder_kind: str = CONVOLUTIONS
    """What the decoder is: a few convolutions, or an FPN-ResNet18 of its own."""
    encoder_kind: str = RECURRENT
    """What the object encoder is: the paper's ResNet-18 FPN with a recurrent unit, or groups of maps that compete."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name in KINDS:
                good, wanted = value in KINDS[entry.name], f"one of {', '.join(KINDS[entry.name])}"
            elif entry.name == "bound":
                good, wanted = value is None or (_is_number(value) and value > 0), "null or a number above 0"
            else:
                good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
                wanted = "a whole number of at least 1"
            if not good:
                raise InputError(f"frontend.{entry.name}={value} must be {wanted}.")
        if self.encoder_kind == GROUPS:
            self._check_groups()
        if self.stem not in STEMS:
            raise InputError(f"frontend.stem={self.stem} must be one of {', '.join(map(str, STEMS))}.")
        if self.hgru_kernel % 2 == 0:
            raise InputError(f"frontend.hgru_kernel={self.hgru_kernel} must be odd: neighbours lie on all sides.")
        if self.motion_stride not in self.strides:
            options = ", ".join(map(str, self.strides))
            raise InputError(f"frontend.motion_stride={self.motion_stride} must be one of {options}.")

    def _check_groups(self) -> None:
        for entry in fields(self):
            if entry.name not in (*OF_GROUPS, "encoder_kind") and getattr(self, entry.name) != entry.default:
                said = SAID.get(entry.name, f"frontend.{entry.name}")
                raise not_for_groups(f"{said}={getattr(self, entry.name)}")
        if self.maps % 2 or self.maps < FEWEST_GROUPED:
            raise InputError(
                f"frontend.maps={self.maps} must be even and at least {FEWEST_GROUPED}: there are two groups."
            )

    def recorded(self) -> dict[str, Any]:
        """What runs and files say of it: what came later is left out where it is as before."""
        sizes = asdict(self)
        usual = {entry.name: entry.default for entry in fields(self) if entry.name in KINDS}
        return {name: value for name, value in sizes.items() if name not in usual or value != usual[name]}

    @property
    def strides(self) -> list[int]:
        """What one of each level of the encoders spans in pixels, from the finest."""
        return [self.stem * 2**level for level in range(LEVELS + (self.stem == 2))]

    @classmethod
    def from_dict(cls, knobs: Mapping[str, Any]) -> FlowConfig:
        """A config from knobs; None stands for the default."""
        names = [entry.name for entry in fields(cls)]
        for name in knobs:
            if name not in names:
                raise InputError(f"frontend.{name}={knobs[name]} is no knob of 'flow': {nearest(name, names)}")
        return cls(**{name: value for name, value in knobs.items() if value is not None})


def not_for_groups(what: str) -> InputError:
    """The refusal of a setting that only the paper's networks have."""
    return InputError(
        f"{what} is for the paper's networks, and an encoder of groups has no such thing: leave it out, "
        f"or take those by frontend.encoder_kind={RECURRENT}."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
