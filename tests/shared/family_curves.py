"""Tables of curves on families, with known scores, and what the analysis tells of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lcd.analyses import Analysis, Evidence
from lcd.analyses.families import families
from lcd.analyses.family_settings import FamilySettings
from lcd.curves.names import evaluated_name
from lcd.envs.families.family import grid_family, point_name
from lcd.scores.diagnosis import diagnose_curves

GRID = grid_family({"length": (0.5, 1, 2, 4), "mass": (1, 3, 9)}, {"length": 1, "mass": 1})
NAMES = [point_name(point) for point in GRID.points]
QUICK = FamilySettings(approximations=False)
STEPS = np.array([0.0, 1000.0, 2500.0, 4000.0])


def family_curves(
    task: str,
    contexts: Sequence[str],
    finals: Mapping[str, np.ndarray],
    default: Mapping[str, np.ndarray] | None = None,
    **columns: object,
) -> pd.DataFrame:
    """Curves that rise to given last normalised returns.

    Args:
        task: whose family it is.
        contexts: names of points.
        finals: agent → (points, seeds).
        default: agent → (seeds,) on the default point.
        columns: further columns, the same in all rows.
    """
    parts = []
    for agent, of_points in finals.items():
        own = (default or {}).get(agent, np.zeros(0))
        cells = [
            (name, seed, value) for name, of in zip(contexts, of_points, strict=True) for seed, value in enumerate(of)
        ]
        cells += [("", seed, value) for seed, value in enumerate(own)]
        for context, seed, value in cells:
            parts.append(
                {"task": task, "context": context, "trained_on": evaluated_name(task, context), "agent": agent,
                 "seed": seed, "final": value}
            )  # fmt: skip
    runs = pd.DataFrame(parts)
    frame = runs.loc[runs.index.repeat(len(STEPS))].reset_index(drop=True)
    frame["step"] = np.tile(STEPS, len(runs))
    frame["return_mean"] = 500 * frame.pop("final") * (frame["step"] / STEPS[-1]) ** 2
    usual = {"view": "state", "reward_p": 1.0, "r_min": 0.0, "r_max": 500.0}
    return frame.assign(**(usual | columns))


def scores(*means: float) -> dict[str, np.ndarray]:
    """Agents a, b, … whose overall performances are these; on its points each has all values around it."""
    rng = np.random.default_rng(8)
    ramp = np.linspace(-0.2, 0.2, len(NAMES))[:, None]
    return {
        name: mean + rng.permutation(ramp) + np.array([[-0.02, 0.0, 0.02]])
        for name, mean in zip("abcdef", means, strict=False)
    }


def told(frame: pd.DataFrame, settings: FamilySettings = QUICK) -> dict[str, Analysis]:
    """What the analysis makes of some curves, by key."""
    return {found.key: found for found in families(Evidence(diagnose_curves(frame)), settings)}
