"""What agents tell of their updates: against a peer's formula, and what a file is spared."""

import numpy as np
import pytest
import torch

from lcd.agents.scalars import MOST_ROWS, by_member, crosses, explained_variance, spacing


def test_explained_variance_is_the_peers():
    utils = pytest.importorskip("stable_baselines3.common.utils", reason="stable-baselines3 is not installed")
    values, targets = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(0))
    found = explained_variance(values, targets, torch.ones(3, 5, 4))
    for seed in range(3):
        expected = utils.explained_variance(values[seed].numpy().ravel(), targets[seed].numpy().ravel())
        assert found[seed].item() == pytest.approx(expected, rel=1e-5)


def test_resets_have_no_weight_in_explained_variance():
    values, targets = torch.randn(2, 1, 6, 2, generator=torch.Generator().manual_seed(1))
    weights = torch.ones(1, 6, 2)
    weights[:, 2], values[:, 2], targets[:, 2] = 0, 1e3, -1e3
    kept = [0, 1, 3, 4, 5]
    expected = explained_variance(values[:, kept], targets[:, kept], weights[:, kept])
    assert torch.allclose(explained_variance(values, targets, weights), expected)


@pytest.mark.parametrize(("steps", "each"), [(1000, 25), (10**8, 16384), (8192, 8192)])
def test_rows_are_about_a_thousand_at_most_and_one_an_update_below_that(steps, each):
    ends = range(each, steps + each, each)
    rows = sum(crosses(end - each, end, spacing(steps)) for end in ends)
    assert rows <= MOST_ROWS + 1
    assert rows >= min(len(ends), MOST_ROWS // 2)


def test_scalars_of_seeds_and_of_everybody_become_numbers_of_members():
    found = by_member({"loss": torch.tensor([1.0, 2.0]), "rate": 0.5, "error": np.array([3.0, 4.0])}, 2)
    assert {name: values.tolist() for name, values in found.items()} == {
        "loss": [1.0, 2.0],
        "rate": [0.5, 0.5],
        "error": [3.0, 4.0],
    }
