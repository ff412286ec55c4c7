"""Commands in forked processes: the imports, which take most of a small command's time, are made once.

A command is a child in a session of its own, and so are its workers, which are forked instead of started anew; all
else about them is the launcher's.
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace

MODULES = (
    *(
        "lcd.cli",
        "lcd.config.compose",
        "lcd.scores.diagnosis",
        "lcd.report.page",
        "lcd.report.tables",
        "lcd.report.figures",
        "lcd.report.terminal",
    ),
    *("lcd.analyses", "lcd.analyses.transfer", "lcd.frontends.flow.frontend", "lcd.agents.ppo", "lcd.agents.ppg"),
    *("lcd.agents.tabular", "lcd.pipelines.launch.local", "lcd.pipelines.jobs.train", "lcd.pipelines.jobs.learn"),
    *(
        "lcd.pipelines.study.diagnose",
        "lcd.pipelines.publish.report",
        "lcd.pipelines.jobs.pretrain",
        "lcd.pipelines.jobs.pretraining",
    ),
    *(
        "lcd.pipelines.jobs.phases",
        "lcd.report.calibration_figures",
        "lcd.report.provenance",
        "lcd.report.analysis_figures",
    ),
    *("matplotlib.backends.backend_svg", "pandas", "scipy.stats", "lightning.pytorch"),
)

STOPS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT)


def prepare() -> None:
    """Import what commands need, write checkpoints and status at every chance, and fork workers from now on."""
    import importlib

    import torch

    torch.set_num_threads(1)
    for module in MODULES:
        importlib.import_module(module)
    from lcd.config.compose import compose
    from lcd.pipelines.jobs import record
    from lcd.process import children

    compose("diagnose", ["benchmark=toy"])

    record.CHECKPOINT_EVERY_S, record.CHECKPOINT_SHARE, record.STATUS_EVERY_S = 0.0, 1.0, 0.0
    children.subprocess = SimpleNamespace(Popen=ForkedProcess, DEVNULL=None)


class ForkedProcess:
    """What is used of `subprocess.Popen`, for an interpreter that is forked and runs the code behind `-c`."""

    def __init__(
        self,
        arguments: list[str],
        pass_fds: list[int],
        env: dict[str, str] | None = None,
        process_group: int | None = None,
        **_: object,
    ) -> None:
        self.returncode: int | None = None
        # A new interpreter has the usual handlers, and none of the command's that started it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        self.pid = os.fork()
        if self.pid == 0:
            for number in STOPS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            _end_with(lambda: _work(arguments[-1], pass_fds[0], env or {}, process_group))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if process_group is not None:
            with contextlib.suppress(OSError):
                os.setpgid(self.pid, process_group)

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end."""
        end = time.monotonic() + (1e9 if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a forked process", timeout)
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _work(code: str, descriptor: int, environment: dict[str, str], group: int | None) -> int:
    if group is not None:
        os.setpgid(0, group)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, 1024)
    os.environ.update(environment)
    exec(code)
    return 0


def _end_with(call) -> None:
    """End this forked process as an interpreter of its own would have ended."""
    code = 1
    try:
        code = call()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def start(arguments: list[str], told: Path) -> int:
    """Start a command of lcd; its process id is also that of its session. What it says goes to the file `told`."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        target = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        for stream in (1, 2):
            os.dup2(target, stream)
        os.closerange(3, 1024)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        warnings.resetwarnings()
        logging.disable(logging.NOTSET)
        _end_with(lambda: _main(arguments))
    return pid


def _main(arguments: list[str]) -> int:
    from lcd import cli

    return cli.main(arguments)


def ended(pid: int, most_s: float) -> int | None:
    """The exit code of a child, None when it still runs after so many seconds."""
    end = time.monotonic() + most_s
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, _, whose = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(whose) == session and state != "Z":
                    found.append(int(entry.name))
    return sorted(found)
