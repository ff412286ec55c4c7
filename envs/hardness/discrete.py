"""`lcd/hardness-discrete-v0`: the discrete toy MDP, all copies stepped together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.errors import InputError
from lcd.envs.hardness.base import STREAMS, VIEWS, ToyVectorEnv
from lcd.envs.hardness.images import Renderer
from lcd.envs.hardness.lone_toy import ByRenderer, LoneToy
from lcd.envs.hardness.mdp import DiscreteMDP, HardnessKnobs, build_mdp
from lcd.envs.hardness.sequences import SequenceRewards
from lcd.envs.hardness.shapes import portraits
from lcd.envs.hardness.solve import expected_return
from lcd.envs.native import IMAGE_VIEWS
from lcd.envs.single import SingleCopy

__all__ = ["VIEWS", "HardnessDiscreteEnv", "HardnessDiscreteVectorEnv"]


class HardnessDiscreteVectorEnv(ToyVectorEnv):
    """Copies of one toy MDP, or of one a seed for a population of seeds.

    The knobs are those of `HardnessKnobs` and `ImageKnobs`.

    The ground truth: `mdps` (each seed's tables), `optimal_returns`, `states`, and, with `augmented_state=True`, in
    every step's `infos["augmented_state"]` the last sequence_length + delay + 1 states (-1: before the episode).

    Within the code a "node" is a state's number among the states of all seeds' MDPs.
    """

    kept = ("nodes", "others", "trail")
    knobs: HardnessKnobs

    def _read_knobs(self, knobs: dict[str, Any]) -> HardnessKnobs:
        found = HardnessKnobs.from_dict(knobs)
        if self.view == "state" and found.images.image_transforms:
            raise InputError(
                f"image_transforms is {','.join(found.images.image_transforms)!r}, but the view 'state' shows no "
                f"image: choose a view from {', '.join(IMAGE_VIEWS)}."
            )
        return found

    @property
    def states(self) -> np.ndarray:
        """Every copy's present state."""
        return self._nodes - self._first_node

    @property
    def irrelevant_states(self) -> np.ndarray:
        """Every copy's present state in the part that no reward depends on."""
        return self._others - self._first_other

    @property
    def optimal_returns(self) -> list[float]:
        """Each seed's expected return of an optimal agent, noise of the reward aside."""
        return [expected_return(mdp) for mdp in self.mdps]

    def _make(self) -> None:
        self.mdps: list[DiscreteMDP] = [build_mdp(self.knobs, s) for s in self._seeds]
        self._join_tables()
        self._rewards = SequenceRewards(self.mdps, self.group)
        self._nodes, self._others = np.zeros((2, self.num_envs), dtype=np.int64)
        self._before = np.zeros(self.num_envs, dtype=np.int64)
        self._trail = np.full((self.num_envs, self.knobs.sequence_length + self.knobs.delay + 1), -1)
        self._renderer = None
        if self.view in IMAGE_VIEWS:
            most = max(self.knobs.state_space_size, self.knobs.irrelevant_states)
            geometry, appearance = (self._streams[name] for name in STREAMS[1:])
            halves = 2 if self.knobs.irrelevant_features else 1
            self._renderer = Renderer(self.knobs.images, self.view, most, geometry, appearance, halves)
        self._make_spaces()

    def _join_tables(self) -> None:
        """One flat table for the MDPs of all seeds: a step then costs one look-up whatever their number."""
        knobs, states = self.knobs, self.knobs.state_space_size
        self._first_node = self.group * states
        self._successors = np.concatenate([m.transitions + g * states for g, m in enumerate(self.mdps)]).ravel()
        self._terminal = np.concatenate([m.terminal for m in self.mdps])
        self._starts = np.stack([m.starts + g * states for g, m in enumerate(self.mdps)])
        self._first_start = self.group * self._starts.shape[1]
        self._one_hot = np.tile(np.eye(states, dtype=np.float32), (self.num_seeds, 1))
        others = knobs.irrelevant_states
        self._first_other = self.group * others
        if tables := [m.irrelevant + g * others for g, m in enumerate(self.mdps) if m.irrelevant is not None]:
            self._other_successors = np.concatenate(tables).ravel()
            self._other_one_hot = np.tile(np.eye(others, dtype=np.float32), (self.num_seeds, 1))
        if knobs.init_state_dist is not None:
            self._start_bounds = np.cumsum(np.array(knobs.init_state_dist)[self.mdps[0].starts])[:-1]

    def _make_spaces(self) -> None:
        knobs = self.knobs
        if self._renderer is None:
            length = knobs.state_space_size + knobs.irrelevant_states
            self.single_observation_space = spaces.Box(0.0, 1.0, (length,), np.float32)
        else:
            self.single_observation_space = spaces.Box(0, 255, self._renderer.shape, np.uint8)
        self.single_action_space = spaces.Discrete(knobs.action_space_size)
        if knobs.irrelevant_features:
            self.single_action_space = spaces.MultiDiscrete([knobs.action_space_size, knobs.irrelevant_actions])

    @property
    def one_hot_sizes(self) -> tuple[int, ...]:
        """The lengths of the one-hot vectors that the view `state` puts side by side."""
        knobs = self.knobs
        return (knobs.state_space_size, *([knobs.irrelevant_states] if knobs.irrelevant_features else []))

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        actions = np.asarray(actions)
        shape = self.action_space.shape
        if actions.shape != shape or actions.dtype.kind not in "iu":
            raise InputError(
                f"actions have the shape {actions.shape} and type {actions.dtype}, but {self.num_envs} copies need "
                f"{shape} whole numbers."
            )
        actions = actions.astype(np.int64, copy=False)
        if actions.ndim == 1:
            wrong = actions.view(np.uint64).max() >= self.knobs.action_space_size
        else:
            wrong = (actions < 0).any() or (actions >= self.single_action_space.nvec).any()
        if wrong:
            most = f"{self.knobs.action_space_size - 1}"
            most += f" and {self.knobs.irrelevant_actions - 1}" if actions.ndim == 2 else ""
            raise InputError(f"actions go from {actions.min()} to {actions.max()}, but they must be from 0 to {most}.")
        return actions

    def _move(self, actions: np.ndarray) -> np.ndarray:
        knobs = self.knobs
        own = actions if actions.ndim == 1 else actions[:, 0]
        self._before = self._nodes - self._first_node
        edges = self._nodes * knobs.action_space_size
        edges += own
        chance = self._chances(own)
        self._nodes = self._strayed(self._successors.take(edges), chance, self._first_node, knobs.set_size)
        if knobs.irrelevant_features:
            edges = self._others * knobs.irrelevant_actions + actions[:, 1]
            size = knobs.irrelevant_set_size
            self._others = self._strayed(self._other_successors.take(edges), chance, self._first_other, size)
        if self.augmented_state:
            self._trail[:, :-1] = self._trail[:, 1:]
            self._trail[:, -1] = self._nodes - self._first_node
        return self._terminal.take(self._nodes)

    def _chances(self, actions: np.ndarray) -> float | np.ndarray:
        """Every copy's probability of straying."""
        noise = self.knobs.transition_noise
        if not callable(noise):
            return noise
        pairs = zip(self._before.tolist(), actions.tolist(), strict=True)
        return np.array([noise(*pair, self._generators[copy]) for copy, pair in enumerate(pairs)])

    def _strayed(self, nodes: np.ndarray, chance: float | np.ndarray, first: np.ndarray, size: int) -> np.ndarray:
        """The successors after noise, which leads to another state of the same set of `size`."""
        if isinstance(chance, float | int) and chance == 0:
            return nodes
        stray = np.flatnonzero(self._streams["dynamics"].uniform() < chance)
        base = first[stray]
        true = nodes[stray] - base
        if self.knobs.sets > 1:
            base = base + true // size * size
            true = true % size
        other = self._streams["dynamics"].integers(size - 1, stray)
        nodes[stray] = base + other + (other >= true)
        return nodes

    def _earned(self, actions: np.ndarray) -> np.ndarray:
        own = actions if actions.ndim == 1 else actions[:, 0]
        return self._rewards.earned(self.states, own, self._steps)

    def _noise_arguments(self, actions: np.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
        if not callable(self.knobs.reward_noise):
            return (), ()
        return self._before.tolist(), (actions if actions.ndim == 1 else actions[:, 0]).tolist()

    def _start(self, rows: slice | np.ndarray, index: np.ndarray | None) -> None:
        streams = self._streams["dynamics"]
        if self.knobs.init_state_dist is None:
            draw = streams.integers(self._starts.shape[1], index)
        else:
            draw = np.searchsorted(self._start_bounds, streams.uniform(index), side="right")
        nodes = self._starts.take(draw + self._first_start[rows])
        self._nodes[rows] = nodes
        states = nodes - self._first_node[rows]
        if self.knobs.irrelevant_features:
            self._others[rows] = streams.integers(self.knobs.irrelevant_states, index) + self._first_other[rows]
        self._rewards.begin(rows, states)
        if self.augmented_state:
            self._trail[rows] = -1
            self._trail[rows, -1] = states

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        rows = slice(None) if index is None else index
        nodes, others = self._nodes[rows], self._others[rows]
        if self._renderer is None:
            shown = self._one_hot.take(nodes, axis=0)
            if not self.knobs.irrelevant_features:
                return shown
            return np.concatenate([shown, self._other_one_hot.take(others, axis=0)], axis=1)
        return self._renderer.draw(self._seen_states(rows), self._steps[rows], index)

    def _observe_again(self, observations: np.ndarray, index: np.ndarray) -> np.ndarray:
        if self._renderer is None:
            return super()._observe_again(observations, index)
        return self._renderer.draw_again(observations, self._seen_states(index), self._steps[index], index)

    def _seen_states(self, rows: slice | np.ndarray) -> np.ndarray:
        """The states that the images of these copies show, a row for each half of an image."""
        states = self._nodes[rows] - self._first_node[rows]
        if not self.knobs.irrelevant_features:
            return states[None]
        return np.stack([states, self._others[rows] - self._first_other[rows]])

    def _markov(self) -> dict[str, np.ndarray]:
        return {"augmented_state": self._trail.copy()}

    def _pictures(self) -> np.ndarray:
        return portraits(self.knobs.state_space_size)[self.states]

    def _parts(self) -> dict[str, Any]:
        return {**super()._parts(), "rewards": self._rewards}

    def lone(self) -> LoneToy | None:
        """The only copy in plain numbers; None where more than numbers is asked for."""
        asked = self.knobs.irrelevant_features or self.augmented_state or self.render_mode or self._uses_functions()
        if asked or self.num_envs > 1:
            return None
        streams = {"dynamics": self._streams["dynamics"]}
        if self._renderer is None:
            return LoneToy(self.mdps[0], self._payment, streams)
        if (figures := self._renderer.lone()) is not None:
            return LoneToy(self.mdps[0], self._payment, {**streams, "geometry": self._streams["geometry"]}, figures)
        return LoneToy(self.mdps[0], self._payment, streams, ByRenderer(self._renderer))


class HardnessDiscreteEnv(SingleCopy):
    """One copy of the discrete toy MDP."""

    vector_class = HardnessDiscreteVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}
