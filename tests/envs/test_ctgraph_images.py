"""The CT-graph's image classes and labels."""

from __future__ import annotations

import numpy as np

from lcd.envs.ctgraph.images import labels, rotate, synthetic


def test_labels_and_images_tell_ids_apart():
    for classes in (3, 8, 9, 64, 65, 512, 600, 5000):
        assert len(np.unique(labels(classes).reshape(classes, -1), axis=0)) == classes
    images = synthetic(1, 300)
    assert len(np.unique(images.reshape(300, -1), axis=0)) == 300
    assert (images[:40] == synthetic(1, 40)).all()
    assert (synthetic(2, 40) != images[:40]).any()
    # Those that were not turned are made of 3x3 blocks of three levels.
    blocks = images.reshape(300, 4, 3, 4, 3)
    upright = (blocks == blocks[:, :, :1, :, :1]).all(axis=(1, 2, 3, 4))
    assert 0.2 < upright.mean() < 0.47
    assert set(np.unique(images[upright])) == {0, 128, 255}


def test_rotation_by_right_angles_is_exact():
    image = np.random.default_rng(0).integers(256, size=(2, 12, 12, 3)).astype(np.uint8)
    assert (rotate(image, 90) == np.rot90(image, axes=(1, 2))).all()
    assert (rotate(image, 180) == np.rot90(image, 2, axes=(1, 2))).all()
