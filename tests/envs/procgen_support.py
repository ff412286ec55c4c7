"""What the tests of Procgen share: they are skipped only where it is not installed, and never in CI."""

import os
from importlib.util import find_spec

import numpy as np
import pytest

INSTALLED = all(find_spec(name) for name in ("procgen", "gym3", "cffi", "imageio"))
needs_procgen = pytest.mark.skipif(
    not INSTALLED and not os.environ.get("CI"),
    reason="Procgen is not installed: pip install --no-deps procgen-mirror gym3, then pip install 'cffi<2' imageio",
)


def lasting_actions(copies: int, steps: int, seed: int = 0) -> np.ndarray:
    """Random actions that last for a few steps, so that agents get somewhere."""
    chooser = np.random.default_rng(seed)
    actions, current = [], chooser.integers(0, 15, copies)
    for _ in range(steps):
        current = np.where(chooser.random(copies) < 0.4, chooser.integers(0, 15, copies), current)
        actions.append(current)
    return np.stack(actions)
