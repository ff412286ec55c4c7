"""`lcd report`: diagnose a study, or curves that were trained elsewhere; and what every diagnosis leaves behind."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.envs.errors import InputError, nearest
from lcd.pipelines import store, track
from lcd.pipelines.adaptive import recommended
from lcd.pipelines.pictures import read_pictures
from lcd.schemas import ReportConfig


def run(cfg: ReportConfig) -> int:
    """Diagnose and report what `path` names; returns the exit code."""
    if cfg.path is None:
        raise InputError("path is missing: give a study's folder or a CSV or Parquet file of curves.")
    source = Path(cfg.path).expanduser()
    console = Console()
    study = store.Study(source) if source.is_dir() and (source / "study.yaml").is_file() else None
    formats = _formats(cfg.tables)
    if cfg.against is not None:
        from lcd.pipelines.against import compare

        return compare(cfg, source, Path(cfg.against).expanduser(), console, formats)
    folder = output_folder(cfg, source)
    publish(source, folder, console, study=study, threshold=cfg.threshold, formats=formats)
    return 0


def _formats(wanted: list[str]) -> list[str]:
    from lcd.tables import FORMATS

    for name in wanted:
        if name not in FORMATS:
            raise InputError(f"tables: '{name}' is no format; {nearest(name, FORMATS)}")
    return wanted


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
    threshold: float = 0.5,
    formats: Sequence[str] = (),
    first: str | None = None,
) -> None:
    """Diagnose the curves at `source`, write everything into `folder`, print the table and where things are.

    study: the study that the curves belong to, if they do.
    tracker: the config of what mirrors the diagnosis; None mirrors nothing.
    threshold: from where on a scaled score counts as hard.
    formats: what tables are written in besides CSV.
    first: the key of the analysis that is told before all else: an ablation's.
    """
    from lcd.analyses import analyse
    from lcd.diagnosis import Diagnosis, diagnose_curves
    from lcd.provenance import provenance
    from lcd.report import write_report
    from lcd.tables import save_tables
    from lcd.terminal import analysis_table, terminal_table, transfer_table
    from lcd.transfer import save_transfers, split_phases, transfers

    plain, phased = split_phases(curves_at(source, study, console))
    curricula = transfers(phased) if len(phased) else []
    diagnosis = diagnose_curves(plain) if len(plain) or not curricula else Diagnosis.empty()
    chosen = {} if study is None else recommended(study)
    analyses, notes = analyse(diagnosis, threshold, first, **chosen)
    how = {"source": source.name} if study is None else {"study": study.name, "asked_for": _asked(study)}
    try:
        # Figures of tasks that are gone would be taken for figures of this diagnosis.
        for made in ("figures", "tables"):
            shutil.rmtree(folder / made, ignore_errors=True)
        files = diagnosis.save(folder)
        if curricula:
            files["transfer"] = folder / "transfer.json"
            save_transfers(files["transfer"], curricula)
        tables = save_tables(folder / "tables", diagnosis, analyses, formats)
        page = write_report(
            folder,
            diagnosis,
            provenance=how | provenance(),
            transfers=curricula,
            analyses=analyses,
            pictures={} if study is None else read_pictures(study),
            threshold=threshold,
            first=first,
        )
    except OSError as error:
        raise InputError(f"out={folder} cannot be written ({error.strerror}): give a writable folder.") from None
    leading = [analysis for analysis in analyses if first and analysis.key.startswith(first)]
    for analysis in leading or [analysis for analysis in analyses if analysis.key == "adaptive"]:
        console.print(analysis_table(analysis, console.width))
    if len(diagnosis.table) and not leading:
        console.print(terminal_table(diagnosis, console.width))
    for transfer in curricula:
        console.print(transfer_table(transfer))
    for note in (*diagnosis.notes, *notes):
        console.print(f"Note: {note}", highlight=False, soft_wrap=True, markup=False)
    if study is not None and tracker is not None:
        figures = sorted((folder / "figures").glob("*.png"))
        track.log_diagnosis(tracker, study, diagnosis, figures, analyses, read_pictures(study))
    places = {
        "report": page,
        "scores": files["csv"],
        "tables": tables[0].parent if analyses or formats else None,
        "diagnosis": files["json"],
        "transfer": files.get("transfer"),
    }
    for name, path in places.items():
        if path is not None:
            _place(console, name, path)
    if study is not None:
        _places_of_mirror(console, study)


def curves_at(source: Path, study: store.Study | None, console: Console) -> Any:
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
