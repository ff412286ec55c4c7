"""MPLight (Chen et al. 2020) and MPLight* (Ault and Sharon 2021): deep Q-networks that control traffic signals.

Their network is FRAP (`lcd.agents.frap`), and they learn from pressure: vehicles before an intersection less those
behind it. What is evaluated is the delay, as of any agent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.batched import Layers, Rows, initial
from lcd.agents.dqn import DQN
from lcd.agents.frap import GOES, phase_values, sizes
from lcd.agents.replay_settings import MPLightConfig
from lcd.agents.stepping import Step
from lcd.agents.traffic import require_intersections
from lcd.envs.traffic.controllers import movement_pressures
from lcd.envs.traffic.network import APPROACHES, MOVEMENTS, exit_of
from lcd.envs.traffic.sensing import SIZES, VEHICLES, read

_ENDS = dict(zip(SIZES, np.cumsum(list(SIZES.values())).tolist(), strict=True))
_BEHIND = torch.tensor([exit_of(approach, movement) for approach in range(len(APPROACHES)) for movement in MOVEMENTS])


class MPLight(DQN):
    """MPLight: FRAP on each movement's pressure and whether it may go; pressure is the reward."""

    Config = MPLightConfig
    features = 2
    """Numbers that are known of each movement."""

    def __init__(self, config: MPLightConfig, env: VectorEnv, seeds: Sequence[int]):
        require_intersections(env)
        super().__init__(config, env, seeds)

    def first_layers(self) -> Layers:
        """FRAP's layers before they learn."""
        return initial(sizes(self.features, self.config.width), self.seeds)

    def values(self, network: Rows, inputs: Tensor) -> Tensor:
        """What FRAP says that each phase is worth."""
        known = {name: inputs[..., end - SIZES[name] : end] for name, end in _ENDS.items()}
        return phase_values(network.layers, torch.stack(self.movements(known), -1), known["served"] > 0)

    def movements(self, known: dict[str, Tensor]) -> list[Tensor]:
        """What the network is told of each movement, given the parts of observations."""
        before = known["queues"] + known["moving"]
        pressure = before - known["leaving"][..., _BEHIND] / len(MOVEMENTS)
        return [pressure, known["phase"] @ GOES.to(pressure.dtype)]

    def at_random(self, numbers: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Phases that the intersections have."""
        served = read(observations).served
        place = numbers * served.sum(axis=1).astype(np.uint64) >> np.uint64(32)
        return (served.cumsum(axis=1) > place[:, None]).argmax(axis=1)

    def rewards(self, outcome: Step, reached: np.ndarray) -> np.ndarray:
        """Minus the pressure of the intersections, in tens of vehicles."""
        return -np.abs(movement_pressures(read(reached)).sum(axis=(1, 2))) / VEHICLES


class MPLightStar(MPLight):
    """MPLight*: MPLight that also senses who waits, who approaches, and how long a phase has been green."""

    features = 5

    def movements(self, known: dict[str, Tensor]) -> list[Tensor]:
        """What the network is told of each movement."""
        pressure, goes = super().movements(known)
        return [pressure, goes, known["queues"], known["moving"], goes * known["age"]]
