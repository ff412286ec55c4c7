"""`lcd report`: diagnose a study, or curves that were trained elsewhere; and what every diagnosis leaves behind."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.envs.errors import InputError
from lcd.pipelines import store, track
from lcd.schemas import ReportConfig


def run(cfg: ReportConfig) -> int:
    """Diagnose and report what `path` names; returns the exit code."""
    if cfg.path is None:
        raise InputError("path is missing: give a study's folder or a CSV or Parquet file of curves.")
    source = Path(cfg.path).expanduser()
    console = Console()
    study = store.Study(source) if source.is_dir() and (source / "study.yaml").is_file() else None
    if study is not None and _show_pretraining(study, console):
        return 0
    publish(source, output_folder(cfg, source), console, study=study)
    return 0


def output_folder(cfg: ReportConfig, source: Path) -> Path:
    """Where a report goes: `out`, else into the study, else beside the file."""
    if cfg.out is None:
        return source / "diagnosis" if source.is_dir() else source.with_name(f"{source.stem}-diagnosis")
    out = Path(cfg.out).expanduser()
    if out.exists() and not out.is_dir():
        raise InputError(f"out={out} is a file: give a folder.")
    return out


def publish(
    source: Path,
    folder: Path,
    console: Console,
    study: store.Study | None = None,
    tracker: Mapping[str, Any] | None = None,
) -> None:
    """Diagnose the curves at `source`, write everything into `folder`, print the table and where things are.

    study: the study that the curves belong to, if they do.
    tracker: the config of what mirrors the diagnosis; None mirrors nothing.
    """
    from lcd.diagnosis import Diagnosis, diagnose_curves
    from lcd.report import provenance, terminal_table, transfer_table, write_report
    from lcd.transfer import save_transfers, split_phases, transfers

    plain, phased = split_phases(_curves(source, study, console))
    curricula = transfers(phased) if len(phased) else []
    diagnosis = diagnose_curves(plain) if len(plain) or not curricula else Diagnosis.empty()
    how = {"source": source.name} if study is None else {"study": study.name, "asked_for": _asked(study)}
    try:
        # Figures of tasks that are gone would be taken for figures of this diagnosis.
        shutil.rmtree(folder / "figures", ignore_errors=True)
        files = diagnosis.save(folder)
        if curricula:
            files["transfer"] = folder / "transfer.json"
            save_transfers(files["transfer"], curricula)
        page = write_report(folder, diagnosis, provenance=how | provenance(), transfers=curricula)
    except OSError as error:
        raise InputError(f"out={folder} cannot be written ({error.strerror}): give a writable folder.") from None
    if len(diagnosis.table):
        console.print(terminal_table(diagnosis, console.width))
    for transfer in curricula:
        console.print(transfer_table(transfer))
    for note in diagnosis.notes:
        console.print(f"Note: {note}", highlight=False, soft_wrap=True, markup=False)
    if study is not None and tracker is not None:
        track.log_diagnosis(tracker, study, diagnosis, sorted((folder / "figures").glob("*.png")))
    places = {"report": page, "scores": files["csv"], "diagnosis": files["json"], "transfer": files.get("transfer")}
    for name, path in places.items():
        if path is not None:
            _place(console, name, path)
    if study is not None:
        _places_of_mirror(console, study)


def _curves(source: Path, study: store.Study | None, console: Console) -> Any:
    """The curves at `source`; of a study those of its finished runs, because half a curve has another area."""
    import pandas as pd

    from lcd.curves import read_curves

    made = study.runs() if study is not None else []
    done = [run for run in made if run.done]
    if not done:
        return read_curves(source)
    if len(done) < len(made):
        console.print(f"{len(made) - len(done)} of {len(made)} runs are not done and left out.", highlight=False)
    return pd.concat([read_curves(run.path / "curve.csv") for run in done], ignore_index=True)


def _show_pretraining(study: store.Study, console: Console) -> bool:
    """How well the front-ends that a study pretrained show objects; whether there is nothing else to report."""
    from lcd.pipelines.objectness import latest, shown, verdict
    from lcd.pipelines.pretrain import summary

    pretrained = [run for run in study.runs() if "videos" in run.config]
    for run in (run for run in pretrained if run.done):
        console.print(summary(run), highlight=False)
        if (measured := latest(run.path)) is not None:
            console.print(shown(measured))
            console.print(*verdict(measured), sep="\n", highlight=False)
        for name, path in {"pictures": "pictures", "objectness": "objectness.csv", "front-end": "flow.pt"}.items():
            if (run.path / path).exists():
                _place(console, name, run.path / path)
    return bool(pretrained) and len(pretrained) == len(study.runs())


def _asked(study: store.Study) -> Any:
    """What the study was asked for, as the report shows it."""
    requests = study.record["requests"]
    return json.loads(json.dumps(requests[0] if len(requests) == 1 else {"requests": requests}))


def _place(console: Console, name: str, path: object) -> None:
    console.print(f"{name:<10} {path}", highlight=False, soft_wrap=True, markup=False)


def _places_of_mirror(console: Console, study: store.Study) -> None:
    """Where the offline W&B runs are, and how they get to a server."""
    runs = sum(bool(track.offline_folders(run.path)) for run in study.runs())
    if not runs and not track.offline_folders(study.diagnosis_dir):
        return
    patterns = f"{study.path}/runs/*/wandb/offline-run-* {study.diagnosis_dir}/wandb/offline-run-*"
    _place(console, "W&B", f"{runs} offline runs and the diagnosis; to upload them: wandb sync {patterns}")
