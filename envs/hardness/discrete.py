"""`lcd/hardness-discrete-v0`: the discrete toy MDP, all copies stepped together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.envs.checks import checked_actions, one_of, seed_list, whole_number
from lcd.envs.errors import InputError
from lcd.envs.hardness.images import IMAGE_VIEWS, Renderer
from lcd.envs.hardness.mdp import DiscreteMDP, HardnessKnobs, build_mdp
from lcd.envs.hardness.shapes import portraits
from lcd.envs.single import SingleCopy
from lcd.envs.state import State, nest, unnest
from lcd.envs.streams import Streams, group_seeds, seed_sequence

VIEWS = (*IMAGE_VIEWS, "state")
SPLITS = ("train", "eval")
_STREAMS = ("dynamics", "geometry", "appearance")


class HardnessDiscreteVectorEnv(VectorEnv):
    """Copies of one toy MDP, or of one a seed for a population of seeds.

    Within the code a "node" is a state's number among the states of all seeds' MDPs.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["rgb_array"],
        "render_fps": 4,
    }

    def __init__(
        self,
        num_envs: int = 1,
        view: str = "state",
        split: str = "train",
        seed: int | Sequence[int] = 0,
        render_mode: str | None = None,
        **knobs: Any,
    ) -> None:
        """Args:
        num_envs: number of copies, over all seeds.
        view: "pixels", "figure_ground", "semantic" (images), or "state" (one-hot vector).
        split: "train" or "eval": the same MDP under other random streams.
        seed: a seed, or the seeds of a population, whose copies lie side by side in this order.
        render_mode: None or "rgb_array".
        knobs: those of `HardnessKnobs` and `ImageKnobs`.
        """
        one_of("view", view, VIEWS)
        one_of("split", split, SPLITS)
        if render_mode is not None:
            one_of("render_mode", render_mode, self.metadata["render_modes"])
        whole_number("num_envs", num_envs, 1)
        self._seeds = seed_list(seed)
        if num_envs % len(self._seeds):
            raise InputError(f"num_envs is {num_envs}, but it must be a multiple of the {len(self._seeds)} seeds.")
        self.num_envs, self.view, self.split, self.render_mode = num_envs, view, split, render_mode
        self.knobs = HardnessKnobs.from_dict(knobs)
        self.mdps: list[DiscreteMDP] = [build_mdp(self.knobs, s) for s in self._seeds]
        self._join_tables()
        self._start_streams()
        self._renderer = None
        if view in IMAGE_VIEWS:
            self._renderer = Renderer(
                self.knobs.images, view, self.knobs.state_space_size, *(self._streams[k] for k in _STREAMS[1:])
            )
        self._make_spaces()
        self._make_buffers()

    @property
    def num_seeds(self) -> int:
        """How many seeds the population has."""
        return len(self._seeds)

    @property
    def states(self) -> np.ndarray:
        """Every copy's present state."""
        return self._nodes - self._first_node

    def _join_tables(self) -> None:
        """One flat table for the MDPs of all seeds: a step then costs one look-up whatever their number."""
        states, codes = self.knobs.state_space_size, len(self.mdps[0].rewards)
        group = np.repeat(np.arange(self.num_seeds), self.num_envs // self.num_seeds)
        self._first_node = group * states
        self._first_code = group * codes
        self._successors = np.concatenate([m.transitions + g * states for g, m in enumerate(self.mdps)]).ravel()
        self._terminal = np.concatenate([m.terminal for m in self.mdps])
        self._rewards = np.concatenate([m.rewards for m in self.mdps])
        self._starts = np.stack([m.starts + g * states for g, m in enumerate(self.mdps)])
        self._first_start = group * self._starts.shape[1]
        self._gate = self.mdps[0].gate.astype(np.float64)
        self._gated = not self.mdps[0].gate[1:].all()
        self._one_hot = np.tile(np.eye(states, dtype=np.float32), (self.num_seeds, 1))

    def _start_streams(self) -> None:
        copies = range(self.num_envs // self.num_seeds)
        sequences = [seed_sequence(seed, self.split, copy) for seed in self._seeds for copy in copies]
        fresh = dict(zip(_STREAMS, Streams.spawn(sequences, len(_STREAMS)), strict=True))
        if not hasattr(self, "_streams"):
            self._streams = fresh
        for name, streams in fresh.items():
            self._streams[name].set_state(streams.get_state())

    def _make_spaces(self) -> None:
        if self._renderer is None:
            self.single_observation_space = spaces.Box(0.0, 1.0, (self.knobs.state_space_size,), np.float32)
        else:
            self.single_observation_space = spaces.Box(0, 255, self._renderer.shape, np.uint8)
        self.single_action_space = spaces.Discrete(self.knobs.action_space_size)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _make_buffers(self) -> None:
        self._nodes = np.zeros(self.num_envs, dtype=np.int64)
        self._steps = np.zeros(self.num_envs, dtype=np.int64)
        self._history = np.zeros(self.num_envs, dtype=np.int64)
        self._pending = np.zeros((self.knobs.delay, self.num_envs))
        self._slot = 0
        self._running = False
        self._shown: np.ndarray | None = None

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every copy.

        Args:
            seed: re-seeds the streams, never the tables: one seed, or one for each seed of the population.
            options: none are known.
        """
        if seed is not None:
            self._seeds = group_seeds(seed, self.num_seeds)
            self._start_streams()
        self._running = True
        self._begin(None)
        return self._show(self._observe()), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of every copy; a copy whose episode ends shows the next one's first observation."""
        if not self._running:
            raise ResetNeeded("Call reset() before step(): no episode is running.")
        self._move(checked_actions(actions, self.num_envs, self.knobs.action_space_size))
        self._steps += 1
        rewards = self._pay(self._complete_sequences())
        infos: dict[str, Any] = {}
        if self.knobs.reward_noise > 0:
            infos["event_reward"] = rewards
            rewards = rewards + self.knobs.reward_noise * self._streams["dynamics"].normal()
        terminations = self._terminal.take(self._nodes)
        truncations = self._steps >= self.knobs.horizon
        truncations &= ~terminations
        observations = self._observe()
        ended = terminations | truncations
        if ended.any():
            infos["final_obs"], infos["_final_obs"] = observations, ended
            observations = self._begin_again(np.flatnonzero(ended), observations)
        return self._show(observations), rewards, terminations, truncations, infos

    def _move(self, actions: np.ndarray) -> None:
        edges = self._nodes * self.knobs.action_space_size
        edges += actions
        self._nodes = self._successors.take(edges)
        if self.knobs.transition_noise > 0:
            stray = np.flatnonzero(self._streams["dynamics"].uniform() < self.knobs.transition_noise)
            first = self._first_node[stray]
            true = self._nodes[stray] - first
            other = self._streams["dynamics"].integers(self.knobs.state_space_size - 1, stray)
            self._nodes[stray] = first + other + (other >= true)

    def _complete_sequences(self) -> np.ndarray:
        """The reward of the sequence, if any, that ends with this step."""
        if self.knobs.sequence_length == 1:
            rewards = self._rewards.take(self._nodes)
        else:
            codes = self._history * self.knobs.state_space_size
            codes += self._nodes
            codes -= self._first_node
            rewards = self._rewards.take(codes + self._first_code)
            kept = self.knobs.state_space_size ** (self.knobs.sequence_length - 1)
            self._history = codes - codes // kept * kept
        if self._gated:
            rewards *= self._gate.take(self._steps)
        return rewards

    def _pay(self, rewards: np.ndarray) -> np.ndarray:
        """What is handed out now, `delay` steps after it was earned."""
        if self.knobs.delay == 0:
            return rewards
        due = self._pending[self._slot].copy()
        self._pending[self._slot] = rewards
        self._slot = (self._slot + 1) % self.knobs.delay
        return due

    def _begin(self, index: np.ndarray | None) -> None:
        rows = slice(None) if index is None else index
        draw = self._streams["dynamics"].integers(self._starts.shape[1], index)
        nodes = self._starts.take(draw + self._first_start[rows])
        self._nodes[rows] = nodes
        self._steps[rows] = 0
        if self.knobs.sequence_length > 1:
            self._history[rows] = nodes - self._first_node[rows]
        if self.knobs.delay:
            self._pending[:, rows] = 0.0
        if self._renderer is not None:
            self._renderer.begin(index)

    def _begin_again(self, index: np.ndarray, observations: np.ndarray) -> np.ndarray:
        self._begin(index)
        observations = observations.copy()
        observations[index] = self._observe(index)
        return observations

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        nodes = self._nodes if index is None else self._nodes[index]
        if self._renderer is None:
            return self._one_hot.take(nodes, axis=0)
        if index is None:
            return self._renderer.draw(nodes - self._first_node, self._steps)
        return self._renderer.draw(nodes - self._first_node[index], self._steps[index], index)

    def _show(self, observations: np.ndarray) -> np.ndarray:
        if self.render_mode is not None and self._renderer is not None:
            self._shown = observations.copy()
        return observations

    def render(self) -> tuple[np.ndarray, ...] | None:
        """The copies' last observations; in the view `state`, a picture of each state."""
        if self.render_mode is None:
            return None
        if not self._running:
            raise ResetNeeded("Call reset() before render(): there is nothing to show.")
        if self._renderer is None:
            return tuple(portraits(self.knobs.state_space_size)[self.states])
        return tuple(self._shown.copy())

    def get_state(self) -> State:
        """Everything that the future depends on."""
        state = {
            "nodes": self._nodes.copy(),
            "steps": self._steps.copy(),
            "history": self._history.copy(),
            "pending": self._pending.copy(),
            "slot": np.array(self._slot),
            "running": np.array(self._running),
        }
        for name, streams in self._streams.items():
            state |= nest(name, streams.get_state())
        return state if self._renderer is None else state | nest("renderer", self._renderer.get_state())

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called (on an environment made with the same arguments)."""
        self._nodes, self._steps = state["nodes"].copy(), state["steps"].copy()
        self._history, self._pending = state["history"].copy(), state["pending"].copy()
        self._slot, self._running = int(state["slot"]), bool(state["running"])
        for name, streams in self._streams.items():
            streams.set_state(unnest(name, state))
        if self._renderer is not None:
            self._renderer.set_state(unnest("renderer", state))


class HardnessDiscreteEnv(SingleCopy):
    """One copy of the discrete toy MDP."""

    vector_class = HardnessDiscreteVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}
