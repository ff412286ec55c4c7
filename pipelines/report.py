"""`lcd report`: diagnose a study, or curves that were trained elsewhere; and what every diagnosis leaves behind."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.envs.errors import InputError
from lcd.pipelines import cost, stopping, store, track
from lcd.schemas import ReportConfig


def run(cfg: ReportConfig) -> int:
    """Diagnose and report what `path` names; returns the exit code."""
    if cfg.path is None:
        raise InputError("path is missing: give a study's folder or a CSV or Parquet file of curves.")
    source = Path(cfg.path).expanduser()
    console = Console()
    study = store.Study(source) if source.is_dir() and (source / "study.yaml").is_file() else None
    publish(source, output_folder(cfg, source), console, study=study, definition=cfg.definition)
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
    definition: str = "paper",
) -> None:
    """Diagnose the curves at `source`, write everything into `folder`, print the table and where things are.

    study: the study that the curves belong to, if they do.
    tracker: the config of what mirrors the diagnosis; None mirrors nothing.
    definition: of the headline's φ and ψ.
    """
    from lcd.calibration_figures import calibration_table, save_calibration_figures
    from lcd.diagnosis import Diagnosis, diagnose_curves
    from lcd.report import provenance, terminal_table, transfer_table, write_report
    from lcd.transfer import save_transfers, split_phases, transfers

    plain, phased = split_phases(finished_curves(source, study, console))
    curricula = transfers(phased) if len(phased) else []
    diagnosis = Diagnosis.empty()
    if len(plain) or not curricula:
        levels = {} if study is None else stopping.levels(study)
        diagnosis = diagnose_curves(plain, definition=definition, levels=levels)
    if study is not None:
        diagnosis = replace(diagnosis, cost=cost.spent(study.runs()))
    how = {"source": source.name} if study is None else {"study": study.name, "asked_for": _asked(study)}
    try:
        # Figures of tasks that are gone would be taken for figures of this diagnosis.
        shutil.rmtree(folder / "figures", ignore_errors=True)
        files = diagnosis.save(folder)
        if curricula:
            files["transfer"] = folder / "transfer.json"
            save_transfers(files["transfer"], curricula)
        save_calibration_figures(diagnosis, folder / "figures")
        page = write_report(folder, diagnosis, provenance=how | provenance(), transfers=curricula)
    except OSError as error:
        raise InputError(f"out={folder} cannot be written ({error.strerror}): give a writable folder.") from None
    if len(diagnosis.table):
        console.print(terminal_table(diagnosis, console.width))
    for transfer in curricula:
        console.print(transfer_table(transfer))
    if diagnosis.calibration:
        console.print(calibration_table(diagnosis))
    if diagnosis.cost:
        console.print(f"It cost {cost.told(diagnosis.cost)}.", highlight=False, soft_wrap=True)
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


def finished_curves(source: Path, study: store.Study | None, console: Console) -> Any:
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
