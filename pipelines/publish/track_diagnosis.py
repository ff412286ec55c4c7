"""The mirror of a diagnosis in W&B: one summary run of the study's group."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lcd.files.slugs import slug
from lcd.pipelines.publish.wandb_client import (
    WandbSettings,
    discard_unsynced,
    finish,
    harmless,
    new_id,
    start,
    wandb_settings,
)
from lcd.pipelines.publish.wandb_names import short_tags
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import TrackerEntry
from lcd.pipelines.study.longer import longest

FILES = ("report.html", "diagnosis.json", "challenge.csv")
"""Of a diagnosis, what goes along as an artifact beside its tables."""
MOST_RUNS = 1000
"""Run ids that its metadata name."""


class _Mirror:
    """What logs a study's diagnosis; a class only for `harmless`."""

    broken = False

    @harmless
    def log(
        self,
        settings: WandbSettings,
        study: store.Study,
        diagnosis: Any,
        figures: Sequence[Path],
        analyses: Sequence[Any],
        pictures: Mapping[str, Mapping[str, bytes]],
    ) -> None:
        import wandb

        run_id = study.record.get("wandb_id") or new_id()
        study.note(wandb_id=run_id)
        folder = study.diagnosis_dir
        if settings.mode == "offline":
            discard_unsynced(folder)
        run = start(
            settings,
            folder,
            run_id,
            group=study.name,
            name=f"{study.name} diagnosis",
            job_type="diagnosis",
            tags=short_tags(diagnosis.table["benchmark"]),
            config={"requests": study.record["requests"]},
        )
        tables = {"challenge": wandb.Table(dataframe=_holding_none(diagnosis.table))}
        tables |= {
            f"tables/{analysis.key}": wandb.Table(dataframe=_holding_none(analysis.table)) for analysis in analyses
        }
        if not diagnosis.curves.empty:
            tables["curves"] = wandb.Table(dataframe=_holding_none(mean_curves(diagnosis.curves)))
        images = {f"figures/{path.stem}": wandb.Image(str(path)) for path in figures}
        images |= _views(pictures)
        run.log(tables | images | _charts(diagnosis.table))
        run.summary.update(summary_of(diagnosis, analyses))
        try:
            if settings.artifacts:
                run.log_artifact(_artifact(study))
        finally:
            finish(run, folder)


def _artifact(study: store.Study) -> Any:
    """What was asked for, the report, scores and tables; and which runs they are made of."""
    import wandb

    runs = [run.path.name for run in longest(study.runs())]
    metadata = {"study": study.name, "number": len(runs), "runs": " ".join(runs[:MOST_RUNS])}
    artifact = wandb.Artifact(f"diagnosis-{slug(study.name)}", "diagnosis", metadata=metadata)
    for path in (study.path / "study.yaml", *(study.diagnosis_dir / name for name in FILES)):
        if path.is_file():
            artifact.add_file(str(path), policy="immutable")
    if (study.diagnosis_dir / "tables").is_dir():
        artifact.add_dir(str(study.diagnosis_dir / "tables"), name="tables", policy="immutable")
    return artifact


def _holding_none(table: Any) -> Any:
    """A table whose missing numbers are None, which W&B shows as empty."""
    return table.astype(object).where(table.notna(), None)


def mean_curves(curves: Any) -> Any:
    """Mean over seeds at every evaluation of a condition: what W&B's own line charts are drawn from."""
    from lcd.curves.table import CONDITION

    keys = [*CONDITION, "split", "step"]
    found = curves.groupby(keys, sort=True)["normalised"].agg(["mean", "min", "max", "count"]).reset_index()
    return found.rename(columns={"mean": "return_normalised", "min": "lowest_seed", "max": "highest_seed"})


def _charts(table: Any) -> dict[str, Any]:
    """Custom charts with their data: the plane of challenges, and both scores as bars."""
    import wandb

    placed = table[table["phi"].notna() & table["psi"].notna()]
    if placed.empty:
        return {}
    data = wandb.Table(dataframe=_holding_none(placed[["task", "phi", "psi"]]))
    return {
        "charts/plane": wandb.plot.scatter(data, "phi", "psi", title="What makes each task hard"),
        "charts/phi": wandb.plot.bar(data, "task", "phi", title="Perceptual challenge"),
        "charts/psi": wandb.plot.bar(data, "task", "psi", title="Reinforcement-learning challenge"),
    }


def _views(pictures: Mapping[str, Mapping[str, bytes]]) -> dict[str, Any]:
    import wandb
    from PIL import Image

    return {
        f"views/{task}/{view}": wandb.Image(Image.open(io.BytesIO(content)), caption=f"{task}, {view}")
        for task, by_view in pictures.items()
        for view, content in by_view.items()
    }


def summary_of(diagnosis: Any, analyses: Sequence[Any]) -> dict[str, Any]:
    """What a study's one summary run says: scores by task (and agent, where several), outcomes, cost."""
    table = _holding_none(diagnosis.table)
    several = "agent" in table and len(table[["task"]].drop_duplicates()) < len(table)
    found: dict[str, Any] = {}
    for row in table.to_dict("records"):
        name = "/".join(row[key] for key in ("task", "agent", "frontend", "shaping")) if several else row["task"]
        found |= {f"{name}/{score}": row[score] for score in ("phi", "psi", "status")}
    found |= {f"says/{analysis.key}": " ".join(analysis.says) for analysis in analyses if analysis.says}
    return found | {f"cost/{key}": value for key, value in diagnosis.cost.items()}


def log_diagnosis(
    tracker: TrackerEntry,
    study: store.Study,
    diagnosis: Any,
    figures: Sequence[Path],
    analyses: Sequence[Any] = (),
    pictures: Mapping[str, Mapping[str, bytes]] | None = None,
) -> None:
    """Mirror a study's diagnosis as one summary run of the study's group.

    It has every table, the PNG figures, the pictures of the views, and custom charts with their data: what a W&B report
    is made of.
    """
    if tracker["name"] == "wandb" and (settings := wandb_settings(tracker)).mode != "disabled":
        _Mirror().log(settings, study, diagnosis, figures, analyses, pictures or {})
