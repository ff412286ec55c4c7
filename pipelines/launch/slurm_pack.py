"""What one job of Slurm does: a pack of calls, by the local launcher, within what Slurm gave it.

So a call is made by the same worker process as anywhere, with its deadlines, and stops as it does there. Slurm tells
all processes of a job at once, workers too, so that nobody has to pass anything on.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcd.envs.registry import naming
from lcd.files.atomic import write_atomic
from lcd.pipelines.launch import local
from lcd.pipelines.launch.order import Call
from lcd.process.signals import CONTINUE_ME, ECHO_S, SIGNALS, Stopped, stopping_once

WARNING = signal.SIGUSR1
"""What Slurm sends ahead of a job's limit, and users by `scancel --signal=USR1`: keep what is done, and queue again."""

PATIENCE_S = 10


def is_preempted() -> bool:
    """Whether Slurm takes the place of this job for a more urgent one, of which it gives notice by SIGTERM.

    A job that ends within its notice counts as one that failed, and is not started again.
    """
    ask = ["scontrol", "show", "job", os.environ.get("SLURM_JOB_ID", "")]
    try:
        told = subprocess.run(ask, capture_output=True, text=True, check=False, timeout=PATIENCE_S).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return re.search(r"\bPreemptTime=(?!None)\S", told) is not None


@dataclass
class Pack:
    """Some calls, made at the same time.

    Attributes:
        function: `module:function`.
        calls: the calls, each with a name.
        outcomes: the file that takes how they ended.
        common: what every launcher is told.
        path: where modules are looked for.
        names: what the command names.
    """

    function: str
    calls: list[Call]
    outcomes: Path
    common: dict[str, Any]
    path: list[str]
    names: Any

    def __call__(self) -> None:
        """Make the calls; who is told to stop keeps what is done and, if it was by the warning, is queued again."""
        sys.path[:] = self.path
        # What it wrote when it was told to stop, and was started again.
        self.outcomes.unlink(missing_ok=True)
        queue_again = signal.getsignal(WARNING)
        with stopping_once(SIGNALS) as told:
            try:
                self._write(self._make())
            except Stopped:
                preempted = told[0] != WARNING and is_preempted()
                if (told[0] == WARNING or preempted) and callable(queue_again):
                    # A cluster may forbid it; the submitting command then does so itself.
                    with contextlib.suppress(subprocess.SubprocessError, OSError):
                        queue_again(WARNING, None)
                if not preempted:
                    self._write({call.name: {"error": None, "stopped": True} for call in self.calls})
                sys.exit(CONTINUE_ME)

    def _make(self) -> dict[str, dict[str, Any]]:
        with naming(self.names):
            outcomes = local.launch(
                self.function,
                self.calls,
                watch=lambda: None,
                workers=len(self.calls),
                settings=local.LocalSettings(),
                **self.common,
            )
        if any(outcome.stopped for outcome in outcomes):
            # A worker may hear of it before this process does.
            time.sleep(ECHO_S)
        return {outcome.call.name: {"error": outcome.error, "stopped": outcome.stopped} for outcome in outcomes}

    def _write(self, ended: dict[str, dict[str, Any]]) -> None:
        write_atomic(self.outcomes, json.dumps(ended))

    def checkpoint(self) -> Any:
        """What submitit puts back into the queue: the same again, which goes on with what is on the disk."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)
