"""What a network's outputs mean as a policy, over discrete or over continuous actions.

A policy has no parameters and knows nothing about seeds: it works on tensors (seeds, samples, …) as it does on
(samples, …). Actions are sampled by inverting the distribution at uniform draws.
"""

import math

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor


class Categorical:
    """One of several actions; the outputs are logits.

    Args:
        actions: how many there are.
    """

    draws: tuple[int, ...] = ()
    """Shape of the uniform draws that one action takes."""

    def __init__(self, actions: int):
        self.outputs = actions
        self.deviations = 0

    def sample(self, outputs: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor]:
        """Actions and their log-probabilities; without draws the most probable ones."""
        log_probs = outputs.float().log_softmax(-1)
        if draws is None:
            best = log_probs.max(-1)
            return best.indices, best.values
        # The last action takes what rounding left above the cumulative sum.
        actions = (log_probs.exp().cumsum(-1)[..., :-1] <= draws[..., None]).sum(-1)
        return actions, log_probs.gather(-1, actions[..., None]).squeeze(-1)

    def evaluate(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of actions, and the entropies."""
        log_policy = outputs.float().log_softmax(-1)
        log_probs = log_policy.gather(-1, actions[..., None]).squeeze(-1)
        return log_probs, -(log_policy.exp() * log_policy).sum(-1)

    def divergence(self, outputs: Tensor, others: Tensor) -> Tensor:
        """The Kullback-Leibler divergence of the policy with these outputs from that with the others."""
        log_policy = outputs.float().log_softmax(-1)
        return (log_policy.exp() * (log_policy - others.float().log_softmax(-1))).sum(-1)

    def commands(self, actions: Tensor) -> np.ndarray:
        """What the environment is told, a row a copy."""
        return actions.flatten().cpu().numpy()


class Gaussian:
    """A vector from a normal distribution, within the bounds of a box; the outputs are means and log-deviations.

    The networks work in units in which the box is from -1 to 1; what lies outside of it is sent as its border.

    Args:
        box: the action space.
    """

    def __init__(self, box: spaces.Box):
        self.outputs = self.deviations = int(np.prod(box.shape))
        self.draws = (self.outputs,)
        self._shape, self._type = box.shape, box.dtype
        self._middle = (box.high.astype(np.float64) + box.low) / 2
        self._reach = (box.high.astype(np.float64) - box.low) / 2

    def sample(self, outputs: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor]:
        """Actions and their log-probabilities; without draws the most probable ones."""
        mean, log_deviation = outputs.float().chunk(2, -1)
        if draws is None:
            return mean, self.evaluate(outputs, mean)[0]
        # Draws are 24-bit fractions, so that keeping off 0 and 1 by half a step changes no other value.
        normal = math.sqrt(2) * torch.erfinv((2 * draws - 1).clamp(-1 + 1e-7, 1 - 1e-7))
        actions = mean + log_deviation.exp() * normal
        return actions, self.evaluate(outputs, actions)[0]

    def evaluate(self, outputs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of actions, and the entropies."""
        mean, log_deviation = outputs.float().chunk(2, -1)
        standard = (actions - mean) / log_deviation.exp()
        log_probs = -(0.5 * standard.square() + log_deviation + 0.5 * math.log(2 * math.pi)).sum(-1)
        return log_probs, (log_deviation + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)

    def divergence(self, outputs: Tensor, others: Tensor) -> Tensor:
        """The Kullback-Leibler divergence of the policy with these outputs from that with the others."""
        (mean, log_deviation), (other, log_other) = (given.float().chunk(2, -1) for given in (outputs, others))
        ratio = (log_deviation - log_other).exp()
        apart = (mean - other) / log_other.exp()
        return (0.5 * (ratio.square() + apart.square() - 1) - (log_deviation - log_other)).sum(-1)

    def commands(self, actions: Tensor) -> np.ndarray:
        """What the environment is told, a row a copy."""
        units = actions.flatten(0, -2).cpu().numpy().astype(np.float64).clip(-1, 1)
        return (self._middle + self._reach * units.reshape(-1, *self._shape)).astype(self._type)


def policy_for(actions: int | spaces.Box) -> Categorical | Gaussian:
    """The policy over that many discrete actions, or over a box."""
    return Gaussian(actions) if isinstance(actions, spaces.Box) else Categorical(actions)
