"""Agents: LightningModules that train all seeds of a run together.

An agent is a class with a `Config` (a dataclass of its hyper-parameters, `copies` and `rollout` among them), made as
`agent(config, shape, actions, seeds, frontend)`; the training pipeline asks of it what `lcd.agents.ppo.PPO` offers
under "Acting" and a `training_step` that learns from one rollout; its `losses` by name, (seeds,) each, are looked at
after it, if it has any: a run whose numbers are not finite any more ends there. An agent that remembers what it saw
earlier in an episode also has what `lcd.agents.protocols.Remembers` asks for. Agents that train themselves, without
Lightning (those of Stable-Baselines3, the tabular ones), are `lcd.agents.learner.Learner`s. Third parties add theirs by
an entry point in the group `lcd.agents` or as `module:object`.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from lcd.agents import replay_settings, settings
from lcd.agents.protocols import HasSchema
from lcd.config.settings import checked
from lcd.envs.errors import InputError
from lcd.envs.protocols import offers
from lcd.envs.registry import Registry

agents = Registry("agent", "lcd.agents")
agents.add("ppo", "lcd.agents.ppo:PPO")
agents.add("a2c", "lcd.agents.a2c:A2C")
agents.add("recurrent_ppo", "lcd.agents.recurrent:RecurrentPPO")
agents.add("ppg", "lcd.agents.ppg:PPG")
agents.add("trpo", "lcd.agents.trpo:TRPO")
agents.add("ars", "lcd.agents.ars:ARS")
agents.add("dqn", "lcd.agents.dqn:DQN")
agents.add("rainbow", "lcd.agents.rainbow:Rainbow")
agents.add("sac", "lcd.agents.sac:SAC")
agents.add("td3", "lcd.agents.td3:TD3")
for _name, _agent in {
    "dqn": "Dqn",
    "a2c": "A2c",
    "ppo": "Ppo",
    "qrdqn": "QrDqn",
    "sac": "Sac",
    "td3": "Td3",
    "ddpg": "Ddpg",
    "trpo": "Trpo",
    "ars": "Ars",
}.items():
    agents.add(f"sb3/{_name}", f"lcd.agents.sb3:{_agent}")
for _name, _agent in {"q_learning": "QLearning", "double_q_learning": "DoubleQLearning", "sarsa": "Sarsa"}.items():
    agents.add(f"tabular/{_name}", f"lcd.agents.tabular:{_agent}")
for _name, _agent in {
    "fixed_time": "FixedTime",
    "tuned_fixed_time": "TunedFixedTime",
    "max_pressure": "MaxPressure",
}.items():
    agents.add(f"traffic/{_name}", f"lcd.agents.traffic:{_agent}")
for _name, _agent in {"mplight": "MPLight", "mplight_star": "MPLightStar"}.items():
    agents.add(f"traffic/{_name}", f"lcd.agents.mplight:{_agent}")


SETTINGS: dict[str, type] = {
    "ppo": settings.PPOConfig,
    "a2c": settings.A2CConfig,
    "recurrent_ppo": settings.RecurrentPPOConfig,
    "ppg": settings.PPGConfig,
    "trpo": settings.TRPOConfig,
    "ars": settings.ARSConfig,
    "dqn": replay_settings.DQNConfig,
    "rainbow": replay_settings.RainbowConfig,
    "sac": replay_settings.SACConfig,
    "td3": replay_settings.TD3Config,
    "sb3": settings.Sb3Config,
    "tabular": settings.TabularConfig,
    "traffic": settings.TrafficConfig,
    "traffic/mplight": replay_settings.MPLightConfig,
    "traffic/mplight_star": replay_settings.MPLightConfig,
}
"""Our agents, or families of them, to their hyper-parameters; an agent's own come first."""


def settings_of(name: str) -> Any:
    """The agent's `Config`; of one of ours, without importing what trains it."""
    own = SETTINGS.get(name, SETTINGS.get(name.partition("/")[0]))
    if agents.is_built_in(name) and own is not None:
        return own
    agent = agents.resolve(name)
    return agent.Config if offers(agent, HasSchema) else None


def validate(name: str, params: Mapping[str, Any]) -> Any:
    """The agent's own configuration from plain values.

    Args:
        name: an agent's name in the registry.
        params: hyper-parameters; those left out keep their defaults.

    Raises:
        InputError: when there is no such agent or hyper-parameter, or a value is of the wrong kind.
    """
    config = settings_of(name)
    if not (isinstance(config, type) and is_dataclass(config)):
        raise InputError(f"agent={name} is no agent: an agent is a class with a dataclass `Config`.")
    return checked(config, params, "agent", name, "hyper-parameter")
