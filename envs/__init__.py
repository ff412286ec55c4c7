"""Environments, views, reward wrappers and benchmark definitions."""

import gymnasium

from lcd.envs.procgen.mask_tables import GAMES

_ENVIRONMENTS = {
    "lcd/hardness-discrete-v0": (
        "lcd.envs.hardness.discrete:HardnessDiscreteEnv",
        "lcd.envs.hardness.discrete:HardnessDiscreteVectorEnv",
    ),
    "lcd/ctgraph-v0": ("lcd.envs.ctgraph.graph:CTGraphEnv", "lcd.envs.ctgraph.graph:CTGraphVectorEnv"),
    "lcd/tabular-v0": ("lcd.envs.tabular.vector:TabularEnv", "lcd.envs.tabular.vector:TabularVectorEnv"),
    "lcd/hardness-continuous-v0": (
        "lcd.envs.hardness.continuous:HardnessContinuousEnv",
        "lcd.envs.hardness.continuous:HardnessContinuousVectorEnv",
    ),
    "lcd/intersection-v0": (
        "lcd.envs.traffic.signal_vector:IntersectionEnv",
        "lcd.envs.traffic.signal_vector:IntersectionVectorEnv",
    ),
}

_FAMILIES = {
    "cartpole": ("cartpole", "Cartpole"),
    "cartpole-carl": ("cartpole", "CarlCartpole"),
    "pendulum": ("pendulum", "Pendulum"),
    "pendulum-five": ("pendulum", "SwingUp"),
    "mountain-car": ("mountain_car", "MountainCar"),
    "quad": ("quad", "Quad"),
    "half-cheetah": ("half_cheetah", "HalfCheetah"),
    "swimmer": ("swimmer", "Swimmer"),
}
"""A family's task: its module, and how its classes' names begin."""

_PROCGEN = ("lcd.envs.procgen.vector:ProcgenEnv", "lcd.envs.procgen.vector:ProcgenVectorEnv")


def register() -> None:
    """Register every environment of ours with Gymnasium; once is enough, twice does no harm."""
    for name, (single, vector) in _ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=single, vector_entry_point=vector)
    for task, (module, kind) in _FAMILIES.items():
        if (name := f"lcd/{task}-family-v0") not in gymnasium.registry:
            place = f"lcd.envs.families.{module}:{kind}"
            gymnasium.register(name, entry_point=f"{place}Env", vector_entry_point=f"{place}VectorEnv")
    for game in GAMES:  # their modules are imported when one is made: Procgen need not be there before
        if (name := f"lcd/{game}-v0") not in gymnasium.registry:
            gymnasium.register(name, entry_point=_PROCGEN[0], vector_entry_point=_PROCGEN[1], kwargs={"game": game})


register()
