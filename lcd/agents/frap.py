"""FRAP (Zheng et al. 2019): what a phase is worth comes of its competition with each other phase of an intersection.

Every movement's demand is told by one small network, a phase's is the sum of its movements', and every ordered pair of
phases is scored by another small network, under a relation: whether the two have a movement in common. So nothing
tells one road from the other, nor an approach from the one against it: who swaps them swaps what phases are worth.
"""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Tensor
from torch.nn import functional

from lcd.agents.dqn import Layers
from lcd.envs.traffic.green_phases import PHASES, state
from lcd.envs.traffic.network import APPROACHES, MOVEMENTS

LINKS = [(approach, movement) for approach in range(len(APPROACHES)) for movement in range(len(MOVEMENTS))]
GOES = torch.tensor([[letter in "Gg" for letter in state(LINKS, phase)] for phase in range(len(PHASES))])
"""(phases, movements of all approaches): who may go, be it by giving way."""
PAIRS = list(permutations(range(len(PHASES)), 2))
"""Each phase against each other one."""
PARTLY = torch.tensor([bool((GOES[one] & GOES[other]).any()) for one, other in PAIRS])
"""Which pairs compete for a part of their movements alone: they have one in common."""
_FIRST, _SECOND = (torch.tensor(side) for side in zip(*PAIRS, strict=True))
_LEFT = torch.tensor([MOVEMENTS[movement] == "left" for _, movement in LINKS])
_ALONE = torch.tensor([phase % 2 == 1 for phase in range(len(PHASES))])


def sizes(features: int, width: int) -> list[tuple[int, int]]:
    """Inputs and outputs of the layers: two of demand, of a pair, of its relation, and two of what comes of both."""
    return [(features, width), (width, width), (2 * width, width), (2, width), (width, width), (width, 1)]


def movements_of(served: Tensor) -> Tensor:
    """(…, phases, movements): whose demand is a phase's, given the phases that an intersection has, (…, phases).

    Left turns that have a phase of their own are in that alone, others in that of their road.
    """
    own = torch.where(_ALONE, served, served.roll(-1, -1))[..., None]
    return GOES & torch.where(_ALONE[:, None], _LEFT, ~(_LEFT & own))


def phase_values(layers: Layers, features: Tensor, served: Tensor) -> Tensor:
    """What each phase is worth, (members, batch, phases); −∞ where an intersection does not have it.

    Args:
        layers: of all members, as `sizes` says.
        features: (members, batch, movements, features).
        served: (members, batch, phases) whether an intersection has each phase.
    """
    movement, demand, pair, relation, both, last = zip(layers[::2], layers[1::2], strict=True)
    demands = functional.relu(_linear(demand, functional.relu(_linear(movement, features))))
    of_phase = movements_of(served).to(demands.dtype) @ demands
    against = functional.relu(_linear(pair, torch.cat([of_phase[..., _FIRST, :], of_phase[..., _SECOND, :]], -1)))
    kinds = functional.one_hot(PARTLY.long(), 2).to(demands.dtype).expand(len(features), -1, -1)
    related = functional.relu(_linear(relation, kinds))[:, None]
    scores = _linear(last, functional.relu(_linear(both, against * related))).squeeze(-1)
    # Who is not there does not compete.
    scores = scores.masked_fill(~served[..., _SECOND], 0.0)
    worth = scores.unflatten(-1, (len(PHASES), len(PHASES) - 1)).sum(-1)
    return worth.masked_fill(~served, -torch.inf)


def _linear(layer: tuple[Tensor, Tensor], inputs: Tensor) -> Tensor:
    """One layer of each member, on numbers with any axes between the members and what the layer takes."""
    weight, bias = layer
    return torch.baddbmm(bias, inputs.flatten(1, -2), weight).unflatten(1, inputs.shape[1:-1])
