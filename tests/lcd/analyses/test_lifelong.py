"""The metrics of Baker et al., each against an example worked out by hand; from curves in `test_transfer`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lcd.analyses.lifelong import of_experts, of_returns

# Three stages, three tasks: b, then R.
MATRIX = np.array([[0.0, 0.1, 0.2], [0.9, 0.3, 0.2], [0.5, 1.0, 0.6], [0.7, 0.4, 0.8]])


def test_metrics_of_a_matrix_by_hand():
    """Task 0 is trained first, then 1, then 2: b = (0, .1, .2), R = (.9, .3, .2), (.5, 1, .6), (.7, .4, .8)."""
    found = of_returns(MATRIX, [0, 1, 2])
    # Task 0 after stages 2 and 3, less .9 after its own; task 1 after stage 3, less 1.
    assert found["maintenance"] == pytest.approx((((0.5 - 0.9) + (0.7 - 0.9)) / 2 + (0.4 - 1.0)) / 2)
    # Stage 1 on tasks 1 and 2, stage 2 on task 2, which have not been trained before.
    assert found["forward_ratio"] == pytest.approx((0.3 / 0.1 + 0.2 / 0.2 + 0.6 / 0.2) / 3)
    assert found["forward_contrast"] == pytest.approx((0.2 / 0.4 + 0 / 0.4 + 0.4 / 0.8) / 3)
    # Stage 2 on task 0, stage 3 on tasks 0 and 1.
    assert found["backward_ratio"] == pytest.approx((0.5 / 0.9 + 0.7 / 0.5 + 0.4 / 1.0) / 3)
    assert found["backward_contrast"] == pytest.approx((-0.4 / 1.4 + 0.2 / 1.2 - 0.6 / 1.4) / 3)


def test_a_task_that_comes_again_is_kept_from_its_latest_stage():
    returns = np.array([[0.0, 0.0], [1.0, 0.0], [0.2, 1.0], [0.9, 0.5], [0.8, 0.7]])
    found = of_returns(returns, [0, 1, 0, 1])
    # Task 0: .2 - 1 after its first stage, .8 - .9 after its second; task 1: .5 - 1.
    assert found["maintenance"] == pytest.approx(((-0.8 - 0.1) / 2 - 0.5) / 2)
    # Before stage 1 the return on task 1 is 0: neither a ratio nor a contrast.
    assert math.isnan(found["forward_ratio"])
    assert math.isnan(found["forward_contrast"])
    assert found["backward_ratio"] == pytest.approx((0.2 / 1.0 + 0.5 / 1.0 + 0.8 / 0.9) / 3)


def test_a_task_that_is_never_trained_is_transferred_to_forward_only():
    found = of_returns(np.array([[0.1, 0.2], [0.9, 0.5]]), [0])
    assert found["forward_ratio"] == pytest.approx(0.5 / 0.2)
    assert math.isnan(found["maintenance"])
    assert math.isnan(found["backward_ratio"])


def test_metrics_beside_an_expert_by_hand():
    """Areas up to step 100, the shorter curve's end: (0 + .5)/2 and (.5 + .8)/2, beside .2 and .6 on the way to 1."""
    mine = (np.array([0.0, 50, 100]), np.array([0.0, 0.5, 0.8]))
    expert = (np.array([0.0, 50, 100, 200]), np.array([0.0, 0.4, 0.8, 1.0]))
    found = of_experts([mine], [expert])
    assert found["relative_performance"] == pytest.approx((0.25 + 0.65) / (0.2 + 0.6))
    assert found["sample_efficiency"] == pytest.approx(0.8 / 1.0 * 200 / 100)
    twice = of_experts([mine, expert], [expert, expert])
    assert twice["relative_performance"] == pytest.approx((0.9 / 0.8 + 1) / 2)
    assert twice["sample_efficiency"] == pytest.approx((1.6 + 1) / 2)
    # Never better than at the start: nothing was reached in any number of steps.
    assert math.isnan(of_experts([(mine[0], np.array([1.0, 0.5, 0.2]))], [expert])["sample_efficiency"])
