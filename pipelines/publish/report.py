"""`lcd report`: diagnose a study, or curves that were trained elsewhere; and what every diagnosis leaves behind."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lcd.config.schemas import DiagnoseConfig, ReportConfig
from lcd.envs.errors import InputError, Unfinished, nearest
from lcd.files import outputs
from lcd.files.atomic import write_atomic
from lcd.pipelines.publish import track_diagnosis, wandb_client
from lcd.pipelines.publish.view_pictures import read_pictures
from lcd.pipelines.publish.wandb_client import is_wandb
from lcd.pipelines.study import cost, dynamics, longer, stopping, store
from lcd.pipelines.study.adaptive import recommended
from lcd.pipelines.study.configs import TrackerEntry
from lcd.pipelines.study.quarantine import Finished, read_finished
from lcd.scores.hard import HardFrom

if TYPE_CHECKING:
    import pandas as pd

    from lcd.analyses import Analysis
    from lcd.analyses.transfer import Transfer
    from lcd.scores.contrasts import Contrast
    from lcd.scores.diagnosis import Diagnosis


PRODUCT = "report"
FILES = ("report.html", "diagnosis.json", "challenge.csv")
"""What every report has."""


@dataclass(frozen=True)
class ReportOptions:
    """How a diagnosis is told.

    Attributes:
        definition: of the headline's φ and ψ.
        threshold: from where on scaled scores are hard.
        formats: what tables are written in besides CSV.
        first: the key of the analysis that is told before all else: an ablation's.
        ranges: those of tasks' returns, as `lcd.curves.ranges.ranges_from` takes them.
        analyses, sections: which are made, in their order; None: all that are registered.
        analysis_params, section_params: of each by name its own settings.
        horizons: task to its effective horizon and the bounds on it, as far as a file tells them.
    """

    definition: str = "paper"
    threshold: HardFrom = field(default_factory=HardFrom)
    formats: Sequence[str] = ()
    first: str | None = None
    ranges: str | Mapping[str, Any] | None = None
    analyses: Sequence[str] | None = None
    sections: Sequence[str] | None = None
    analysis_params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    section_params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    horizons: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


def run(cfg: ReportConfig) -> int:
    """Diagnose and report what `path` names; returns the exit code."""
    if cfg.path is None:
        raise InputError("path is missing: give a study's folder or a CSV or Parquet file of curves.")
    if is_wandb(cfg.path) or is_wandb(cfg.against):
        return _report_wandb(cfg)
    if cfg.map is not None:
        raise InputError("map goes with wandb: runs alone: give report wandb:entity/project/group, or leave map out.")
    source = Path(cfg.path).expanduser()
    console = Console()
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
    from lcd.pipelines.publish.wandb_curves import place_of, read_wandb

    if cfg.against is not None:
        raise InputError("against: two are compared by their files: report the wandb: runs first, then curves.csv.")
    how = _options(cfg, _formats(cfg.tables))
    source = place_of(str(cfg.path))
    folder = output_folder(cfg, source)
    outputs.check(folder, PRODUCT, FILES)
    curves = read_wandb(str(cfg.path), cfg.map)
    publish(source, folder, Console(), how=how, curves=curves)
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
) -> bool:
    """Diagnose the curves at `source`, write everything into `folder`, print the table and where things are.

    Returns whether no run is left out.

    Args:
        study: the study that the curves belong to, if they do.
        tracker: the config of what mirrors the diagnosis; None mirrors nothing.
        how: what is told, and how.
        curves: what was read of `source` where that is no file; they are kept with the report.
    """
    from lcd.analyses import Evidence, analyse
    from lcd.analyses.grids import Grid
    from lcd.analyses.transfer import transfers
    from lcd.curves.ranges import range_sets, ranges_from
    from lcd.curves.table import evaluated_names
    from lcd.scores.horizons import note_of_strangers

    how = how or ReportOptions()
    finished = read_finished(source, study) if curves is None else Finished(curves)
    finished.print_left_out(console, each=False)
    tasks = evaluated_names(finished.curves)
    ranges = ranges_from(how.ranges, tasks, range_sets(finished.curves))
    strangers = note_of_strangers(how.horizons, tasks)
    diagnosis = diagnosed(finished, study, how, ranges)
    curricula = transfers(diagnosis.others, diagnosis.curves)
    known: dict[str, Any] = {}
    if study is not None:
        known = recommended(study) | {"grid": Grid.from_plain(study.record.get("grid")), "read": finished.curves}
        how = replace(how, first=first_of(study))
    evidence = Evidence(diagnosis, how.threshold, **known)
    analyses, left_out = analyse(evidence, how.analyses, how.analysis_params, how.first)
    diagnosis = replace(diagnosis, notes=(*diagnosis.notes, *([strangers] if strangers else []), *left_out))
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
    return not finished.left_out


def first_of(study: store.Study) -> str | None:
    """The analysis that a study tells before all else; a stranger's file may hold anything."""
    first = study.record.get("first")
    return first if isinstance(first, str) and first else None


def diagnosed(
    finished: Finished,
    study: store.Study | None,
    how: ReportOptions,
    ranges: Mapping[str, Any] | None = None,
) -> "Diagnosis":
    """The diagnosis of curves, and of the study that they belong to what it has cost."""
    from lcd.scores.diagnosis import Diagnosis, diagnose_curves
    from lcd.scores.marking import mark

    known = {} if study is None else _remembered(study)
    try:
        diagnosis = diagnose_curves(finished.curves, ranges, definition=how.definition, horizons=how.horizons, **known)
    except InputError as impossible:
        # Areas of a grid need no ranges; of somebody's environment nobody may know them.
        if study is None or study.record.get("grid") is None:
            raise
        diagnosis = replace(Diagnosis.empty(), notes=(f"No task is diagnosed: {impossible}",))
    notes = [
        f"The contrast '{name}' is left out: no installed package has it, and only lcd diagnose imports code."
        for name in (() if study is None else contrasts_of(study)[1])
    ]
    notes += [
        f"runs/{path.name} is left out: there is no readable config.yaml in it. Put it back as it was, or give the "
        "command again that made the study."
        for path in (() if study is None else study.strangers())
        if path.is_dir() and not path.name.startswith(".")
    ]
    notes += [finished.note] if finished.note else []
    diagnosis = replace(diagnosis, notes=(*diagnosis.notes, *notes))
    if finished.left_out:
        diagnosis = mark(diagnosis, finished.left_out)
    return diagnosis if study is None else replace(diagnosis, cost=cost.cost_so_far(longer.longest(study.runs())))


def _remembered(study: store.Study) -> dict[str, Any]:
    """What a study remembers that a diagnosis needs, as arguments of `diagnose_curves`."""
    return {
        "levels": stopping.levels(study),
        "dynamics": dynamics.recorded_differences(study),
        "contrasts": contrasts_of(study)[0],
    }


def contrasts_of(study: store.Study) -> "tuple[tuple[Contrast, ...], tuple[str, ...]]":
    """What the study asks of its tasks, and the names of contrasts that are not to be had here.

    Those are a package's that is not installed, or code that the study's file names and the command does not.
    """
    from lcd.scores.asked_contrasts import parse_contrasts
    from lcd.scores.contrasts import HEADLINE, contrasts

    found = {each.name: each for each in HEADLINE}
    unknown: dict[str, None] = {}
    for request in study.record["requests"]:
        asked = request.get("study") if isinstance(request, dict) else None
        given = asked.get("contrasts") if isinstance(asked, dict) else None
        known = [each for each in given or () if not isinstance(each, str) or contrasts.may_resolve(each)]
        found |= {each.name: each for each in parse_contrasts(known)}
        unknown |= {each: None for each in given or () if isinstance(each, str) and not contrasts.may_resolve(each)}
    return tuple(found.values()), tuple(unknown)


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
    from lcd.report.page import write_report
    from lcd.report.provenance import provenance
    from lcd.report.tables import save_tables

    diagnosis.save(folder)
    names = {"report": "report.html", "scores": "challenge.csv", "diagnosis": "diagnosis.json"}
    if curricula:
        names["transfer"] = "transfer.json"
        save_transfers(folder / names["transfer"], curricula)
    if analyses or how.formats:
        names["tables"] = "tables"
        save_tables(folder / names["tables"], diagnosis, analyses, how.formats)
    origin = {"source": source.name} if study is None else {"study": study.name, "asked_for": _request_shown(study)}
    if diagnosis.cost:
        origin = {"cost": cost.cost_sentence(diagnosis.cost)} | origin
    if study is not None and (levels := stopping.levels(study)):
        origin = {"stopped_early": f"{len(levels)} tasks were looked at repeatedly; intervals allow for that"} | origin
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

    if (warnings := validity_text(diagnosis)) is not None:
        console.print(warnings, soft_wrap=True)
    leading = [analysis for analysis in analyses if how.first and analysis.key.startswith(how.first)]
    shown = {"adaptive", "returns", "return_ranks", *(() if curricula else ("outcomes",))}
    whole = [analysis for analysis in analyses if analysis.key in shown or is_of_methods(analysis.key)]
    for analysis in leading or whole:
        console.print(analysis_table(analysis, console.width))
    if len(diagnosis.table) and not leading:
        console.print(terminal_table(diagnosis, console.width))
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
