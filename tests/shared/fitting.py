"""Training as a run does it, without a run: no record, no progress."""

from typing import Any

from lightning.pytorch import Trainer

from lcd.agents.rollout import Rollouts, loader


def fit(agent: Any, rollouts: Rollouts, **named: Any) -> None:
    """Train an agent on its rollouts, on the CPU; `named` are the trainer's own arguments."""
    Trainer(
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        devices=1,
        **named,
    ).fit(agent, loader(rollouts))
