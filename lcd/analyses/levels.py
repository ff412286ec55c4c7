"""Final returns (interquartile means), and how much better agents are on the levels they were trained on."""

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis
from lcd.analyses.areas import Condition, final_returns, pick, seed_areas, tasks_of, with_interval
from lcd.curves import CONDITION
from lcd.statistics import BOOTSTRAP_SEED, RESAMPLES, iqm

SETTING = [name for name in CONDITION if name != "task"]


def final_performance(curves: pd.DataFrame) -> Analysis:
    """Interquartile mean of the last held-out returns, over all tasks and seeds, of every condition."""
    held_out = curves[curves["split"] == "eval"]
    rows = []
    for key, rows_of in held_out.groupby(SETTING, sort=False):
        finals = [final_returns(mine).to_numpy() for _, mine in rows_of.groupby("task", sort=True)]
        low, high = _stratified(finals)
        found = {"IQM": float(iqm(np.concatenate(finals))), "IQM_low": low, "IQM_high": high}
        rows.append(dict(zip(SETTING, key, strict=True)) | {"tasks": float(len(finals))} | found)
    note = (
        "Interquartile mean (Agarwal et al. 2021) of normalised held-out returns at the end of training, over tasks "
        "and seeds; intervals resample the seeds of each task."
    )
    return Analysis("final", "Final performance", pd.DataFrame(rows), (), note)


def _stratified(samples: list[np.ndarray]) -> tuple[float, float]:
    """Interval of the IQM over all samples when the seeds of each task are resampled."""
    if min(map(len, samples)) < 2:
        return np.nan, np.nan
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = [sample[rng.integers(len(sample), size=(RESAMPLES // 4, len(sample)))] for sample in samples]
    low, high = np.quantile(iqm(np.concatenate(drawn, axis=1)), [0.025, 0.975])
    return float(low), float(high)


def generalisation(curves: pd.DataFrame) -> Analysis | None:
    """AUC on training levels less AUC on held-out ones, by condition; None without training curves."""
    if not (curves["split"] == "train").any():
        return None
    rows = []
    for (benchmark, task), mine in tasks_of(curves):
        for key, rows_of in mine.groupby(SETTING[1:], sort=False):
            wanted: Condition = {}
            if _short(pick(rows_of, "train")):
                continue  # no episode of training had ended but once
            splits = {split: seed_areas(rows_of, {split: wanted}, split) for split in ("train", "eval")}
            if any(found is None for found in splits.values()):
                continue
            samples = {split: found[split] for split, found in splits.items()}
            named = {"benchmark": benchmark, "task": task} | dict(zip(SETTING[1:], key, strict=True))
            rows.append(named | with_interval(("AUC training", "AUC held out", "gap"), samples, _gap))
    if not rows:
        return None
    table = pd.DataFrame(rows)
    wide = table[table["gap_low"] > 0]
    says = [
        f"Agents are better on the levels they were trained on in {len(wide)} of {len(table)} conditions, for sure."
    ]
    return Analysis(
        "generalisation", "Training levels against held-out levels", table, says, "Original reward on both."
    )


def _short(rows: pd.DataFrame) -> bool:
    """Whether a seed has fewer evaluations than an area needs."""
    return rows.empty or int(rows.groupby("seed")["step"].nunique().min()) < 2


def _gap(averages: np.ndarray) -> np.ndarray:
    return np.stack([averages[..., 0], averages[..., 1], averages[..., 0] - averages[..., 1]], axis=-1)
