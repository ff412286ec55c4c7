"""A real Slurm: arrays, signals, limits, a node that dies, commands that are gone, and two launchers at one study."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
import slow_counting
from fork_server import interpret
from slow_counting import command, hands, have_made, parent, starts_of, steps_of, until
from slurm_cluster import Cluster, missing
from small_disk import full, read_only

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.errors import Elsewhere, InputError
from lcd.pipelines.launch import slurm, slurm_asked, slurm_jobs
from lcd.pipelines.launch.order import Call, Needs
from lcd.pipelines.study import store
from lcd.process.children import resolve
from lcd.process.signals import CONTINUE_ME

HERE = str(Path(__file__).parents[1])
SLURM = ("launcher=slurm", "launcher.poll=0.5", "launcher.time=60", "launcher.grace=15")


def test_packs_are_of_calls_that_wait_for_the_same_and_take_as_much():
    after = {"a": (), "b": ("a",), "c": (), "d": ("b", "c"), "e": (), "f": ("a",)}
    calls = [Call((), name=name, after=names) for name, names in after.items()]
    calls.append(Call((), name="wide", needs=Needs(cores=4)))
    found = [[call.name for call in pack] for pack in slurm.in_packs(calls, 2)]
    assert found == [["a", "c"], ["e"], ["wide"], ["b", "f"], ["d"]]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"time": 1, "notice": 90}, "launcher.notice=90 must be less than the 1 minutes of launcher.time"),
        ({"pack": 0}, "launcher.pack=0 must be at least 1"),
        ({"memory": 0.0}, "launcher.memory=0.0 must be above 0"),
        ({"sbatch": {"comment": "mine"}}, r"launcher.sbatch=\{comment: …\}: the launcher finds its jobs by that"),
        ({"sbatch": {"open_mode": "append"}}, r"launcher.sbatch=\{open_mode: …\}"),
        ({"sbatch": {"mail-user": "me\n#SBATCH --hold"}}, "a key and its value stand in one line"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, told):
    with pytest.raises(InputError, match=told):
        slurm_asked.SlurmSettings(**given)


def test_without_slurm_it_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main(["diagnose", "tracker=none", "device=cpu", *SLURM, f"out={tmp_path / 'study'}"]) == 2
    assert "launcher=slurm needs Slurm's sbatch, which is not here" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def test_a_strangers_jobs_are_left_alone(tmp_path, monkeypatch):
    """Slurm knows jobs of these numbers, but they were submitted from elsewhere."""
    place = tmp_path / "study" / "slurm" / "x"
    place.mkdir(parents=True)
    evil = '{"7": {"calls": ["a"], "outcomes": "o.json"}, "--all": {"calls": ["a"], "outcomes": "o"}, "8": 3}'
    (place / "jobs.json").write_text(evil)
    assert [each.job for each in slurm_jobs.remembered(place)] == ["7"]
    said = {"7": ("PENDING", "/home/me/mine/slurm/y")}
    monkeypatch.setattr(slurm_jobs, "job_states", lambda arrays: said)
    assert slurm_jobs.cancel_queued(tmp_path / "study", lambda name: True, "why") == 0
    said["7"] = ("PENDING", str(place))
    assert [each.calls for each in slurm_jobs.queued(tmp_path / "study")] == [("a",)]


def test_jobs_that_would_never_start_are_told_from_those_that_wait(tmp_path, monkeypatch):
    """What its user or an administrator holds waits; what Slurm holds for good does not; `lcd cancel` takes both."""
    place = tmp_path / "study" / "slurm" / "x"
    place.mkdir(parents=True)
    reasons = ["JobHeldUser", "launch failed requeued held", "Dependency", "DependencyNeverSatisfied", "None"]
    lines = [f"{job}|{'RUNNING' if job == 5 else 'PENDING'}|{why}|{place}" for job, why in enumerate(reasons, 1)]
    for name, told in {"squeue": "\n".join(lines), "scancel": ""}.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/{name}.asked\ncat <<'END'\n{told}\nEND\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    jobs = [slurm_jobs.Submitted(str(job), (f"run-{job}",), place / f"outcomes-{job}.json") for job in range(1, 6)]
    slurm_jobs.remember(place, jobs)
    states = {each.job: state for each, state in slurm_jobs.queued(tmp_path / "study").items()}
    assert states == {"1": "PENDING", "2": slurm_jobs.STUCK, "3": "PENDING", "4": slurm_jobs.STUCK, "5": "RUNNING"}
    assert slurm_jobs.cancel_queued(tmp_path / "study", lambda name: name != "run-1", "why") == 3
    assert (tmp_path / "scancel.asked").read_text().split() == ["2", "3", "4"]


def test_of_a_submission_that_is_refused_nothing_is_left(tmp_path, monkeypatch):
    def refused(*_):
        raise RuntimeError("sbatch: error: QOSMaxSubmitJobPerUserLimit")

    monkeypatch.setattr("submitit.SlurmExecutor.submit_array", refused)
    monkeypatch.setattr("submitit.SlurmExecutor.affinity", lambda _: 1)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(slurm, "largest_array", lambda: 1000)
    call = Call((), name="a", log=tmp_path / "runs" / "a" / "log.txt")
    queue = slurm.Queue("os:getpid", [call], slurm_asked.SlurmSettings(), 1, {"threads": 1})
    with pytest.raises(InputError, match=r"sbatch takes no such job \(QOSMaxSubmitJobPerUserLimit\)"):
        queue.submit()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("sbatch: fatal: Could not establish a configuration source", "sbatch reaches no Slurm .*: log in to a node"),
        ("sbatch: error: invalid partition", r"sbatch takes no such job \(invalid partition\)"),
    ],
)
def test_no_cluster_is_told_from_a_job_that_it_takes_not(said, told):
    with pytest.raises(InputError, match=told):
        slurm_asked.refuse(said)


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one node, for all tests of this file."""
    if lacking := missing():
        assert not os.environ.get("CI"), f"CI has to have {lacking}"
        pytest.skip(f"needs {', '.join(lacking)}")
    folder = Path(tempfile.mkdtemp(prefix="lcd-slurm-"))
    made = Cluster(folder)
    with pytest.MonkeyPatch.context() as patch:
        variables = {"PYTHONPATH": HERE, "OMP_NUM_THREADS": "1", slow_counting.PAUSE: "0.4"}
        for name, value in (made.environment | variables).items():
            patch.setenv(name, value)
        patch.syspath_prepend(HERE)
        yield made
    made.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def limited(cluster, tmp_path_factory):
    """A count that takes longer than its job may, made while the other tests are."""
    folder = tmp_path_factory.mktemp("limited") / "study"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(slow_counting.PAUSE, "3.5")
        return folder, command(folder, [7], *SLURM, "launcher.time=1", "launcher.notice=20")


def steer(name, folder):
    """What `lcd <name> <folder>` does; the command itself would not import the test's kind of job."""
    return resolve(cli.COMMANDS[name].target)(compose(name, [str(folder)]))


def half_done(folder):
    """The jobs of a study of which every count has begun and has some way to go."""
    if not (folder / "study.yaml").exists():
        return []
    steps = {run.path.name: run.status["step"] for run in store.Study(folder).runs()}
    return [job for job in slurm_jobs.queued(folder) if all(0 < steps[name] < 8 for name in job.calls)]


def test_what_slurm_takes_not_is_refused_before_anything_is_written(tmp_path, cluster, capsys):
    for words, told in {
        "launcher.partition=none": "invalid partition specified: none",
        "launcher.sbatch={nodelist: far}": "Invalid node name",
        "launcher.notice=10": "launcher.notice=10 must be more than launcher.grace=15",
    }.items():
        assert cli.main(["diagnose", "tracker=none", "device=cpu", *SLURM, words, f"out={tmp_path / 'study'}"]) == 2
        assert told in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def test_an_array_a_signal_and_a_command_that_is_gone(tmp_path, cluster, limited):
    """Twelve counts, two jobs at a time; a local command and one that only watches come to the same study."""
    folder, seeds = tmp_path / "study", list(range(12))
    asked = (*SLURM, "launcher.workers=2", "launcher.pack=2")
    first = command(folder, seeds, *asked)
    until(lambda: half_done(folder))
    first.kill()
    pack = half_done(folder)[0]
    telling = subprocess.Popen(["scancel", "--signal=USR1", pack.job], stderr=subprocess.DEVNULL)
    until(lambda: cluster.jobs(folder)[pack.job] != "RUNNING")
    # It would tell the job once more that is queued anew.
    telling.kill()
    telling.wait()
    mine = cluster.jobs(folder)
    assert len(mine) == 6
    assert list(mine.values()).count("RUNNING") <= 2
    beside = command(folder, seeds, "launcher=local", "launcher.workers=1")
    assert have_made(folder, seeds, *asked)
    assert beside.wait() == 0
    again = cluster.jobs(folder).keys() - mine.keys()
    # A pack that ends after the command has looked at its runs, and before it looks at the queue, is in neither: its
    # job finds that there is nothing to do, as the starts below say.
    assert len(again) <= 1, "what is queued is not submitted again"
    starts = starts_of(folder, seeds)
    told = {run.config["seeds"][0] for run in store.Study(folder).runs() if run.path.name in pack.calls}
    assert starts == {seed: 1 + (seed in told) for seed in seeds}, "the pack that was told to stop went on, no other"


def test_a_node_that_dies(tmp_path, cluster, limited):
    """The first count is at work, and the others wait for it, when nothing is left of the node."""
    folder, seeds = tmp_path / "study", list(range(3))
    with pytest.raises(Elsewhere, match=r"3 runs are at Slurm as \d+, \d+, and go on without this command"):
        have_made(folder, seeds, *SLURM, "launcher.detach=true", first=True)
    until(lambda: half_done(folder))
    cluster.kill_node()
    assert have_made(folder, seeds, *SLURM, first=True)
    assert starts_of(folder, seeds) == {0: 2, 1: 1, 2: 1}


def test_cancelled_runs_leave_the_queue_and_go_on_later(tmp_path, cluster, limited, capsys, monkeypatch):
    folder, seeds = tmp_path / "study", list(range(3))
    monkeypatch.setenv(slow_counting.PAUSE, "1")
    with pytest.raises(Elsewhere):
        have_made(folder, seeds, *SLURM, "launcher.workers=1", "launcher.detach=true")
    monkeypatch.setenv(slow_counting.PAUSE, "0.05")
    until(lambda: half_done(folder))
    assert steer("status", folder) == 75
    assert "2 runs are in Slurm's queue" in capsys.readouterr().out
    assert steer("cancel", folder) == 0
    assert "3 runs of" in (said := capsys.readouterr().out)
    assert "2 of their jobs were taken out of Slurm's queue" in said
    until(lambda: not {"PENDING", "RUNNING"} & set(cluster.jobs(folder).values()))
    assert steer("retry", folder) == 0
    assert have_made(folder, seeds, "launcher=local")
    assert sorted(starts_of(folder, seeds).values()) == [1, 1, 2]


def test_a_job_that_is_killed_is_submitted_again_and_one_that_is_cancelled_stops(
    tmp_path, cluster, limited, monkeypatch
):
    folder = tmp_path / "study"
    monkeypatch.setenv(slow_counting.PAUSE, "1")
    asked = command(folder, [1], *SLURM)
    monkeypatch.setenv(slow_counting.PAUSE, "0.05")
    until(lambda: half_done(folder))
    (before,), (first,) = steps_of(folder), hands(folder)
    os.kill(parent(first), signal.SIGKILL)
    until(lambda: hands(folder) not in ([], [first]) and steps_of(folder)[0] > before + 1)
    assert len(cluster.jobs(folder)) == 2
    cluster.told("scancel", *cluster.jobs(folder))
    assert asked.wait() == CONTINUE_ME
    assert [run.status["state"] for run in store.Study(folder).runs()] == ["queued"]
    assert have_made(folder, [1], "launcher=local")
    assert starts_of(folder, [1]) == {1: 3}


def test_what_waits_for_a_job_that_is_killed_waits_for_the_one_in_its_place(tmp_path, cluster, limited, monkeypatch):
    folder, seeds = tmp_path / "study", [0, 1]
    monkeypatch.setenv(slow_counting.PAUSE, "1")
    asked = command(folder, seeds, *SLURM, "first")
    monkeypatch.setenv(slow_counting.PAUSE, "0.05")
    until(lambda: half_done(folder))
    os.kill(parent(hands(folder)[0]), signal.SIGKILL)
    assert asked.wait() == 0
    assert starts_of(folder, seeds) == {0: 2, 1: 1}
    assert sorted(cluster.jobs(folder).values())[0] == "CANCELLED", "the one that would have waited for ever"


def test_a_time_limit_is_gone_on_after(cluster, limited):
    folder, asked = limited
    assert asked.wait() == 0
    assert starts_of(folder, [7])[7] >= 2


@pytest.mark.parametrize("partition", ["all", "kind"])
def test_jobs_that_make_room_for_an_urgent_one_go_on_after_it(tmp_path, cluster, monkeypatch, partition):
    """In `all` they are killed at once, in `kind` they are told some seconds before."""
    folder, seeds = tmp_path / "study", [0, 1]
    monkeypatch.setenv(slow_counting.PAUSE, "1")
    asked = command(folder, seeds, *SLURM, f"launcher.partition={partition}")
    until(lambda: len(half_done(folder)) == 2)
    before = cluster.jobs(folder)
    cluster.told("sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
    until(lambda: "RUNNING" not in cluster.jobs(folder).values())
    assert asked.wait() == 0
    assert cluster.jobs(folder).keys() == before.keys(), "Slurm put the same jobs into its queue again"
    assert all(count > 1 for count in starts_of(folder, seeds).values())


@pytest.mark.parametrize("fault", [full, read_only])
def test_a_disk_that_takes_nothing_is_told_in_a_sentence_and_gone_on_after(cluster, small_disk, fault):
    folder, seeds = small_disk / "study", [0, 1]
    asked = interpret(slow_counting.COMMAND, str(folder), str(seeds), "tracker=none", *SLURM, piped=True)
    until(lambda: len(half_done(folder)) == 2)
    with fault(small_disk):
        told = asked.communicate()[0]
        assert asked.returncode == 1
        assert "the same command continues" in told
        assert "Traceback" not in told
    assert have_made(folder, seeds, *SLURM)
    assert set(starts_of(folder, seeds).values()) == {2}
