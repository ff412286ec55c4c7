"""What moves by itself, in scenes that are made so that it is known."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lcd.frontends.flow.own_motion import REACH, even_weights, filled, own_motion, scene_shift, unexplained

SIDE, MARGIN = 40, 20


def texture(seed, side=SIDE + 2 * MARGIN):
    return torch.from_numpy(np.random.default_rng(seed).random((3, side, side), np.float32))


def scene(scroll, step, thing=3, at=18, seed=0):
    """Three frames, and where a square is in the middle one: it moves by `step`, the dark scenery by `scroll`."""
    background, square = 0.4 * texture(seed), 0.6 + 0.4 * texture(seed + 1, thing)
    frames, masks = [], []
    for time in (-1, 0, 1):
        rows, columns = (MARGIN - time * along for along in scroll)
        frame = background[:, rows : rows + SIDE, columns : columns + SIDE].clone()
        row, column = (at + time * along for along in step)
        frame[:, row : row + thing, column : column + thing] = square
        mask = torch.zeros(SIDE, SIDE, dtype=torch.bool)
        mask[row : row + thing, column : column + thing] = True
        frames.append(frame[None])
        masks.append(mask)
    return frames, masks[1]


SHIFTS = st.tuples(st.integers(-REACH, REACH), st.integers(-REACH, REACH))


@settings(max_examples=25, deadline=None)
@given(shift=SHIFTS)
def test_the_scenes_shift_is_found_beside_a_thing_that_moves_otherwise(shift):
    frames, _ = scene(shift, (-shift[0], 3))
    assert scene_shift(frames[1], frames[2])[0].tolist() == list(shift)


@pytest.mark.parametrize("scroll", [(0, 0), (2, -3), (-1, 1)])
@pytest.mark.parametrize("step", [(6, 0), (-5, 5)])
def test_own_motion_is_the_thing_and_its_displacement(scroll, step):
    frames, thing = scene(scroll, step)
    motion = own_motion(*frames)
    own = motion.own[0]
    assert own[thing].float().mean() > 0.9
    assert own[~thing].float().mean() < 0.02
    inside = own & thing
    assert (motion.displacement[0][inside] == torch.tensor(step)).all(-1).float().mean() > 0.9
    assert (motion.displacement[0][~own] == torch.tensor(scroll)).all()


def test_matches_that_leave_the_frame_are_not_found():
    frames, _ = scene((0, 3), (4, 0))
    found = own_motion(*frames).found[0]
    assert not found[:, -3:].any()
    assert found[:12, :-3].all()


def test_scenery_that_scrolls_by_half_a_pixel_does_not_move_by_itself():
    whole = texture(3)[:, :SIDE, : SIDE + 2]
    halfway = (whole[:, :, :-1] + whole[:, :, 1:]) / 2
    frames = [whole[None, :, :, :SIDE], halfway[None, :, :, :SIDE], whole[None, :, :, 1 : SIDE + 1]]
    assert not own_motion(*frames).own[:, 1:-1, 1:-1].any()


def test_unexplained_is_what_no_neighbour_of_the_shifted_frame_shows():
    """Against loops over pixels and their neighbours."""
    first, second = texture(5, 9)[None], texture(6, 9)[None]
    shift = torch.tensor([[1, -2]])
    found = unexplained(first, second, shift)[0]
    for row in range(3, 6):
        for column in range(3, 6):
            beyond = 0.0
            for colour in range(3):
                near = [
                    float(second[0, colour, min(row + 1 + down, 8), max(column - 2 + right, 0)])
                    for down in (-1, 0, 1)
                    for right in (-1, 0, 1)
                ]
                value = float(first[0, colour, row, column])
                beyond += max(min(near) - value, value - max(near), 0) ** 2 / 3
            assert bool(found[row, column]) == (beyond > 0.003)


def test_a_thing_weighs_as_the_root_of_its_size():
    own = torch.zeros(1, SIDE, SIDE, dtype=torch.bool)
    own[0, 5, 5] = own[0, 20:24, 20:24] = True
    weights = even_weights(own)
    assert weights[0, 5, 5] == 1
    assert weights[0, 20:24, 20:24].sum().item() == pytest.approx(4)
    assert not weights[~own].any()


def test_holes_of_a_pixel_are_filled_and_nothing_grows():
    own = torch.zeros(1, 9, 9, dtype=torch.bool)
    own[0, 3:6, 3:6] = True
    whole = own.clone()
    own[0, 4, 4] = False
    assert (filled(own) == whole).all()
