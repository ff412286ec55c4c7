"""Which of the two challenges each task poses (figure 1d), how likely that is, and what to do about it."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence
from lcd.scores.challenge_table import GROUP
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.hard import FROM_HALF, SIGNS, HardFrom
from lcd.scores.validity import withheld
from lcd.statistics.intervals import BOOTSTRAP_SEED

CLASSES = {
    (True, True): "both",
    (True, False): "perception",
    (False, True): "reward",
    (False, False): "neither",
}
MEANINGS = {
    "both": "Hard to see and hard to learn from reward",
    "perception": "Hard to see",
    "reward": "Hard to learn from reward",
    "neither": "Easy in both ways",
}
SUITS = {
    "both": "methods that learn to see and to explore together",
    "perception": "testing perception: visual front-ends, representation learning",
    "reward": "testing exploration and credit assignment",
    "neither": "a check that an agent works; progress will not show here",
}
SURE = 0.9
DRAWS = 4000


def classes(evidence: Evidence) -> Analysis | None:
    """What makes each task hard: its class, and how sure that is."""
    return taxonomy(evidence.diagnosis, evidence.threshold) if len(evidence.diagnosis.table) else None


def taxonomy(diagnosis: Diagnosis, threshold: HardFrom = FROM_HALF) -> Analysis:
    """The class of every task that has both scores, with the probability of each class over resampled seeds.

    Tasks whose class is withheld (see `lcd.scores.validity`) are left out.

    Args:
        diagnosis: its scaled scores are compared with the threshold.
        threshold: from where on they are hard.
    """
    rows, says = [], []
    for key, group in diagnosis.table.groupby(list(GROUP), sort=False):
        hard_from = threshold.of(group)
        if threshold.depends_on_tasks and np.isfinite(list(hard_from.values())).all():
            says.append(_told_threshold(dict(zip(GROUP, key, strict=True)), hard_from, group))
        for _, row in group[group["phi"].notna() & group["psi"].notna()].iterrows():
            if withheld(row["validity"]):
                continue
            kind = CLASSES[row["phi"] >= hard_from["phi"], row["psi"] >= hard_from["psi"]]
            chances = class_probabilities(row, hard_from)
            named = {f"P({name})": chances.get(name, np.nan) for name in CLASSES.values()}
            rows.append(
                {name: row[name] for name in (*GROUP, "task")}
                | {"class": kind, "sure": chances.get(kind, np.nan)}
                | named
            )
    columns = [*GROUP, "task", "class", "sure", *(f"P({name})" for name in CLASSES.values())]
    table = pd.DataFrame(rows, columns=columns)
    sure = int((table["sure"] >= SURE).sum())
    if len(table):
        says.insert(0, f"{sure} of {len(table)} tasks keep their class in at least {SURE:.0%} of resampled studies.")
    note = (
        f"Hard means {threshold.words}. Probabilities are shares of scores drawn from their "
        "distribution over resampled seeds."
    )
    return Analysis("taxonomy", "Classes of tasks", table, says, note)


def _told_threshold(group: Mapping[str, str], hard_from: Mapping[str, float], rows: pd.DataFrame) -> str:
    """From where on scores are hard in a group, and how many tasks are, where the tasks decide it."""
    told = [
        f"{SIGNS[name]} is hard from {number:.2f} on ({int((rows[name] >= number).sum())} of {len(rows)} tasks)"
        for name, number in hard_from.items()
    ]
    return f"{', '.join(group.values())}: {'; '.join(told)}."


def class_probabilities(row: pd.Series, hard_from: Mapping[str, float], draws: int = DRAWS) -> Mapping[str, float]:
    """Class to its probability: t-distributed draws of φ and ψ with the bootstrap's standard errors.

    Args:
        row: a task's scores.
        hard_from: score to the number from which on it is hard, which is taken as it is.

    Returns:
        Empty where the intervals are unknown.
    """
    seeds, rng = int(row["seeds"]), np.random.default_rng(BOOTSTRAP_SEED)
    spread = {}
    for score in ("phi", "psi"):
        half = (row[f"{score}_high"] - row[f"{score}_low"]) / 2
        if not np.isfinite(half) or seeds < 2:
            return {}
        spread[score] = half
    from scipy.special import stdtrit

    width = stdtrit(seeds - 1, 0.975)
    hard = {
        score: row[score] + spread[score] / width * rng.standard_t(seeds - 1, draws) >= hard_from[score]
        for score in spread
    }
    return {name: float(((hard["phi"] == phi) & (hard["psi"] == psi)).mean()) for (phi, psi), name in CLASSES.items()}


def recommendations(
    diagnosis: Diagnosis,
    classes: Analysis,
    frontend: str = "flow",
    agent: str = "ppg",
    shaped: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """What each task of a diagnosis is good for, and what to learn it with: from its class.

    Args:
        frontend, agent: what is recommended where perception, or learning from reward, is hard.
    """
    found = {(*(row[name] for name in GROUP), row["task"]): row["class"] for _, row in classes.table.iterrows()}
    rows = []
    for _, row in diagnosis.table.iterrows():
        kind = found.get((*(row[name] for name in GROUP), row["task"]))
        unknown, usual = "nothing yet: train longer, or add what is missing", row
        if withheld(row["validity"]):
            unknown, usual = "nothing yet: its class is withheld", {"agent": "–", "frontend": "–"}
        elif kind is None and row["status"] == "no_pixels_signal":
            kind = "perception"
        rows.append(
            {name: row[name] for name in (*GROUP, "task")}
            | {
                "class": kind or "",
                "suits": SUITS.get(kind or "", unknown),
                "use agent": agent if kind in ("reward", "both") else usual["agent"],
                "use front-end": frontend if kind in ("perception", "both") else usual["frontend"],
            }
        )
    return pd.DataFrame(rows)
