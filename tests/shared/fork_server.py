"""Processes of ours as forks of one that has imported what trains, and has done nothing else.

A fresh interpreter imports for four seconds before it begins, and the tests start hundreds. Such a fork begins with
what a fresh one has after its imports. All else is as the process that asks for it says: variables, folder, where
modules are looked for, group, and where it prints. What takes its number of threads at its import is started afresh.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
from multiprocessing import reduction
from multiprocessing.connection import Pipe, wait
from types import SimpleNamespace

import forks
import torch

from lcd.process import children

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([*forks.MODULES, "lcd.report.drawers", "lcd.pipelines.study.probe"])
COMMAND = "import sys; from lcd.cli import main; sys.exit(main())"
"""What `lcd` is: code for `interpret`."""
WORKER = "from lcd.pipelines.launch.local "
fresh = children.start


def start(life, environment=None, group=None):
    """What `lcd.process.children.start` does."""
    environment = dict(os.environ if environment is None else environment)
    if environment.get("OMP_NUM_THREADS") != "1":
        return fresh(life, environment, group)
    pipe, far_end = Pipe()
    process = ForkedProcess(_live, (life, far_end), environment=environment, group=group)
    far_end.close()
    return process, pipe


def interpret(code, *arguments, environment=None, folder=None, piped=False):
    """What `python -c code arguments…` is, and the workers that it starts are forks of it.

    Args:
        code: Python's.
        *arguments: behind it.
        environment: the process's variables; None: those of this one.
        folder: where it works; None: where this one does.
        piped: whether what it says can be read from `stdout`; else it says it where this process does.

    Returns:
        The process.
    """
    environment = dict(os.environ if environment is None else environment)
    return ForkedProcess(_interpret, (code, arguments), environment=environment, folder=folder, piped=piped)


class ForkedProcess:
    """A process as `subprocess.Popen` has it, as far as that is used.

    Attributes:
        pid: its number.
        stdout: what it says, errors too, if that is piped.
    """

    def __init__(self, life, arguments, *, environment, group=None, folder=None, piped=False):
        """Start it, and wait until it is what it is to be."""
        ready, begun = Pipe(duplex=False)
        read, write = os.pipe() if piped else (None, None)
        streams = [_Descriptor(write if piped else number) for number in (1, 2)]
        place = (environment, group, str(folder or os.getcwd()), *streams)
        self.process = SERVER.Process(target=_begin, args=(begun, place, life, arguments))
        self.process.start()
        # Only here is it asked how it ended, by one thread at a time: the answer comes once.
        multiprocessing.process._children.discard(self.process)
        self._asking = threading.Lock()
        begun.close()
        if piped:
            os.close(write)
        self.pid = self.process.pid
        self.stdout = os.fdopen(read, encoding="utf-8") if piped else None
        # From here on it is in its group, to which a signal may be sent.
        wait([ready])
        ready.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wait()

    @property
    def returncode(self):
        """The exit code, None while it runs."""
        return self.poll()

    def poll(self):
        """The exit code, None while it runs."""
        with self._asking:
            return self.process.exitcode

    def wait(self, timeout=None):
        """The exit code, once there is one."""
        wait([self.process.sentinel], timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired("a forked process", timeout)
        return code

    def communicate(self, timeout=None):
        """All that it says until it ends, as the first of two."""
        told = self.stdout.read()
        self.stdout.close()
        self.wait(timeout)
        return told, None

    def send_signal(self, number):
        """Send a signal, if it runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self):
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _begin(begun, place, life, arguments):
    """The forked process's: become what was asked for, and live."""
    environment, group, folder, *streams = place
    if group is not None:
        os.setpgid(0, group)
    for number, stream in zip((1, 2), streams, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = None
    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS") or torch.get_num_threads()))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    begun.close()
    life(*arguments)


def _live(life, far_end):
    descriptor = os.dup(far_end.fileno())
    far_end.close()
    children.resolve(life)(descriptor)


def _interpret(code, arguments):
    sys.argv[:] = ["-c", *arguments]
    sys.path[:0] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    children.subprocess = SimpleNamespace(Popen=_member, DEVNULL=subprocess.DEVNULL)
    exec(code, {"__name__": "__main__"})


def _member(arguments, **how):
    """A worker is forked off. A rank is not: whoever starts one has threads, and a fork may find their locks held."""
    make = forks.ForkedProcess if arguments[-1].startswith(WORKER) else subprocess.Popen
    return make(arguments, **how)


class _Descriptor:
    """A file's descriptor, which in another process is another number for the same file."""

    def __init__(self, number):
        self.number = number

    def __reduce__(self):
        return _received, (reduction.DupFd(self.number),)


def _received(sent):
    return sent.detach()
