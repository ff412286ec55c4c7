"""The front-end seam, and the front-end that does nothing."""

import pytest
import torch
from torch import nn

from lcd import frontends
from lcd.envs.errors import InputError


def test_identity_shows_images_channels_first_without_copying():
    images = torch.randint(0, 256, (5, 8, 9, 3), dtype=torch.uint8)
    features = frontends.make("identity")(images)
    assert features.shape == (5, 3, 8, 9)
    assert features.dtype == torch.uint8
    assert features.data_ptr() == images.data_ptr()
    assert features[4, 2, 7, 8] == images[4, 7, 8, 2]


def test_identity_leaves_vectors_alone():
    vectors = torch.rand(5, 7)
    front_end = frontends.make("identity")
    assert front_end(vectors) is vectors
    assert front_end.channels is None
    assert front_end.features is None


class Eye(nn.Module):
    channels, features = None, 4

    def __init__(self, width: int = 4, slope: float | None = None):
        super().__init__()
        self.layer = nn.Linear(7, width)

    def forward(self, observations):
        return self.layer(observations)


def test_a_front_end_is_frozen(monkeypatch):
    monkeypatch.setitem(frontends.frontends._built_in, "eye", Eye)
    eye = frontends.make("eye", width=6)
    assert not any(parameter.requires_grad for parameter in eye.parameters())
    assert not eye.training
    assert not eye(torch.rand(2, 7)).requires_grad
    with pytest.raises(InputError, match=r"frontend\.widht=3 is no knob of 'eye': did you mean 'width'"):
        frontends.make("eye", widht=3)


def test_knobs_are_of_the_kind_that_their_hints_say(monkeypatch):
    monkeypatch.setitem(frontends.frontends._built_in, "eye", Eye)
    with pytest.raises(InputError, match=r"frontend\.width=wide should be of type int"):
        frontends.make("eye", width="wide")
    with pytest.raises(InputError, match=r"frontend\.slope=steep should be of type float or null"):
        frontends.make("eye", slope="steep")
    frontends.make("eye", slope=1)


def test_unknown_names_and_knobs_are_mistakes():
    with pytest.raises(InputError, match="did you mean 'identity'"):
        frontends.make("identiti")
    with pytest.raises(InputError, match=r"frontend\.depth=3 is no knob of 'identity'"):
        frontends.make("identity", depth=3)
