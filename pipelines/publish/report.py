"""`lcd report`: diagnose a study, or curves that were trained elsewhere; and what every diagnosis leaves behind."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lcd.config.schemas import DiagnoseConfig, ReportConfig
from lcd.consoles import console_for_tables
from lcd.envs.errors import InputError, Unfinished, nearest
from lcd.files import outputs
from lcd.files.atomic import write_atomic
from lcd.pipelines.publish import track_diagnosis, wandb_client
from lcd.pipelines.publish.telling import ReportOptions, tell
from lcd.pipelines.publish.view_pictures import read_pictures
from lcd.pipelines.publish.wandb_client import is_wandb
from lcd.pipelines.study import cost, stopping, store
from lcd.pipelines.study.configs import TrackerEntry
from lcd.scores.hard import HardFrom

if TYPE_CHECKING:
    import pandas as pd

    from lcd.analyses import Analysis
    from lcd.analyses.transfer import Transfer
    from lcd.scores.diagnosis import Diagnosis


PRODUCT = "report"
FILES = ("report.html", "diagnosis.json", "challenge.csv")
"""What every report has."""


def run(cfg: ReportConfig) -> int:
    """Diagnose and report what `path` names; returns the exit code."""
    if cfg.path is None:
        raise InputError("path is missing: give a study's folder or a CSV or Parquet file of curves.")
    if is_wandb(cfg.path) or is_wandb(cfg.against):
        return _report_wandb(cfg)
    if cfg.map is not None:
        raise InputError("map goes with wandb: runs alone: give report wandb:entity/project/group, or leave map out.")
    source = Path(cfg.path).expanduser()
    console = console_for_tables()
    study = store.Study(source) if source.is_dir() and (source / "study.yaml").is_file() else None
    formats = _formats(cfg.tables)
    if cfg.against is not None:
        from lcd.pipelines.publish.against import compare

        return compare(cfg, source, Path(cfg.against).expanduser(), console, formats)
    how = _options(cfg, formats)
    if cfg.horizons is not None:
        from lcd.scores.horizons import read_horizons

        how = replace(how, horizons=read_horizons(Path(cfg.horizons).expanduser()))
    if study is not None and _show_pretraining(study, console):
        return 0
    folder = output_folder(cfg, source)
    outputs.check(folder, PRODUCT, FILES, [source])
    publish(source, folder, console, study=study, how=how)
    return 0


def _report_wandb(cfg: ReportConfig) -> int:
    """Diagnose W&B's runs; the curves that were read are kept beside the report."""
    from lcd.pipelines.importing.import_curves import imported
    from lcd.pipelines.importing.wandb_curves import place_of

    if cfg.against is not None:
        raise InputError("against: two are compared by their files: report the wandb: runs first, then curves.csv.")
    how = _options(cfg, _formats(cfg.tables))
    source = place_of(str(cfg.path))
    folder = output_folder(cfg, source)
    outputs.check(folder, PRODUCT, FILES)
    found = imported(str(cfg.path), cfg.map)
    publish(source, folder, console_for_tables(), how=how, curves=found.curves, notes=found.notes)
    return 0


def _options(cfg: ReportConfig, formats: Sequence[str]) -> ReportOptions:
    """How a command wants a diagnosis told."""
    threshold = HardFrom.parse("threshold", cfg.threshold)
    return ReportOptions(cfg.definition, threshold, formats, ranges=cfg.ranges, **parts_of(cfg))


def parts_of(cfg: ReportConfig | DiagnoseConfig) -> dict[str, Any]:
    """Which analyses and sections a command asks for, and their settings, as arguments of `ReportOptions`."""
    return {name: getattr(cfg, name) for name in ("analyses", "sections", "analysis_params", "section_params")}


def _formats(wanted: list[str]) -> list[str]:
    from lcd.report.tables import FORMATS

    for name in wanted:
        if name not in FORMATS:
            raise InputError(f"tables: '{name}' is no format; {nearest(name, FORMATS)}")
    return wanted


def output_folder(cfg: ReportConfig, source: Path) -> Path:
    """Where a report goes: `out`, else into the study, else beside the file."""
    if cfg.out is None:
        return source / "diagnosis" if source.is_dir() else source.with_name(f"{source.stem}-diagnosis")
    return Path(cfg.out).expanduser()


def publish(
    source: Path,
    folder: Path,
    console: Console,
    study: store.Study | None = None,
    tracker: TrackerEntry | None = None,
    how: ReportOptions | None = None,
    curves: "pd.DataFrame | None" = None,
    notes: Sequence[str] = (),
) -> bool:
    """Diagnose the curves at `source`, write everything into `folder`, print the table and where things are.

    Returns whether no run is left out.

    Args:
        study: the study that the curves belong to, if they do.
        tracker: the config of what mirrors the diagnosis; None mirrors nothing.
        how: what is told, and how.
        curves: what was read of `source` where that is no file; they are kept with the report.
        notes: what a reader should know of how they were read.
    """
    told = tell(source, study, how or ReportOptions(), curves, notes)
    how, diagnosis, curricula, analyses = told.how, told.diagnosis, told.curricula, told.analyses
    told.finished.print_left_out(console, each=False)
    inputs = [source] if curves is None else []
    with outputs.drafted(folder, PRODUCT, inputs) as draft:
        names = _write(source, draft, diagnosis, curricula, analyses, study, how)
        if curves is not None:
            from lcd.files.spreadsheets import csv_text

            names["curves"] = "curves.csv"
            write_atomic(draft / names["curves"], csv_text(curves))
    _print_diagnosis(console, diagnosis, curricula, analyses, how)
    if study is not None and tracker is not None:
        figures = sorted((folder / "figures").glob("*.png"))
        track_diagnosis.log_diagnosis(tracker, study, diagnosis, figures, analyses, read_pictures(study))
    for name, file in names.items():
        _print_path(console, name, folder / file)
    if study is not None:
        _places_of_mirror(console, study)
    return not told.finished.left_out


def _write(
    source: Path,
    folder: Path,
    diagnosis: "Diagnosis",
    curricula: "list[Transfer]",
    analyses: "list[Analysis]",
    study: store.Study | None,
    how: ReportOptions,
) -> dict[str, str]:
    """Write scores, tables, figures and the page; what they are called in the folder."""
    from lcd.analyses.transfer import save_transfers
    from lcd.report.challenge_cards import FILE, save_cards
    from lcd.report.page import write_report
    from lcd.report.provenance import provenance
    from lcd.report.tables import save_tables

    diagnosis.save(folder)
    names = {"report": "report.html", "scores": "challenge.csv", "diagnosis": "diagnosis.json"}
    if len(diagnosis.table):
        names["cards"] = FILE
        save_cards(folder / FILE, diagnosis, analyses)
    if curricula:
        names["transfer"] = "transfer.json"
        save_transfers(folder / names["transfer"], curricula)
    if analyses or how.formats:
        names["tables"] = "tables"
        save_tables(folder / names["tables"], diagnosis, analyses, how.formats)
    origin = {"source": source.name} if study is None else {"study": study.name, "asked_for": _request_shown(study)}
    if diagnosis.cost:
        origin = {"cost": cost.cost_sentence(diagnosis.cost)} | origin
    if study is not None and (rounds := stopping.told(study)):
        origin = {"stopped_early": rounds} | origin
    write_report(
        folder,
        diagnosis,
        provenance=origin | provenance(),
        transfers=curricula,
        analyses=analyses,
        pictures={} if study is None else read_pictures(study),
        threshold=how.threshold,
        first=how.first,
        names=how.sections,
        settings=how.section_params,
    )
    return names


def _print_diagnosis(
    console: Console,
    diagnosis: "Diagnosis",
    curricula: "list[Transfer]",
    analyses: "list[Analysis]",
    how: ReportOptions,
) -> None:
    """Print the tables: an ablation's own, or the scores."""
    from lcd.analyses.families import is_of_methods
    from lcd.report.calibration_figures import calibration_table
    from lcd.report.terminal import analysis_table, terminal_table, transfer_table, validity_text
    from lcd.scores.contrasts import SAMPLES

    for caution in diagnosis.cautions:
        console.print(f"Note: {caution}", highlight=False, soft_wrap=True, markup=False)
    if (warnings := validity_text(diagnosis)) is not None:
        console.print(warnings, soft_wrap=True)
    leading = [analysis for analysis in analyses if how.first and analysis.key.startswith(how.first)]
    shown = {"adaptive", "returns", "return_ranks", *(() if curricula else ("outcomes",))}
    whole = [analysis for analysis in analyses if analysis.key in shown or is_of_methods(analysis.key)]
    for analysis in leading or whole:
        console.print(analysis_table(analysis, console.width))
    printed = {each.key for each in leading or whole}
    if len(diagnosis.table) and not leading:
        console.print(terminal_table(diagnosis, console.width))
        for analysis in (each for each in analyses if each.key == SAMPLES):
            console.print(analysis_table(analysis, console.width))
            printed.add(SAMPLES)
    for analysis in (each for each in analyses if each.made_by in (how.analyses or ()) and each.key not in printed):
        told = " ".join(analysis.says) or "it says nothing in words; its table is in the report."
        console.print(f"{analysis.title} {told}", highlight=False, soft_wrap=True, markup=False)
    for transfer in curricula:
        console.print(transfer_table(transfer))
    if diagnosis.calibration:
        console.print(calibration_table(diagnosis))
    if diagnosis.cost:
        console.print(f"It cost {cost.cost_sentence(diagnosis.cost)}.", highlight=False, soft_wrap=True)
    for note in diagnosis.notes:
        console.print(f"Note: {note}", highlight=False, soft_wrap=True, markup=False)


def _show_pretraining(study: store.Study, console: Console) -> bool:
    """Tell of the front-ends that a study pretrained; whether there is nothing else to report."""
    from lcd.pipelines.publish.pretrained import publish as publish_pretraining

    pretrained = study.pretrainings()
    done = [run for run in pretrained if run.done]
    for run in done:
        publish_pretraining(run, console)
    alone = bool(pretrained) and len(pretrained) == len(study.runs())
    if alone and not done:
        states = ", ".join(run.status["error"] or run.status["state"] for run in pretrained)
        raise Unfinished(f"No front-end of {study.path} is pretrained yet ({states}): there is nothing to tell yet.")
    return alone


def _request_shown(study: store.Study) -> Any:
    """What the study was asked for, as the report shows it."""
    requests = study.record["requests"]
    return json.loads(json.dumps(requests[0] if len(requests) == 1 else {"requests": requests}))


def _print_path(console: Console, name: str, path: object) -> None:
    console.print(f"{name:<10} {path}", highlight=False, soft_wrap=True, markup=False)


def _places_of_mirror(console: Console, study: store.Study) -> None:
    """Where the offline W&B runs are, and how they get to a server."""
    runs = sum(bool(wandb_client.offline_folders(run.left)) for run in study.runs())
    if not runs and not wandb_client.offline_folders(study.diagnosis_dir):
        return
    _print_path(console, "W&B", f"{runs} offline runs and the diagnosis; to upload them: lcd sync {study.path}")
