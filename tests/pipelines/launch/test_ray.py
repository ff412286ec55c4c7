"""A real Ray: a head and two nodes, a worker and a node that die, and a command that is stopped or gone."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest
import slow_counting
from fork_server import interpret
from slow_counting import command, hands, have_made, parent, starts_of, steps_of, until
from small_disk import full, read_only

from lcd import cli
from lcd.envs.errors import InputError
from lcd.pipelines.launch import ray as launcher
from lcd.pipelines.launch.order import Call, Needs
from lcd.process.signals import CONTINUE_ME

HERE = str(Path(__file__).parents[1])
RAY = ("launcher=ray", "launcher.grace=15")


def test_what_ray_is_told_of_a_call():
    call = Call((), label="a run", needs=Needs(cores=2, memory=10**9, gpus=1, gpu_memory=10**9))
    told = launcher.options(call, launcher.RaySettings(gpus=0.25, resources={"a100": 1}), threads=4)
    assert told == {
        "num_cpus": 4, "num_gpus": 0.25, "memory": 10**9, "resources": {"a100": 1.0}, "max_retries": 3, "name": "a run",
    }  # fmt: skip
    assert launcher.options(call, launcher.RaySettings(memory=2), threads=1)["memory"] == 2 << 30
    assert launcher.options(Call((), needs=Needs(gpus=4)), launcher.RaySettings(gpus=1), threads=1)["num_gpus"] == 4
    assert launcher.options(Call((), needs=Needs(gpus=1)), launcher.RaySettings(), threads=1)["num_gpus"] == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"gpus": 1.5}, "launcher.gpus=1.5 must be a share of one GPU, or a whole number"),
        ({"retries": -1}, "launcher.retries=-1 must be at least 0"),
        ({"memory": 0.0}, "launcher.memory=0 must be above 0"),
        ({"resources": {"x": -1}}, r"launcher.resources=\{x: -1\} must be a number of 0 or more"),
        ({"resources": {"x": 1.5}}, "and a whole one above 1"),
        ({"resources": {"x": "many"}}, "must be a number"),
        ({"resources": {"GPU": 1}}, "has keys of its own|leave it"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, told):
    with pytest.raises(InputError, match=told):
        launcher.RaySettings(**given)


def test_where_nobody_answers_there_is_no_cluster(tmp_path, capsys):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        words = ["launcher=ray", f"launcher.address=127.0.0.1:{closed.getsockname()[1]}", f"out={tmp_path / 'study'}"]
        begun = time.monotonic()
        assert cli.main(["diagnose", "tracker=none", "device=cpu", *words]) == 2
    assert time.monotonic() - begun < 60
    assert "no Ray cluster there (Connection refused)" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def test_a_study_that_a_node_does_not_see_is_refused_there(tmp_path):
    """Else it would be trained on that node's own disk, and nobody would find it."""
    call = Call((), log=tmp_path / "not" / "there" / "log.txt")
    error, stopped = launcher.make("os:getpid", call, {}, [], None, str(tmp_path))
    assert (error.startswith(f"{tmp_path}/not/there is not seen on"), stopped) == (True, False)


class Nodes:
    """A head that works on nothing, and nodes that do."""

    def __init__(self, number):
        from ray.cluster_utils import Cluster

        self.how = {"object_store_memory": launcher.STORE_BYTES}
        self.cluster = Cluster(
            initialize_head=True, head_node_args={**self.how, "num_cpus": 0, "include_dashboard": False}
        )
        self.nodes = [self.cluster.add_node(num_cpus=2, **self.how) for _ in range(number)]

    def lose_one(self):
        """Take a node away, and bring another."""
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)
        self.nodes.append(self.cluster.add_node(num_cpus=2, **self.how))


@pytest.fixture(scope="module")
def nodes():
    """A cluster for all tests of this file."""
    if not os.environ.get("CI"):
        pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        variables = {"PYTHONPATH": HERE, "OMP_NUM_THREADS": "1", slow_counting.PAUSE: "0.4"}
        for name, value in (variables | {"RAY_USAGE_STATS_ENABLED": "0"}).items():
            patch.setenv(name, value)
        patch.syspath_prepend(HERE)
        made = Nodes(2)
        patch.setenv("RAY_ADDRESS", made.cluster.address)
        yield made
        made.cluster.shutdown()


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_graph_a_worker_and_a_node_that_die_and_another_launcher(tmp_path, nodes):
    """All others wait for the first count."""
    folder, seeds = tmp_path / "study", list(range(6))
    asked = command(folder, seeds, *RAY, "first")
    until(lambda: any(step > 1 for step in steps_of(folder)))
    assert len(hands(folder)) == 1
    os.kill(parent(hands(folder)[0]), signal.SIGKILL)
    until(lambda: sum(step > 0 for step in steps_of(folder)) > 2)
    beside = command(folder, seeds, "launcher=local", "launcher.workers=1", "first")
    nodes.lose_one()
    assert beside.wait() == 0
    assert asked.wait() == 0
    starts = starts_of(folder, seeds)
    assert starts[0] == 2
    assert 7 <= sum(starts.values()) <= 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_stopped_or_gone_leaves_nobody_at_work(tmp_path, nodes, number):
    folder, seeds = tmp_path / "study", list(range(2))
    asked = command(folder, seeds, *RAY)
    until(lambda: sum(0 < step < 9 for step in steps_of(folder)) == 2)
    left = hands(folder)
    os.kill(asked.pid, number)
    assert asked.wait() == (CONTINUE_ME if number == signal.SIGTERM else -number)
    until(lambda: not any(map(alive, left)), 60)
    before = steps_of(folder)
    time.sleep(1)
    assert steps_of(folder) == before
    assert have_made(folder, seeds, *RAY)
    begun = sum(0 < step < slow_counting.STEPS for step in before)
    assert sorted(starts_of(folder, seeds).values()) == [1] * (2 - begun) + [2] * begun


@pytest.mark.parametrize("fault", [full, read_only])
def test_a_disk_that_takes_nothing_is_told_in_a_sentence_and_gone_on_after(nodes, small_disk, fault):
    folder, seeds = small_disk / "study", [0, 1]
    asked = interpret(slow_counting.COMMAND, str(folder), str(seeds), "tracker=none", *RAY, "told", piped=True)
    until(lambda: sum(0 < step < 8 for step in steps_of(folder)) == 2)
    with fault(small_disk):
        told = asked.communicate()[0]
        assert asked.returncode == 1
        assert "the same command continues" in " ".join(told.split())
        assert "Traceback" not in told
    assert have_made(folder, seeds, *RAY)
    assert set(starts_of(folder, seeds).values()) == {2}
