"""Loading image encoders of open_clip, timm and torchvision: one shape for all, and clear sentences offline."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lcd.envs.errors import InputError, nearest

LIBRARIES = ("open_clip", "timm", "torchvision")
UNTRAINED = "untrained"
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
REACH_S = 4.0
"""How long a server may take to answer before it counts as out of reach."""


@dataclass
class Loaded:
    """An image encoder.

    Attributes:
        network: its module.
        embed: prepared images → one vector each.
        map: prepared images → the last map before pooling, (N, C, h, w).
        size, mean, std, interpolation: its preprocessing.
        named: was it loaded by the name of its weights, so that only their content tells what they are?
    """

    network: nn.Module
    embed: Callable[[Tensor], Tensor]
    map: Callable[[Tensor], Tensor]
    size: int
    mean: Sequence[float]
    std: Sequence[float]
    interpolation: str
    named: bool


def load(library: str, model: str, weights: str, size: int | None, quick_gelu: bool | None) -> Loaded:
    """An encoder with its weights; every mistake, and weights out of reach, are an `InputError`."""
    loaders = {"open_clip": _open_clip, "timm": _timm, "torchvision": _torchvision}
    path = Path(weights).expanduser()
    is_file = path.is_file()
    if not is_file and ("/" in weights or path.suffix in (".pt", ".pth", ".bin", ".safetensors", ".ckpt")):
        raise InputError(f"frontend.weights={weights} is not there: give a file of weights, or the name of some.")
    if is_file:
        weights = str(path)
    try:
        with _brief(), contextlib.nullcontext() if is_file or weights == UNTRAINED else _reachable():
            return loaders[library](model, weights, is_file, size, quick_gelu)
    except InputError:
        raise
    except ImportError as error:
        raise InputError(f"frontend.library={library} is not installed ({error}): pip install '.[clip]'.") from None
    except Exception as error:
        raise InputError(_sentence(library, model, weights, is_file, error)) from error


def content_hash(network: nn.Module) -> str:
    """SHA-256 of a network's weights: names, shapes and bytes."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def _open_clip(model: str, weights: str, is_file: bool, size: int | None, quick_gelu: bool | None) -> Loaded:
    import open_clip

    known = open_clip.list_models()
    if model not in known:
        raise InputError(f"frontend.model={model} is not one of open_clip's: {nearest(model, known)}")
    tags = open_clip.list_pretrained_tags_by_model(model)
    named = weights != UNTRAINED and not is_file
    if named and weights not in tags:
        options = nearest(weights, [*tags, UNTRAINED])
        raise InputError(f"frontend.weights={weights} is neither a file nor weights of {model}: {options}")
    whole = open_clip.create_model(
        model,
        pretrained=None if weights == UNTRAINED else weights,
        force_quick_gelu=bool(quick_gelu),
        force_image_size=size,
        pretrained_text=False,
        weights_only=True,
    )
    visual, told = whole.visual, open_clip.get_model_preprocess_cfg(whole)

    def spatial(images: Tensor) -> Tensor:
        found = visual.forward_intermediates(
            images, indices=1, normalize_intermediates=True, intermediates_only=True, output_fmt="NCHW"
        )
        return found["image_intermediates"][-1]

    side = visual.image_size
    return Loaded(
        visual,
        visual,
        spatial,
        size=side if isinstance(side, int) else side[0],
        mean=told["mean"],
        std=told["std"],
        interpolation=told.get("interpolation") or "bicubic",
        named=named,
    )


def _timm(model: str, weights: str, is_file: bool, size: int | None, quick_gelu: bool | None) -> Loaded:
    import timm

    _no_quick_gelu("timm", quick_gelu)
    if not timm.is_model(model):
        raise InputError(f"frontend.model={model} is not one of timm's: {nearest(model, timm.list_models())}")
    if not is_file and weights not in (UNTRAINED, "pretrained"):
        raise InputError(f"frontend.weights={weights} is neither a file, nor 'pretrained', nor '{UNTRAINED}'.")
    how: dict[str, Any] = {"num_classes": 0, "pretrained": weights == "pretrained"}
    try:
        network = timm.create_model(model, **how, **({} if size is None else {"img_size": size}))
    except TypeError:  # A convolutional network takes images of any size and has no such setting.
        network = timm.create_model(model, **how)
    if is_file:
        _fill(network, _state_dict(weights))
    told = timm.data.resolve_model_data_config(network)
    return Loaded(
        network,
        network,
        lambda images: network.forward_intermediates(images, indices=1, intermediates_only=True)[-1],
        size=told["input_size"][-1],
        mean=told["mean"],
        std=told["std"],
        interpolation=told["interpolation"] if told["interpolation"] in ("bicubic", "bilinear") else "bicubic",
        named=weights == "pretrained",
    )


def _torchvision(model: str, weights: str, is_file: bool, size: int | None, quick_gelu: bool | None) -> Loaded:
    from torchvision import models

    _no_quick_gelu("torchvision", quick_gelu)
    known = models.list_models(module=models)
    if model not in known:
        raise InputError(f"frontend.model={model} is not one of torchvision's: {nearest(model, known)}")
    named = weights != UNTRAINED and not is_file
    options = [*models.get_model_weights(model).__members__, "DEFAULT"]
    if named and weights not in options:
        hint = nearest(weights, [*options, UNTRAINED])
        raise InputError(f"frontend.weights={weights} is neither a file nor weights of {model}: {hint}")
    network = models.get_model(model, weights=weights if named else None)
    head = next((name for name in ("fc", "classifier", "heads", "head") if hasattr(network, name)), None)
    if head is None:
        raise InputError(f"frontend.model={model} has no classifier to take off: choose another of torchvision's.")
    if is_file:
        _fill(network, _state_dict(weights), without=head)
    setattr(network, head, nn.Identity())
    return Loaded(
        network,
        lambda images: network(images).flatten(1),
        _torchvision_map(model, network),
        **IMAGENET,
        size=224,
        interpolation="bilinear",
        named=named,
    )


def _torchvision_map(model: str, network: nn.Module) -> Callable[[Tensor], Tensor]:
    if hasattr(network, "features"):
        return network.features
    layers = dict(network.named_children())
    if "avgpool" in layers:
        names = list(layers)
        return nn.Sequential(*(layers[name] for name in names[: names.index("avgpool")]))

    def none(images: Tensor) -> Tensor:
        raise InputError(f"frontend.output=tokens: torchvision's {model} has no map; timm has one of every model.")

    return none


def _no_quick_gelu(library: str, quick_gelu: bool | None) -> None:
    if quick_gelu is not None:
        raise InputError(f"frontend.quick_gelu={quick_gelu} is for open_clip: frontend.library={library} has none.")


def _state_dict(file: str) -> dict[str, Tensor]:
    """What a file of weights holds; nothing of it is run."""
    if file.endswith(".safetensors"):
        from safetensors.torch import load_file

        return load_file(file)
    found = torch.load(file, map_location="cpu", weights_only=True)
    return found.get("state_dict", found)


def _fill(network: nn.Module, found: dict[str, Tensor], without: str | None = None) -> None:
    """Give a network its weights: all of them, save the classifier, which files may have and front-ends have not."""
    own = {name for name in network.state_dict() if without is None or not name.startswith(f"{without}.")}
    if missing := sorted(own - set(found)):
        raise ValueError(f"it lacks {missing[0]} and {len(missing) - 1} more")
    network.load_state_dict({name: value for name, value in found.items() if name in own}, strict=False)


def _sentence(library: str, model: str, weights: str, is_file: bool, error: Exception) -> str:
    why = " ".join(str(error).split())[:160]
    if is_file:
        return (
            f"frontend.weights={weights} cannot be loaded into {library}'s {model} ({why}): give a state dict or "
            "safetensors of that model."
        )
    if weights == UNTRAINED:
        return f"frontend.model={model} of {library} cannot be made ({why})."
    return (
        f"frontend.weights={weights} of {library}'s {model} are neither on this machine nor within reach: fetch them "
        "once where there is a network, or give a local file with frontend.weights=FILE."
    )


@contextlib.contextmanager
def _reachable() -> Iterator[None]:
    """Without a network the Hugging Face hub is retried for a minute; here it is asked once, then left alone."""
    try:
        from huggingface_hub import constants
        from huggingface_hub.utils import get_session
    except ImportError:
        yield
        return
    before = constants.HF_HUB_OFFLINE
    try:
        get_session().head(constants.ENDPOINT, timeout=REACH_S)
    except Exception:
        constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextlib.contextmanager
def _brief() -> Iterator[None]:
    """The libraries log whole paragraphs about what is told in one sentence."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)
