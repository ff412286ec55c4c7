"""Lets the tests of all rooms import what they share, and start processes quickly."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "shared"), str(HERE / "soak")]


def pytest_xdist_auto_num_workers():
    """One more than there are cores: a third of the tests' time is waiting for clusters, browsers and processes."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True, scope="session")
def forked_processes():
    """Processes that this one starts are forks of one that has imported what trains."""
    import fork_server

    from lcd.process import children

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(children, "start", fork_server.start)
        yield


@pytest.fixture(scope="module")
def fresh_processes(forked_processes):
    """Processes that this one starts are fresh interpreters, for files that ask how such begin and end."""
    import fork_server

    from lcd.process import children

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(children, "start", fork_server.fresh)
        yield


# The tests of these files take longest: one that begins last would keep the other cores waiting.
FIRST = (
    *("launch/test_slurm.py", "launch/test_ray.py", "soak/test_short.py", "study/test_cost.py", "study/test_paper.py"),
    *("study/test_jobs.py",),
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not str(item.path).endswith(FIRST))
