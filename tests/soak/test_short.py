"""The soaks in short: a few kills and faults, to see that the long forms still work and that nothing obvious broke."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import faults  # noqa: E402
import memory  # noqa: E402


def soaked(name: str, *arguments: str, code: int = 0) -> dict:
    """The figures of a soak; it found nothing, or with `code` 1 something."""
    line = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_killed_commands_end_as_if_nothing_had_been():
    figures = soaked("kills", "--forked", "--kills", "6", "--commands", "pretrain", "ppg", "learner")
    assert figures["kills"] == 6
    assert figures["studies finished"] >= 1
    assert figures["curves compared"] >= 3


@pytest.mark.skipif(faults.compiler() is None, reason="needs a C compiler")
@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD")
def test_writes_that_fail_leave_nothing_broken():
    figures = soaked("faults", "--commands", "ppg", "learner", "--in-turn", "0", "--every", "21", "--first", "3")
    assert all(sum(made for name, made in figures["faults"].items() if kind in name) for kind in faults.KINDS)


def test_many_hands_on_a_disk_that_is_slow_and_fails():
    figures = soaked("hands", "--hands", "40", "--runs", "6", "--failure", "0.004", "--delay", "0.001")
    assert figures["findings"] == 0
    assert figures["deaths"] > 5
    assert figures["leases"] > 6


def test_a_leak_is_told_from_noise():
    rng = np.random.default_rng(0)
    noise = 4e5 + rng.normal(0, 300, 60)
    assert not memory.judged(noise)["grows"]
    assert not memory.judged(noise - 1000 * np.exp(-np.arange(60)))["grows"]
    assert memory.judged(noise + 200 * np.arange(60))["grows"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_process_that_keeps_memory_is_found():
    figures = soaked("memory", "--loops", "training", "--minutes", "0", "--leak", "40000", code=1)
    assert figures["training"]["rounds"] == memory.LEAST_ROUNDS
