"""Signals, kills and full disks: what they leave of a run, and what the same command makes of it."""

import errno
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
import yaml
from fork_server import COMMAND, ForkedProcess, interpret
from small_disk import full

from lcd.agents.ranks import ALONE
from lcd.curves.table import read_curves
from lcd.pipelines.jobs import record
from lcd.pipelines.jobs.checkpoint import STEP, AtomicCheckpoints
from lcd.pipelines.jobs.record import CurveFile, Recorder
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.hands import where
from lcd.pipelines.study.store import read_status
from lcd.process import signals
from lcd.process.children import describe

WAIT_S = 600  # other processes may have all of the machine
TRAINING = [
    "train",
    "task=toy/easy-sight-easy-reward",
    "view=semantic",
    "tracker=none",
    "device=cpu",
    "seeds=[3,8]",
    "steps=10000000",
    "evaluation.every=9000000",
    "evaluation.copies=2",
    "agent.copies=4",
]
PROCGEN = {
    "kind": "train",
    "benchmark": "procgen-easy",
    "task": "procgen/starpilot",
    "knobs": {},
    "view": "semantic",
    "frontend": {"name": "identity"},
    "reward_p": 0.5,
    "shaping": "none",
    "agent": {"name": "ppo", "copies": 4, "rollout": 16, "epochs": 1, "minibatches": 2, "width": 16},
    "seeds": [3],
    "steps": 512,
    "evaluation": {"every": 256, "copies": 1, "episodes": 1},
}
STANDING = """
import sys, time, yaml
from pathlib import Path
import torch
from lcd.process import signals
from lcd.agents.stepping import Stepper
from lcd.pipelines.jobs import record
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.study.configs import Device

torch.set_num_threads(1)
signals.handle_stop_signals()
config, folder, processes, pause, often = yaml.safe_load(sys.argv[1])
record.CHECKPOINT_EVERY_S, record.CHECKPOINT_SHARE = (0, 1) if often else (3600, 1)
step, steps = Stepper.step, 0

def counted(self, actions):
    global steps
    if self.env.num_envs == config["agent"]["copies"] // processes * len(config["seeds"]):
        steps += 1
        if steps == pause:
            mark = Path(folder, "standing")
            mark.touch()
            while mark.exists():
                time.sleep(0.01)
    return step(self, actions)

Stepper.step = counted
try:
    train_run(config, folder, {"name": "none"}, Device("cpu", processes))
except signals.Stopped:
    sys.exit(signals.CONTINUE_ME)
"""


STARTED: list[ForkedProcess] = []


@pytest.fixture(autouse=True)
def nothing_stays():
    """Whatever a test that failed leaves behind ends with it."""
    yield
    for process in STARTED:
        process.kill()
        process.wait()
    STARTED.clear()


def wait_for(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def standing(folder, config, device, pause, often):
    """A training process that stands still before some step of all that it makes in training."""
    folder.mkdir(exist_ok=True)
    told = yaml.safe_dump([config, str(folder), device.devices, pause, often])
    process = interpret(STANDING, told)
    STARTED.append(process)
    wait_for(lambda: (folder / "standing").exists() or process.poll() is not None)
    assert process.poll() is None
    return process


def finish(folder, config, device):
    folder.mkdir(exist_ok=True)
    told = yaml.safe_dump([config, str(folder), device.devices, 0, True])
    assert interpret(STANDING, told).wait() == 0


def kept_step(folder):
    return torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)[STEP]


def assert_equal_runs(found, expected):
    curves = [read_curves(folder / "curve.csv").drop(columns="wall_s") for folder in (found, expected)]
    pd.testing.assert_frame_equal(*curves, check_exact=True)
    ours, theirs = (torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True) for folder in (found, expected))
    assert ours[STEP] == theirs[STEP]
    assert all(torch.equal(ours["state_dict"][name], weight) for name, weight in theirs["state_dict"].items())


def test_procgen_killed_in_the_middle_of_a_rollout_goes_on_to_the_same_last_bit(tmp_path):
    """Masks, thinned rewards and levels' streams included; lost are the steps since the last checkpoint, no more."""
    pytest.importorskip("gym3")
    device = Device("cpu")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for pause, kept in ((37, 128), (55, 320)):
        process = standing(killed, PROCGEN, device, pause, often=True)
        process.kill()
        process.wait()
        (killed / "standing").unlink()
        assert kept_step(killed) == kept
    finish(killed, PROCGEN, device)
    finish(whole, PROCGEN, device)
    assert_equal_runs(killed, whole)


@pytest.mark.parametrize(
    ("device", "number", "to_other_rank"),
    [
        (Device("cpu"), signal.SIGUSR1, False),
        (Device("cpu", 2), signal.SIGTERM, True),
    ],
)
def test_a_signal_ends_the_iteration_and_keeps_it(tmp_path, device, number, to_other_rank):
    config = PROCGEN | {"kind": "train", "benchmark": "toy", "task": "toy/easy-sight-easy-reward"}
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    process = standing(stopped, config, device, 37, often=False)
    os.kill(children(process.pid)[0] if to_other_rank else process.pid, number)
    (stopped / "standing").unlink()
    assert process.wait(WAIT_S) == signals.CONTINUE_ME == 75
    # The signal came in the third rollout.
    assert kept_step(stopped) == 192
    finish(stopped, config, device)
    finish(whole, config, device)
    assert_equal_runs(stopped, whole)


def test_a_second_signal_abandons_the_iteration(tmp_path):
    config = PROCGEN | {"kind": "train", "benchmark": "toy", "task": "toy/easy-sight-easy-reward"}
    process = standing(tmp_path, config, Device("cpu"), 37, often=True)
    process.terminate()
    time.sleep(signals.ECHO_S + 0.5)
    process.terminate()
    assert process.wait(WAIT_S) == signals.CONTINUE_ME
    assert kept_step(tmp_path) == 128


def children(pid):
    """All processes that descend from one."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        for child in (task / "children").read_text().split():
            found += [int(child), *children(int(child))]
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def command(out, *more):
    """`lcd train` of a run that would take an hour."""
    process = interpret(COMMAND, *TRAINING, f"out={out}", *more, piped=True)
    STARTED.append(process)
    wait_for(lambda: at_work(out) or process.poll() is not None)
    assert process.poll() is None, process.stdout.read()
    return process


def at_work(out):
    return any(read_status(status.parent)["step"] > 0 for status in (out / "runs").glob("*/status.json"))


@pytest.mark.parametrize(
    ("number", "to", "processes", "code"),
    [
        (signal.SIGTERM, "command", 1, 75),
        (signal.SIGHUP, "command", 1, 75),
        (signal.SIGUSR1, "worker", 1, 75),
        (signal.SIGUSR1, "command", 2, 75),
        (signal.SIGINT, "command", 2, 130),
        (signal.SIGKILL, "command", 2, -signal.SIGKILL),
    ],
)
def test_how_a_command_ends_and_what_it_leaves(tmp_path, number, to, processes, code):
    out = tmp_path / "study"
    process = command(out, f"devices={processes}")
    others = children(process.pid)
    assert len(others) == processes
    os.kill(process.pid if to == "command" else others[0], number)
    assert process.wait(WAIT_S) == code
    wait_for(lambda: not any(map(alive, others)), seconds=60)
    (run,) = (out / "runs").iterdir()
    if number != signal.SIGKILL:
        assert "The same command continues" in process.stdout.read()
        assert read_status(run)["state"] == "queued"
        assert kept_step(where(run)) >= read_status(run)["step"] > 0
    process.stdout.close()


def test_slow_checkpoints_take_a_small_share_of_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "CHECKPOINT_EVERY_S", 0.0)
    rollouts = SimpleNamespace(
        ranks=ALONE, iteration=0, total=10**9, steps=10**9, step=0, steps_each=1, seeds=[0], stage_ended=False,
        stage="", task=None, agent=None,
    )  # fmt: skip
    writing = []

    class Trainer:
        optimizers = ()

        def save_checkpoint(self, path, weights_only):
            begun = time.perf_counter()
            time.sleep(0.02)
            writing.append(time.perf_counter() - begun)

    curve = CurveFile(tmp_path / "curve.csv")
    recorder = Recorder(rollouts, {}, 10**9, {}, curve, tmp_path / "last.ckpt", dict, lambda rows, told: None)
    recorder.on_fit_start(None, None)
    end = time.perf_counter() + 3
    while time.perf_counter() < end:
        rollouts.iteration += 1
        rollouts.step += 1
        recorder.on_train_batch_end(Trainer(), torch.nn.Linear(1, 1))
        time.sleep(0.001)
    assert len(writing) > 2
    assert sum(writing[:-1]) < 1.2 * record.CHECKPOINT_SHARE * 3


# Full disks


def test_a_full_device_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    """/dev/full takes nothing: the system itself says that no space is left, and torch's archive does not hide it."""
    path = tmp_path / "last.ckpt"
    AtomicCheckpoints().save_checkpoint({STEP: 1000}, path)
    full = os.open("/dev/full", os.O_WRONLY)
    (tmp_path / ".last.ckpt.partial").touch()
    monkeypatch.setattr("lcd.files.atomic.tempfile.mkstemp", lambda **_: (full, str(tmp_path / ".last.ckpt.partial")))
    with pytest.raises(OSError, match="No space left"):
        AtomicCheckpoints().save_checkpoint({STEP: 2000, "much": torch.zeros(10**6)}, path)
    assert torch.load(path, weights_only=True)[STEP] == 1000
    assert [entry.name for entry in tmp_path.iterdir()] == ["last.ckpt"]


def test_pytorchs_own_complaint_of_a_full_disk_is_told_as_such(tmp_path, monkeypatch):
    """Its writer fails once more when it is closed, with words about its own state."""

    def failing(*_):
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        finally:
            raise RuntimeError("[enforce fail at inline_container.cc:664] unexpected pos 64 vs 0")

    monkeypatch.setattr(torch, "save", failing)
    with pytest.raises(OSError, match="No space left") as told:
        AtomicCheckpoints().save_checkpoint({STEP: 1}, tmp_path / "last.ckpt")
    assert "make room" in describe(told.value)
    with pytest.raises(RuntimeError) as hidden:
        failing()
    assert "make room" in describe(hidden.value)
    assert list(tmp_path.iterdir()) == []


def test_a_run_survives_a_full_disk(tmp_path, small_disk):
    """It says so, keeps its last checkpoint, and goes on from there to the same last bit once there is room."""
    out = small_disk / "study"
    process = command(out)
    wait_for(lambda: list(out.glob("runs/*/at-work/*/*/checkpoints/last.ckpt")))
    with full(small_disk):
        told = process.communicate(timeout=WAIT_S)[0]
        assert process.returncode == 1
        assert "No space left on device" in told
        assert "the same command continues" in told
        (run,) = (out / "runs").iterdir()
        before = kept_step(where(run))
        assert 0 < before < 10**7
        assert not list(where(run).rglob(".*.partial"))
    again = command(out)
    wait_for(lambda: read_status(run)["step"] > before)
    again.terminate()
    assert again.wait(WAIT_S) == 75
    again.stdout.close()
    assert kept_step(where(run)) > before
