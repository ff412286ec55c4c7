"""`lcd/intersection-v0`: signalised intersections, all copies in one simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.checks import checked_actions, require_one_of, require_whole_number
from lcd.envs.errors import InputError
from lcd.envs.families.features import checked_columns
from lcd.envs.native import NativeVectorEnv
from lcd.envs.single import SingleCopy
from lcd.envs.state import State
from lcd.envs.traffic.from_above import picture
from lcd.envs.traffic.green_phases import PHASES
from lcd.envs.traffic.intersections import FEATURES
from lcd.envs.traffic.remote import RemoteSimulation
from lcd.envs.traffic.sensing import MOST, WIDTH, rows
from lcd.envs.traffic.simulation import DECISION

VIEWS = ("state",)
HORIZON, LONGEST = 3600, 86_400
"""Seconds of an episode, and of the longest."""


class IntersectionVectorEnv(NativeVectorEnv):
    """Copies of one intersection, or of another one for every seed of a population.

    An action is the phase that is green for the next five seconds; where that is another one than before, the first
    three of them are yellow. The reward is minus the seconds that vehicles lost, divided by all vehicles of the
    episode: a return is minus the mean delay of a vehicle. Every episode is cut off at the horizon.
    """

    streams = ("demand",)
    kept = ("words", "taken")

    def __init__(
        self,
        num_envs: int = 1,
        view: str = "state",
        split: str = "train",
        seed: int | Sequence[int] = 0,
        render_mode: str | None = None,
        horizon: int = HORIZON,
        **features: Any,
    ) -> None:
        """Make the copies; SUMO is started by the first reset.

        Args:
            num_envs: number of copies, over all seeds.
            view: "state".
            split: "train" or "eval": the same intersection under other traffic of the same density.
            seed: a seed, or the seeds of a population, whose copies lie side by side in this order; of several points
                the seeds of the first come first, and so on.
            render_mode: None or "rgb_array".
            horizon: seconds of an episode.
            features: those of the intersection, each a number, or one for each seed.
        """
        require_one_of("view", view, VIEWS)
        self._populate(num_envs, view, split, seed, render_mode)
        self.horizon = checked_horizon(horizon)
        columns = checked_columns(FEATURES, features, self.num_seeds)
        self.context = {name: column[self.group] for name, column in columns.items()}
        """Each feature's value in every copy."""
        self._start_streams()
        self._simulation: RemoteSimulation | None = None
        self.single_observation_space = spaces.Box(0, MOST, (WIDTH,), np.float32)
        self.single_action_space = spaces.Discrete(len(PHASES))
        self._words = np.zeros(num_envs, dtype=np.uint64)
        self._taken = np.zeros((0, num_envs), dtype=np.int64)
        self._make_ready()

    @property
    def _sumo(self) -> RemoteSimulation:
        if self._simulation is None:
            points = [
                {name: float(column[copy]) for name, column in self.context.items()} for copy in range(self.num_envs)
            ]
            self._simulation = RemoteSimulation(points, self.horizon)
        return self._simulation

    def close_extras(self, **kwargs: Any) -> None:
        """End the simulation's process."""
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Five seconds of every copy; where episodes end, the infos have what was measured in them (`MEASURES`)."""
        self._require_episode("step")
        actions = checked_actions(actions, self.num_envs, len(PHASES))
        seen, lost = self._sumo.step(actions)
        self._taken = np.concatenate([self._taken, actions[None]])
        self._seen = seen
        terminations = np.zeros(self.num_envs, dtype=bool)
        ended = len(self._taken) * DECISION >= self.horizon
        truncations = np.full(self.num_envs, ended)
        if not ended:
            return self._observe(), -lost, terminations, truncations, {}
        infos = {"final_obs": self._observe(), "_final_obs": truncations.copy(), **self._sumo.measures()}
        self._begin(None)
        return self._observe(), -lost, terminations, truncations, infos

    def _begin(self, index: np.ndarray | None) -> None:
        self._words, self._taken = self._streams["demand"].bits(), self._taken[:0]
        self._seen = self._sumo.begin(self._words)

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        return rows(self._seen)

    def _pictures(self) -> list[np.ndarray]:
        points = [{name: column[copy] for name, column in self.context.items()} for copy in range(self.num_envs)]
        return [picture(point, self._seen, copy) for copy, point in enumerate(points)]

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called: what was done since the episode began is done again."""
        super().set_state(state)
        if self._running:
            self._seen = self._sumo.replay(self._words, self._taken)


def checked_horizon(horizon: Any) -> int:
    """Seconds of an episode; refused unless decisions fit into them."""
    require_whole_number("horizon", horizon, DECISION, LONGEST)
    if horizon % DECISION:
        raise InputError(f"horizon is {horizon}, but it must be a multiple of {DECISION} seconds.")
    return int(horizon)


class IntersectionEnv(SingleCopy):
    """One intersection."""

    vector_class = IntersectionVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}
