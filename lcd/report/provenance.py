"""What a result was computed with and on."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "learning-challenge-diagnosticator", "numpy", "pandas", "scipy", "matplotlib", "gymnasium", "torch", "lightning",
    "hydra-core", "wandb", "procgen", "procgen-mirror",
)  # fmt: skip


def provenance() -> dict[str, Any]:
    """What this was computed with and on: versions, commit, hardware, platform; no path of the machine."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    facts = {
        "python": platform.python_version(),
        "versions": found,
        "git_commit": _commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "platform": platform.platform(),
    }
    return {key: value for key, value in facts.items() if value}


def _commit() -> str | None:
    """The commit of the checkout that the package runs from; None where it is installed elsewhere."""
    home = Path(__file__).resolve().parent.parent
    if not (home / ".git").exists():
        return None
    try:
        git = ["git", "-C", str(home)]
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10)
        status = [*git, "status", "--porcelain", "--untracked-files=no"]
        changed = subprocess.run(status, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return commit.stdout.strip() + (" with local changes" if changed else "")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
