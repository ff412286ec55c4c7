"""CLIP and other people's encoders, by the real loading code on tiny models saved on the spot."""

import time

import numpy as np
import pytest
import torch
from PIL import Image

from lcd import frontends
from lcd.envs.errors import InputError
from lcd.frontends import libraries
from lcd.frontends.entry import build, entry_of

open_clip = pytest.importorskip("open_clip")
timm = pytest.importorskip("timm")

TINY = {
    "embed_dim": 12,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "patch_size": 8},
    "text_cfg": {"context_length": 5, "vocab_size": 7, "width": 64, "heads": 1, "layers": 1},
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny CLIP known to open_clip by name, and the file of its weights."""
    from open_clip import factory

    factory._MODEL_CONFIGS["tiny-clip"] = TINY
    torch.manual_seed(3)
    model = open_clip.create_model("tiny-clip", force_quick_gelu=True).eval()
    path = tmp_path_factory.mktemp("weights") / "tiny.pt"
    torch.save(model.state_dict(), path)
    yield model, path
    del factory._MODEL_CONFIGS["tiny-clip"]


def images(number=5, side=64):
    """Smooth pictures, so that interpolation has something to agree about."""
    coarse = np.random.default_rng(0).integers(0, 256, (number, 8, 8, 3), dtype=np.uint8)
    return torch.from_numpy(np.stack([np.asarray(Image.fromarray(c).resize((side, side))) for c in coarse]))


def test_clip_embeds_as_open_clip_does(tiny):
    model, path = tiny
    clip = frontends.make("clip", model="tiny-clip", weights=str(path))
    preprocess = open_clip.image_transform(32, is_train=False, interpolation="bicubic")
    theirs = torch.stack([preprocess(Image.fromarray(image.numpy())) for image in images()])
    # Theirs rounds to bytes after resizing: a 255th, divided by a standard deviation of about 0.27.
    assert (clip.prepared(images()) - theirs).abs().max() < 0.02
    with torch.no_grad():
        torch.testing.assert_close(clip(images()), model.encode_image(theirs), rtol=0, atol=0.02)
        torch.testing.assert_close(clip.network(theirs), model.encode_image(theirs))
    assert (clip.channels, clip.features) == (None, 12)
    assert clip(images()).shape == (5, 12)
    assert not clip.training


def test_the_activation_of_openai_is_told_apart(tiny):
    _, path = tiny
    quick, plain = (frontends.make("clip", model="tiny-clip", weights=str(path), quick_gelu=on) for on in (True, False))
    assert not torch.allclose(quick(images()), plain(images()), atol=1e-4)


def test_tokens_are_a_map_of_patches(tiny):
    model, path = tiny
    clip = frontends.make("clip", model="tiny-clip", weights=str(path), output="tokens")
    found = clip(images())
    assert found.shape == (5, 64, 4, 4)
    assert (clip.channels, clip.features) == (64, None)
    visual = model.visual
    with torch.no_grad():
        tokens = visual.ln_post(visual.transformer(visual._embeds(clip.prepared(images()))))
    torch.testing.assert_close(found[:, :, 1, 2], tokens[:, 1 + 4 * 1 + 2], rtol=1e-4, atol=1e-5)
    assert clip.maps(images()).shape == (5, 64, 64, 64)


def test_what_a_run_records_of_it(tiny, tmp_path):
    _, path = tiny
    recorded = entry_of("clip", model="tiny-clip", weights=str(path))
    assert recorded["preprocessing"] == {
        "size": 32,
        "interpolation": "bicubic",
        "mean": [0.48145466, 0.4578275, 0.40821073],
        "std": [0.26862954, 0.26130258, 0.27577711],
    }
    assert len(recorded["weights"]["sha256"]) == 64
    assert recorded["quick_gelu"] is True
    assert torch.equal(
        build(recorded)(images()), frontends.make("clip", model="tiny-clip", weights=str(path))(images())
    )
    other = {**recorded, "preprocessing": {**recorded["preprocessing"], "mean": [0.5, 0.5, 0.5]}}
    with pytest.raises(InputError, match="The preprocessing of frontend=clip is not what it was"):
        build(other)


def test_weights_by_name_are_told_by_their_content(tiny, monkeypatch):
    """A name's content may change on a server: a run's config holds the hash of what was loaded."""
    model, path = tiny
    monkeypatch.setattr(libraries, "_reachable", libraries.contextlib.nullcontext)
    monkeypatch.setattr(open_clip, "list_pretrained_tags_by_model", lambda name: ["mine"])
    monkeypatch.setattr(open_clip.factory, "get_pretrained_cfg", lambda name, tag: {"url": "x", "quick_gelu": True})
    monkeypatch.setattr(open_clip.factory, "download_pretrained", lambda cfg, cache_dir=None: str(path))
    recorded = entry_of("clip", model="tiny-clip", weights="mine")
    assert recorded["weights"] == "mine"
    assert recorded["sha256"] == libraries.content_hash(model.visual)
    changed = {name: value + 0.1 for name, value in torch.load(path).items()}
    torch.save(changed, path.with_name("changed.pt"))
    path = path.with_name("changed.pt")
    with pytest.raises(InputError, match="The sha256 of frontend=clip is not what it was"):
        build(recorded)


@pytest.mark.parametrize(
    ("library", "model"), [("timm", "test_resnet.r160_in1k"), ("torchvision", "mobilenet_v3_small")]
)
def test_other_libraries_load_local_files(library, model, tmp_path):
    from torchvision import models

    torch.manual_seed(4)
    theirs = (timm.create_model(model) if library == "timm" else models.get_model(model)).eval()
    path = tmp_path / "weights.pt"
    torch.save({"state_dict": theirs.state_dict()}, path)
    backbone = frontends.make("backbone", library=library, model=model, weights=str(path), size=64)
    assert backbone.label == f"{library}/{model}"
    with torch.no_grad():
        seen = backbone.prepared(images(2))
        map = theirs.forward_features(seen) if library == "timm" else None
        expected = theirs.forward_head(theirs.forward_features(seen), pre_logits=True) if map is not None else None
    found = backbone(images(2))
    assert found.shape == (2, backbone.features)
    if expected is not None:
        torch.testing.assert_close(found, expected)
    tokens = frontends.make("backbone", library=library, model=model, weights=str(path), size=64, output="tokens")
    assert tokens(images(2)).shape[:2] == (2, tokens.channels)
    torch.testing.assert_close(tokens(images(2)).mean((2, 3)), found, rtol=1e-4, atol=1e-5)


def test_out_of_reach_is_told_quickly(monkeypatch, tmp_path):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    started = time.perf_counter()
    with pytest.raises(InputError, match=r"weights=pretrained of timm's .* neither on this machine nor within reach"):
        frontends.make("backbone", model="test_resnet.r160_in1k", weights="pretrained")
    assert time.perf_counter() - started < 20
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.parametrize(
    ("name", "knobs", "words"),
    [
        ("backbone", {"library": "tim"}, "frontend.library=tim is unknown: did you mean 'timm'"),
        ("backbone", {"model": "resnet8"}, "frontend.model=resnet8 is not one of timm's: did you mean 'resnet"),
        ("backbone", {"weights": "missing.pt"}, "frontend.weights=missing.pt is not there"),
        ("backbone", {"weights": "best"}, "neither a file, nor 'pretrained', nor 'untrained'"),
        ("backbone", {"quick_gelu": True}, "frontend.quick_gelu=True is for open_clip"),
        ("backbone", {"library": "torchvision", "weights": "BEST"}, "weights=BEST is neither a file nor weights of"),
        ("clip", {"weights": "openia"}, "did you mean 'openai'"),
        ("clip", {"output": "token"}, "did you mean 'tokens'"),
        ("backbone", {"size": 0}, "frontend.size=0 must be a whole number of at least 1"),
    ],
)
def test_mistakes_are_told(name, knobs, words):
    with pytest.raises(InputError) as mistake:
        frontends.make(name, **knobs)
    assert words in str(mistake.value)


def test_files_are_data_and_must_fit(tiny, tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    torch.save({"weight": Evil()}, tmp_path / "evil.pt")
    torch.save({"some": torch.zeros(2)}, tmp_path / "other.pt")
    for name, knobs in {"clip": {"model": "tiny-clip"}, "backbone": {"model": "test_resnet.r160_in1k"}}.items():
        for file in ("evil.pt", "other.pt"):
            with pytest.raises(InputError, match=f"{file} cannot be loaded into"):
                frontends.make(name, weights=str(tmp_path / file), **knobs)
    assert not (tmp_path / "touched").exists()


def test_views_without_colours_are_refused():
    backbone = frontends.make("backbone", model="test_resnet.r160_in1k", size=32)
    with pytest.raises(InputError, match="sees uint8 images with three colours"):
        backbone(torch.zeros(2, 7))
