"""`lcd pretrain`: film a benchmark's tasks, and pretrain a front-end on the videos."""

from __future__ import annotations

from lcd.config.schemas import PretrainConfig
from lcd.consoles import console_for_tables
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.publish.pretrained import publish
from lcd.pipelines.study.encoders import FLOW, pretraining_from
from lcd.pipelines.study.store import Pretraining, Study, default_folder
from lcd.pipelines.study.training import check_trainable, opening, train_missing
from lcd.process import signals


def run(cfg: PretrainConfig) -> int:
    """Pretrain, and say where the front-end's file is; returns the exit code."""
    console, config = console_for_tables(), pretraining_from(cfg)
    job = Job(config)
    check_trainable(cfg, [job])
    study = Study(cfg.out or default_folder(f"pretrain-{FLOW}-{cfg.benchmark.name}", job.config), create=True)
    with signals.keeping("what is trained"), study.at_work():
        (made,) = study.ask({"pretrain": job.config}, [job])
        console.print(opening(study, [made]), highlight=False, soft_wrap=True, markup=False)
        if not made.done and not train_missing(cfg, study, [made], console):
            return 1
        publish(Pretraining(config, made.path), console)
    return 0
