"""Several hands at one study: what they see of each other, and what becomes of a straggler."""

import json
import os
import time

import fake_training
import pandas as pd
import pytest
from fork_server import interpret
from slow_counting import config, count, have_made, starts_of
from small_runs import waiting_run

from lcd.pipelines.jobs.record import CurveFile
from lcd.pipelines.jobs.worker import Terms, do_under_lease
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import hands, store, training
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.hands import FREE, GONE, HELD, SILENT, Watch
from lcd.pipelines.study.lease import Entry, last_entry, take

CLI = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import fake_training
fake_training.instead()
from lcd.cli import main
sys.exit(main())
"""
ELSEWHERE = {"host": "node7", "pid": 4, "started": "1", "machine": "another"}
NOBODY = {"host": "here", "pid": 2**22 + 1, "started": "1", "machine": hands._machine()}


@pytest.fixture
def run(tmp_path):
    return waiting_run(tmp_path / "study")


@pytest.fixture
def soon_silent(monkeypatch):
    monkeypatch.setenv(hands.LEASE_VARIABLE, "0.4")


def test_what_is_seen_of_a_hand(run, monkeypatch):
    now = [0.0]
    watch = Watch(run.path, clock=lambda: now[0])
    assert watch.look()[0] == FREE
    lease = take(hands.DISK, run.path, Entry(), ELSEWHERE)
    assert watch.look()[0] == HELD
    now[0] += hands.LEASE_S - 1
    assert watch.look()[0] == HELD
    lease.beat()
    now[0] += 2
    assert watch.look()[0] == HELD, "it beat since the last look"
    now[0] += hands.LEASE_S
    assert watch.look()[0] == SILENT
    lease.end()
    assert watch.look()[0] == FREE
    take(hands.DISK, run.path, last_entry(hands.DISK, run.path), NOBODY)
    assert watch.look()[0] == GONE, "a process of this machine is asked for, not waited for"


def test_a_silent_hand_of_another_machine_is_taken_over_and_a_beating_one_is_not(run, soon_silent):
    lease = take(hands.DISK, run.path, Entry(), ELSEWHERE)
    begun = time.monotonic()
    taken, still = hands.acquire(run.path)
    assert time.monotonic() - begun >= 0.4
    assert (taken.number, still, lease.lost) == (2, False, True)
    with hands.holding(taken):
        # What this process is, another machine would not know.
        hands.DISK.replace(
            taken.ledger.place(2), json.dumps({"what": "taken", "lease": 2, "since": 0, "by": ELSEWHERE}).encode()
        )
        assert hands.acquire(run.path) is None
    assert taken.end()


def test_a_straggler_stops_writing_and_what_it_wrote_is_nobodys(run, monkeypatch, soon_silent):
    """A hand that was paused for longer than its lease comes back in the middle of its work."""
    written = []

    def work(config, folder, tracker, device):
        curve = CurveFile(hands.Path(folder) / "curve.csv", ["step"])
        curve.append([{"step": 1}])
        rival, _ = hands.acquire(run.path, needed=lambda: True) or (None, None)
        assert rival is None, "it is at work"
        other = take(hands.DISK, run.path, last_entry(hands.DISK, run.path), ELSEWHERE)
        assert other.prepare()
        store.finish(other.folder, step=7)
        written.append(folder)
        curve.append([{"step": 2}])
        written.append("a row too many")

    monkeypatch.setattr("lcd.pipelines.jobs.worker.resolve", lambda _: work)
    do_under_lease("x:y", run.config, str(run.path), {"name": "none"}, Device("cpu"))
    assert len(written) == 1
    assert run.status["step"] == 7
    assert not hands.Path(written[0]).exists()


def study(out, *more):
    return [
        "diagnose", "benchmark=toy", "study.tasks=[toy/easy-sight-easy-reward, toy/hard-sight-hard-reward]",
        "study.seeds=2", "study.steps=400", "study.evaluation.every=100", "agent.copies=1", "agent.rollout=100",
        "tracker=none", "device=cpu", "launcher.workers=2", f"out={out}", *more,
    ]  # fmt: skip


def command(out, pause):
    here = os.path.dirname(fake_training.__file__)
    environment = os.environ | {fake_training.PAUSE_S: pause, "OMP_NUM_THREADS": "1"}
    return interpret(CLI, here, *study(out), environment=environment, piped=True)


def wait_until(condition):
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def trained(out):
    """How often each run's worker came to each of its evaluations."""
    return {
        run.path.name: pd.Series((run.path / "log.txt").read_text().split("\n"))
        .value_counts()
        .drop("", errors="ignore")
        for run in store.Study(out).runs()
    }


def test_two_commands_share_a_study_and_both_end_with_all_of_it(tmp_path):
    out = tmp_path / "study"
    both = [command(out, "0.05") for _ in range(2)]
    told = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert all("12 of 12" in text or "report" in text for text in told)
    counts = trained(out)
    assert len(counts) == 12
    assert all((count == 1).all() and len(count) == 5 for count in counts.values()), "a run was trained twice"
    assert len(store.Study(out).record["requests"]) == 1


def test_a_command_goes_on_with_what_a_killed_one_was_at(tmp_path):
    out = tmp_path / "study"
    first = command(out, "0.2")
    wait_until(
        lambda: any(run.status["step"] for run in (store.Study(out).runs() if (out / "study.yaml").exists() else []))
    )
    second = command(out, "0.01")
    wait_until(lambda: sum(run.done for run in store.Study(out).runs()) > 2)
    first.kill()
    told = second.communicate()[0]
    first.communicate()
    assert second.returncode == 0, told
    assert all(run.done for run in store.Study(out).runs())
    assert not list(out.glob("runs/*/at-work"))


def test_a_run_that_was_done_meanwhile_is_not_marked_as_waiting(run):
    """A command that ends looks which runs say that they are at work; another hand may end one right then."""
    lease = take(hands.DISK, run.path, Entry(), ELSEWHERE)
    lease.prepare()
    with hands.holding(lease):
        store.update_status(lease.folder, state="done", step=100)
    assert lease.end(done=True)
    assert not run.mark(state="queued")
    assert run.status["state"] == "done"
    assert last_entry(hands.DISK, run.path).what == "done"
    assert run.mark(anew=True, state="queued")


def test_a_run_that_another_command_ends_while_one_begins_is_not_done_again(tmp_path, monkeypatch):
    folder, plain = tmp_path / "study", training._memory_sentences

    def ended_meanwhile(cfg, order):
        monkeypatch.setattr(training, "_memory_sentences", plain)
        assert have_made(folder, [1], "launcher.workers=1")
        return plain(cfg, order)

    monkeypatch.setattr(training, "_memory_sentences", ended_meanwhile)
    assert have_made(folder, [1], "launcher.workers=1")
    assert starts_of(folder, [1]) == {1: 1}


def test_what_somebody_trained_anew_since_is_left(tmp_path):
    """Two commands with retry=true saw the same run diverge."""
    assert have_made(tmp_path / "study", [1], "launcher.workers=1")
    (run,) = store.Study(tmp_path / "study").runs()
    do_under_lease("slow_counting:count", run.config, str(run.path), {"name": "none"}, Device("cpu"), Terms(anew=True))
    assert starts_of(tmp_path / "study", [1]) == {1: 1}


def test_a_run_that_is_done_while_another_command_asks_for_it_stays_done(tmp_path, monkeypatch):
    """The other one is at the first status of a run that it takes for new."""
    folder, clock = tmp_path / "study", time.time
    asking = store.Study(folder, create=True)

    def meanwhile():
        monkeypatch.setattr(store.time, "time", clock)
        (run,) = store.Study(folder, create=True).ask({}, [Job(config(1))])
        lease, _ = hands.acquire(run.path)
        lease.prepare()
        with hands.holding(lease):
            count(run.config, str(lease.folder), None, None)
        assert lease.end(done=True)
        return clock()

    monkeypatch.setattr(store.time, "time", meanwhile)
    (run,) = asking.ask({}, [Job(config(1))])
    assert run.status["state"] == "done"
    assert starts_of(folder, [1]) == {1: 1}


def test_a_hand_that_is_killed_before_it_says_that_its_run_is_done(tmp_path):
    """Its status says so already, but nothing is in its place, and nobody else would put it there."""
    (run,) = store.Study(tmp_path / "study", create=True).ask({}, [Job(config(1))])
    lease = take(hands.DISK, run.path, Entry(), NOBODY)
    assert lease.prepare()
    with hands.holding(lease):
        count(run.config, str(lease.folder), None, None)
    assert not run.done
    assert have_made(tmp_path / "study", [1], "launcher.workers=1")
    assert starts_of(tmp_path / "study", [1]) == {1: 1}
