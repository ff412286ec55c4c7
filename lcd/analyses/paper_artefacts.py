"""The LCD paper's figures and tables by their own names: what a study of Procgen has of each, beside what it reports.

Each has a table of its own among the report's files (`tables/figure-3b.csv`). What is drawn stands where the analysis
that it comes from does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence
from lcd.analyses.by_the_paper import OF_SCORES, PROCGEN, by_the_paper
from lcd.analyses.gains import MOVING
from lcd.analyses.published import CLASSES, FRONTEND_GAIN, FRONTEND_RHO, SHAPING_RHO, SYNERGY, alike, by_game

FLOW, CLIP, CURVES = "flow", "clip", "curves"
ABLATION = "lcd ablate study=frontend"
# Section 4, "Reinforcement learning challenge evaluations": one-tailed t-tests of agents with and without shaping.
SHAPING_T = {"heist": 1.69, "leaper": 41.03, "maze": 2.69}


@dataclass(frozen=True)
class Artefact:
    """One of the paper's figures or tables.

    Attributes:
        name: its own.
        shows: what it shows.
        source: the analysis that has it here, or `CURVES` for the learning curves of each task.
        reported: what the paper says of it in words.
        rows: which rows of the analysis' table are of it.
        column: what the paper has numbers of, game by game.
        numbers: game to the paper's number or class.
        command: what trains it.
    """

    name: str
    shows: str
    source: str
    reported: str
    rows: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
    column: str = ""
    numbers: Mapping[str, Any] | None = None
    command: str = "study=paper"


def _with(frontend: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    # A front-end of which there may be several is followed by which one it is.
    return lambda table: table[table["frontend"].str.partition("/")[0] == frontend]


ARTEFACTS = (
    Artefact("figure-1d", "classes of games", "taxonomy", "6 games neither, 7 φ, 2 ψ, maze both",
             column="class", numbers=by_game(CLASSES)),
    Artefact("figure-3a", "curves with the front-end", "frontend", "leaper is helped least", rows=_with(FLOW),
             command=ABLATION),
    Artefact("figure-3b", "gain of the front-end by φ", "frontend-by-hardness",
             f"helps games of hard φ alone (p < .05); ρ with φ = {FRONTEND_RHO} over {MOVING} games (p < .05)",
             rows=_with(FLOW), command=ABLATION),
    Artefact("figure-4", "scores of PPO against those of PPG", "agreement", "both are correlated significantly"),
    Artefact("figure-5", "synergy of seeing and acting", "synergy", "6 of 16 games benefit",
             column="helps", numbers=by_game(SYNERGY)),
    Artefact("figures-6-7", "PPO on training levels, by view and by p", "generalisation", "curves alone",
             rows=lambda table: table[table["agent"] == "ppo"]),
    Artefact("figures-8-9", "PPO on held-out levels, by view and by p", CURVES, "curves alone"),
    Artefact("figures-10-11", "PPG on training levels, by view and by p", "generalisation", "curves alone",
             rows=lambda table: table[table["agent"] == "ppg"]),
    Artefact("figure-12", "agents on CLIP, over pixels", "frontend", "CLIP does not help", rows=_with(CLIP),
             command="study=figure-12 frontend=clip"),
    Artefact("figure-13", "reward for sub-goals", "shaping",
             f"t = 1.69, 41.03, 2.69 on heist, leaper, maze; ρ with ψ = {SHAPING_RHO}",
             column="t", numbers=SHAPING_T, command="lcd ablate study=shaping"),
    Artefact("table-A.7", "gain of the front-end in per cent", "frontend", "7.5 to 3364.6 %; leaper, bossfight below 0",
             rows=_with(FLOW), column="gain %", numbers=FRONTEND_GAIN, command=ABLATION),
)  # fmt: skip
MISSING = "not in this study"
NOTE = (
    "Each row's table is a file by its name in the folder tables. What the paper reports are numbers of GPU months at "
    f"200 and 100 million steps; tables 1 to 4 (what masks show) are drawn by lcd view. {OF_SCORES}"
)


def paper_artefacts(evidence: Evidence) -> Analysis | None:
    """Where each of the paper's figures and tables is in this report; None where no game of Procgen was diagnosed."""
    benchmarks = set(evidence.diagnosis.table["benchmark"]) if len(evidence.diagnosis.table) else set()
    if evidence.curves.empty or not any(str(name).startswith(PROCGEN) for name in benchmarks):
        return None
    return listed(by_the_paper(evidence))


def listed(analyses: Sequence[Analysis]) -> Analysis:
    """The paper's figures and tables, with what these analyses have of them."""
    made = {analysis.key: analysis for analysis in analyses}
    rows, files = [], {}
    for artefact in ARTEFACTS:
        table = _of_procgen(artefact, made)
        if table is not None:
            files[artefact.name] = table
        here = _here(artefact, table)
        rows.append({"artefact": artefact.name, "shows": artefact.shows, "here": here, "the paper": artefact.reported})
    shown = [row for row in rows if not row["here"].startswith(MISSING)]
    says = [f"{len(shown)} of {len(ARTEFACTS)} of the paper's figures and tables have something in this study."]
    title = "The paper's figures and tables"
    return Analysis("artefacts", title, pd.DataFrame(rows), says, NOTE, files=files)


def _of_procgen(artefact: Artefact, made: Mapping[str, Analysis]) -> pd.DataFrame | None:
    """An artefact's rows of its analysis, with the paper's numbers beside; None where there are none."""
    if artefact.source not in made:
        return None
    table = made[artefact.source].table
    table = artefact.rows(table[table["benchmark"].str.startswith(PROCGEN)])
    if table.empty:
        return None
    if artefact.numbers is not None:
        games = table["task"].str.rpartition("/")[2]
        table = table.assign(**{f"{artefact.column} (the paper)": games.map(artefact.numbers.get)})
    return table


def _here(artefact: Artefact, table: pd.DataFrame | None) -> str:
    """Where it is, and how often its outcome is the paper's."""
    if artefact.source == CURVES:
        return "each task's card"
    if table is None:
        return f"{MISSING}: {artefact.command}"
    found = f"“{artefact.source}”, {len(table)} row{'s' * (len(table) > 1)}"
    if artefact.numbers is None:
        return found
    both = table[[artefact.column, f"{artefact.column} (the paper)"]].dropna()
    agreed = sum(alike(*pair) for pair in both.itertuples(index=False))
    kind = "outcome" if artefact.column in ("class", "helps") else "sign"
    return f"{found}; the paper's {kind} {agreed} of {len(both)} times" if len(both) else found
