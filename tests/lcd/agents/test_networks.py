"""Encoders: IMPALA against the paper's numbers and a twin written out, initialisations against their norms."""

import math
import shutil

import pytest
import torch
from torch import nn
from torch.nn import functional

from lcd.agents import networks, settings, validate
from lcd.agents.initialise import SCHEMES
from lcd.agents.networks import ENCODERS, ActorAndCritic, ActorCritic, Impala, Mlp
from lcd.agents.population import Population
from lcd.agents.ppg import PhasicActorCritic
from lcd.agents.recurrent import RecurrentActorCritic
from lcd.agents.rollout import stack_in_time


def test_impala_has_as_many_parameters_as_the_papers():
    network = ActorCritic((3, 64, 64), 15, "impala", 256)
    assert sum(weight.numel() for weight in network.parameters()) == 626_256
    # Layer by layer: convolutions, the hidden layer, the policy, the value.
    stacks = [(given * 9 + 1) * own + 4 * (own * 9 + 1) * own for given, own in ((3, 16), (16, 32), (32, 32))]
    assert sum(stacks) + (32 * 8 * 8 + 1) * 256 + 257 * 15 + 257 == 626_256


@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.parametrize("shape", [(3, 64, 64), (19, 64, 64), (1, 33, 20), (4, 7, 7)])
def test_impala_is_its_formula(shape, blocked, monkeypatch):
    if not blocked:
        monkeypatch.setattr(networks, "in_blocks", lambda images: False)
    torch.manual_seed(0)
    encoder = Impala(shape, 32)
    weights = dict(encoder.named_parameters())
    images = torch.randint(0, 256, (5, *shape), dtype=torch.uint8)
    assert torch.allclose(encoder(images), _impala(weights, images.float() / 255), rtol=1e-4, atol=1e-4)
    by_pixel = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert torch.allclose(encoder(images), encoder(by_pixel), rtol=1e-4, atol=1e-4)


def test_impalas_gradient_is_the_same_in_every_layout(monkeypatch):
    torch.manual_seed(0)
    encoder, images = Impala((3, 32, 32), 16), torch.randint(0, 256, (5, 3, 32, 32), dtype=torch.uint8)
    assert networks.in_blocks(images) == torch.backends.cpu.get_cpu_capability().startswith("AVX")
    found = []
    for blocked in (True, False):
        monkeypatch.setattr(networks, "in_blocks", lambda images, blocked=blocked: blocked)
        encoder.zero_grad()
        encoder(images).square().mean().backward()
        found.append({name: weight.grad.clone() for name, weight in encoder.named_parameters()})
    for name, gradient in found[0].items():
        assert torch.allclose(gradient, found[1][name], rtol=1e-3, atol=1e-4 * gradient.abs().max()), name


def test_impala_in_bf16_is_close_to_itself():
    torch.manual_seed(0)
    network, images = ActorCritic((3, 64, 64), 15, "impala"), torch.randint(0, 256, (4, 3, 64, 64), dtype=torch.uint8)
    with torch.autocast("cpu", torch.bfloat16):
        half, features = network(images)[1], network.encoder(images)
    assert features.dtype == torch.bfloat16
    assert torch.allclose(half, network(images)[1], rtol=0.1, atol=0.1 * half.abs().max().item())


@pytest.mark.parametrize("kind", ["shared", "separate", "dual", "detached", "memory"])
def test_in_bf16_policies_and_values_are_those_of_their_features_in_single_precision(kind):
    """A value of 100 would else be off by up to .25, and log-probabilities by as much as a clip of the ratio allows."""
    how = ((6,), 3, "mlp", 8, 0, "orthogonal")
    network = {
        "shared": lambda: ActorCritic(*how),
        "separate": lambda: ActorAndCritic(*how),
        "memory": lambda: RecurrentActorCritic((6,), 3, "mlp", 8, 8),
    }.get(kind, lambda: PhasicActorCritic(*how, kind))()
    heads = [layer for name, layer in network.named_modules() if name.endswith(("policy", "value", "apart"))]
    seen = {}
    for head in heads:
        with torch.no_grad():
            head.bias.fill_(100.1)
        head.register_forward_hook(lambda layer, taken, made: seen.update({layer: (taken[0], made)}))
    inputs = (torch.randn(5, 6),)
    if kind == "memory":
        inputs = (torch.randn(5, 2, 6), torch.zeros(5, 8), torch.zeros(5, 2, dtype=torch.bool))
    with torch.autocast("cpu", torch.bfloat16):
        outputs = network(*inputs)
    assert {output.dtype for output in outputs[:2]} == {torch.float32}
    assert len(seen) == {"shared": 2, "separate": 2, "dual": 3, "detached": 2, "memory": 2}[kind]
    for head, (given, made) in seen.items():
        exact = given.double() @ head.weight.double().T + head.bias.double()
        assert (made - exact).abs().max() < 1e-4


def _impala(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The forward pass in the order of Espeholt et al.'s figure, channels first."""

    def convolve(x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1)

    for stack in range(3):
        x = functional.max_pool2d(convolve(x, f"stacks.{4 * stack}"), 3, stride=2, padding=1)
        for block in (4 * stack + 2, 4 * stack + 3):
            y = convolve(torch.relu(x), f"stacks.{block}.first")
            x = x + convolve(torch.relu(y), f"stacks.{block}.second")
    flat = torch.relu(x).flatten(1)
    return torch.relu(flat @ weights["head.weight"].T + weights["head.bias"])


def test_vectors_go_through_the_mlp_whatever_images_go_through():
    assert isinstance(ActorCritic((7,), 3, "impala").encoder, Mlp)
    assert isinstance(ActorCritic((3, 8, 8), 3, "impala").encoder, Impala)


@pytest.mark.parametrize("execution", ["vmap", "loop"])
def test_a_population_of_impalas_is_its_networks(execution):
    seeds = [3, 1]
    population = Population(lambda: ActorCritic((3, 8, 8), 4, "impala", 8), seeds, execution)
    images = torch.randint(0, 256, (2, 6, 8, 8, 3), dtype=torch.uint8).movedim(-1, 2)
    outputs, values = population(images)
    for s, seed in enumerate(seeds):
        alone = Population(lambda: ActorCritic((3, 8, 8), 4, "impala", 8), [seed])
        expected = alone(images[s : s + 1])
        assert torch.allclose(outputs[s], expected[0][0], atol=1e-6)
        assert torch.allclose(values[s], expected[1][0], atol=1e-6)


@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="there is no C++ compiler")
def test_compiled_acting_is_the_networks(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    plain = Population(lambda: ActorCritic((3, 8, 8), 4, "cnn", 8), [3, 1])
    compiled = Population(lambda: ActorCritic((3, 8, 8), 4, "cnn", 8), [3, 1], compiled=True)
    images = torch.randint(0, 256, (2, 6, 8, 8, 3), dtype=torch.uint8).movedim(-1, 2)
    with torch.no_grad():
        for expected, found in zip(plain(images), compiled(images), strict=True):
            assert torch.allclose(expected, found, atol=1e-5)
    assert compiled(images)[0].requires_grad  # what learns is not compiled


def test_normed_layers_have_the_norms_of_ppgs_authors():
    network = ActorCritic((3, 64, 64), 15, "impala", 256, scheme="normed")
    norms = {
        "encoder.stacks.0": 1.0,
        "encoder.stacks.2.first": math.sqrt(1 / math.sqrt(3) / math.sqrt(2)),
        "encoder.stacks.11.second": math.sqrt(1 / math.sqrt(3) / math.sqrt(2)),
        "encoder.head": 1.4,
        "policy": 0.1,
        "value": 0.1,
    }
    for name, norm in norms.items():
        layer = network.get_submodule(name)
        assert torch.allclose(layer.weight.flatten(1).norm(dim=1), torch.tensor(norm)), name
        assert not layer.bias.any(), name


def test_glorot_layers_are_uniform_within_their_bound():
    encoder = Impala((3, 64, 64), 256, "glorot")
    for layer, fans in ((encoder.stacks[4], (16 + 32) * 9), (encoder.head, 2048 + 256)):
        bound = math.sqrt(6 / fans)
        assert layer.weight.abs().max() <= bound
        assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_torch_leaves_encoders_as_pytorch_draws_them():
    torch.manual_seed(5)
    ours = Mlp((4,), 6, "torch")
    torch.manual_seed(5)
    theirs = nn.Linear(4, 6)
    assert torch.equal(ours.layers[0].weight, theirs.weight)
    assert torch.equal(ours.layers[0].bias, theirs.bias)


@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("encoder", ["cnn", "impala", "mlp"])
def test_every_network_starts_by_every_scheme(scheme, encoder):
    config = validate("ppo", {"initialisation": scheme, "encoder": encoder})
    network = ActorCritic((3, 16, 16), 4, config.encoder, 8, scheme=config.initialisation)
    outputs, values = network(torch.randint(0, 256, (64, 3, 16, 16), dtype=torch.uint8))
    assert torch.isfinite(values).all()
    assert outputs.std() < 0.5  # the first policy is nearly uniform


def test_rollouts_keep_the_strides_of_images():
    """Stored, shuffled into minibatches and made floats, images stay pixel by pixel: no copy reorders them."""
    frames = [torch.randint(0, 256, (2, 5, 6, 7, 3), dtype=torch.uint8).movedim(-1, 2) for _ in range(4)]
    stored = stack_in_time(frames)
    assert stored.shape == (2, 4, 5, 3, 6, 7)
    assert torch.equal(stored[:, 3], frames[3])
    samples = stored.flatten(1, 2)
    assert samples.data_ptr() == stored.data_ptr()
    seed, chosen = torch.arange(2)[:, None], torch.tensor([[3, 0], [19, 7]])
    batch = samples[seed, chosen]
    assert batch[0].permute(0, 2, 3, 1).is_contiguous()
    assert torch.equal(batch[1, 0], frames[3][1, 4])


def test_settings_name_the_networks_that_there_are():
    assert tuple(ENCODERS) == settings.ENCODERS
    assert tuple(SCHEMES) == settings.INITIALISATIONS
