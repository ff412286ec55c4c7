"""What a page says of a group's scores in sentences: the verdict first, then how sure it is, and what to make of it."""

import numpy as np
import pandas as pd

from lcd.analyses.analysis import joined_names
from lcd.analyses.taxonomy import SURE
from lcd.report.html import score_text
from lcd.scores.validity import distrusted

SIGNS = {"phi": "φ", "psi": "ψ"}
IN_PLAIN_WORDS = {
    "paper": (
        "φ (phi) tells how hard a task is to see. Raw: by what share an agent's return over training rises where it is "
        "shown what is where in place of pixels (0.33: by a third).",
        "ψ (psi) tells how hard a task is to learn from reward. Raw: how much of the possible return over training "
        "changes, on average, each time that more of its rewards are left out (0.10: a tenth).",
    ),
    "calibrated": (
        "φ (phi) tells how hard a task is to see. Raw: the share of the return over training that is missing from "
        "pixels, of what an agent has that is shown what is where (0.33: a third).",
        "ψ (psi) tells how hard a task is to learn from reward. Raw: the share of the possible return over training "
        "that is missing, the mean over fewer and fewer rewards (0.10: a tenth).",
    ),
}
"""Definition → what φ and ψ are, for who has not met them."""


def group_sentences(rows: pd.DataFrame) -> list[str]:
    """What one group's scores say, in plain sentences.

    Args:
        rows: rows of a diagnosis' table, of one group.
    """
    scored = rows[rows["phi"].notna() & rows["psi"].notna()]
    count = f"{len(scored)} of {len(rows)} tasks" if len(rows) > 1 else "One task"
    sentences = [f"{count} could be placed on both scales." if len(rows) > 1 else f"{count} was trained."]
    trusted = rows[~rows["validity"].map(distrusted).astype(bool)]
    for name, sign, words in (("phi", "φ", "see"), ("psi", "ψ", "learn from reward")):
        placed = trusted[trusted[name].notna()]
        if placed.empty:
            continue
        hardest, easiest = placed.loc[placed[name].idxmax()], placed.loc[placed[name].idxmin()]
        apart = hardest[f"{name}_raw_low"] > easiest[f"{name}_raw_high"]
        known = np.isfinite(hardest[f"{name}_raw_low"]) and np.isfinite(easiest[f"{name}_raw_high"])
        sure = "their intervals are apart" if apart else "their intervals overlap, so more seeds are needed to be sure"
        sure = sure if known else "one seed cannot tell how sure this is"
        sentences.append(
            f"Hardest to {words} is {hardest['task']} (raw {sign} {score_text(hardest[f'{name}_raw'])}), easiest "
            f"{easiest['task']} ({score_text(easiest[f'{name}_raw'])}); {sure}."
        )
    unsolved = rows.loc[rows["status"] == "floor", "task"].tolist()
    if unsolved:
        sentences.append(
            f"Nothing was learned under any condition on {joined_names(unsolved)}: train longer to tell why."
        )
    unseen = rows[rows["status"] == "no_pixels_signal"]
    sure = unseen["phi_gain_low"] > 0
    if sure.any():
        sentences.append(
            f"On {joined_names(unseen.loc[sure, 'task'])} nothing was learned from pixels, though it was from other "
            "views: perception is in the way, by more than a ratio can say: compare the areas, or the steps."
        )
    if not sure.all():
        sentences.append(
            f"On {joined_names(unseen.loc[~sure, 'task'])} nothing was learned from pixels, and no more for sure from "
            "other views: train longer, or more seeds, to tell why."
        )
    return sentences


def verdict(classes: pd.DataFrame, tasks: int, untold: int = 0) -> str:
    """The one sentence for who reads no other.

    Args:
        classes: the taxonomy's rows of one group.
        tasks: how many tasks were trained.
        untold: how many tasks have both scores and a class that is withheld.
    """
    count = classes["class"].value_counts()
    told_of = [
        f"{count[name]} {'is' if count[name] == 1 else 'are'} {words}"
        for name, words in _IN_WORDS.items()
        if name in count
    ]
    if not told_of:
        return (
            "These scores cannot be trusted: no task is called hard or easy."
            if untold
            else "No task could be scored on both scales yet."
        )
    left = tasks - len(classes) - untold
    rest = [f"the class of {untold} is withheld"] if untold else []
    rest += [f"{left} could not be placed"] if left else []
    return f"Of {tasks} tasks, {'; '.join([joined_names(told_of), *rest])}."


ALONE = "Each task was trained under one condition alone: φ and ψ have nothing to compare."
FURTHER_ALONE = "φ and ψ were not asked: they compare views, and reward probabilities, of which one was trained."
_IN_WORDS = {
    "both": "hard both to see and to learn from reward",
    "perception": "hard to see",
    "reward": "hard to learn from reward",
    "neither": "easy in both ways",
}


def certainty(classes: pd.DataFrame) -> str:
    """How likely the classes of one group are to hold, in a sentence; empty where there are none."""
    if classes.empty:
        return ""
    known = classes["sure"].notna()
    if not known.any():
        return "One seed cannot tell how sure this is: train at least five."
    sure = int((classes["sure"] >= SURE).sum())
    unsure = classes.loc[~(classes["sure"] >= SURE), "task"].tolist()
    words = f"{sure} of {len(classes)} classes would hold in at least {SURE:.0%} of repetitions with other seeds"
    return f"{words}; more seeds would help with {joined_names(unsure)}." if unsure else f"{words}."


def of_two(rows: pd.DataFrame) -> str:
    """What hard and easy mean where two tasks alone are compared: empty where there are more or fewer.

    Args:
        rows: rows of a diagnosis' table, of one group.
    """
    told = []
    for name, sign in SIGNS.items():
        placed = rows[rows[name].notna()]
        if len(placed) == 2:
            numbers = [f"{score_text(row[f'{name}_raw'])} ({row['task']})" for _, row in placed.iterrows()]
            told.append(f"raw {sign} is {joined_names(numbers)}")
    return f"Of two tasks, hard means harder than the other one: {'; '.join(told)}." if told else ""
