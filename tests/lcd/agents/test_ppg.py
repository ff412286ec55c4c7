"""PPG against references written out by hand: its losses, what each of its variants' gradients reach, its phases."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from fitting import fit
from gymnasium import spaces
from known_tasks import Bandit, Chain
from torch import nn

from lcd.agents import validate
from lcd.agents.distributions import Categorical, Gaussian
from lcd.agents.ppg import PPG
from lcd.agents.rollout import Rollouts
from lcd.agents.settings import VARIANTS, PPGConfig
from lcd.envs.errors import InputError

SIZES = {"copies": 4, "rollout": 8, "minibatches": 2, "phase": 2, "auxiliary_epochs": 2, "auxiliary_rollouts": 2}


def make_agent(seeds=(0,), shape=(3,), actions=3, **changes):
    return PPG(PPGConfig(**{**SIZES, **changes}), shape, actions, list(seeds), nn.Identity())


def auxiliary_batch(agent, samples=6):
    generator = torch.Generator().manual_seed(3)
    draw = lambda *shape: torch.randn(len(agent.seeds), samples, *shape, generator=generator)  # noqa: E731
    batch = {"inputs": draw(3), "targets": draw(), "cloned": draw(3), "weights": torch.ones(len(agent.seeds), samples)}
    batch["weights"][:, -1] = 0
    return agent.prepare(batch)


def plain_forward(agent, seed, inputs, encoder="encoder"):
    """One seed's network in numpy: two layers of tanh units, then the heads."""
    weights = {
        n: w[seed].detach().double().numpy() for n, w in zip(agent.networks.names, agent.networks.weights, strict=True)
    }
    x = inputs.double().numpy()
    for layer in (0, 2):
        x = np.tanh(x @ weights[f"{encoder}.layers.{layer}.weight"].T + weights[f"{encoder}.layers.{layer}.bias"])
    return x, weights


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_auxiliary_losses_are_the_papers(variant):
    agent = make_agent(seeds=[0, 5], variant=variant, clone_weight=0.7)
    batch = auxiliary_batch(agent)
    losses = agent.loss(batch)
    for seed in range(2):
        features, weights = plain_forward(agent, seed, batch["inputs"][seed])
        new = log_softmax(features @ weights["policy.weight"].T + weights["policy.bias"])
        old = log_softmax(batch["cloned"][seed].double().numpy())
        clone = (np.exp(old) * (old - new)).sum(-1)[:-1].mean()
        targets = batch["targets"][seed].double().numpy()
        auxiliary = (features @ weights["value.weight"].T + weights["value.bias"])[:, 0]
        expected = {"clone": clone, "value": 0.5 * ((auxiliary - targets) ** 2)[:-1].mean()}
        expected["total"] = expected["value"] + 0.7 * clone
        if variant == "dual":
            far, _ = plain_forward(agent, seed, batch["inputs"][seed], "value_encoder")
            values = (far @ weights["apart.weight"].T + weights["apart.bias"])[:, 0]
            expected["true_value"] = 0.5 * ((values - targets) ** 2)[:-1].mean()
            expected["total"] += expected["true_value"]
        assert set(losses) == set(expected)
        for name, value in expected.items():
            assert losses[name][seed].item() == pytest.approx(value, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_auxiliary_gradient_is_that_of_finite_differences(variant):
    agent = make_agent(variant=variant).double()
    batch = {name: value.double() for name, value in auxiliary_batch(agent).items()}
    agent.policy.divergence = lambda p, q: (p.softmax(-1) * (p.log_softmax(-1) - q.log_softmax(-1))).sum(-1)
    # The loss rounds values to single precision, which finite differences do not survive: widen it again.
    total = lambda: _in_double(agent, batch)  # noqa: E731
    total().backward()
    rng, step = np.random.default_rng(0), 1e-6
    for name, weight in zip(agent.networks.names, agent.networks.weights, strict=True):
        place = tuple(rng.integers(size) for size in weight.shape)
        with torch.no_grad():
            weight[place] += step
            above = total().item()
            weight[place] -= 2 * step
            below = total().item()
            weight[place] += step
        expected = (above - below) / (2 * step)
        assert weight.grad[place].item() == pytest.approx(expected, rel=1e-4, abs=1e-7), name


def _in_double(agent, batch):
    kept = torch.Tensor.float
    torch.Tensor.float = lambda self: self
    try:
        return agent.loss(batch)["total"].sum()
    finally:
        torch.Tensor.float = kept


REACHED = {
    # variant: (by the values in the policy phase, by the auxiliary phase's values), as parts of the network.
    "dual": ({"value_encoder", "apart"}, {"encoder", "value", "value_encoder", "apart"}),
    "shared": ({"encoder", "value"}, {"encoder", "value"}),
    "detached": ({"value"}, {"encoder", "value"}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_values_reach_what_the_variant_lets_them(variant):
    agent = make_agent(variant=variant, clone_weight=0.0)

    def reached(loss):
        agent.networks.zero_grad()
        loss.backward()
        pairs = zip(agent.networks.names, agent.networks.weights, strict=True)
        return {name.split(".")[0] for name, weight in pairs if weight.grad is not None and weight.grad.abs().max() > 0}

    batch = auxiliary_batch(agent)
    _, values, _ = agent.networks(batch["inputs"])
    in_policy_phase, in_auxiliary_phase = REACHED[variant]
    assert reached(values.square().sum()) == in_policy_phase
    assert reached(agent.loss(batch)["total"].sum()) == in_auxiliary_phase


def test_the_two_networks_of_dual_share_nothing():
    agent = make_agent(variant="dual")
    batch = auxiliary_batch(agent)
    outputs, _, auxiliary = agent.networks(batch["inputs"])
    (outputs.sum() + auxiliary.sum()).backward()
    pairs = dict(zip(agent.networks.names, agent.networks.weights, strict=True))
    assert all(pairs[name].grad is None for name in pairs if name.startswith(("value_encoder", "apart")))


def test_the_divergence_of_policies_is_the_expected_log_ratio():
    generator = torch.Generator().manual_seed(0)
    one, other = torch.randn(2, 5, generator=generator)
    exact = Categorical(5).divergence(one, other).item()
    p, q = one.softmax(-1), other.softmax(-1)
    assert exact == pytest.approx((p * (p / q).log()).sum().item(), rel=1e-5)
    policy = Gaussian(spaces.Box(-1, 1, (2,)))
    one, other = torch.tensor([0.3, -0.2, -0.5, 0.1]), torch.tensor([-0.1, 0.4, 0.2, -0.3])
    draws = torch.rand(200_000, 2, generator=generator)
    actions, log_probs = policy.sample(one.expand(200_000, -1), draws)
    ratios = log_probs - policy.evaluate(other.expand(200_000, -1), actions)[0]
    assert abs(policy.divergence(one, other).item() - ratios.mean().item()) < 5 * ratios.std().item() / math.sqrt(
        200_000
    )


class Watched(PPG):
    """Remembers each iteration's losses, and what the auxiliary phase started from."""

    def training_step(self, rollout, index):
        self.seen = [*getattr(self, "seen", []), {"inputs": rollout["inputs"].clone()}]
        super().training_step(rollout, index)
        self.seen[-1] |= {"losses": self.losses, "targets": rollout["targets"]}

    def _cloned(self, rollouts):
        self.before = deepcopy(self.networks.state_dict())
        self.cloned = super()._cloned(rollouts)
        self.batches = []
        return self.cloned

    def _update(self, batch):
        if "cloned" in batch:
            self.batches.append({name: value.clone() for name, value in batch.items()})
        return super()._update(batch)


def train(agent, iterations, seeds, env=None):
    config = agent.config
    env = env or Bandit(config.copies * len(seeds))
    rollouts = Rollouts(env, list(seeds), agent, config.rollout, iterations, config.gamma, True)
    fit(agent, rollouts)
    return agent


def test_the_auxiliary_phase_ends_each_phase_and_sees_all_of_it():
    seeds, env = [0, 1], Bandit(8)
    agent = Watched(PPGConfig(**SIZES), (2,), env.arms, seeds, nn.Identity())
    train(agent, 5, seeds, env)
    marked = ["auxiliary_clone" in seen["losses"] for seen in agent.seen]
    assert marked == [False, True, False, True, False]
    # Each auxiliary epoch meets every copy's whole rollout of the phase once.
    assert len(agent.batches) == 2 * (2 * 4 // 2)
    stored = torch.cat([seen["targets"].transpose(1, 2) for seen in agent.seen[2:4]], dim=1)
    for epoch in (agent.batches[:4], agent.batches[4:]):
        met = torch.cat([batch["targets"].unflatten(1, (2, 8)) for batch in epoch], dim=1)
        for seed in range(2):
            assert sorted(map(tuple, met[seed].tolist())) == sorted(map(tuple, stored[seed].tolist()))
    # What is cloned is the policy as it was when the auxiliary phase began.
    old = make_agent(seeds=seeds, shape=(2,), actions=env.arms)
    old.networks.load_state_dict(agent.before)
    for batch in agent.batches:
        assert torch.allclose(old.networks(batch["inputs"])[0], batch["cloned"], atol=1e-6)


@pytest.mark.parametrize("execution", ["vmap", "loop"])
def test_a_population_learns_what_each_of_its_seeds_learns_alone(execution):
    # The chain draws nothing: what it does to a copy depends on the copy's actions alone.
    together = train(make_agent([5, 6], (6,), 2, execution=execution), 4, [5, 6], Chain(8))
    for place, seed in enumerate([5, 6]):
        alone = train(make_agent([seed], (6,), 2), 4, [seed], Chain(4))
        for ours, theirs in zip(together.networks.weights, alone.networks.weights, strict=True):
            assert torch.allclose(ours[place], theirs[0], atol=2e-5)


def test_values_may_be_learned_more_often_than_the_policy():
    """The policy's network of `dual` knows nothing of further passes for the values."""
    once, thrice = (train(make_agent(shape=(2,), value_epochs=n, phase=64), 1, [0]) for n in (2, 3))
    names = once.networks.names
    for name, one, other in zip(names, once.networks.weights, thrice.networks.weights, strict=True):
        apart = name.startswith(("value_encoder", "apart"))
        assert torch.equal(one, other) == (not apart), name


def test_a_wrong_hyper_parameter_is_one_sentence():
    for params, said in [
        ({"variant": "triple"}, "dual, shared, detached"),
        ({"auxiliary_rollouts": 3, "copies": 8, "phase": 2}, "divisor of copies x phase"),
        ({"phase": 0}, "at least 1"),
    ]:
        with pytest.raises(InputError, match=said):
            validate("ppg", params)
