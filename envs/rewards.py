"""Reward p: stochastic reward feedback that leaves the expected return of every policy as it is."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper

from lcd.envs.errors import InputError
from lcd.envs.state import State, keeps_state, nest, unnest
from lcd.envs.streams import LoneStream, Streams, group_seeds, seed_sequence

E = TypeVar("E", bound="gymnasium.Env | VectorEnv")


def wrap_rewards(env: E, p: float, seed: int = 0) -> E:
    """Reward p for whoever trains elsewhere: every non-zero reward is kept with probability p and scaled by 1/p.

    The expected return of every policy stays as it is. What logs returns (Stable-Baselines3's Monitor, Gymnasium's
    RecordEpisodeStatistics) has to be inside, so that it sees the original reward; evaluation has no such wrapper.
    Each step's original reward is in `info["original_reward"]`.

    Args:
        env: an environment or a vector environment.
        p: the probability of keeping a reward, in (0, 1].
        seed: of the choice; `reset(seed=…)` begins it anew with that one.

    Returns:
        The environment, wrapped. A vector environment's first copy has the rewards that it would have alone.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed is {seed!r}, but it must be a whole number of at least 0.")
    if isinstance(env, VectorEnv):
        return KeepRewards(env, p, seed)
    if isinstance(env, gymnasium.Env):
        return KeepRewardsAlone(env, p, seed)
    raise InputError(f"wrap_rewards takes a Gymnasium environment or vector environment, but was given {type(env)}.")


def _checked(p: float) -> float:
    if isinstance(p, bool) or not isinstance(p, Real) or not 0 < p <= 1:
        raise InputError(f"reward_p is {p!r}, but it must be a probability above 0 and at most 1.")
    return float(p)


class KeepRewards(VectorWrapper):
    """Keeps every rewarding event with probability p, scaled by 1/p; for training only.

    An event is a non-zero reward of the original task. An environment that adds noise to its rewards tells the
    event by `infos["event_reward"]`: the event is thinned and the noise (or shaping) left as it was. The untouched
    reward is in `infos["original_reward"]`, unless the environment itself says there what it is.
    """

    def __init__(self, env: VectorEnv, p: float, seed: int | Sequence[int] = 0) -> None:
        """Wrap all copies of a vector environment.

        Args:
            env: a vector environment of one seed, or of S seeds with the copies of a seed side by side.
            p: the probability of keeping an event, in (0, 1].
            seed: the seed, or one for each of the S groups of copies.
        """
        super().__init__(env)
        self.p = _checked(p)
        self._seeds: list[int] = [seed] if isinstance(seed, int | np.integer) else list(seed)
        if env.num_envs % len(self._seeds):
            raise InputError(f"seed names {len(self._seeds)} seeds, but {env.num_envs} copies cannot be shared out.")
        self._start_streams()
        # Only what the environment can do is offered, and `keeps_state` tells whether a run can be continued exactly.
        if keeps_state([env]):
            self.get_state, self.set_state = self._get_state, self._set_state

    @property
    def num_seeds(self) -> int:
        """How many seeds the population has."""
        return len(self._seeds)

    def _start_streams(self) -> None:
        copies = range(self.num_envs // len(self._seeds))
        sequences = [seed_sequence(seed, "reward", copy) for seed in self._seeds for copy in copies]
        (self._streams,) = Streams.spawn(sequences)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset; with a seed, the streams of the wrapper start anew too."""
        if seed is not None:
            self._seeds = group_seeds(seed, len(self._seeds))
            self._start_streams()
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step, and thin the rewards."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        events = infos.get("event_reward", rewards)
        infos = {"original_reward": rewards, **infos}
        rewarding = np.flatnonzero(events)
        thinned = np.array(rewards, dtype=np.float64)
        if rewarding.size:
            kept = self._streams.uniform(rewarding) < self.p
            thinned[rewarding] += np.asarray(events)[rewarding] * (kept / self.p - 1.0)
        return observations, thinned, terminations, truncations, infos

    def _get_state(self) -> State:
        """The state of the wrapper's streams and of the environment."""
        return {**nest("keep", self._streams.get_state()), **nest("env", self.env.get_state())}

    def _set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self._streams.set_state(unnest("keep", state))
        self.env.set_state(unnest("env", state))


class KeepRewardsAlone(gymnasium.Wrapper):
    """`KeepRewards` of one environment, with the choices of a vector environment's first copy."""

    def __init__(self, env: gymnasium.Env, p: float, seed: int = 0) -> None:
        """Wrap an environment; `p` and `seed` as of `KeepRewards`."""
        super().__init__(env)
        self.p = _checked(p)
        self._start_stream(seed)

    def _start_stream(self, seed: int) -> None:
        (streams,) = Streams.spawn([seed_sequence(seed, "reward", 0)])
        self._stream = LoneStream(streams)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset; with a seed, the stream of the wrapper starts anew too."""
        if seed is not None:
            self._start_stream(seed)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step, and thin the reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        event = info.get("event_reward", reward)
        thinned = float(reward)
        if event:
            thinned += float(event) * (float(self._stream.uniform() < self.p) / self.p - 1.0)
        return observation, thinned, terminated, truncated, {"original_reward": reward, **info}
