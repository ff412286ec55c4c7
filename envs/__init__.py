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

_PROCGEN = ("lcd.envs.procgen.vector:ProcgenEnv", "lcd.envs.procgen.vector:ProcgenVectorEnv")


def register() -> None:
    """Register every environment of ours with Gymnasium; once is enough, twice does no harm."""
    for name, (single, vector) in _ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=single, vector_entry_point=vector)
    for game in GAMES:  # their modules are imported when one is made: Procgen need not be there before
        if (name := f"lcd/{game}-v0") not in gymnasium.registry:
            gymnasium.register(name, entry_point=_PROCGEN[0], vector_entry_point=_PROCGEN[1], kwargs={"game": game})


register()
