"""What test_launch.py launches."""

import ctypes
import os
import signal
import time
from pathlib import Path

from lcd.envs.benchmarks import get_benchmark
from lcd.process.deadlines import beat


def benchmark(name):
    """Resolve a benchmark's name."""
    get_benchmark(name)


def act(name, folder):
    """Do what the name says."""
    path = Path(folder) / name
    path.write_text(f"{os.getpid()} {os.environ['OMP_NUM_THREADS']}")
    print("printed by", name)
    if name.startswith("card"):
        Path(f"{path}.gpus").write_text(os.environ["CUDA_VISIBLE_DEVICES"])
        time.sleep(0.5)
    if name == "raise":
        raise ValueError("told to")
    if name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "exit":
        os._exit(7)
    if name.startswith("beating"):
        for _ in range(12):
            beat()
            time.sleep(0.25)
    if name == "native":
        beat()
        time.sleep(2)
        # Code that holds the interpreter's lock and never returns.
        ctypes.PyDLL(None).sleep(600)
    if name == "python":
        beat()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(0.1)
    if name.startswith("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if name.startswith(("sleep", "stubborn")):
        try:
            time.sleep(60)
        finally:
            Path(f"{path}.stopped").touch()
