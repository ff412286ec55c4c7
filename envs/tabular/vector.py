"""`lcd/tabular-v0`: any tabular MDP, all copies stepped together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.checks import checked_actions, require_fitting_table, require_one_of
from lcd.envs.errors import InputError, nearest
from lcd.envs.native import IMAGE_VIEWS, NativeVectorEnv
from lcd.envs.protocols import offers
from lcd.envs.single import SingleCopy
from lcd.envs.tabular.files import load
from lcd.envs.tabular.lone_tabular import LoneTabular
from lcd.envs.tabular.mdp import TERMINAL, Board, Renderer, TabularMDP

OBSERVATIONS = ("features", "number", "board")


class TabularVectorEnv(NativeVectorEnv):
    """Copies of one tabular MDP.

    A copy whose episode ends by -1 is in no state: what it shows last is the number of states, features that are all
    zero, or a black picture. An episode that reaches the horizon is truncated.
    """

    streams = ("dynamics", "appearance")
    kept = ("nodes", "steps", "last_actions")

    def __init__(
        self,
        num_envs: int = 1,
        mdp: TabularMDP | str | Path | None = None,
        view: str = "state",
        split: str = "train",
        seed: int | Sequence[int] = 0,
        render_mode: str | None = None,
        observation: str = "features",
        horizon: int | None = None,
        sticky: float | None = None,
    ) -> None:
        """Make the copies.

        Args:
            num_envs: number of copies, over all seeds.
            mdp: the MDP, or the path of an `.npz` file (`lcd.envs.tabular.files`).
            view: "state", or, where the MDP has a renderer, one of its: "pixels", "figure_ground", "semantic".
            split: "train" or "eval": the same MDP under other random streams.
            seed: a seed, or the seeds of a population, whose copies lie side by side in this order.
            render_mode: None or "rgb_array".
            observation: what the view "state" shows: "features" (the MDP's own, else one-hot vectors), "number", or
                "board" (a one-hot vector for each cell of the renderer's board, side by side).
            horizon: another horizon than the MDP's.
            sticky: another probability of repeating an action than the MDP's.
        """
        self._populate(num_envs, view, split, seed, render_mode)
        self.mdp = _given(mdp, horizon, sticky)
        require_one_of("observation", observation, OBSERVATIONS)
        self.observation = observation
        if view in IMAGE_VIEWS:
            self._renderer()
        self._board = self._known_board() if view == "state" and observation == "board" else None
        self._start_streams()
        self._make_tables()
        self._make_spaces()
        self._nodes = np.zeros(num_envs, dtype=np.int64)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._last_actions = np.zeros(num_envs, dtype=np.int64)

    @property
    def states(self) -> np.ndarray:
        """The number of every copy's present state."""
        return self._nodes.copy()

    @property
    def one_hot_sizes(self) -> tuple[int, ...] | None:
        """The lengths of the one-hot vectors that the view `state` puts side by side; None: it shows something else."""
        plain = self.view == "state" and self.observation == "features" and self.mdp.features is None
        return (self.mdp.num_states,) if plain else None

    def _renderer(self) -> Renderer:
        """What draws the view, or, where that is `state`, what else there is to draw."""
        renderer = self.mdp.renderer
        views: Sequence[str] = () if renderer is None else renderer.views
        if renderer is None or (self.view in IMAGE_VIEWS and self.view not in views):
            raise InputError(
                f"view is {self.view!r}, but the MDP '{self.mdp.name}' has no such pictures; "
                f"{nearest(self.view, ['state', *views])}"
            )
        return renderer

    def _known_board(self) -> Board:
        if not offers(self.mdp.renderer, Board):
            raise InputError(
                f"observation is 'board', but the MDP '{self.mdp.name}' has no board: give 'features' or 'number'."
            )
        return self.mdp.renderer

    def _make_tables(self) -> None:
        """Tables with a further state, in which ended copies are until their next episode begins."""
        states = self.mdp.num_states
        after = self.mdp.transitions.ravel()
        # Where a step leads and what it pays lie side by side: in a large table one look-up is half the time of two.
        packed = np.empty((len(after), 2), dtype=np.int32)
        packed[:, 0] = np.where(after == TERMINAL, states, after)
        packed[:, 1] = self.mdp.rewards.ravel().view(np.int32)
        self._outcomes = packed.view(np.int64).ravel()
        self._ends = bool((after == TERMINAL).any())
        self._features: np.ndarray | None = None
        if self.view == "state" and self.observation == "features":
            own = self.mdp.features
            if own is None:
                require_fitting_table(
                    f"observation is 'features', and the MDP has {states:,} states", (states + 1) * states, 4
                )
                own = np.eye(states, dtype=np.float32)
            self._features = np.concatenate([own, np.zeros((1, own.shape[1]), np.float32)])

    def _make_spaces(self) -> None:
        if self.view in IMAGE_VIEWS:
            self.single_observation_space = spaces.Box(0, 255, (*self._renderer().shape, 3), np.uint8)
        elif self._board is not None:
            self.single_observation_space = spaces.Box(0, 1, self._on_board(self._board, np.zeros(1, int)).shape[1:])
        elif self._features is None:
            self.single_observation_space = spaces.Discrete(self.mdp.num_states + 1)
        else:
            low, high = float(self._features.min()), float(self._features.max())
            self.single_observation_space = spaces.Box(low, high, self._features.shape[1:], np.float32)
        self.single_action_space = spaces.Discrete(self.mdp.num_actions)
        self._make_ready()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of every copy; a copy whose episode ends shows the next one's first observation."""
        self._require_episode("step")
        actions = checked_actions(actions, self.num_envs, self.mdp.num_actions)
        if self.mdp.sticky > 0:
            actions = self._stuck(actions)
        edges = self._nodes * self.mdp.num_actions
        edges += actions
        outcomes = self._outcomes.take(edges)
        nodes = outcomes.view(np.int32)[::2].astype(np.int64)
        rewards = outcomes.view(np.float32)[1::2].astype(np.float64)
        self._steps += 1
        truncations = self._steps >= self.mdp.horizon
        if self._ends:
            terminations = nodes == self.mdp.num_states
            truncations &= ~terminations
            ended = terminations | truncations
        else:
            terminations, ended = np.zeros(self.num_envs, dtype=bool), truncations
        self._nodes = nodes
        if not ended.any():
            return self._show(self._observe()), rewards, terminations, truncations, {}
        infos = {"final_obs": self._observe(), "_final_obs": ended.copy()}
        observations = self._begin_again(np.flatnonzero(ended), infos["final_obs"])
        return self._show(observations), rewards, terminations, truncations, infos

    def _stuck(self, actions: np.ndarray) -> np.ndarray:
        """The actions, some replaced by those of the step before."""
        repeat = self._streams["dynamics"].uniform() < self.mdp.sticky
        repeat &= self._steps > 0
        self._last_actions = np.where(repeat, self._last_actions, actions)
        return self._last_actions

    def _begin(self, index: np.ndarray | None) -> None:
        rows = slice(None) if index is None else index
        self._nodes[rows] = self.mdp.start
        self._steps[rows] = 0

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        return self._seen(self._nodes if index is None else self._nodes[index], index)

    def _seen(self, nodes: np.ndarray, index: np.ndarray | None) -> np.ndarray:
        if self.view not in IMAGE_VIEWS:
            if self._board is not None:
                return self._on_board(self._board, nodes)
            return nodes.copy() if self._features is None else self._features.take(nodes, axis=0)
        renderer = self._renderer()
        words = None
        if self.view == "pixels" and renderer.words:
            words = self._streams["appearance"].bits(index, renderer.words)
        return self._painted(nodes, self.view, words)

    def _on_board(self, board: Board, nodes: np.ndarray) -> np.ndarray:
        """One-hot vectors of the cells' contents, all zero where an episode is over."""
        last = self.mdp.num_states - 1
        cells = board.cells(np.minimum(nodes, last))
        shown = cells[..., None] == np.arange(board.kinds)
        shown &= (nodes <= last)[:, None, None]
        return shown.reshape(len(nodes), -1).astype(np.float32)

    def _painted(self, nodes: np.ndarray, view: str, words: np.ndarray | None = None) -> np.ndarray:
        last = self.mdp.num_states - 1
        frames = self._renderer().paint(np.minimum(nodes, last), view, words)
        over = nodes > last
        if over.any():
            frames[over] = 0
        return frames

    def _pictures(self) -> np.ndarray:
        """Pictures of the states where there is a renderer, else nothing to see."""
        if self.mdp.renderer is None:
            return np.zeros((self.num_envs, 1, 1, 3), np.uint8)
        return self._painted(self._nodes, self.mdp.renderer.views[-1])

    def lone(self) -> LoneTabular | None:
        """The only copy in plain numbers, unless it is rendered."""
        if self.num_envs > 1 or self.render_mode:
            return None
        return LoneTabular(self.mdp, {"dynamics": self._streams["dynamics"]}, self._shown_alone)

    def _shown_alone(self, node: int) -> Any:
        return self._features[node].copy() if self._features is not None else self._seen(np.array([node]), None)[0]


def _given(mdp: Any, horizon: int | None, sticky: float | None) -> TabularMDP:
    if isinstance(mdp, str | Path):
        return load(mdp, horizon, sticky)
    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp is {mdp!r}, but must be a TabularMDP or the path of an .npz file.")
    changes = {"horizon": horizon, "sticky": sticky}
    changes = {name: value for name, value in changes.items() if value is not None}
    return mdp.changed(**changes) if changes else mdp


class TabularEnv(SingleCopy):
    """One copy of a tabular MDP."""

    vector_class = TabularVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}
