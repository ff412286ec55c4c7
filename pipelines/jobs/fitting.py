"""Lightning's trainer as our jobs use it: one pass over their data, with our checkpoints and no services."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch.utils.data import IterableDataset

from lcd.agents.precision import precision_on
from lcd.agents.protocols import precision_of
from lcd.agents.rollout import loader
from lcd.pipelines.jobs.checkpoint import AtomicCheckpoints
from lcd.pipelines.jobs.ranks import MeetingPlace, RankEnvironment, RankStrategy
from lcd.process import signals


def fit(
    module: LightningModule,
    data: IterableDataset,
    recorder: Callback,
    logger: Any,
    accelerator: str,
    resumed: Path | None,
    place: MeetingPlace | None = None,
) -> None:
    """Train on all of the data that a checkpoint leaves; who is told to stop does so at the end of an iteration.

    Args:
        module: what learns.
        data: an iteration's batches.
        recorder: keeps what comes of it.
        logger: Lightning's, or False.
        accelerator: as Lightning calls it.
        resumed: the checkpoint to go on from, None for a start.
        place: which of several processes this is, None where it is alone.
    """
    # Lightning's advice is for users of Lightning: about workers, eval mode and its own services.
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning.pytorch")
    plugins: list[Any] = [AtomicCheckpoints()]
    where: dict[str, Any] = {"accelerator": accelerator, "devices": 1}
    if place is None:
        # Lightning must not ask the cluster who this process is: launchers start runs as they see fit.
        plugins.append(RankEnvironment(None))
    else:
        where = {"devices": place.world // place.nodes, "num_nodes": place.nodes}
        where |= {"accelerator": "cuda" if place.cuda else "cpu", "strategy": RankStrategy(module.ranks, place)}
    on_gpu = torch.cuda.is_available() and where["accelerator"] in ("auto", "gpu", "cuda")
    trainer = Trainer(
        max_epochs=1,
        logger=logger,
        callbacks=[recorder],
        plugins=plugins,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        precision=precision_on("cuda" if on_gpu else "cpu", precision_of(module)),
        **where,
    )
    with signals.deferring_stops():
        trainer.fit(module, loader(data), ckpt_path=resumed, weights_only=True)
