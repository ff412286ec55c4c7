"""What a user sees while a study trains, on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from lcd.pipelines.study import progress, store


@pytest.fixture
def runs(tmp_path, monkeypatch):
    made = []
    for name, status in {
        "a": {"state": "done", "step": 100},
        "b": {"state": "running", "step": 50, "steps_per_s": 1234.0},
        "c": {"state": "queued"},
        "d": {"state": "failed", "step": 0},
    }.items():
        config = {
            "kind": "train",
            "task": f"toy/{name}",
            "knobs": {},
            "view": "pixels",
            "reward_p": 0.5,
            "seeds": [0, 1],
            "steps": 100,
        }
        config |= {"agent": {"name": "ppo"}, "frontend": {"name": "identity"}, "shaping": "none"}
        (tmp_path / name).mkdir()
        made.append(store.Run(config, tmp_path / name))
        made[-1].update(steps=100, **status)
    return made


def watch(runs, monkeypatch, terminal):
    """The progress of ten seconds in which 40 steps of one run were made."""
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    told = io.StringIO()
    console = Console(file=told, force_terminal=terminal, width=100, highlight=False, color_system=None)
    with progress.Progress(runs, console) as shown:
        now = 110.0
        runs[1].update(step=90)
        shown.update()
        drawn = told.getvalue()
    return shown, drawn


def test_numbers_are_of_all_seeds_and_of_this_command(runs, monkeypatch):
    shown, drawn = watch(runs, monkeypatch, terminal=False)
    assert shown.rate() == 8.0
    assert shown.seconds_left() == (2 * 10 + 200) / 8
    assert drawn == "1/4 runs done, 1 failed, 8 steps/s, 0:10 elapsed, 0:27 left\n"


def test_a_terminal_shows_the_runs_at_work(runs, monkeypatch):
    _, drawn = watch(runs, monkeypatch, terminal=True)
    lines = [line.strip() for line in drawn.splitlines() if "━" in line or "runs done" in line]
    assert lines[-2].startswith("1/4 runs done")
    assert lines[-2].endswith("left")
    assert lines[-1].startswith("toy/b  pixels  p=0.5")
    assert lines[-1].endswith("step 90 of 100  1,234 steps/s")
    assert "toy/c" not in drawn


def test_nothing_known_yet(runs):
    shown = progress.Progress(runs[2:3], Console(file=io.StringIO()))
    assert shown.seconds_left() is None
    assert "time left unknown" in shown.line()


@pytest.mark.parametrize(("seconds", "said"), [(0, "0:00"), (61.9, "1:01"), (3599, "59:59"), (7384, "2 h 03 min")])
def test_clock(seconds, said):
    assert progress.clock(seconds) == said
