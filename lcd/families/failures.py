"""Which points of a family fail, where their benchmark says by what (`lcd.envs.protocols.KnowsFailures`)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from lcd.envs.protocols import KnowsFailures, offers


def known_failure(benchmark: str) -> tuple[str, float] | None:
    """By what a registered benchmark says that a point fails."""
    from lcd.envs.benchmarks import registered_benchmark

    found = registered_benchmark(benchmark)
    return found.failure if found is not None and offers(found, KnowsFailures) else None


def failing_by(rows: pd.DataFrame) -> set[str]:
    """The columns of some rows that benchmarks say points fail by."""
    known = (known_failure(str(benchmark)) for benchmark in rows["benchmark"].unique())
    return {failure[0] for failure in known if failure is not None and failure[0] in rows}


def failures(
    rows: pd.DataFrame, failure: tuple[str, float] | None, contexts: list[str], methods: Iterable[str]
) -> dict[str, np.ndarray]:
    """Method → (points,) whether it fails there; empty unless that is known of all of them everywhere."""
    if failure is None or failure[0] not in rows:
        return {}
    means = rows.pivot_table(index="context", columns="agent", values=failure[0], aggfunc="mean")
    means = means.reindex(index=contexts, columns=list(methods))
    return {} if means.isna().any(axis=None) else {str(name): (means[name] > failure[1]).to_numpy() for name in means}
