"""What every benchmark and every environment of ours have to do: a test class inherits a contract and names its own."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from lcd.envs.benchmarks import make_copies, reward_range
from lcd.envs.lockstep import compare_views
from lcd.envs.protocols import views_of

STEPS = 30


def rollout(env, seed=None, steps=STEPS, actions_from=0) -> dict[str, np.ndarray]:
    """Everything that `steps` steps of random actions give, after a reset."""
    actions = random_actions(env, steps, actions_from)
    first, _ = env.reset(seed=seed)
    return {"first": first.copy(), **play(env, actions)}


def random_actions(env, steps: int, seed: int = 0) -> np.ndarray:
    env.action_space.seed(seed)
    return np.stack([env.action_space.sample() for _ in range(steps)])


def play(env, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Trajectory of given actions, with the final observations where episodes end (zero elsewhere)."""
    columns: dict[str, list[np.ndarray]] = {}
    for action in actions:
        *arrays, infos = env.step(action)
        ended = arrays[2] | arrays[3]
        final = np.zeros_like(arrays[0])
        if "final_obs" in infos and ended.any():
            # Gymnasium's own vector environments keep one array a copy.
            final[ended] = np.stack(list(infos["final_obs"][ended]))
        names = ("observations", "rewards", "terminations", "truncations", "final")
        for name, array in zip(names, [*arrays, final], strict=True):
            columns.setdefault(name, []).append(np.array(array))
    return {name: np.stack(arrays) for name, arrays in columns.items()}


def equal(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


class BenchmarkContract:
    """What every benchmark has to do, whosever its environments are. Inherit, and set `benchmark`."""

    benchmark: ClassVar[Any]

    def make(self, task: str, view: str | None = None, split: str = "train", seed: int = 3):
        view = view or views_of(self.benchmark, task)[-1]
        return make_copies(self.benchmark, task, view=view, split=split, num_envs=3, seed=seed)

    def test_ranges_are_ranges_where_they_are_known(self):
        for task in self.benchmark.tasks:
            low, high = reward_range(self.benchmark, task, 0)
            assert np.isnan([low, high]).any() or low < high, task

    def test_every_view_of_every_task_can_be_stepped(self):
        for task in self.benchmark.tasks:
            for view in views_of(self.benchmark, task):
                for split in ("train", "eval"):
                    env = self.make(task, view, split)
                    assert env.observation_space.contains(env.reset()[0])
                    assert env.observation_space.contains(env.step(env.action_space.sample())[0])
                    env.close()

    def test_all_views_are_one_task(self):
        for task in self.benchmark.tasks:
            found = compare_views(self.benchmark, task, views=views_of(self.benchmark, task))
            assert found.replays, task
            assert not found.differences

    def test_seeds_and_splits_differ_and_the_same_is_the_same(self):
        for task in self.benchmark.tasks:
            view = views_of(self.benchmark, task)[0]
            first = rollout(self.make(task, view))
            assert equal(first, rollout(self.make(task, view))), task
            assert not equal(first, rollout(self.make(task, view, seed=4))), task
            assert not equal(first, rollout(self.make(task, view, "eval"))), task


class EnvironmentContract:
    """Inherit, set `env_id` and `arguments`, and say in `longest_episode` when an end is sure to have come."""

    env_id: ClassVar[str]
    arguments: ClassVar[dict[str, Any]] = {}
    copies: ClassVar[int] = 6
    longest_episode: ClassVar[int]
    final_frames: ClassVar[bool] = True
    """Does an ended episode's last observation arrive? (Procgen keeps it to itself.)"""

    def make_vec(self, num_envs: int | None = None, **arguments: Any):
        arguments = {**self.arguments, **arguments}
        return gymnasium.make_vec(
            self.env_id, num_envs=num_envs or self.copies, vectorization_mode="vector_entry_point", **arguments
        )

    def test_spaces_and_dtypes(self):
        env = self.make_vec()
        observations, infos = env.reset(seed=1)
        assert isinstance(infos, dict)
        assert env.observation_space.contains(observations)
        assert env.observation_space.shape == (self.copies, *env.single_observation_space.shape)
        observations, rewards, terminations, truncations, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observations)
        assert rewards.dtype == np.float64
        assert terminations.dtype == truncations.dtype == np.bool_
        assert rewards.shape == terminations.shape == truncations.shape == (self.copies,)
        if len(env.single_observation_space.shape) == 3:
            assert observations.dtype == np.uint8
            assert observations.shape[-1] == 3

    def test_same_seed_and_actions_same_trajectory(self):
        env = self.make_vec()
        first = rollout(env, seed=3)
        assert equal(first, rollout(env, seed=3))
        assert equal(first, rollout(self.make_vec(), seed=3))

    def test_different_seeds_differ(self):
        env = self.make_vec()
        assert not equal(rollout(env, seed=3), rollout(env, seed=4))

    def test_copies_of_one_seed_differ(self):
        observations = rollout(self.make_vec(), seed=3)["observations"]
        assert all((observations[:, 0] != observations[:, copy]).any() for copy in range(1, self.copies))

    def test_a_copy_does_not_depend_on_their_number(self):
        many = self.make_vec(seed=7)
        few = self.make_vec(num_envs=2, seed=7)
        actions = random_actions(many, STEPS)
        assert np.array_equal(many.reset()[0][:2], few.reset()[0])
        of_many, of_few = play(many, actions), play(few, actions[:, :2])
        assert equal({name: array[:, :2] for name, array in of_many.items()}, of_few)

    def test_a_reset_without_a_seed_goes_on(self):
        env = self.make_vec()
        assert not equal(rollout(env, seed=3), rollout(env))

    def test_train_and_eval_differ_in_streams(self):
        train, held_out = self.make_vec(split="train"), self.make_vec(split="eval")
        assert train.observation_space == held_out.observation_space
        assert not equal(rollout(train, seed=3), rollout(held_out, seed=3))

    def test_step_before_reset(self):
        env = self.make_vec()
        with pytest.raises(ResetNeeded):
            env.step(env.action_space.sample())

    def test_ends_of_episodes_in_the_declared_autoreset_mode(self):
        env = self.make_vec()
        assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        env.reset(seed=5)
        ended_once = np.zeros(self.copies, dtype=bool)
        for _ in range(2 * self.longest_episode):
            observations, _, terminations, truncations, infos = env.step(env.action_space.sample())
            ended = terminations | truncations
            assert ("final_obs" in infos) == (ended.any() and self.final_frames)
            if "final_obs" in infos:
                assert np.array_equal(infos["_final_obs"], ended)
                assert infos["final_obs"].shape == observations.shape
                assert infos["final_obs"].dtype == observations.dtype
                assert env.observation_space.contains(infos["final_obs"])
                assert not np.shares_memory(infos["final_obs"], observations)
            ended_once |= ended
        assert ended_once.all()

    def test_population_equals_separate_environments(self):
        seeds = [11, 2, 30]
        together = self.make_vec(num_envs=6, seed=seeds)
        assert together.num_seeds == 3
        actions = random_actions(together, STEPS)
        first, _ = together.reset()
        trajectory = play(together, actions)
        for group, seed in enumerate(seeds):
            rows = slice(2 * group, 2 * group + 2)
            alone = self.make_vec(num_envs=2, seed=seed)
            assert np.array_equal(alone.reset()[0], first[rows])
            assert equal({k: v[:, rows] for k, v in trajectory.items()}, play(alone, actions[:, rows]))

    def test_population_is_reseeded_group_by_group(self):
        together = self.make_vec(num_envs=4, seed=[1, 2])
        again = self.make_vec(num_envs=4, seed=[1, 2])
        together.reset()
        play(together, random_actions(together, STEPS))
        assert equal(rollout(together, seed=[1, 2]), rollout(again))

    def test_state_continues_bit_for_bit(self):
        env, other = self.make_vec(seed=4), self.make_vec(seed=9)
        rollout(env)
        state = env.get_state()
        assert all(isinstance(value, np.ndarray) for value in state.values())
        actions = random_actions(env, 2 * self.longest_episode, seed=1)
        onward = play(env, actions)
        env.set_state(state)
        assert equal(onward, play(env, actions))
        same_tables = self.make_vec(seed=4)
        same_tables.set_state(state)
        assert equal(onward, play(same_tables, actions))
        other.reset()
        assert not equal(onward, play(other, actions))

    def test_observations_are_the_callers(self):
        env = self.make_vec()
        kept = [env.reset(seed=5)[0]]
        for _ in range(STEPS):
            kept.append(env.step(env.action_space.sample())[0])
        copies = [array.copy() for array in kept]
        for number, array in enumerate(kept):
            assert not any(np.shares_memory(array, later) for later in kept[number + 1 :])
            array[...] = 0
        again = [env.reset(seed=5)[0], *(env.step(env.action_space.sample())[0] for _ in range(2))]
        assert np.array_equal(again[0], copies[0])

    def test_single_copy_passes_gymnasiums_checker(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env = gymnasium.make(self.env_id, **self.arguments)
            check_env(env.unwrapped)
            env.close()

    def test_single_copy_equals_the_first_of_many(self):
        single = gymnasium.make(self.env_id, **self.arguments, seed=7)
        vector = self.make_vec(num_envs=1, seed=7)
        observation, _ = single.reset()
        observations, _ = vector.reset()
        assert np.array_equal(observation, observations[0])
        for action in random_actions(vector, self.longest_episode):
            observation, reward, terminated, truncated, _ = single.step(action[0])
            observations, rewards, terminations, truncations, infos = vector.step(action)
            assert (reward, terminated, truncated) == (rewards[0], terminations[0], truncations[0])
            if terminated or truncated:
                assert np.array_equal(observation, infos["final_obs"][0] if self.final_frames else observations[0])
                break
            assert np.array_equal(observation, observations[0])
        else:
            pytest.fail("no episode ended")
        with pytest.raises(ResetNeeded):
            single.unwrapped.step(action[0])
