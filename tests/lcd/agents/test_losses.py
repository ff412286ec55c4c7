"""PPO's loss and gradient against numpy, advantages against sums over trajectories."""

import numpy as np
import pytest
import torch
from torch import nn

from lcd.agents.ppo import PPO, PPOConfig, advantages

CLIP, VALUE_CLIP, ENTROPY, VALUE_WEIGHT = 0.2, 0.3, 0.05, 0.7


def reference(weights, batch, normalise):
    """PPO's loss of one seed, in double precision: Schulman et al. 2017 with the usual clipping of values."""
    x = batch["inputs"]
    for layer in (0, 2):
        x = np.tanh(x @ weights[f"encoder.layers.{layer}.weight"].T + weights[f"encoder.layers.{layer}.bias"])
    logits = x @ weights["policy.weight"].T + weights["policy.bias"]
    values = (x @ weights["value.weight"].T + weights["value.bias"])[:, 0]
    log_policy = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    counted = batch["weights"] > 0
    gains = batch["advantages"]
    if normalise:
        gains = (gains - gains[counted].mean()) / (gains[counted].std(ddof=1) + 1e-8)
    terms = []
    for i in np.flatnonzero(counted):
        ratio = np.exp(log_policy[i, batch["actions"][i]] - batch["log_probs"][i])
        policy = -min(ratio * gains[i], min(max(ratio, 1 - CLIP), 1 + CLIP) * gains[i])
        near = batch["values"][i] + min(max(values[i] - batch["values"][i], -VALUE_CLIP), VALUE_CLIP)
        value = 0.5 * max((values[i] - batch["targets"][i]) ** 2, (near - batch["targets"][i]) ** 2)
        entropy = -(np.exp(log_policy[i]) * log_policy[i]).sum()
        terms.append(policy + VALUE_WEIGHT * value - ENTROPY * entropy)
    return np.mean(terms)


@pytest.mark.parametrize("normalise", ["minibatch", "off"])
def test_ppos_loss_and_gradient_are_the_references(normalise):
    coefficients = {"clip": CLIP, "value_clip": VALUE_CLIP, "entropy": ENTROPY, "value_weight": VALUE_WEIGHT}
    config = PPOConfig(copies=4, rollout=8, width=8, normalise_advantages=normalise, **coefficients)
    agent = PPO(config, (4,), 3, [0, 7], nn.Identity())
    rng = np.random.default_rng(1)
    plain = {
        "inputs": rng.normal(size=(2, 24, 4)),
        "actions": rng.integers(3, size=(2, 24)),
        # Old probabilities around a third put ratios on both sides of both of the clip's edges.
        "log_probs": np.log(rng.uniform(0.2, 0.5, size=(2, 24))),
        "advantages": rng.normal(1, 2, size=(2, 24)),
        "values": rng.normal(size=(2, 24)),
        "targets": rng.normal(size=(2, 24)),
        "weights": (rng.random((2, 24)) < 0.8).astype(float),
    }
    batch = {k: torch.from_numpy(v if k == "actions" else v.astype(np.float32)) for k, v in plain.items()}
    losses = agent.loss(agent.prepare(batch))
    losses["total"].sum().backward()
    pairs = list(zip(agent.networks.names, agent.networks.weights, strict=True))
    for seed in range(2):
        weights = {name: weight[seed].detach().double().numpy() for name, weight in pairs}
        of_seed = {name: value[seed] for name, value in plain.items()}
        assert losses["total"][seed].item() == pytest.approx(reference(weights, of_seed, normalise != "off"), rel=1e-5)
        for name, weight in pairs:
            for place in {tuple(rng.integers(size) for size in weights[name].shape) for _ in range(4)}:
                ends = []
                for step in (1e-6, -1e-6):
                    moved = {**weights, name: weights[name].copy()}
                    moved[name][place] += step
                    ends.append(reference(moved, of_seed, normalise != "off"))
                expected = (ends[0] - ends[1]) / 2e-6
                assert weight.grad[(seed, *place)].item() == pytest.approx(expected, rel=2e-3, abs=2e-6), name


def test_advantages_are_the_weighted_mean_of_those_of_all_horizons():
    """Schulman et al. 2016, equation 16: (1 - λ) Σ λ^(n-1) of the n-step advantages, to the trajectory's end."""
    rng, (seeds, time, copies), gamma, lam = np.random.default_rng(2), (2, 9, 3), 0.95, 0.7
    rewards, values = rng.normal(size=(2, seeds, time, copies))
    dones, last = rng.random((seeds, time, copies)) < 0.2, rng.normal(size=(seeds, copies))
    given = {"rewards": rewards, "values": values, "dones": dones, "last_value": last}
    found = advantages({name: torch.from_numpy(value) for name, value in given.items()}, gamma, lam).numpy()
    for s, t, c in np.ndindex(found.shape):
        ends = np.flatnonzero(dones[s, t:, c])
        left = ends[0] + 1 if len(ends) else time - t
        of_horizon = []
        for n in range(1, left + 1):
            paid = sum(gamma**k * rewards[s, t + k, c] for k in range(n))
            over = len(ends) and n == left
            then = 0.0 if over else (values[s, t + n, c] if t + n < time else last[s, c])
            of_horizon.append(paid + gamma**n * then - values[s, t, c])
        # All horizons beyond the trajectory's end are as the last one is.
        shares = [(1 - lam) * lam**n for n in range(left - 1)] + [lam ** (left - 1)]
        assert found[s, t, c] == pytest.approx(np.dot(shares, of_horizon), abs=1e-6)
