"""The flow front-end: its networks, what agents get of it, and its file."""

import io
import zipfile

import pytest
import torch
from torchvision.models import resnet18

from lcd import frontends
from lcd.envs.errors import InputError
from lcd.frontends.flow.config import DECODERS, FlowConfig
from lcd.frontends.flow.file import FrontendFile, read
from lcd.frontends.flow.networks import Decoder, FlowModel
from lcd.frontends.flow.pyramid import ResNet18

SMALL = {"width": 4, "pyramid": 4, "hgru_kernel": 3, "hgru_steps": 3, "motion": 4, "decoder": 4}


def images(count=3, height=64, width=64):
    return torch.randint(0, 256, (count, height, width, 3), generator=torch.Generator().manual_seed(0)).byte()


@pytest.mark.parametrize("stem", [2, 4])
def test_the_trunk_is_torchvisions_resnet_18(stem):
    torch.manual_seed(0)
    peer, trunk = resnet18(weights=None).eval(), ResNet18(3, 64, stem).eval()
    missing, unexpected = trunk.load_state_dict(peer.state_dict(), strict=False)
    assert not missing
    assert set(unexpected) == {"fc.weight", "fc.bias"}
    image = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        features = peer.relu(peer.bn1(peer.conv1(image)))
        expected = [features] if stem == 2 else []
        features = peer.maxpool(features)
        for layer in (peer.layer1, peer.layer2, peer.layer3, peer.layer4):
            features = layer(features)
            expected.append(features)
        for level, wanted in zip(trunk(image), expected, strict=True):
            torch.testing.assert_close(level, wanted)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("stem", [1, 2, 4])
@pytest.mark.parametrize(("height", "width"), [(64, 64), (20, 20), (17, 30), (8, 8)])
def test_maps_and_flows_have_the_frames_size(stem, height, width, decoder):
    model = FlowModel(FlowConfig(**SMALL, stem=stem, motion_stride=8, decoder_kind=decoder))
    first, second = torch.rand(2, 2, 3, height, width)
    maps, flow = model(first, second)
    assert maps.shape == (2, 16, height, width)
    assert flow.shape == (2, 2, height, width)
    assert not flow.any(), "pretraining starts at no flow"
    flow.sum().backward()
    assert model.decoder.head.bias.grad.abs().sum() > 0


def test_an_fpn_decoder_sees_further_than_convolutions():
    """A change in one corner of the maps moves the flow in the opposite one, or stays within three pixels."""
    reach = {}
    for decoder in DECODERS:
        torch.manual_seed(0)
        made = Decoder(FlowConfig(**SMALL, stem=2, decoder_kind=decoder)).eval()
        torch.nn.init.normal_(made.head.weight)
        maps, motion = torch.rand(1, 16, 32, 32), torch.rand(1, SMALL["motion"], 4, 4)
        other = maps.clone()
        other[..., 0, 0] += 1
        moved = (made(maps, motion) - made(other, motion)).abs().amax(1)[0] > 0
        reach[decoder] = int(moved.nonzero().max())
    assert reach["convolutions"] == 3
    assert reach["fpn"] == 31


def test_a_bound_bounds_the_flow_and_none_does_not():
    for bound in (2.0, None):
        model = FlowModel(FlowConfig(**SMALL, bound=bound))
        torch.nn.init.constant_(model.decoder.head.bias, 30.0)
        greatest = model(*torch.rand(2, 2, 3, 32, 32))[1].abs().max().item()
        assert greatest == pytest.approx(bound or 30.0)


def test_agents_get_the_image_and_its_maps():
    front_end = frontends.make("flow", weights="untrained", **SMALL)
    seen = front_end(images())
    assert front_end.channels == 19
    assert seen.shape == (3, 19, 64, 64)
    torch.testing.assert_close(seen[:, :3], images().permute(0, 3, 1, 2) / 255)
    torch.testing.assert_close(seen[:, 3:], front_end.maps(images()))
    assert seen.min() >= 0
    assert seen.max() <= 1
    assert not seen.requires_grad
    torch.testing.assert_close(front_end(images())[1:2], front_end(images()[1:2]), atol=1e-5, rtol=1e-4)
    alone = frontends.make("flow", weights="untrained", rgb=False, **SMALL)
    assert alone.channels == 16
    torch.testing.assert_close(alone(images()), front_end.maps(images()))
    assert frontends.make("flow", weights="untrained", **SMALL)(images(1, 20, 20)).shape == (1, 19, 20, 20)


def test_an_untrained_encoder_follows_from_its_seed_and_disturbs_no_other_stream():
    state = torch.get_rng_state()
    one, same, other = (frontends.make("flow", weights="untrained", seed=seed, **SMALL) for seed in (0, 0, 1))
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(one(images()), same(images()))
    assert not torch.equal(one(images()), other(images()))


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ({}, "needs frontend.weights=FILE"),
        ({"weights": "nowhere.pt"}, "cannot be read"),
        ({"weights": "/dev/zero"}, "cannot be read \\(it is no regular file\\)"),
        ({"weights": "untrained", "stem": 3}, "frontend.stem=3 must be one of 1, 2, 4"),
        ({"weights": "untrained", "hgru_kernel": 4}, "must be odd"),
        ({"weights": "untrained", "motion_stride": 5}, "must be one of 2, 4, 8, 16, 32"),
        ({"weights": "untrained", "width": 0}, "whole number of at least 1"),
        ({"weights": "untrained", "bound": -1}, "null or a number above 0"),
        ({"weights": "untrained", "wdith": 3}, "did you mean 'width'"),
    ],
)
def test_mistakes_are_told(knobs, told):
    with pytest.raises(InputError, match=told):
        frontends.make("flow", **knobs)


def test_what_is_no_image_is_refused():
    front_end = frontends.make("flow", weights="untrained", **SMALL)
    for observations in (torch.rand(2, 7), torch.rand(2, 16, 16, 3), torch.zeros(2, 16, 16, 1, dtype=torch.uint8)):
        with pytest.raises(InputError, match="uint8 images with three colours"):
            front_end(observations)
    with pytest.raises(InputError, match="at least 8×8"):
        front_end(images(1, 6, 20))


def content(decoder="convolutions", **changes):
    config = FlowConfig(**SMALL, decoder_kind=decoder)
    torch.manual_seed(5)
    made = FrontendFile(config, FlowModel(config).state_dict(), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), "abc", {"lcd": "0"})
    stored = torch.load(io.BytesIO(made.to_bytes()), weights_only=True)
    return stored | changes


@pytest.fixture
def save(tmp_path):
    def write(stored):
        path = tmp_path / "flow.pt"
        torch.save(stored, path)
        return path

    return write


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_file_gives_back_what_was_trained(save, decoder):
    stored = content(decoder)
    # Files of before there was a choice say nothing of it.
    assert ("decoder_kind" in stored["config"]) == (decoder == "fpn")
    path = save(stored)
    front_end = frontends.make("flow", weights=str(path))
    for name, value in front_end.objects.state_dict().items():
        assert torch.equal(value, stored["model"][f"objects.{name}"])
    assert front_end.mean.flatten().tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert front_end.std.flatten().tolist() == pytest.approx([0.4, 0.5, 0.6])
    assert front_end.data_hash == "abc"
    assert front_end(images()).shape == (3, 19, 64, 64)
    frames = (images().permute(0, 3, 1, 2) / 255 - front_end.mean) / front_end.std
    torch.testing.assert_close(front_end.maps(images()), front_end.objects(frames))
    with pytest.raises(InputError, match=r"frontend\.width=8 is not what"):
        frontends.make("flow", weights=str(path), width=8)
    assert frontends.make("flow", weights=str(path), width=4).config == front_end.config


def without(key):
    stored = content()
    del stored[key]
    return stored


def changed_model(name, value):
    model = content()["model"]
    if value is None:
        del model[name]
    else:
        model[name] = value
    return content(model=model)


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (content(version=2), "format version 2, and this LCD reads version 1"),
        (content(kind="other"), "something else than a flow front-end"),
        ([1, 2], "something else than a flow front-end"),
        (without("data_hash"), "has no data_hash"),
        (content(config={"width": 4}), "its config must have exactly"),
        (content(config=content()["config"] | {"stem": 3}), "its config is damaged"),
        (content(config=content()["config"] | {"width": 10**9}), "its config is damaged: no machine holds"),
        (content(config=content()["config"] | {"encoder_kind": "slots"}), "must be one of recurrent, groups"),
        (content(config=content()["config"] | {"encoder_kind": None}), "must be one of recurrent, groups"),
        (content(config=FlowConfig(width=4, encoder_kind="groups").recorded()), "lacks .* parameters"),
        (content(mean=[0.1, 0.2]), "its mean must be three numbers"),
        (content(std=[0.1, 0.2, 0.0]), "its std must be three numbers above 0"),
        (changed_model("objects.norm.bias", None), "lacks 1 of the networks' parameters, such as objects.norm.bias"),
        (changed_model("objects.more", torch.zeros(1)), "has 1 parameters that the networks do not have"),
        (changed_model("objects.norm.bias", torch.zeros(3)), r"objects\.norm\.bias has shape \(3,\)"),
        (changed_model("objects.norm.bias", torch.full((16,), torch.nan)), "not finite"),
    ],
)
def test_damaged_files_are_told(save, stored, told):
    with pytest.raises(InputError, match=told):
        read(save(stored))


class Harmful:
    def __reduce__(self):
        return (exec, ("raise SystemExit('this ran')",))


def test_a_file_runs_nothing(save, tmp_path):
    with pytest.raises(InputError, match="not a front-end file"):
        read(save(content(provenance=Harmful())))
    path = save(content())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cut off"):
        read(path)
    assert zipfile.is_zipfile(io.BytesIO(whole))
