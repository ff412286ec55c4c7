"""The processes that train one run together: started, joined and ended here, trained by Lightning.

The process that is asked to train a run starts the others of its machine. Each of them holds the end of a pipe whose
other end only that process has: when it dies, by whatever, the pipe closes and they end at once. When one of them dies
or fails, the exchange that the others wait for breaks off, and the run fails with what went wrong.

On several machines the same command runs on each of them. `NODE_RANK` (or what torchrun and Slurm say in its place)
numbers them from 0, and `MASTER_ADDR` and `MASTER_PORT` say where the first one listens.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed as dist
from lightning.fabric.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy

from lcd.agents.ranks import ALONE, Ranks
from lcd.envs.errors import Diverged, InputError
from lcd.envs.registry import named, naming
from lcd.pipelines.study.configs import Device
from lcd.process import children, signals

PATIENCE = timedelta(days=2)
"""How long ranks wait for each other: an evaluation is made by the first of them, however long it takes."""
TO_MEET = timedelta(minutes=10)
NOTICE_S, END_S = 20.0, 10.0
NODE = ("NODE_RANK", "GROUP_RANK", "SLURM_NODEID")


@dataclass(frozen=True)
class MeetingPlace:
    """Which rank a process is, where the ranks meet, and the folder in which the first one writes."""

    rank: int
    local: int
    node: int
    world: int
    nodes: int
    cuda: bool
    address: tuple[str, int] | None = None
    folder: str | None = None


def node_rank() -> int:
    """This machine's number among those of the run."""
    for name in NODE:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


@contextlib.contextmanager
def join_ranks(
    train: str, arguments: tuple[Any, ...], device: Device, folder: str
) -> Iterator[tuple[Ranks, MeetingPlace | None]]:
    """Start the other ranks of this machine, which call `train(*arguments, ranks, place)`, and be the first of them.

    Args:
        train: `module:function`.
        arguments: what it is called with; everything is pickled.
        device: on how many processes.
        folder: the one that the first of them writes into; the other machines are told.
    """
    if device.processes == 1:
        yield ALONE, None
        return
    place, store = _meeting_point(device, folder)
    crew = [_Other(train, arguments, place, local) for local in range(1, device.devices)]
    try:
        for other in crew:
            other.expect("ready")
        with _alarm(crew):
            yield _join(place, store), place
            for other in crew:
                other.expect("done")
    except Exception as error:
        # What breaks off an exchange is a RuntimeError, and the rank that did it may take a while to be gone.
        reason = _reason(crew, NOTICE_S if isinstance(error, RuntimeError) else 2.0)
        if reason is None or isinstance(error, InputError | Diverged):
            raise
        if isinstance(reason, Diverged):
            raise reason from error
        raise RuntimeError(reason) from error
    finally:
        for other in crew:
            other.end()
        if dist.is_initialized():
            dist.destroy_process_group()


def _meeting_point(device: Device, folder: str) -> tuple[MeetingPlace, dist.Store]:
    devices, nodes, node = device.devices, device.num_nodes, node_rank()
    cuda = device.accelerator in ("auto", "cuda", "gpu") and torch.cuda.is_available()
    if nodes == 1:
        host, port = "127.0.0.1", 0
    else:
        host, port = _first_machine(nodes, node)
    world = devices * nodes
    store = dist.TCPStore(host, port, world, is_master=node == 0, timeout=TO_MEET, wait_for_workers=False)
    if node == 0:
        store.set("folder", folder)
    where = store.get("folder").decode()
    return MeetingPlace(node * devices, 0, node, world, nodes, cuda, (host, store.port), where), store


def _first_machine(nodes: int, node: int) -> tuple[str, int]:
    host, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    if not host or not port.isdigit():
        raise InputError(
            f"num_nodes={nodes} needs the environment variables MASTER_ADDR and MASTER_PORT, where the first machine "
            "listens, and NODE_RANK, this machine's number from 0, on each of them."
        )
    if node >= nodes:
        raise InputError(f"NODE_RANK={node} must be below num_nodes={nodes}: machines are numbered from 0.")
    return host, int(port)


def _join(place: MeetingPlace, store: dist.Store) -> Ranks:
    """Meet the other ranks."""
    if place.nodes == 1 and sys.platform == "linux":
        # The machine's name need not resolve to an address that it has.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    backend = "gloo"
    if place.cuda:
        torch.cuda.set_device(place.local)
        backend = "nccl"
    dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.world, timeout=PATIENCE)
    host = dist.new_group(backend="gloo", timeout=PATIENCE) if place.cuda else dist.group.WORLD
    return Ranks(place.rank, place.world, host)


class _Other:
    """The first rank's side of another rank of this machine."""

    def __init__(self, train: str, arguments: tuple[Any, ...], first: MeetingPlace, local: int) -> None:
        self.rank, self.world = first.rank + local, first.world
        self.failure: str | Diverged | None = None
        self.process, self.pipe = children.start("lcd.pipelines.jobs.ranks:serve")
        own = replace(first, rank=self.rank, local=local)
        with contextlib.suppress(BrokenPipeError):
            self.pipe.send((sys.path, named(), train, arguments, own))

    def expect(self, word: str) -> None:
        """Wait until the rank says a word; it says another one, or nothing, when it fails."""
        said = self.hear(None)
        if said != word:
            raise said if isinstance(said, Diverged) else RuntimeError(said)

    def hear(self, timeout: float | None) -> str | Diverged | None:
        """What the rank says next: a word, or how it failed."""
        if self.failure or not wait([self.pipe], timeout):
            return self.failure
        try:
            said = self.pipe.recv()
        except (EOFError, OSError):
            code = self.process.wait()
            said = f"it died with {'signal' if code < 0 else 'exit code'} {abs(code)}"
        if isinstance(said, Diverged):
            self.failure = said
        elif said not in ("ready", "done"):
            self.failure = said = f"process {self.rank + 1} of {self.world}: {said}"
        return said

    def end(self) -> None:
        """See it ended; one that still runs is of no use to anybody."""
        self.pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        self.process.kill()
        self.process.wait()


def _reason(crew: list[_Other], patience: float = 0.0) -> str | Diverged | None:
    """Why another rank failed, where one did before this one noticed."""
    end = time.monotonic() + patience
    while True:
        for other in crew:
            if (said := other.hear(0.0)) not in (None, "ready", "done"):
                return said
        if time.monotonic() >= end:
            return None
        time.sleep(0.05)


@contextlib.contextmanager
def _alarm(crew: list[_Other]) -> Iterator[None]:
    """End this process when another rank died and it does not notice by itself: some exchanges wait for ever."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            if any(other.process.poll() not in (None, 0, signals.CONTINUE_ME) for other in crew):
                if not over.wait(NOTICE_S):
                    print(_reason(crew) or "another process of this run died", file=sys.stderr, flush=True)
                    os._exit(1)
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def serve(descriptor: int) -> None:
    """The life of a rank that another process started."""
    from lcd.pipelines.launch.launchers import keep_freed_memory

    pipe = Connection(descriptor)
    signals.handle_stop_signals()
    try:
        sys.path[:], names, train, arguments, place = pipe.recv()
        keep_freed_memory()
        function = children.resolve(train)
        threading.Thread(target=_watch, args=(pipe,), daemon=True).start()
        pipe.send("ready")
        store = dist.TCPStore(*place.address, place.world, is_master=False, timeout=TO_MEET, wait_for_workers=False)
        with naming(names):
            function(*arguments, _join(place, store), place)
        pipe.send("done")
    except signals.Stopped:
        code = signals.CONTINUE_ME
    except (EOFError, BrokenPipeError):
        code = 1
    except Exception as error:
        traceback.print_exc()
        with contextlib.suppress(OSError):
            pipe.send(error if isinstance(error, Diverged) else children.describe(error))
        code = 1
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    # What this rank shares with the others is not theirs to wait for any more.
    os._exit(code)


def _watch(pipe: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        pipe.recv()
    os._exit(1)


class RankEnvironment(LightningEnvironment):
    """Tells Lightning which rank this process is; the processes are there already."""

    def __init__(self, place: MeetingPlace | None) -> None:
        super().__init__()
        self.place = place or MeetingPlace(0, 0, 0, 1, 1, False)

    @property
    def creates_processes_externally(self) -> bool:
        return True

    def world_size(self) -> int:
        return self.place.world

    def global_rank(self) -> int:
        return self.place.rank

    def local_rank(self) -> int:
        return self.place.local

    def node_rank(self) -> int:
        return self.place.node

    def set_world_size(self, size: int) -> None:
        """The place says it."""

    def set_global_rank(self, rank: int) -> None:
        """The place says it."""


class RankStrategy(DDPStrategy):
    """Lightning's DDP without the wrapper that exchanges gradients in every backward pass.

    Agents sum them once for an optimiser step, after its last backward pass (`Ranks.sum_gradients`), so that the
    gradient may be accumulated over parts of a minibatch.
    """

    def __init__(self, ranks: Ranks, place: MeetingPlace) -> None:
        super().__init__(cluster_environment=RankEnvironment(place), timeout=PATIENCE)
        self.ranks = ranks

    def configure_ddp(self) -> None:
        """Begin with equal weights."""
        self.ranks.share([*self.model.parameters(), *self.model.buffers()])
