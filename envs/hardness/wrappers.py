"""Wrappers that inject dimensions of hardness into any Gymnasium environment, single or vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from lcd.envs.checks import seed_list
from lcd.envs.errors import InputError
from lcd.envs.hardness.injection import CLIPS, InjectionKnobs
from lcd.envs.hardness.payment import Generators, Noise, Payment
from lcd.envs.hardness.side_toy import SideToy
from lcd.envs.mujoco import jolt_state
from lcd.envs.spaces import number_of_actions
from lcd.envs.state import State, keeps_state, nest, unnest
from lcd.envs.streams import Streams, group_seeds, seed_sequence


class Injector:
    """What both wrappers do, for any number of copies side by side."""

    def __init__(
        self,
        knobs: InjectionKnobs,
        observations: spaces.Space,
        actions: spaces.Space,
        copies: int,
        seeds: Sequence[int],
    ) -> None:
        """Prepare the streams of all copies.

        Args:
            knobs: what is injected.
            observations: the environment's single observation space.
            actions: its single action space.
            copies: how many copies there are.
            seeds: one for each group of copies.
        """
        knobs.check(observations, actions)
        self.knobs, self.copies, self.seeds = knobs, copies, list(seeds)
        self._discrete = isinstance(actions, spaces.Discrete | spaces.MultiDiscrete)
        self._actions, self._vector = actions, observations
        self.payment = Payment(
            copies, knobs.delay, knobs.reward_noise, knobs.reward_scale, knobs.reward_shift, knobs.term_state_reward
        )
        self._images = knobs.transforms()
        self.observation_space, self.action_space = observations, actions
        self.side_toy: SideToy | None = None
        if knobs.irrelevant_features is not False:
            self.side_toy = SideToy(knobs.irrelevant_features, observations, actions, copies, self.seeds)
            self.observation_space, self.action_space = self.side_toy.observation_space, self.side_toy.action_space
        if self._images is not None:
            self.observation_space = spaces.Box(0, 255, self._images.shape(self.observation_space.shape), np.uint8)
        self.start_streams()

    def start_streams(self) -> None:
        """Start every stream anew from the seeds."""
        copies = range(self.copies // len(self.seeds))
        sequences = [seed_sequence(seed, "injection", copy) for seed in self.seeds for copy in copies]
        self._dynamics, self._geometry = Streams.spawn(sequences, 2)
        functions = callable(self.knobs.transition_noise) or callable(self.knobs.reward_noise)
        self._generators = Generators(sequences if functions else ())

    def reset(self, observations: np.ndarray, seed: Any = None) -> np.ndarray:
        """All copies start; returns what is seen."""
        self.payment.begin(slice(None))
        if self.side_toy is not None:
            self._toys = self.side_toy.toy.reset(seed=seed)[0]
        return self.keep(self.seen(observations))

    def restart(self, index: np.ndarray) -> None:
        """These copies start a new episode."""
        self.payment.begin(index)
        if self.side_toy is not None:
            self._toys = self._toys.copy()
            self._toys[index] = self.side_toy.toy.restart(index)

    def acted(self, actions: np.ndarray) -> np.ndarray:
        """The environment's actions: without the toy's, and with noise where they are discrete."""
        self._asked = actions = np.asarray(actions)
        if self.side_toy is not None:
            actions, toys = self.side_toy.split(actions)
            self._toys = self.side_toy.toy.wander(toys)
        if not self._discrete or self._quiet:
            return actions
        others = number_of_actions(self._actions) - 1
        stray = np.flatnonzero(self._dynamics.uniform() < self._drawn(self.knobs.transition_noise))
        codes = self._codes(actions)
        other = self._dynamics.integers(others, stray)
        codes[stray] = other + (other >= codes[stray])
        return self._decoded(codes).astype(actions.dtype)

    @property
    def _quiet(self) -> bool:
        return not callable(self.knobs.transition_noise) and self.knobs.transition_noise == 0

    def _drawn(self, noise: Noise) -> Any:
        """The noise, or what a function of it gives for every copy."""
        if not callable(noise):
            return noise
        return np.array([noise(*pair, self._generators[n]) for n, pair in enumerate(self._pairs())])

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        return zip(self._seen, self._asked, strict=True)

    def _codes(self, actions: np.ndarray) -> np.ndarray:
        if isinstance(self._actions, spaces.Discrete):
            return np.asarray(actions, dtype=np.int64) - self._actions.start
        return np.ravel_multi_index(tuple(np.asarray(actions).T), tuple(self._actions.nvec)).astype(np.int64)

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        if isinstance(self._actions, spaces.Discrete):
            return codes + self._actions.start
        return np.stack(np.unravel_index(codes, tuple(self._actions.nvec)), axis=1)

    def jolts(self, size: int) -> np.ndarray | None:
        """(copies, size): this step's noise on continuous states, if there is any."""
        if self._discrete or self._quiet:
            return None
        noise = self.knobs.transition_noise
        if callable(noise):
            return self._drawn(noise)
        return noise * self._dynamics.normal(count=size)

    def paid(
        self, earned: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, idle: np.ndarray
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The rewards; copies that are `idle` (because this step only resets them) get what the environment gave."""
        earned = np.asarray(earned, dtype=np.float64)
        due = self.payment.due(earned)
        ended = terminated | truncated
        if self.payment.delay and ended.any():
            due[ended] += self.payment.rest(ended)
        noise = None
        if self.payment.noisy:
            pairs = zip(*self._pairs(), strict=True) if callable(self.payment.noise) else ((), ())
            noise = self.payment.drawn(self._dynamics, self._generators, *pairs)
        rewards, events = self.payment.paid(due, noise, terminated)
        if idle.any():
            rewards, events = (np.where(idle, earned, values) for values in (rewards, events))
        told = {} if self.payment.noise == 0 and self.payment.shift == 0 else {"event_reward": events}
        clip = CLIPS[self.knobs.reward_clip]
        if clip is None:
            return rewards, told
        return clip(rewards), {name: clip(values) for name, values in told.items()} | {"original_reward": rewards}

    def seen(self, observations: np.ndarray, index: np.ndarray | None = None) -> np.ndarray:
        """What the copies in `index` (None: all) show: the toy beside, images transformed."""
        if self.side_toy is not None:
            toys = self._toys if index is None else self._toys[index]
            observations = self.side_toy.join(np.asarray(observations), toys)
        return observations if self._images is None else self._images(observations, self._geometry, index)

    def keep(self, observations: np.ndarray) -> np.ndarray:
        """Remember what is seen, which noise functions may want to know."""
        self._seen = observations
        return observations

    def get_state(self) -> State:
        """Everything that the future depends on."""
        state = nest("dynamics", self._dynamics.get_state()) | nest("geometry", self._geometry.get_state())
        state |= nest("payment", self.payment.get_state()) | {"seen": np.array(self._seen)}
        if self._generators.all:
            state |= nest("generators", self._generators.get_state())
        if self.side_toy is not None:
            state |= nest("side_toy", self.side_toy.get_state()) | {"toys": self._toys.copy()}
        return state

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self._dynamics.set_state(unnest("dynamics", state))
        self._geometry.set_state(unnest("geometry", state))
        self.payment.set_state(unnest("payment", state))
        self._seen = state["seen"].copy()
        if self._generators.all:
            self._generators.set_state(unnest("generators", state))
        if self.side_toy is not None:
            self.side_toy.set_state(unnest("side_toy", state))
            self._toys = state["toys"].copy()


class HardnessVectorWrapper(VectorWrapper):
    """Injects dimensions of hardness into a vector environment, whatever its autoreset mode."""

    def __init__(self, env: VectorEnv, seed: int | Sequence[int] = 0, **knobs: Any) -> None:
        """Wrap all copies of a vector environment.

        Args:
            env: a vector environment of one seed, or of S seeds with the copies of a seed side by side.
            seed: the seed, or one for each of the S groups of copies.
            knobs: those of `InjectionKnobs`.
        """
        super().__init__(env)
        seeds = seed_list(seed)
        if env.num_envs % len(seeds):
            raise InputError(f"seed names {len(seeds)} seeds, but {env.num_envs} copies cannot be shared out.")
        own, actions = env.single_observation_space, env.single_action_space
        self.injector = Injector(InjectionKnobs.from_dict(knobs), own, actions, env.num_envs, seeds)
        self.single_observation_space = self.injector.observation_space
        self.single_action_space = self.injector.action_space
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self.action_space = batch_space(self.single_action_space, env.num_envs)
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._ended = np.zeros(env.num_envs, dtype=bool)
        # Only what the environment can do is offered, and `keeps_state` tells whether a run can be continued exactly.
        if keeps_state([env]):
            self.get_state, self.set_state = self._get_state, self._set_state

    @property
    def num_seeds(self) -> int:
        """How many seeds the population has."""
        return len(self.injector.seeds)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset; with a seed, the streams of the wrapper start anew too."""
        mask = (options or {}).get("reset_mask")
        observations, infos = self.env.reset(seed=seed, options=options)
        if mask is not None:
            self._ended[mask] = False
            self.injector.restart(np.flatnonzero(mask))
            return self.injector.keep(self.injector.seen(observations)), infos
        if seed is not None:
            # Gymnasium's own environments take one seed a copy; the first of each group is the group's then.
            each = self.num_envs // self.num_seeds
            if not isinstance(seed, int | np.integer) and len(seed) == self.num_envs:
                seed = seed[::each]
            self.injector.seeds = group_seeds(seed, self.num_seeds)
            self.injector.start_streams()
        self._ended[:] = False
        return self.injector.reset(observations, None if seed is None else self.injector.seeds), infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step, harder."""
        injector = self.injector
        observations, earned, terminated, truncated, infos = self.env.step(injector.acted(actions))
        idle = self._ended if self._mode is AutoresetMode.NEXT_STEP else np.zeros_like(self._ended)
        rewards, more = injector.paid(earned, terminated, truncated, idle)
        infos = {**infos, **more}
        ended = terminated | truncated
        jolts = injector.jolts(int(np.prod(observations.shape[1:])))
        final = infos.get("final_obs") if ended.any() else None
        if jolts is not None:
            whole = ended if final is not None else idle
            observations = np.where(whole[:, None], observations, observations + jolts).astype(observations.dtype)
        if final is not None:
            infos["final_obs"] = self._final(final, np.flatnonzero(ended), observations, jolts)
            injector.restart(np.flatnonzero(ended))
        if idle.any():
            injector.restart(np.flatnonzero(idle))
        self._ended = ended.copy()
        return injector.keep(injector.seen(observations)), rewards, terminated, truncated, infos

    def _final(self, final: Any, index: np.ndarray, like: np.ndarray, jolts: np.ndarray | None) -> np.ndarray:
        """The observations that ended episodes, as a dense array (zero for other copies)."""
        last = np.stack([np.asarray(final[copy]) for copy in index])
        if jolts is not None:
            last = (last + jolts[index]).astype(like.dtype)
        shown = self.injector.seen(last, index)
        dense = np.zeros((len(like), *shown.shape[1:]), shown.dtype)
        dense[index] = shown
        return dense

    def _get_state(self) -> State:
        """The state of what is injected and of the environment."""
        own = nest("injector", self.injector.get_state()) | {"ended": self._ended.copy()}
        return own | nest("env", self.env.get_state())

    def _set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self.injector.set_state(unnest("injector", state))
        self._ended = state["ended"].copy()
        self.env.set_state(unnest("env", state))


class HardnessWrapper(gymnasium.Wrapper, RecordConstructorArgs):
    """Injects dimensions of hardness into a single environment."""

    def __init__(self, env: gymnasium.Env, seed: int = 0, **knobs: Any) -> None:
        """Wrap one environment.

        Args:
            env: the environment.
            seed: of the wrapper's streams; `reset(seed=…)` sets it too.
            knobs: those of `InjectionKnobs`.
        """
        RecordConstructorArgs.__init__(self, seed=seed, **knobs)
        gymnasium.Wrapper.__init__(self, env)
        own = (env.observation_space, env.action_space)
        self.injector = Injector(InjectionKnobs.from_dict(knobs), *own, 1, seed_list(seed))
        self.observation_space, self.action_space = self.injector.observation_space, self.injector.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset; with a seed, the streams of the wrapper start anew too."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            self.injector.seeds = [seed]
            self.injector.start_streams()
        return self.injector.reset(np.asarray(observation)[None], seed)[0], info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step, harder."""
        injector = self.injector
        own = injector.acted(np.asarray(action)[None])[0]
        own = int(own) if isinstance(self.env.action_space, spaces.Discrete) else own
        observation, earned, terminated, truncated, info = self.env.step(own)
        ends = np.array([terminated]), np.array([truncated])
        rewards, more = injector.paid(np.array([earned]), *ends, np.zeros(1, dtype=bool))
        observation = self._jolted(np.asarray(observation))
        seen = injector.keep(injector.seen(observation[None]))[0]
        return seen, float(rewards[0]), terminated, truncated, {**info, **{k: v[0] for k, v in more.items()}}

    def _jolted(self, observation: np.ndarray) -> np.ndarray:
        """The observation after noise on the state: on MuJoCo's own, else on what is observed of it."""
        inside = self.env.unwrapped
        if hasattr(inside, "data") and hasattr(inside, "set_state") and hasattr(inside, "_get_obs"):
            jolts = self.injector.jolts(inside.model.nq + inside.model.nv)
            return observation if jolts is None else jolt_state(inside, jolts[0])
        jolts = self.injector.jolts(observation.size)
        return observation if jolts is None else (observation + jolts[0]).astype(observation.dtype)
