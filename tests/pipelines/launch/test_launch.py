"""The local launcher: all calls are made, whatever some of them do, and nothing outlives the launching process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lcd.config.schema_parts import DeadlinesConfig
from lcd.envs.errors import InputError
from lcd.pipelines.launch.launchers import Call, launch, usable_cores
from lcd.process import children

pytestmark = pytest.mark.usefixtures("fresh_processes")

HERE = str(Path(__file__).parents[1])


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(HERE)


def calls(tmp_path, *names):
    return [Call((name, str(tmp_path)), log=tmp_path / f"{name}.log") for name in names]


def test_one_failing_or_dying_call_does_not_stop_the_others(tmp_path):
    names = ["fine-1", "raise", "die", "fine-2", "exit", "fine-3"]
    outcomes = launch("local", "launched:act", calls(tmp_path, *names), workers=2)
    errors = {outcome.call.arguments[0]: outcome.error for outcome in outcomes}
    assert list(errors) == names
    assert [name for name, error in errors.items() if error is None] == ["fine-1", "fine-2", "fine-3"]
    assert errors["raise"] == "ValueError: told to"
    assert "SIGKILL" in errors["die"]
    assert "exit code 7" in errors["exit"]
    assert "printed by fine-1" in (tmp_path / "fine-1.log").read_text()
    assert "Traceback" in (tmp_path / "raise.log").read_text()


def test_a_log_that_cannot_be_written_takes_no_worker_down(tmp_path):
    call = Call(("fine-1", str(tmp_path)), log=tmp_path / "gone" / "log.txt")
    (outcome,) = launch("local", "launched:act", [call])
    assert outcome.error is None
    assert (tmp_path / "fine-1").exists()


def test_workers_are_long_lived_and_have_their_threads(tmp_path):
    names = [f"fine-{i}" for i in range(4)]
    launch("local", "launched:act", calls(tmp_path, *names), workers=1, threads=3)
    told = [(tmp_path / name).read_text().split() for name in names]
    assert len({pid for pid, _ in told}) == 1
    assert told[0][1] == "3"


def test_a_function_that_cannot_be_imported_is_every_calls_error(tmp_path):
    outcomes = launch("local", "launched:nothing", calls(tmp_path, "a", "b"), workers=1)
    assert all("nothing" in outcome.error for outcome in outcomes)


def test_what_never_returns_is_ended_and_the_others_go_on(tmp_path):
    """Python that waits for ever and native code that keeps the interpreter's lock; the log says where they stood."""
    names = ["python", "native", "fine", "beating"]
    limits = DeadlinesConfig(start=60, heartbeat=2)
    outcomes = launch("local", "launched:act", calls(tmp_path, *names), workers=2, deadlines=limits)
    errors = {outcome.call.arguments[0]: outcome.error for outcome in outcomes}
    assert errors["fine"] is errors["beating"] is None
    for name in ("python", "native"):
        assert errors[name].startswith("deadlines.heartbeat=2 has passed"), errors[name]
        assert "give more seconds" in errors[name]
        assert "launched.py" in (tmp_path / f"{name}.log").read_text()
        pid = int((tmp_path / name).read_text().split()[0])
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_call_that_never_begins_is_ended(tmp_path):
    limits = DeadlinesConfig(start=3, heartbeat=600)
    (outcome,) = launch("local", "launched:act", calls(tmp_path, "sleep"), workers=1, deadlines=limits)
    assert outcome.error.startswith("deadlines.start=3 has passed without a sign of a first step")


def test_no_calls_and_unknown_launchers():
    assert launch("local", "launched:act", []) == []
    with pytest.raises(InputError, match=r"pbs.*local"):
        launch("pbs", "launched:act", [])
    assert 1 <= usable_cores() <= os.cpu_count()


# A shell's background job hands down an ignored SIGINT; a terminal's does not.
SLEEPING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from lcd.pipelines.launch.launchers import Call, launch
from lcd.pipelines.launch import local
local.GRACE_S = 1
launch("local", "launched:act", [Call((f"{sys.argv[3]}-{i}", sys.argv[2])) for i in range(2)], workers=2)
"""


def start(tmp_path, kind):
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPING, HERE, str(tmp_path), kind], stderr=subprocess.PIPE, text=True
    )
    pids = []
    for name in (f"{kind}-0", f"{kind}-1"):
        wait_for(lambda name=name: (tmp_path / name).exists() and (tmp_path / name).read_text())
        pids.append(int((tmp_path / name).read_text().split()[0]))
    return process, pids


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_die_with_the_launching_process(tmp_path, number):
    process, pids = start(tmp_path, "sleep")
    process.send_signal(number)
    process.wait()
    wait_for(lambda: not any(map(alive, pids)))


@pytest.mark.parametrize("kind", ["sleep", "stubborn"])
def test_ctrl_c_stops_workers_soon(tmp_path, kind):
    process, pids = start(tmp_path, kind)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert not any(map(alive, pids))
    assert "KeyboardInterrupt" in process.stderr.read()
    if kind == "sleep":
        assert (tmp_path / "sleep-0.stopped").exists()


def test_files_in_the_working_directory_stand_for_nothing(tmp_path, monkeypatch):
    (tmp_path / "lcd").mkdir()
    for name in ("random.py", "numexpr.py", "lcd/__init__.py"):
        (tmp_path / name).write_text("raise SystemExit('a file in the working directory was run')")
    monkeypatch.chdir(tmp_path)
    (outcome,) = launch("local", "launched:act", calls(tmp_path, "fine"), workers=1)
    assert outcome.error is None


def test_a_worker_whose_command_is_gone_before_it_has_work_ends_without_a_word(capfd):
    process, pipe = children.start("lcd.pipelines.launch.local:work")
    pipe.close()
    assert process.wait(60) == 0
    assert capfd.readouterr().err == ""
