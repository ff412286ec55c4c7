"""The horizontal gated recurrent unit (hGRU) of Linsley et al. 2018: units that talk to their neighbours over time.

A first stage suppresses (linearly and multiplicatively), a second one facilitates; each is gated. With drive x, state
h (zero at first), ∗ a convolution and BN a batch normalisation of its own at each time step:

    g1 = σ(BN(U1∗h) + b1)            c1 = BN(W_inh∗(h⊙g1))       s = ReLU(x − ReLU(c1(αh + μ)))
    g2 = σ(BN(U2∗s) + b2)            c2 = BN(W_exc∗s)            h̃ = ReLU(κs + γc2 + ω·s·c2)
    h ← (1 − g2)h + g2·h̃
"""

import torch
from torch import nn

SCALE, ALPHA, GAMMA, KAPPA, OMEGA, MU = 0.1, 0.1, 1.0, 0.5, 0.5, 1.0
"""Initial values: of the normalisations' scale, and of the equations' α, γ, κ, ω, μ (one a channel)."""


class HGRU(nn.Module):
    """The unit, run for a fixed number of time steps on one drive.

    Gates start as in chronos initialisation (Tallec and Ollivier 2018): memories of 1 to `steps` − 1 time steps. Their
    bias stands outside of the normalisation, which would take it away again.

    Args:
        channels: of drive and state.
        kernel: side of the horizontal connections, odd.
        steps: time steps.
    """

    def __init__(self, channels: int = 16, kernel: int = 9, steps: int = 8):
        super().__init__()
        self.steps = steps
        self.u1, self.u2 = (nn.Conv2d(channels, channels, 1, bias=False) for _ in range(2))
        self.w_inh, self.w_exc = (
            nn.Conv2d(channels, channels, kernel, padding=kernel // 2, bias=False) for _ in range(2)
        )
        self.norms = nn.ModuleList(
            nn.ModuleDict({name: nn.BatchNorm2d(channels) for name in ("u1", "inh", "u2", "exc")}) for _ in range(steps)
        )
        self.alpha, self.gamma, self.kappa, self.omega, self.mu = (
            nn.Parameter(torch.full((1, channels, 1, 1), value)) for value in (ALPHA, GAMMA, KAPPA, OMEGA, MU)
        )
        spans = torch.empty(1, channels, 1, 1).uniform_(1, max(steps - 1, 1))
        self.b1, self.b2 = nn.Parameter(spans.log()), nn.Parameter(-spans.log())
        for layer in (self.u1, self.u2, self.w_inh, self.w_exc):
            nn.init.orthogonal_(layer.weight)
        for norm in self.norms.modules():
            if isinstance(norm, nn.BatchNorm2d):
                nn.init.constant_(norm.weight, SCALE)

    def forward(self, drive: torch.Tensor) -> torch.Tensor:
        """The state after the last time step, not negative.

        Args:
            drive: (N, channels, H, W).
        """
        state = torch.zeros_like(drive, dtype=self.alpha.dtype)
        for norm in self.norms:
            gate = torch.sigmoid(norm["u1"](self.u1(state)) + self.b1)
            inhibition = norm["inh"](self.w_inh(state * gate))
            kept = torch.relu(drive - torch.relu(inhibition * (self.alpha * state + self.mu)))
            update = torch.sigmoid(norm["u2"](self.u2(kept)) + self.b2)
            excitation = norm["exc"](self.w_exc(kept))
            candidate = torch.relu(self.kappa * kept + self.gamma * excitation + self.omega * kept * excitation)
            state = torch.lerp(state, candidate, update)
        return state
