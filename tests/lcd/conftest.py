"""Synthetic learning curves whose areas are known by construction."""

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

# Lets the tests import the tasks that they share.
sys.path.insert(0, str(Path(__file__).parent))

from curve_sets import TASKS, curve_rows, study


@pytest.fixture
def make_study() -> Callable[..., pd.DataFrame]:
    """The generator itself."""
    return study


@pytest.fixture
def make_curve() -> Callable[..., list[dict]]:
    """Rows of one curve."""
    return curve_rows


@pytest.fixture
def curves() -> pd.DataFrame:
    """Four tasks, easy and hard in perception and reward, five seeds."""
    return study(TASKS, seeds=5, noise=0.02)
