"""Environments, views, reward wrappers and benchmark definitions."""

import gymnasium

_ENVIRONMENTS = {
    "lcd/hardness-discrete-v0": (
        "lcd.envs.hardness.discrete:HardnessDiscreteEnv",
        "lcd.envs.hardness.discrete:HardnessDiscreteVectorEnv",
    ),
    "lcd/hardness-continuous-v0": (
        "lcd.envs.hardness.continuous:HardnessContinuousEnv",
        "lcd.envs.hardness.continuous:HardnessContinuousVectorEnv",
    ),
}


def register() -> None:
    """Register every environment of ours with Gymnasium; once is enough, twice does no harm."""
    for name, (single, vector) in _ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=single, vector_entry_point=vector)


register()
