"""Whether learning each task with what a diagnosis recommends is better than one size for all."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence
from lcd.analyses.areas import SeedAreas, cut_sentence, seed_areas, tasks_of, with_interval
from lcd.scores.contrasts import PERCEPTION

Choice = Mapping[str, str]
"""agent and frontend of a task."""


def by_recommendation(evidence: Evidence) -> Analysis | None:
    """Is it better to adapt agent and front-end to each task's diagnosis than to have one choice for all?"""
    if evidence.curves.empty or not evidence.chosen:
        return None
    return adaptive(evidence.curves, evidence.chosen, evidence.shared_seeds)


def adaptive(curves: pd.DataFrame, chosen: Mapping[str, Choice], shared_seeds: bool = False) -> Analysis | None:
    """The mean AUC of the recommended choices less that of each choice made for all tasks.

    Args:
        curves: curves with the column `normalised`, on pixels at p = 1.
        chosen: task to what is recommended for it.
        shared_seeds: whether the diagnosis was made from the same seeds, which favours what it recommends.

    Returns:
        None where not all of what is recommended was trained.
    """
    plain = curves[
        (curves["shaping"] == "none") & (curves["view"] == PERCEPTION.baseline) & np.isclose(curves["reward_p"], 1)
    ]
    # A front-end's name in curves may go on with which of its kind it is; what is recommended is the kind.
    plain = plain.assign(frontend=plain["frontend"].str.partition("/")[0])
    sizes = sorted(plain[["agent", "frontend"]].drop_duplicates().itertuples(index=False, name=None))
    rows: list[dict[str, Any]] = []
    measured: list[SeedAreas] = []
    for benchmark, mine in plain.groupby("benchmark", sort=True):
        areas_of = {key[1]: _areas_by_size(found) for key, found in tasks_of(mine) if key[1] in chosen}
        measured += areas_of.values()
        for agent, frontend in sizes:
            pairs = {"one": dict.fromkeys(areas_of, f"{agent} + {frontend}")}
            pairs["own"] = {task: f"{chosen[task]['agent']} + {chosen[task]['frontend']}" for task in areas_of}
            samples = {
                f"{task} {name}": areas[pairs[name][task]]
                for task, areas in areas_of.items()
                for name in pairs
                if pairs[name][task] in areas
            }
            if len(samples) == 2 * len(areas_of) and samples:
                named = {"benchmark": benchmark, "one size": f"{agent} + {frontend}", "tasks": float(len(areas_of))}
                rows.append(named | with_interval(("AUC adaptive", "AUC one size", "gain"), samples, _means))
    if not rows:
        return None
    table = pd.DataFrame(rows)
    better = (table["gain_low"] > 0).sum()
    says = [f"Adapting to the diagnosis is better for sure than {better} of {len(table)} choices made for all tasks."]
    note = "Mean AUC over tasks, on pixels at p = 1; intervals over seeds. Where both choose the same, the gain is 0."
    note += cut_sentence(measured)
    if shared_seeds:
        note += " The diagnosis was made from the same seeds, which favours what it recommends."
    return Analysis("adaptive", "Adapting to each task against one size for all", table, says, note)


def _areas_by_size(curves: pd.DataFrame) -> SeedAreas:
    """Every choice of agent and front-end of one task to its AUC by seed, over the steps that all of them have."""
    sizes = curves[["agent", "frontend"]].drop_duplicates().itertuples(index=False, name=None)
    found = seed_areas(curves, {f"{agent} + {one}": {"agent": agent, "frontend": one} for agent, one in sorted(sizes)})
    assert found is not None  # every choice is one of the curves'
    return found


def _means(averages: np.ndarray) -> np.ndarray:
    one, own = averages[..., 0::2].mean(-1), averages[..., 1::2].mean(-1)
    return np.stack([own, one, own - one], axis=-1)
