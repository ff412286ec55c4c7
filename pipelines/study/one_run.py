"""`lcd train`: what is asked for is checked here, before anything that trains is imported."""

from lcd.config.schemas import TrainConfig
from lcd.pipelines.study.runs import run_config_from


def run(cfg: TrainConfig) -> int:
    """Train one run; returns the exit code.

    Args:
        cfg: what the command was given.

    Raises:
        InputError: when no such run can be trained.
    """
    run_config_from(cfg)
    from lcd.pipelines.jobs import train

    return train.run(cfg)
