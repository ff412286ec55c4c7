"""What test_launch.py launches."""

import os
import signal
import time
from pathlib import Path


def act(name, folder):
    """Do what the name says."""
    path = Path(folder) / name
    path.write_text(f"{os.getpid()} {os.environ['OMP_NUM_THREADS']}")
    print("printed by", name)
    if name == "raise":
        raise ValueError("told to")
    if name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "exit":
        os._exit(7)
    if name.startswith("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if name.startswith(("sleep", "stubborn")):
        try:
            time.sleep(60)
        finally:
            Path(f"{path}.stopped").touch()
