"""Lets the tests, and the workers they start, import the stand-ins beside them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of two megabytes."""
    from small_disk import small_disk as mounted

    with mounted(tmp_path / "disk") as disk:
        if disk is None:
            pytest.skip("only root mounts a small disk")
        yield disk
