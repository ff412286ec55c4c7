"""Agents of Stable-Baselines3 and sb3-contrib under our evaluation and curve format."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.finite import diverged, require_finite
from lcd.agents.learner import Evaluate, Learner
from lcd.agents.networks import SmallCnn
from lcd.agents.settings import Sb3Config
from lcd.agents.stepping import EpisodeLog, Stepper
from lcd.envs.errors import InputError
from lcd.envs.spaces import is_image
from lcd.envs.streams import seed_sequence

SMALLEST_FOR_SB3 = 36
"""Below this many pixels Stable-Baselines3's own convolutions have nothing left; ours take over."""
NOT_FINITE = ("found invalid values", "probability tensor contains either")
"""What PyTorch says, in a ValueError or a RuntimeError, when it is to draw from a policy that is not finite."""


class Sb3(Learner):
    """One agent of the libraries for one seed.

    Value-based and deterministic ones are evaluated greedily, stochastic ones by sampled actions.
    """

    Config = Sb3Config
    one_by_one = True
    algorithm: ClassVar[str]
    """module:class"""
    sampled: ClassVar[bool] = False

    def __init__(self, config: Sb3Config, env: VectorEnv, seeds: Sequence[int]):
        super().__init__(config, env, seeds)
        if len(self.seeds) != 1:
            raise ValueError("agents of Stable-Baselines3 are trained seed by seed")
        algorithm = load_algorithm(self.algorithm)
        params = dict(config.params)
        number = int(seed_sequence(self.seeds[0], "initialisation").generate_state(1)[0] >> 1)
        policy = "MlpPolicy"
        if is_image(env.single_observation_space):
            policy = "CnnPolicy"
            if min(env.single_observation_space.shape[:2]) < SMALLEST_FOR_SB3:
                own = {"features_extractor_class": _extractor(), "features_extractor_kwargs": {"width": 64}}
                params["policy_kwargs"] = own | params.get("policy_kwargs", {})
        if params.get("action_noise") is not None:
            params["action_noise"] = _action_noise(params["action_noise"], env.single_action_space)
        try:
            trained_in = adapter(env, self.log, self.seeds)
            self.model = algorithm(policy, trained_in, seed=number, device="cpu", verbose=0, **params)
            # Without a logger the library makes a folder of its own for each model, and leaves it.
            self.told: dict[str, float] = {}
            self.model.set_logger(_logger(self.told))
        except (AssertionError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"agent {self.algorithm.partition(':')[2]} cannot be made here: {reason}") from error

    def learn(self, steps: int, every: int, evaluate: Evaluate) -> None:
        """Let the library train, and stand still now and then."""
        from stable_baselines3.common.callbacks import BaseCallback

        evaluated, went_on = [0], self.went_on

        class Pause(BaseCallback):
            def _on_step(self) -> bool:
                done = self.num_timesteps
                went_on(done)
                if done // every > evaluated[-1] // every and done < steps:
                    evaluated.append(done)
                    with keeping_global_generators():
                        evaluate(done)
                return True

        with keeping_global_generators():
            evaluate(0)
        try:
            self.model.learn(total_timesteps=steps, callback=Pause())
        except (ValueError, RuntimeError) as error:
            # PyTorch refuses to draw from such a policy before it comes to an evaluation.
            self.require_finite(self.model.num_timesteps)
            if any(complaint in str(error) for complaint in NOT_FINITE):
                raise diverged("the policy", [False], self.seeds, self.model.num_timesteps) from error
            raise
        with keeping_global_generators():
            evaluate(self.model.num_timesteps)

    @property
    def scalars(self) -> dict[str, float]:
        """What the library's logger has of training."""
        return dict(self.told)

    def act(self, features: np.ndarray, draws: Tensor | None) -> tuple[np.ndarray, None, None]:
        """Actions of all copies, from the library's own policy."""
        if not self.sampled or draws is None:
            return self.model.predict(features, deterministic=True)[0], None, None
        torch.manual_seed(int(draws.flatten()[0].item() * 2**31))
        return self.model.predict(features, deterministic=False)[0], None, None

    def state_dict(self) -> dict[str, Any]:
        """The policy's parameters."""
        return dict(self.model.policy.state_dict())


@contextlib.contextmanager
def keeping_global_generators() -> Iterator[None]:
    """Leave the global generators, which the library trains with, as they were."""
    kept, numbers = torch.get_rng_state(), np.random.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(kept)
        np.random.set_state(numbers)


def load_algorithm(algorithm: str) -> type[Any]:
    """An algorithm's class; importing the library prints the notice of an unmaintained package, which is kept off."""
    module, _, name = algorithm.partition(":")
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            return getattr(import_module(module), name)
    except ImportError as error:
        raise InputError(f"agent=sb3/{name.lower()} needs the extra 'sb3': pip install '.[sb3]' ({error}).") from None


def _action_noise(given: float | Mapping[str, float], actions: spaces.Space) -> Any:
    """The library's noise on actions, which are from -1 to 1 for it."""
    from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

    mean = np.zeros(actions.shape)
    if isinstance(given, Mapping):
        return OrnsteinUhlenbeckActionNoise(mean, np.full_like(mean, given["sigma"]), given["theta"], dt=1.0)
    return NormalActionNoise(mean, np.full_like(mean, given))


def _logger(told: dict[str, float]) -> Any:
    """The library's logger, which writes nothing and keeps in `told` the last of each number of training."""
    from stable_baselines3.common.logger import Logger

    class Keeping(Logger):
        def record(self, key: str, value: Any, exclude: Any = None) -> None:
            super().record(key, value, exclude)
            place, _, name = key.partition("/")
            if place == "train" and isinstance(value, int | float | np.number):
                told[name] = float(value)

    return Keeping(folder=None, output_formats=[])


def _extractor() -> type[Any]:
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Extractor(BaseFeaturesExtractor):
        def __init__(self, observation_space: spaces.Box, width: int):
            super().__init__(observation_space, width)
            self.network = SmallCnn(observation_space.shape, width)

        def forward(self, observations: Tensor) -> Tensor:
            return self.network(observations)

    return Extractor


def adapter(env: VectorEnv, log: EpisodeLog, seeds: Sequence[int]) -> Any:
    """Our population of one seed as the library's `VecEnv`; `log` takes in the original rewards."""
    from stable_baselines3.common.vec_env import VecEnv

    class Adapter(VecEnv):
        def __init__(self) -> None:
            super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
            self._stepper, self._steps = Stepper(env), 0

        def reset(self) -> np.ndarray:
            return self._seen(self._stepper.reset())

        def _seen(self, observations: np.ndarray) -> np.ndarray:
            # The library itself ends with an error about its own distributions.
            require_finite("an observation", observations, seeds, self._steps)
            return observations

        def step_async(self, actions: np.ndarray) -> None:
            self._actions = actions

        def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
            step = self._stepper.step(self._actions)
            log.add(step)
            self._steps += self.num_envs
            require_finite("a reward", step.rewards, seeds, self._steps)
            infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            for copy in np.flatnonzero(step.dones):
                last = step.observations[copy] if step.final is None else step.final[copy]
                infos[copy] = {
                    "terminal_observation": last,
                    "TimeLimit.truncated": bool(step.truncated[copy] and not step.terminated[copy]),
                }
            return self._seen(step.observations), step.rewards.astype(np.float32), step.dones, infos

        def close(self) -> None:
            """The population is its maker's to close."""

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            value = getattr(env, attr_name, None)
            return [value for _ in self._get_indices(indices)]

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            raise NotImplementedError

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
            raise NotImplementedError

        def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
            return [False for _ in self._get_indices(indices)]

    return Adapter()


class Dqn(Sb3):
    """Stable-Baselines3's DQN."""

    algorithm, flat_actions = "stable_baselines3:DQN", True


class A2c(Sb3):
    """A2C, which stands in for the paper's A3C."""

    algorithm, sampled = "stable_baselines3:A2C", True


class Ppo(Sb3):
    """Stable-Baselines3's PPO."""

    algorithm, sampled = "stable_baselines3:PPO", True


class QrDqn(Sb3):
    """QR-DQN, which stands in for the paper's Rainbow."""

    algorithm, flat_actions = "sb3_contrib:QRDQN", True


class Trpo(Sb3):
    """Stable-Baselines3's TRPO."""

    algorithm, sampled = "sb3_contrib:TRPO", True


class Ars(Sb3):
    """Stable-Baselines3's ARS."""

    algorithm, flat_actions = "sb3_contrib:ARS", True


class Sac(Sb3):
    """Stable-Baselines3's SAC."""

    algorithm, sampled = "stable_baselines3:SAC", True


class Td3(Sb3):
    """Stable-Baselines3's TD3."""

    algorithm = "stable_baselines3:TD3"


class Ddpg(Sb3):
    """Stable-Baselines3's DDPG."""

    algorithm = "stable_baselines3:DDPG"
