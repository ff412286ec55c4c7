"""The report: one page that says what makes a benchmark's tasks hard, and how that was found."""

import json
import math
import os
import platform
import subprocess
import textwrap
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from rich import box
from rich.table import Table
from rich.text import Text

from lcd.curves import CURVE
from lcd.diagnosis import CONDITIONS, GROUP, STATUSES, VIEWS, Diagnosis
from lcd.figures import STYLES, all_figures, data_uri, draw_svg, save_figure
from lcd.files import write_atomic
from lcd.statistics import METHOD
from lcd.transfer import MEASURES, Transfer
from lcd.transfer_figures import transfer_figures

PACKAGES = (
    "learning-challenge-diagnosticator", "numpy", "pandas", "scipy", "matplotlib", "gymnasium", "torch", "lightning",
    "hydra-core", "wandb", "procgen", "procgen-mirror",
)  # fmt: skip
MIDDLE = 0.5
NARROW_NAME = 22
CLASSES = {
    (True, True): "Hard to see and hard to learn from reward",
    (True, False): "Hard to see",
    (False, True): "Hard to learn from reward",
    (False, False): "Easy in both ways",
}


def write_report(
    folder: str | Path,
    diagnosis: Diagnosis,
    curves: pd.DataFrame | None = None,
    provenance: Mapping[str, Any] | None = None,
    transfers: Sequence[Transfer] = (),
) -> Path:
    """Write `report.html`, which needs no other file, and the figures (PNG and SVG) into `figures/` beside it.

    Parameters
    ----------
    folder
        Where to write; a study's is `<study>/diagnosis`.
    diagnosis
        What to tell.
    curves
        The curves behind it, with the column `normalised`; needed only if the diagnosis was read back from JSON.
    provenance
        How it was run, shown as it is: values may be text, numbers, lists or mappings. See `provenance`.
    transfers
        The outcomes of curricula; with them the diagnosis may be empty.

    Returns
    -------
    Path
        The page's.
    """
    folder = Path(folder)
    if diagnosis.curves.empty and curves is not None and "normalised" in curves:
        diagnosis = Diagnosis(diagnosis.table, curves, diagnosis.thresholds, diagnosis.notes)
    addresses = {}
    for name, figure in chain(all_figures(diagnosis), transfer_figures(transfers)):
        _, drawing = save_figure(figure, folder / "figures", name)
        addresses[name] = data_uri(drawing.read_bytes())
    narrow_figures = chain(all_figures(diagnosis, narrow=True), transfer_figures(transfers, narrow=True))
    narrow = {name: data_uri(draw_svg(figure)) for name, figure in narrow_figures}
    environment = Environment(loader=PackageLoader("lcd"), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    told = provenance or {}
    environment.filters |= {"score": _score, "between": _between, "steps": _steps, "duration": duration}
    page = environment.get_template("report.html.j2").render(
        groups=[_group(place, key, rows) for place, (key, rows) in enumerate(_groups(diagnosis))],
        diagnosis=diagnosis,
        transfers=[_of_curriculum(place, transfer) for place, transfer in enumerate(transfers)],
        measures=MEASURES,
        conditions=[(name, _condition(name), STYLES[name][0]) for name in CONDITIONS],
        statuses=STATUSES,
        method=METHOD,
        wide=addresses,
        narrow=narrow,
        effort=_effort(diagnosis.curves),
        provenance={key.replace("_", " "): _shown(value) for key, value in told.items()},
    )
    write_atomic(folder / "report.html", page)
    return folder / "report.html"


def provenance() -> dict[str, Any]:
    """What this was computed with and on: versions, commit, hardware, platform; no path of the machine."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    facts = {
        "python": platform.python_version(),
        "versions": found,
        "git_commit": _commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "platform": platform.platform(),
    }
    return {key: value for key, value in facts.items() if value}


def terminal_table(diagnosis: Diagnosis, width: int = 120) -> Table:
    """The scores as a table for a terminal of that many columns; under 118, intervals go below their scores."""
    narrow = width < 118
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    # The status has spaces to be wrapped at, a name has none.
    longest = max(map(len, diagnosis.table["task"]))
    table.add_column("task", overflow="fold", min_width=min(longest, NARROW_NAME if narrow else 32))
    for sign in ("φ", "ψ"):
        table.add_column(Text(f"{sign} [95 %]"), no_wrap=True)
    for head in ("AUC by view*\np .75 .5 .25",) if narrow else ("AUC by view*", "p .75 .5 .25"):
        table.add_column(head, no_wrap=True)
    table.add_column("status", max_width=9)
    table.caption = Text("* pixels, figure-ground, semantic; 95 % intervals over seeds", style="dim")
    groups = list(_groups(diagnosis))
    for key, rows in groups:
        if len(groups) > 1:
            table.add_section()
            table.add_row(Text(" · ".join(key), style="bold"))
        for _, row in rows.iterrows():
            table.add_row(*_terminal_row(row, narrow))
    return table


def transfer_table(transfer: Transfer) -> Table:
    """A curriculum's matrix and measures as a table for a terminal."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("after the stage")
    for task in transfer.tasks:
        table.add_column(Text(task), overflow="fold")
    for name, returns in zip(("before training", *transfer.stages), transfer.matrix, strict=True):
        table.add_row(Text(name), *(_two(value) for value in returns))
    found = (f"{name} {_two(values[0])}" for name, values in transfer.measures.items() if math.isfinite(values[0]))
    table.caption = Text(f"{', '.join(found)}; means over {len(transfer.returns)} seeds", style="dim")
    return table


def reading(rows: pd.DataFrame) -> list[str]:
    """What one group's scores say, in plain sentences.

    Parameters
    ----------
    rows
        Rows of a diagnosis' table, of one group.
    """
    scored = rows[rows["phi"].notna() & rows["psi"].notna()]
    count = f"{len(scored)} of {len(rows)} tasks" if len(rows) > 1 else "One task"
    sentences = [f"{count} could be placed on both scales." if len(rows) > 1 else f"{count} was trained."]
    for score, sign, words in (("phi", "φ", "see"), ("psi", "ψ", "learn from reward")):
        placed = rows[rows[score].notna()]
        if placed.empty:
            continue
        hardest, easiest = placed.loc[placed[score].idxmax()], placed.loc[placed[score].idxmin()]
        apart = hardest[f"{score}_raw_low"] > easiest[f"{score}_raw_high"]
        known = np.isfinite(hardest[f"{score}_raw_low"]) and np.isfinite(easiest[f"{score}_raw_high"])
        sure = "their intervals are apart" if apart else "their intervals overlap, so more seeds are needed to be sure"
        sure = sure if known else "one seed cannot tell how sure this is"
        sentences.append(
            f"Hardest to {words} is {hardest['task']} (raw {sign} {_score(hardest[f'{score}_raw'])}), easiest "
            f"{easiest['task']} ({_score(easiest[f'{score}_raw'])}); {sure}."
        )
    unsolved = rows.loc[rows["status"] == "floor", "task"].tolist()
    if unsolved:
        sentences.append(f"Nothing was learned under any condition on {_list(unsolved)}: train longer to tell why.")
    blind = rows.loc[rows["status"] == "no_pixels_signal", "task"].tolist()
    if blind:
        sentences.append(
            f"On {_list(blind)} nothing was learned from pixels, though it was from other views: perception is in the "
            "way, by more than a ratio can say."
        )
    return sentences


def classes(rows: pd.DataFrame) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Tasks by which of the two challenges they pose, and whether an interval crosses the middle of its scale.

    Parameters
    ----------
    rows
        Rows of a diagnosis' table, of one group.
    """
    members = {key: [] for key in CLASSES}
    for _, row in rows[rows["phi"].notna() & rows["psi"].notna()].iterrows():
        unsure = any(not (row[f"{s}_low"] > MIDDLE or row[f"{s}_high"] < MIDDLE) for s in ("phi", "psi"))
        members[row["phi"] >= MIDDLE, row["psi"] >= MIDDLE].append((row["task"], unsure))
    return [(CLASSES[key], tasks) for key, tasks in members.items() if tasks]


def duration(seconds: float) -> str:
    """Seconds as a reader says them: "1 h 02 min", "3 min 20 s", "12 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _groups(diagnosis: Diagnosis):
    return diagnosis.table.groupby(list(GROUP), sort=False)


def _group(place: int, key: tuple, rows: pd.DataFrame) -> dict[str, Any]:
    return {
        "figure": f"challenge-{place}",
        "name": dict(zip(GROUP, key, strict=True)),
        "reading": reading(rows),
        "classes": classes(rows),
        "rows": [{"figure": f"curves-{index}"} | row for index, row in rows.to_dict("index").items()],
    }


def _of_curriculum(place: int, transfer: Transfer) -> dict[str, Any]:
    after = [f"after {stage}" for stage in transfer.stages]
    measures = [
        {"name": name} | dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))
        for name, values in transfer.measures.items()
    ]
    return {
        "figure": f"transfer-{place}",
        "name": transfer.key,
        "tasks": transfer.tasks,
        "rows": list(zip(["before training", *after], transfer.matrix, strict=True)),
        "measures": measures,
        "seeds": len(transfer.returns),
    }


def _effort(curves: pd.DataFrame) -> dict[str, Any]:
    """How much was trained, as far as the curves tell."""
    if curves.empty:
        return {}
    ends = curves.groupby(list(CURVE)).agg(step=("step", "max"), wall_s=("wall_s", "max")).reset_index()
    ends = ends[ends["split"] == "eval"]
    # Seeds of a run train together, so that a condition's time is the longest of its seeds'.
    wall = ends.groupby(list(CURVE[:-2]))["wall_s"].max().sum(min_count=1)
    seeds = sorted(ends["seed"].unique().tolist())
    effort = {"conditions": len(ends.drop_duplicates(list(CURVE[:-2]))), "seeds": f"{len(seeds)} ({_spans(seeds)})"}
    effort |= {"steps a seed": _steps(ends["step"].max()), "steps in all": _steps(ends["step"].sum())}
    return effort | ({"training time, conditions added up": duration(wall)} if wall > 0 else {})


def _spans(seeds: list[int]) -> str:
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds[:20])) + (", …" if len(seeds) > 20 else "")


def _shown(value: Any) -> dict[str, Any]:
    """What the template makes a list of names and values, a block of text, or a line of."""
    if isinstance(value, Mapping) and not any(isinstance(inner, Mapping | list | tuple) for inner in value.values()):
        return {"kind": "pairs", "value": {str(key): str(inner) for key, inner in value.items()}}
    if isinstance(value, Mapping):
        return {"kind": "block", "value": json.dumps(value, indent=2, default=str, ensure_ascii=False)}
    if isinstance(value, list | tuple):
        return {"kind": "line", "value": ", ".join(map(str, value))}
    return {"kind": "block" if "\n" in str(value) else "line", "value": str(value)}


def _condition(name: str) -> str:
    return name.replace("_", " ") if name in VIEWS else f"p = {name[1:]}"


def _score(value: float) -> str:
    return _two(value).replace("-", "−") if np.isfinite(value) else "–"


def _two(value: float) -> str:
    """Two decimals, and no minus before what rounds to zero."""
    return f"{round(float(value), 2) + 0.0:.2f}"


def _between(row: Mapping[str, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{_score(low)} to {_score(high)}" if np.isfinite(low) and np.isfinite(high) else ""


def _steps(value: float) -> str:
    return f"{value:,.0f}".replace(",", "\u202f") if np.isfinite(value) else "–"


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _terminal_row(row: pd.Series, narrow: bool) -> list[Text]:
    def score(name: str) -> Text:
        if not np.isfinite(row[name]):
            return Text("–")
        if not np.isfinite(row[f"{name}_low"]):
            return Text(_two(row[name]))
        bounds = f"[{_two(row[f'{name}_low'])}, {_two(row[f'{name}_high'])}]"
        return Text(f"{_two(row[name])}{chr(10) if narrow else ' '}{bounds}")

    def areas(names: list[str]) -> Text:
        values = [row[f"auc_{name}"] for name in names]
        return Text(" ".join("  – " if math.isnan(value) else _two(value) for value in values))

    names = list(CONDITIONS)
    views, ps = areas(names[:3]), areas(names[3:])
    both = [Text("\n").join([views, ps])] if narrow else [views, ps]
    # From Text, not markup, because names come from files.
    name = "\n".join(textwrap.wrap(row["task"], NARROW_NAME)) if narrow else row["task"]
    return [Text(name), score("phi"), score("psi"), *both, Text(row["status"].replace("_", " "))]


def _commit() -> str | None:
    """The commit of the checkout that the package runs from; None where it is installed elsewhere."""
    home = Path(__file__).resolve().parent.parent
    if not (home / ".git").exists():
        return None
    try:
        git = ["git", "-C", str(home)]
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10)
        status = [*git, "status", "--porcelain", "--untracked-files=no"]
        changed = subprocess.run(status, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return commit.stdout.strip() + (" with local changes" if changed else "")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
