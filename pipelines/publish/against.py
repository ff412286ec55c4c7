"""`lcd report A B`: two studies, or files of curves, of one benchmark or of two, beside each other."""

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from lcd.config.schemas import ReportConfig
from lcd.files import outputs
from lcd.files.slugs import slug
from lcd.pipelines.study import store
from lcd.pipelines.study.remembered import definition_of
from lcd.scores.contrasts import USUAL_DEFINITION

PRODUCT = "comparison"


def compare(cfg: ReportConfig, source: Path, other: Path, console: Console, formats: list[str]) -> int:
    """Write the comparison as a page and as tables, print what it says; returns the exit code."""
    from lcd.analyses.against import against, on_one_map, shares_tasks
    from lcd.curves.ranges import range_sets, ranges_from
    from lcd.curves.reading import concatenated
    from lcd.curves.table import evaluated_names
    from lcd.pipelines.study.quarantine import read_finished
    from lcd.report.comparison import write_comparison
    from lcd.report.tables import save_tables
    from lcd.scores.diagnosis import diagnose_curves

    names = _names(source, other)
    folder = _folder(cfg, source, names)
    outputs.check(folder, PRODUCT, inputs=[source, other])
    studies = [store.Study(path) if (path / "study.yaml").is_file() else None for path in (source, other)]
    both = [read_finished(path, study) for path, study in zip((source, other), studies, strict=True)]
    for finished in both:
        finished.print_left_out(console)
    curves = concatenated([finished.curves for finished in both])
    ranges = ranges_from(cfg.ranges, evaluated_names(curves), range_sets(curves))
    definition = cfg.definition or _shared_definition(studies)
    first, second = (diagnose_curves(finished.curves, ranges, definition=definition) for finished in both)
    placed = on_one_map(first, second, names)
    # Two benchmarks have no task in common: they meet on the map alone.
    found = against(first, second, names) if shares_tasks(first, second) else None
    made = [placed] if found is None else [found, placed]
    with outputs.drafted(folder, PRODUCT, [source, other]) as draft:
        save_tables(draft / "tables", first, made, formats)
        page = write_comparison(draft, found, placed, names).name
    for sentence in (told for each in made for told in each.says):
        console.print(sentence, highlight=False, soft_wrap=True, markup=False)
    for name, path in (("comparison", folder / page), ("tables", folder / "tables")):
        console.print(f"{name:<10} {path}", highlight=False, soft_wrap=True, markup=False)
    return 0


def _shared_definition(studies: Sequence[store.Study | None]) -> str:
    """The definition that both studies were diagnosed by; the usual one where they differ."""
    found = {definition_of(study) for study in studies}
    return found.pop() if len(found) == 1 else USUAL_DEFINITION


def _names(source: Path, other: Path) -> tuple[str, str]:
    """What the two are called: their own names, or whole paths where these are the same."""
    # A link that leads to itself has no end; the reader of curves says so in a sentence.
    names = Path(os.path.realpath(source)).name, Path(os.path.realpath(other)).name
    return names if names[0] != names[1] else (str(source), str(other))


def _folder(cfg: ReportConfig, source: Path, names: tuple[str, str]) -> Path:
    if cfg.out is not None:
        return Path(cfg.out).expanduser()
    plain = slug(f"against-{names[1]}")
    return source / plain if source.is_dir() else source.with_name(f"{source.stem}-{plain}")
