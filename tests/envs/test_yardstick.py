"""The yardstick orders the levels that toys were made with, and knows what it does not depend on."""

import numpy as np
import pytest

from lcd.envs.calibration import CALIBRATION, HELD_OUT
from lcd.envs.yardstick import (
    frames_needed,
    labelled_frames,
    reward_hardness,
    share_read,
    sight_hardness,
)

FEW = (6, 12, 24, 48, 96, 192)


def test_more_frames_are_needed_the_harder_it_is_to_see():
    needed = [sight_hardness(CALIBRATION, f"calibration/perception-{level}-reward-0", "pixels", (0,), FEW)
              for level in range(3)]  # fmt: skip
    assert needed[0] < needed[1] - 1 < needed[2] - 2
    semantic = [sight_hardness(CALIBRATION, f"calibration/perception-{level}-reward-0", "semantic", (0,), FEW)
                for level in (0, 3)]  # fmt: skip
    assert semantic == pytest.approx([needed[0]] * 2, abs=0.6)


def test_geometry_costs_figure_ground_masks_as_much_as_pixels_and_labels_less():
    pixels, masks, labels = (
        sight_hardness(HELD_OUT, "calibration-heldout/perception-1-reward-0", view, (0,), FEW)
        for view in ("pixels", "figure_ground", "semantic")
    )
    assert pixels == pytest.approx(masks, abs=0.3)
    assert labels < pixels - 1


def test_rarer_rewards_tell_actions_apart_more_slowly_and_looks_change_nothing():
    found = [reward_hardness(CALIBRATION, f"calibration/perception-0-reward-{level}", (0, 1)) for level in range(4)]
    assert (np.diff([each.samples for each in found]) > 0.5).all()
    for each in found:
        assert each.random < each.blind < each.optimal
        assert each.random / each.optimal == pytest.approx(found[0].random / found[0].optimal)
    elsewhere = reward_hardness(CALIBRATION, "calibration/perception-3-reward-2", (0, 1))
    assert elsewhere.samples == pytest.approx(found[2].samples, abs=1)
    assert elsewhere.to_learn == elsewhere.samples + elsewhere.steps


def test_frames_show_the_states_that_they_are_labelled_with():
    env = CALIBRATION.make_vec("calibration/perception-0-reward-0", view="semantic", split="train", num_envs=8, seed=0)
    frames, states = labelled_frames(env, 64, 0)
    for state in np.unique(states):
        assert len(np.unique(frames[states == state], axis=0)) == 1
    assert share_read(frames, states, frames, states, 1.0) == 1


def test_needed_frames_lie_between_those_that_were_tried():
    counts = (8, 16, 32)
    assert frames_needed(np.array([0.5, 0.7, 0.9]), counts) == pytest.approx(4.5)
    assert frames_needed(np.array([0.9, 0.95, 1.0]), counts) == 3
    assert frames_needed(np.array([0.5, 0.6, 0.7]), counts) == np.inf
