"""`lcd/ctgraph-v0`: the configurable tree graph, all copies stepped together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.checks import checked_actions, require_fitting_table
from lcd.envs.ctgraph.goals import GoalSchedule, checked_goal
from lcd.envs.ctgraph.images import Reader, labels
from lcd.envs.ctgraph.knobs import GraphKnobs
from lcd.envs.ctgraph.lone_graph import LoneGraph
from lcd.envs.ctgraph.transitions import end_rewards, transitions
from lcd.envs.errors import InputError, nearest
from lcd.envs.native import IMAGE_VIEWS, VIEWS, NativeVectorEnv
from lcd.envs.single import SingleCopy

__all__ = ["VIEWS", "CTGraphEnv", "CTGraphVectorEnv"]


class CTGraphVectorEnv(NativeVectorEnv):
    """Copies of one graph; those of a seed share the goal."""

    streams = ("dynamics", "observation", "appearance")
    kept = ("nodes", "ids", "goals", "phases", "left")

    def __init__(
        self,
        num_envs: int = 1,
        view: str | None = None,
        split: str = "train",
        seed: int | Sequence[int] | None = None,
        render_mode: str | None = None,
        **knobs: Any,
    ) -> None:
        """Make the copies of one graph, or of one a seed.

        Args:
            num_envs: number of copies, over all seeds.
            view: "pixels", "figure_ground", "semantic" (images), or "state" (one-hot vector over observation ids); by
                default "pixels", or "state" where `image_dataset.1D` is true.
            split: "train" or "eval": the same graph and goal under other random streams.
            seed: a seed, or the seeds of a population, whose copies lie side by side in this order; by default
                `general_seed`, else 0.
            render_mode: None or "rgb_array".
            knobs: those of `GraphKnobs` in the layout of the authors' file, and `config`, the path of such a file.
        """
        self.knobs = GraphKnobs.from_dict(knobs)
        view = view if view is not None else ("state" if self.knobs.image_dataset.one_d else "pixels")
        seed = seed if seed is not None else self.knobs.general_seed or 0
        self._populate(num_envs, view, split, seed, render_mode)
        self._transitions = transitions(self.knobs)
        self._schedules = [GoalSchedule(self.knobs, s) for s in self._seeds]
        self._start_streams()
        self._reader = None
        if view in IMAGE_VIEWS:
            images = self.knobs.image_dataset
            self._reader = Reader(images, self.knobs.num_ids, view, self._streams["appearance"])
        if self._reader is None:
            ids = self.knobs.num_ids
            require_fitting_table(f"view is 'state', and the graph shows {ids} observation ids", ids * ids, 4)
            self._one_hot = np.eye(ids, dtype=np.float32)
        self._make_spaces()
        self._make_buffers()

    @property
    def kinds(self) -> np.ndarray:
        """What kind each copy's present state is of: a number into `lcd.envs.ctgraph.layout.KINDS`."""
        return self._transitions.kinds[self._nodes]

    @property
    def numbers(self) -> np.ndarray:
        """The number of each copy's present state among the states of its kind."""
        return self._transitions.numbers[self._nodes]

    @property
    def goals(self) -> np.ndarray:
        """(copies, d): the optimal decisions of each copy at present."""
        return self._goals.copy()

    @property
    def observation_ids(self) -> np.ndarray:
        """The observation id that each copy shows at present."""
        return self._ids.copy()

    @property
    def one_hot_sizes(self) -> tuple[int, ...] | None:
        """The length of the one-hot vector that the view `state` is, for tabular agents to number."""
        return (self.knobs.num_ids,) if self._reader is None else None

    def _make_spaces(self) -> None:
        if self._reader is None:
            self.single_observation_space = spaces.Box(0.0, 1.0, (self.knobs.num_ids,), np.float32)
        else:
            self.single_observation_space = spaces.Box(0, 255, self._reader.shape, np.uint8)
        self.single_action_space = spaces.Discrete(self._transitions.actions)
        self._make_ready()

    def _make_buffers(self) -> None:
        self._nodes = np.zeros(self.num_envs, dtype=np.int64)
        self._ids = np.zeros(self.num_envs, dtype=np.int64)
        self._random_ids = bool((self._transitions.id_count > 1).any())
        self._start_goals()

    def _start_goals(self) -> None:
        self._phases = np.zeros(self.num_envs, dtype=np.int64)
        self._goals = np.stack([schedule.goal(0) for schedule in self._schedules])[self.group]
        self._left = np.array([schedule.episodes(0) for schedule in self._schedules])[self.group]

    def _seed_anew(self, seed: int | Sequence[int]) -> None:
        super()._seed_anew(seed)
        self._start_goals()

    def _read_options(self, options: dict[str, Any]) -> None:
        """Take in `goal`: the optimal decisions from now on, in every copy."""
        for key, value in options.items():
            if key != "goal":
                raise InputError(f"options has '{key}', which is no option of reset; {nearest(key, ['goal'])}")
            self._goals[:] = checked_goal(value, self.knobs.graph_shape.b, self.knobs.graph_shape.d)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of every copy; a copy whose episode ends shows the next one's first observation."""
        self._require_episode("step")
        self._move(checked_actions(actions, self.num_envs, self._transitions.actions))
        terminations = self._transitions.terminal.take(self._nodes)
        ended = np.flatnonzero(terminations)
        rewards = np.full(self.num_envs, float(self.knobs.reward.step_r))
        if ended.size:
            rewards[ended] += end_rewards(self.knobs, self._transitions, self._nodes[ended], self._goals[ended])
        infos: dict[str, Any] = {}
        if self.knobs.reward.std_r > 0:
            infos["event_reward"] = rewards
            rewards = self._with_noise(rewards, ended)
        observations = self._observe()
        if ended.size:
            infos["final_obs"], infos["_final_obs"] = observations, terminations
            observations = self._begin_again(ended, observations)
        return self._show(observations), rewards, terminations, np.zeros(self.num_envs, dtype=bool), infos

    def _move(self, actions: np.ndarray) -> None:
        edges = self._nodes * self._transitions.actions
        edges += actions
        onward = self._transitions.successors.take(edges)
        if self.knobs.graph_shape.p > 0:
            kept = self._streams["dynamics"].uniform() < self.knobs.graph_shape.p
            kept &= self._transitions.lingering.take(edges)
            onward = np.where(kept, self._nodes, onward)
        self._nodes = onward

    def _with_noise(self, rewards: np.ndarray, ended: np.ndarray) -> np.ndarray:
        at_end = ended[self._nodes[ended] >= self._transitions.first_end]
        noisy = rewards.copy()
        if at_end.size:
            noisy[at_end] += self.knobs.reward.std_r * self._streams["dynamics"].normal(at_end)
        return noisy

    def _begin(self, index: np.ndarray | None) -> None:
        if index is None:
            self._nodes[:] = 0
            return
        self._nodes[index] = 0
        if self.knobs.reward.goal_changes:
            self._left[index] -= 1
            for copy in index[self._left[index] == 0]:
                self._phases[copy] += 1
                schedule = self._schedules[self.group[copy]]
                self._goals[copy] = schedule.goal(self._phases[copy])
                self._left[copy] = schedule.episodes(self._phases[copy])

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        nodes = self._nodes if index is None else self._nodes[index]
        ids = self._transitions.first_id.take(nodes)
        if self._random_ids:
            ids += self._streams["observation"].integers(self._transitions.id_count.take(nodes), index)
        if index is None:
            self._ids = ids
        else:
            self._ids[index] = ids
        if self._reader is None:
            return self._one_hot.take(ids, axis=0)
        return self._reader.show(ids, index)

    def _pictures(self) -> np.ndarray:
        """The labels of the observation ids that are shown."""
        return labels(self.knobs.num_ids)[self._ids]

    def lone(self) -> LoneGraph | None:
        """The only copy in plain numbers, unless it is rendered."""
        if self.num_envs > 1 or self.render_mode:
            return None
        streams = {name: self._streams[name] for name in ("dynamics", "observation")}
        return LoneGraph(self.knobs, self._transitions, self._schedules[0], streams, self._shown_alone)

    def _shown_alone(self, number: int) -> np.ndarray:
        if self._reader is None:
            return self._one_hot[number].copy()
        return self._reader.show(np.array([number]))[0]


class CTGraphEnv(SingleCopy):
    """One copy of a CT-graph."""

    vector_class = CTGraphVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}
