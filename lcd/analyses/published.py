"""What the LCD paper reports on Procgen, to compare with; and where it cannot be right.

The paper is "Diagnosing and exploiting the computational demands of video games for deep reinforcement learning",
anonymous, under review. Every number has its place in the paper beside it. Nothing is computed from them but the
comparison.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence
from lcd.analyses.by_the_paper import OF_SCORES, PROCGEN, by_the_paper

# Section 3, "Diagnosing the computational challenges of the Procgen benchmark" (figure 1d).
CLASSES = {
    "neither": ("fruitbot", "jumper", "miner", "heist", "chaser", "bossfight"),
    "perception": ("caveflyer", "dodgeball", "plunder", "coinrun", "ninja", "climber", "starpilot"),
    "reward": ("bigfish", "leaper"),
    "both": ("maze",),
}
# Section 4, "The whole is only sometimes greater than the sum of the parts in dRL" (figure 5).
SYNERGY = {
    "more than the sum": ("leaper", "maze", "chaser", "jumper", "starpilot", "bigfish"),
    "no more than the sum": (
        "heist", "dodgeball", "fruitbot", "miner", "coinrun", "bossfight", "plunder", "ninja", "caveflyer", "climber",
    ),
}  # fmt: skip
# A.7: improvement of generalisation with the flow front-end, in per cent.
FRONTEND_GAIN = {
    "chaser": 7.5, "leaper": -117.6, "bigfish": 37.9, "bossfight": -39.8,  # easy φ
    "starpilot": 28.7, "dodgeball": 71.4, "climber": 3364.6,  # hard φ
}  # fmt: skip
# Section 4, "Perceptual challenge evaluations": Spearman's ρ between φ and the front-end's benefit, 7 games, p < .05.
FRONTEND_RHO = 0.79
# Section 4, "Reinforcement learning challenge evaluations": Spearman's ρ between ψ and the improvement by shaping,
# three games, p < .001.
SHAPING_RHO = 0.92
SLIPS = (
    "Spearman's ρ = .92 (p < .001) between ψ and what shaping gains cannot be: over three games ρ is ±1 or ±0.5 "
    "without ties (with them also 0 or ±.87), and no order of three is rarer than 1 in 6.",
    "A.7's 3364.6 % of climber is a ratio to an AUC near zero: it alone makes the mean of the hard games 1155 %, where "
    "the other two have 50 %.",
    "A.7's −117.6 % of leaper says that the AUC with the front-end is below a random agent's: below 0.",
    "The captions of figures 10 and 11 call PPG 'proximal policy gradient'; it is phasic policy gradient. They show "
    "100M steps and training levels, where those of PPO show 200M and both.",
    "A.1's '15 convolutional layers, 16 residual blocks' is not the network it cites: Espeholt et al.'s has 15 "
    "convolutional layers in 6 residual blocks and 3 downsampling stages.",
)


def beside_the_paper(evidence: Evidence) -> Analysis | None:
    """What was found on Procgen beside what the paper reports, game by game."""
    return compare(by_the_paper(evidence))


def compare(analyses: Sequence[Analysis]) -> Analysis | None:
    """What this study found beside what the paper reports, game by game; None where no game was diagnosed.

    Args:
        analyses: the study's, of which taxonomy, synergy and frontend are compared.
    """
    found = {analysis.key: analysis.table for analysis in analyses}
    rows = []
    for key, column, published in (
        ("taxonomy", "class", by_game(CLASSES)),
        ("synergy", "helps", by_game(SYNERGY)),
        ("frontend", "gain %", FRONTEND_GAIN),
    ):
        table = found.get(key, pd.DataFrame())
        if key == "frontend" and len(table):
            # A front-end of which there may be several is followed by which one it is.
            table = table[table["frontend"].str.partition("/")[0] == "flow"]
        for _, row in table.iterrows():
            game = row["task"].removeprefix("procgen/")
            if not row["benchmark"].startswith(PROCGEN) or game not in published:
                continue
            agent = row["agent"] if "agent" in row else row["agents"]
            rows.append(
                {"task": row["task"], "agent": agent, "what": key, "here": row[column], "paper": published[game]}
            )
    if not rows:
        return None
    table = pd.DataFrame(rows)
    says = []
    for what, rows_of in table.groupby("what", sort=False):
        agreed = sum(alike(row["here"], row["paper"]) for _, row in rows_of.iterrows())
        words = "the same sign" if what == "frontend" else "the same outcome"
        says.append(f"{what}: {agreed} of {len(rows_of)} have {words} as in the paper.")
    table = table.astype({"here": object, "paper": object})
    for name in ("here", "paper"):
        table[name] = [value if isinstance(value, str) else f"{value:.1f} %" for value in table[name]]
    return Analysis("published", "Beside the paper's outcomes on Procgen", table, says, " ".join((OF_SCORES, *SLIPS)))


def by_game(classes: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Game to its class."""
    return {game: name for name, games in classes.items() for game in games}


def alike(here: Any, paper: Any) -> bool:
    """Whether both are the same class, or numbers of the same sign."""
    if isinstance(here, str) or isinstance(paper, str):
        return here == paper
    return (float(here) > 0) == (float(paper) > 0)
