"""What `agent.precision=auto` is on a device."""

from __future__ import annotations

import torch

AUTO, FULL, HALF = "auto", "32-true", "bf16-mixed"


def precision_on(device: str, asked: str) -> str:
    """The precision that networks are computed in, as Lightning calls it.

    Args:
        device: the type of the device, as PyTorch calls it.
        asked: `auto` is bf16 on a GPU that multiplies it by itself. On a CPU it is single precision, so that what is
            trained does not depend on the processor's model.
    """
    if asked != AUTO:
        return asked
    return HALF if device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False) else FULL
