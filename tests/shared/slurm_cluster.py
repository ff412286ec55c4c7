"""A real Slurm of one node, in a temporary folder: munged, slurmctld and slurmd, started here and stopped here."""

import contextlib
import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "scontrol")
CONF = """
ClusterName=lcd
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=15
SlurmctldPort={ctld}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=0,sched_interval=1,requeue_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=20
MessageTimeout=5
BatchStartTimeout=1
KillWait=3
MinJobAge=300
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=kind Nodes={host} GraceTime=20 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes={host} PriorityTier=10 MaxTime=INFINITE State=UP
"""
WAIT_S = 120


def missing():
    """The programs of Slurm that are not installed, or what else is in the way of it."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    return lacking or (["root"] if os.geteuid() else [])


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Cluster:
    """The three daemons.

    Args:
        folder: takes everything of theirs; sockets want a short one.
    """

    def __init__(self, folder: Path):
        self.folder, self.daemons = folder, {}
        self.host = host = socket.gethostname().partition(".")[0]
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        self.conf = folder / "slurm.conf"
        self.conf.write_text(CONF.format(folder=folder, host=host, ctld=free_port(), node=free_port()))
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        folder.chmod(0o755)
        self.environment = {"SLURM_CONF": str(self.conf)}
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket",
                   f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log",
                   f"--seed-file={folder}/munged.seed")  # fmt: skip
        self._wait(lambda: (folder / "munge.socket").exists(), "munged")
        self.start("slurmctld", "-D", "-f", str(self.conf))
        self.start("slurmd", "-D", "-f", str(self.conf), "-N", host)
        self._wait(lambda: "idle" in self.told("sinfo", "-h", "-o", "%T"), "a node that is idle")

    def start(self, name, *arguments):
        """Start one of the daemons, or start it again."""
        arguments = list(arguments) or self.daemons[name].args[1:]
        log = (self.folder / f"{name}.out").open("ab")
        self.daemons[name] = subprocess.Popen(
            [shutil.which(name), *arguments], stdout=log, stderr=log, env=os.environ | self.environment
        )
        log.close()

    def kill(self, name):
        """Take one of the daemons away, as a node that dies."""
        self.daemons[name].kill()
        self.daemons[name].wait()

    def kill_node(self):
        """Take the node away with all that runs there, and bring it back."""
        self.kill("slurmd")
        for process in itertools.chain(*self.processes_of_jobs().values()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.start("slurmd")

    def mend(self):
        """Put the node back where it was drained: a controller that was killed may start again what it has started."""
        if "drain" in self.told("sinfo", "-h", "-o", "%T"):
            self.told("scontrol", "update", f"nodename={self.host}", "state=resume")

    def processes_of_jobs(self):
        """The processes of jobs that live, by the job's id, and by "" those of the node's daemon that watch them."""
        mine, found = str(self.conf).encode(), {}
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (place / "cmdline").read_bytes()
                variables = dict(each.partition(b"=")[::2] for each in (place / "environ").read_bytes().split(b"\0"))
                job = variables.get(b"SLURM_JOB_ID", b"").decode()
                if variables.get(b"SLURM_CONF") == mine and (job or command.startswith(b"slurmstepd")):
                    found.setdefault(job, []).append(int(place.name))
        return found

    def jobs(self, study):
        """The states of the jobs that were submitted for a study, by their ids."""
        lines = self.told("squeue", "-h", "--array", "--states=all", "--format=%i|%T|%k").splitlines()
        found = (line.strip().split("|", 2) for line in lines)
        return {job: state for job, state, place in found if place.startswith(f"{study}/")}

    def told(self, *command):
        """What one of Slurm's programs says."""
        environment = os.environ | self.environment
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment).stdout

    def clear(self):
        """End all jobs."""
        self.told("scancel", "--full", "--signal=KILL", "--user=root")
        self.told("scancel", "--user=root")
        end = time.monotonic() + 20
        while self.told("squeue", "-h").strip() and time.monotonic() < end:
            time.sleep(0.2)

    def stop(self):
        """End all jobs and daemons."""
        self.clear()
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self.daemons:
                self.daemons[name].send_signal(signal.SIGTERM)
        for process in self.daemons.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _wait(self, condition, what):
        end = time.monotonic() + WAIT_S
        while not condition():
            if time.monotonic() > end:
                logs = [f"== {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in self._logs()]
                self.stop()
                raise RuntimeError("\n".join([f"{what} did not come", *logs]))
            time.sleep(0.2)

    def _logs(self):
        return sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
