"""The Slurm launcher: calls as arrays of jobs, by submitit.

A job makes a pack of calls (`slurm_pack`). Ahead of its time limit Slurm sends USR1: the pack stops its workers, which
keep what is trained, and submitit puts the job back into the queue. So it does with one that is told so by
`scancel --signal=USR1`. A job that was pre-empted, or whose node failed, Slurm itself starts again, and the command
submits it anew where Slurm does not. What a call of it has done before is on the disk, and its lease tells who may go
on.

The submitting process only looks: jobs go on without it, and the same command finds them again (`slurm_jobs`).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lcd.config.schema_parts import DeadlinesConfig
from lcd.envs.errors import Elsewhere, InputError
from lcd.envs.registry import named
from lcd.pipelines.launch.order import Call, Outcome, in_vain
from lcd.pipelines.launch.slurm_asked import (
    SlurmSettings,
    asked_of_sbatch,
    largest_array,
    look_ahead,
    outside_of_jobs,
    refuse,
    with_further,
)
from lcd.pipelines.launch.slurm_jobs import (
    CANCELLED,
    LIVING,
    STUCK,
    Submitted,
    arrays_of,
    discard,
    job_states,
    make_place,
    queued,
    remember,
    tidy,
    withdraw,
)
from lcd.pipelines.launch.slurm_pack import WARNING, Pack
from lcd.process.signals import Stopped

MOST_REQUEUES = 10_000
"""How often submitit puts a job back that came to its limit: a run of a week goes on as long as it takes."""
FOR_GOOD = ("OUT_OF_MEMORY", "DEADLINE", "COMPLETED")
"""How a job may have ended without a word that would end the same way again; CANCELLED somebody wanted."""
WATCH_S = 0.25


def launch(
    function: str,
    calls: Sequence[Call],
    *,
    watch: Callable[[], None],
    settings: SlurmSettings,
    workers: int | str = "auto",
    threads: int = 1,
    grace: float = 60.0,
    deadlines: DeadlinesConfig | None = None,
) -> list[Outcome]:
    """Jobs of a Slurm cluster, as arrays.

    What was submitted for these calls before, and is not over, is not submitted again.

    Args:
        function: `module:function`.
        calls: those to be made; jobs wait for the jobs of the calls that theirs wait for.
        watch: called a few times a second.
        settings: what the user sets.
        workers: the most jobs of an array at a time; `auto`: as the cluster says.
        threads: of each process of a call.
        grace: seconds that workers have to finish an iteration and keep it.
        deadlines: how long calls may go without progress.

    Returns:
        The outcomes in the order of the calls.

    Raises:
        Elsewhere: where nobody is to wait.
    """
    common = {"threads": threads, "grace": grace, "deadlines": deadlines or DeadlinesConfig()}
    calls = [call if call.name else replace(call, name=f"call-{index}") for index, call in enumerate(calls)]
    queue = Queue(function, calls, settings, workers, common)
    queue.find()
    queue.submit()
    if settings.detach:
        raise Elsewhere(queue.told())
    try:
        return queue.wait(watch)
    except (Stopped, KeyboardInterrupt):
        with contextlib.suppress(OSError):
            print(f"\n{queue.told()}", file=sys.stderr)
        raise


launch.takes_graphs = True  # type: ignore[attr-defined]
launch.look_ahead = look_ahead  # type: ignore[attr-defined]


def in_packs(calls: Sequence[Call], size: int) -> Iterator[list[Call]]:
    """Calls that wait for the same ones and take as much, in packs; those that others wait for come first."""
    left = list(calls)
    while left:
        waiting = {call.name for call in left}
        free = [call for call in left if not waiting & set(call.after)]
        if not free:
            raise InputError(f"{', '.join(sorted(waiting))} wait for one another in a circle.")
        alike: dict[tuple[Any, ...], list[Call]] = {}
        for call in free:
            alike.setdefault((call.after, call.needs.cores, call.needs.gpus), []).append(call)
        for together in alike.values():
            yield from (together[start : start + size] for start in range(0, len(together), size))
        left = [call for call in left if call not in free]


class Queue:
    """The calls of one launch, and their jobs.

    Attributes:
        jobs: the job of each call, by the call's name.
    """

    def __init__(
        self,
        function: str,
        calls: Sequence[Call],
        settings: SlurmSettings,
        workers: int | str,
        common: dict[str, Any],
    ):
        self.function, self.settings, self.workers, self.common = function, settings, workers, common
        self.calls = {call.name: call for call in calls}
        logs = [call.log for call in calls if call.log is not None]
        # The log of a run lies in study/runs/<run id>.
        self.study = logs[0].resolve().parents[2] if logs else Path.cwd()
        self.place: Path | None = None
        self.jobs: dict[str, Submitted] = {}
        self.mine: list[Submitted] = []
        self.submitted: dict[str, int] = {}
        self.outcomes: dict[str, Outcome] = {}
        self._over: set[str] = set()

    def find(self) -> None:
        """Find what an earlier command submitted."""
        living = queued(self.study)
        tidy(self.study, living)
        mine = {job: state for job, state in living.items() if set(job.calls) & self.calls.keys()}
        withdraw([job for job, state in mine.items() if state == STUCK], again=True)
        self.jobs |= {name: job for job in mine if mine[job] != STUCK for name in job.calls if name in self.calls}

    def submit(self) -> None:
        """Submit what is not queued, all that waits for the same as one array."""
        left = [call for name, call in self.calls.items() if name not in self.jobs]
        arrays: dict[tuple[Any, ...], list[list[Call]]] = {}
        for pack in in_packs(left, self.settings.pack):
            first = pack[0]
            arrays.setdefault((first.after, first.needs.cores, first.needs.gpus), []).append(pack)
        for packs in arrays.values():
            self._submit_array(packs)

    def _submit_array(self, packs: list[list[Call]]) -> None:
        """Submit packs of calls that take as much, and wait for the same."""
        executor, place = self._executor(packs)
        made: list[Pack] = []
        for pack in packs:
            # Slurm looks at what they wait for.
            chosen = [replace(call, after=()) for call in pack]
            outcomes = place / f"outcomes-{len(self.mine) + len(made)}.json"
            made.append(Pack(self.function, chosen, outcomes, self.common, list(sys.path), named()))
        try:
            with outside_of_jobs():
                jobs = executor.submit_array(made)
        except (subprocess.SubprocessError, RuntimeError, FileNotFoundError) as refused:
            if not self.mine:
                discard(place)
            refuse(str(refused))
        for pack, each, job in zip(packs, made, jobs, strict=True):
            submitted = Submitted(job.job_id, tuple(call.name for call in pack), each.outcomes)
            self.mine.append(submitted)
            self.jobs |= dict.fromkeys(submitted.calls, submitted)
            self.submitted |= {name: self.submitted.get(name, 0) + 1 for name in submitted.calls}
        remember(place, self.mine)

    def _executor(self, packs: list[list[Call]]) -> tuple[Any, Path]:
        """Submitit's for an array of packs, and where its files lie."""
        os.environ["SUBMITIT_PREEMPT_SIGNAL"] = WARNING.name.removeprefix("SIG")  # submitit reads it at its import
        import submitit

        if len(packs) > (most := largest_array()):
            raise InputError(
                f"launcher.pack={self.settings.pack} makes {len(packs)} jobs, and this cluster takes arrays of at most "
                f"{most} (MaxArraySize): put more runs into one job."
            )
        self.place = place = self.place or make_place(self.study)
        executor = submitit.SlurmExecutor(
            place, max_num_timeout=MOST_REQUEUES, python=f"{shlex.quote(sys.executable)} -P"
        )
        executor.update_parameters(**self._parameters(packs, place))
        return executor, place

    def _parameters(self, packs: list[list[Call]], place: Path) -> dict[str, Any]:
        """What submitit is told of an array."""
        own, first = self.settings, packs[0][0]
        cores = max(sum(max(call.needs.cores, self.common["threads"]) for call in pack) for pack in packs)
        further = with_further({"requeue": True, "comment": str(place)}, own)
        going_on = [name for name in first.after if name in self.jobs and name not in self.outcomes]
        if after := sorted({self.jobs[name].job for name in going_on}):
            # Of one that is lost they wait for the next, which takes its place (`_conclude`).
            further["dependency"] = f"afterok:{':'.join(after)}"
        return {
            **asked_of_sbatch(own, first.needs.gpus),
            "job_name": "lcd",
            "wckey": None,
            "time": own.time,
            "cpus_per_task": cores,
            # Slurm does not pass it on to what a job starts.
            "srun_args": [f"--cpus-per-task={cores}"],
            "signal_delay_s": own.notice,
            "stderr_to_stdout": True,
            "array_parallelism": len(packs) if self.workers == "auto" else int(self.workers),
            "additional_parameters": further,
        }

    def told(self) -> str:
        """What goes on without this process."""
        left = [name for name in self.calls if name not in self.outcomes]
        jobs = list(dict.fromkeys(self.jobs[name] for name in left))
        if not jobs:
            return "Nothing is left to submit: what is not done, others are at."
        count = f"{len(left)} run{'s are' if len(left) > 1 else ' is'} at Slurm as {', '.join(arrays_of(jobs))}"
        return (
            f"{count}, and go{'es' if len(left) == 1 else ''} on without this command. The same command without "
            f"--detach waits for them and makes the report; 'lcd status' and 'lcd cancel {self.study}' work meanwhile."
        )

    def wait(self, watch: Callable[[], None]) -> list[Outcome]:
        """Look until every job has come to its end; the outcomes of the calls."""
        asked = -self.settings.poll
        while len(self.outcomes) < len(self.calls):
            watch()
            if time.monotonic() - asked >= self.settings.poll:
                self._look()
                asked = time.monotonic()
            else:
                time.sleep(WATCH_S)
        return [self.outcomes[name] for name in self.calls]

    def _look(self) -> None:
        """Ask Slurm, and read what jobs have written since."""
        jobs = list(dict.fromkeys(job for name, job in self.jobs.items() if name not in self.outcomes))
        states = job_states(each.array for each in jobs)
        written = {path for place in {job.outcomes.parent for job in jobs} for path in place.glob("outcomes-*")}
        for job in jobs:
            state = "RUNNING" if states is None else states.get(job.job, ("UNKNOWN", ""))[0]
            ended = job.ended() if job.outcomes in written else None
            stopped = ended is not None and any(each["stopped"] for each in ended.values())
            if ended is not None and not stopped:
                self._end(job, ended)
            elif state not in LIVING:
                # A shared disk may show what a job wrote a moment after Slurm says that it is over.
                if stopped or job.job in self._over:
                    self._conclude(job, state)
                self._over.add(job.job)

    def _end(self, job: Submitted, ended: dict[str, dict[str, Any]]) -> None:
        for name in set(job.calls) & self.calls.keys():
            self.outcomes[name] = Outcome(self.calls[name], ended[name]["error"], bool(ended[name]["stopped"]))

    def _conclude(self, job: Submitted, state: str) -> None:
        """The outcomes of a job that is over and whose calls did not end; one that was lost is submitted again."""
        if state == STUCK:
            withdraw([job], again=True)
        calls = [self.calls[name] for name in job.calls if name in self.calls]
        before = [self.outcomes[name] for name in calls[0].after if name in self.outcomes]
        if failed := next((outcome for outcome in before if not outcome.well), None):
            self.outcomes |= {call.name: in_vain(call, failed) for call in calls}
            return
        tries = max(self.submitted.get(name, 0) for name in job.calls)
        again = job.mark.exists()
        stopped = not again and (job.ended() is not None or state.startswith(CANCELLED))
        lost = again or state == "PREEMPTED" or not (stopped or state in FOR_GOOD)
        if lost and tries <= self.settings.retries:
            self._submit_array([calls])
            return
        error = f"its Slurm job {job.job} ended as {state} and did not say why: {job.log} may"
        if again:
            error = f"Slurm did not start its job {job.job}: see what 'sinfo -R' and 'scontrol show nodes' say"
        self._end(job, {name: {"error": None if stopped else error, "stopped": stopped} for name in job.calls})
