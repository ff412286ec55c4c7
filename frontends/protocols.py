"""What a front-end may offer besides `forward`: ask with `lcd.envs.protocols.offers(frontend, HalfIsSafe)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn


class HalfIsSafe(Protocol):
    """Its features may be kept as float16 unless the user says otherwise."""

    half_is_safe: bool


class HasMaps(Protocol):
    """Feature maps whose objectness can be measured."""

    def maps(self, observations: Tensor) -> Tensor:
        """uint8 images (N, H, W, C) to maps (N, maps, height, width)."""
        ...


class HasUntrainedTwin(Protocol):
    """An encoder of the same build before any training, to compare measurements with."""

    def untrained_twin(self) -> nn.Module:
        """The encoder."""
        ...


class HasLabel(Protocol):
    """One name of the registry that may be many front-ends (`backbone`): what curves call this one; None: its name."""

    label: str | None


class HasWeightsHash(Protocol):
    """Weights that were loaded by name and not from a file of the user's: the SHA-256 of their content."""

    sha256: str | None


class HasPreprocessing(Protocol):
    """What is done to images before the encoder, as part of what a run is."""

    preprocessing: object


class HasLaterKnobs(Protocol):
    """Knobs that came after runs were made, and what was so before: a run's config leaves out what is as it was."""

    later: Mapping[str, object]
