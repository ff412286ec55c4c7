"""What works on this machine, and what to do about what does not. Nothing here uses the network."""

import importlib
import netrc
import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlparse

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lcd.consoles import console_for_tables

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PROCGEN_MODULES = {"procgen-mirror": "procgen", "gym3": "gym3", "cffi": "cffi", "imageio": "imageio"}
PROCGEN_RECIPE = (
    "For the games beside numpy 2 and without gym: pip install --no-deps procgen-mirror gym3, then "
    "pip install 'cffi<2' imageio. That they declare numpy < 2 is metadata only; make install does the same."
)
ENGINES = {
    "minigrid": (("minigrid",), "benchmark=minigrid", "pip install '.[minigrid]'"),
    "atari": (("ale_py",), "benchmark=atari", "pip install '.[atari]'"),
    "ocatari": (
        ("ocatari",),
        "masks of 7 further games of benchmark=atari",
        "pip install '.[ocatari-needs]', then pip install --no-deps ocatari",
    ),
    "mujoco": (("mujoco",), "benchmark=mujoco", "pip install '.[mujoco]'"),
    "dm_control": (("dm_control", "mujoco"), "benchmark=dm_control", "pip install '.[dm-control]'"),
    "bsuite": (("bsuite", "dm_env"), "benchmark=bsuite", "pip install '.[bsuite]'"),
    "crafter": (("crafter",), "benchmark=crafter", "pip install '.[crafter]'"),
    "sumo": (("libsumo", "sumo"), "benchmark=traffic", "pip install '.[traffic]'"),
}
"""Engines of benchmarks: the modules of each, what it is for, and what installs it."""
DISTRIBUTIONS = {"sumo": "eclipse-sumo"}
"""What a module is distributed as, where it is not called like it."""
STYLES = {"ok": "green", "warn": "yellow", "missing": "dim", "broken": "bold red"}
Status = Literal["ok", "warn", "missing", "broken"]


@dataclass(frozen=True)
class Check:
    """One line of the report.

    `status` is `ok`, `warn` (works, with something to know), `missing` (an optional feature is off) or `broken`
    (LCD itself cannot run); `detail` is a sentence that says what was found and what to do.
    """

    name: str
    status: Status
    detail: str


def report() -> list[Check]:
    """Look at everything, core things first."""
    core = [_guarded(name, probe, "broken") for name, probe in CORE.items()]
    return core + [_guarded(name, probe, "missing") for name, probe in OPTIONAL.items()]


def run(cfg: Any = None, console: Console | None = None) -> int:
    """Print the report.

    Args:
        cfg: the composed configuration; unused, it is here because every command is called with one.
        console: where to print; standard output by default.

    Returns:
        The exit code: 0, or 1 when something that LCD cannot do without is broken.
    """
    checks = report()
    table = Table(title="What works on this machine", show_lines=False, pad_edge=False, box=None)
    for column in ("part", "status", "detail"):
        table.add_column(column, overflow="fold")
    for check in checks:
        table.add_row(check.name, Text(check.status, STYLES[check.status]), Text(check.detail))
    (console or console_for_tables()).print(table)
    return int(any(check.status == "broken" for check in checks))


def _guarded(name: str, probe: Callable[[], Check], otherwise: Status) -> Check:
    """A check that crashes is a finding, not a crash of the doctor."""
    try:
        return probe()
    except Exception as error:
        return Check(name, otherwise, f"It does not work here: {type(error).__name__}: {error}.")


def _installed(name: str) -> bool:
    return find_spec(name) is not None


def _python() -> Check:
    found = f"Python {platform.python_version()} at {sys.executable}"
    if (3, 11) <= sys.version_info[:2] <= (3, 12):
        return Check("python", "ok", f"{found}.")
    return Check("python", "broken", f"{found}: LCD is made for 3.11 and 3.12.")


def _torch() -> Check:
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        return Check("torch", "broken", f"torch does not import ({error}): pip install 'torch==2.15.*'.")
    devices = ["cpu"]
    if torch.cuda.is_available():
        devices += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append("mps")
    return Check("torch", "ok", f"torch {torch.__version__}, devices: {', '.join(devices)}.")


def _torchvision() -> Check:
    """Importing is not enough: an unmatched pair may fail only when an operator is called."""
    try:
        torch, torchvision = importlib.import_module("torch"), importlib.import_module("torchvision")
        torchvision.ops.nms(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.ones(1), 0.5)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        advice = "install the pair from one index: pip install 'torch==2.15.*' 'torchvision==0.29.*'"
        return Check("torchvision", "broken", f"torchvision does not work with this torch ({error}): {advice}.")
    return Check("torchvision", "ok", f"torchvision {torchvision.__version__} matches torch.")


def _numpy() -> Check:
    return Check("numpy", "ok", f"numpy {importlib.import_module('numpy').__version__}.")


def _gymnasium() -> Check:
    return Check("gymnasium", "ok", f"gymnasium {importlib.import_module('gymnasium').__version__}.")


def _lightning() -> Check:
    return Check("lightning", "ok", f"lightning {importlib.import_module('lightning').__version__}.")


def _machine() -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = f"{cores} core{'s' * (cores != 1)}, {_memory()}, {platform.platform()}"
    return Check("machine", "ok", f"{found}.")


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "memory unknown"
    return f"{total / 2**30:.0f} GB of memory"


def _procgen() -> Check:
    absent = [package for package, module in PROCGEN_MODULES.items() if not _installed(module)]
    if absent:
        return Check("procgen", "missing", f"Not installed: {', '.join(absent)}. {PROCGEN_RECIPE}")
    # Importing `procgen` itself would import `gym`; LCD loads the library in this folder.
    found = find_spec("procgen")
    library = Path((found and found.origin) or "procgen").parent / "data" / "prebuilt" / "libenv.so"
    if not library.is_file():
        return Check("procgen", "missing", f"{library} is not there: reinstall. {PROCGEN_RECIPE}")
    importlib.import_module("gym3.libenv")
    if _installed("gym"):
        advice = "pip uninstall gym, which LCD never imports, unless something else of yours does"
        return Check("procgen", "warn", f"Installed, and so is gym, unmaintained and loud about it: {advice}.")
    return Check("procgen", "ok", "procgen-mirror and gym3 are installed, without gym.")


def _engine(name: str) -> Check:
    """An engine by what is installed: importing some takes seconds."""
    modules, serves, advice = ENGINES[name]
    absent = [module for module in modules if not _installed(module)]
    if absent:
        return Check(name, "missing", f"Not installed: {', '.join(absent)}. {serves} needs it: {advice}.")
    found = ", ".join(f"{module} {version(DISTRIBUTIONS.get(module, module))}" for module in modules)
    return Check(name, "ok", f"{found}: {serves}.")


def _wandb() -> Check:
    if not _installed("wandb"):
        return Check("wandb", "missing", "Not installed: pip install wandb to track runs; tracker=none needs nothing.")
    if _logged_in():
        return Check(
            "wandb", "ok", f"wandb {version('wandb')}, logged in; runs stay offline unless tracker.mode=online."
        )
    return Check(
        "wandb",
        "ok",
        f"wandb {version('wandb')}, not logged in: offline runs (the default) work, wandb login for more.",
    )


def _logged_in() -> bool:
    """Whether a key is at hand, by the two places where W&B itself looks; the key is not read out."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname
    path = os.environ.get("NETRC") or str(Path.home() / ".netrc")
    try:
        return netrc.netrc(path).authenticators(host or "") is not None
    except (OSError, netrc.NetrcParseError):
        return False


def _parquet() -> Check:
    if not _installed("pyarrow"):
        return Check("parquet", "missing", "pip install 'pyarrow<25' to read Parquet files; CSV needs nothing.")
    try:
        pyarrow = importlib.import_module("pyarrow")
    except ImportError as error:
        return Check("parquet", "missing", f"pyarrow does not import ({error}): pip install 'pyarrow<25'.")
    return Check("parquet", "ok", f"pyarrow {pyarrow.__version__}.")


def _slurm() -> Check:
    if not (path := shutil.which("sbatch")):
        return Check("slurm", "missing", "No sbatch on PATH: runs are launched on this machine (launcher=local).")
    if not _installed("submitit"):
        return Check("slurm", "missing", f"{path}, but no submitit: pip install submitit for launcher=slurm.")
    return Check("slurm", "ok", f"{path}, submitit {version('submitit')}: launcher=slurm.")


def _ray() -> Check:
    if not _installed("ray"):
        return Check("ray", "missing", "Not installed: pip install 'ray<2.61' for launcher=ray.")
    return Check("ray", "ok", f"ray {version('ray')}: launcher=ray.")


def _browser() -> Check:
    for name in BROWSERS:
        if path := shutil.which(name):
            return Check("browser", "ok", f"{path}, for the test that opens a report.")
    return Check("browser", "missing", "No Chromium or Chrome: only the test that opens a report needs one.")


CORE: dict[str, Callable[[], Check]] = {
    "python": _python,
    "machine": _machine,
    "numpy": _numpy,
    "torch": _torch,
    "torchvision": _torchvision,
    "gymnasium": _gymnasium,
    "lightning": _lightning,
}
OPTIONAL: dict[str, Callable[[], Check]] = {
    "procgen": _procgen,
    **{name: partial(_engine, name) for name in ENGINES},
    "wandb": _wandb,
    "parquet": _parquet,
    "slurm": _slurm,
    "ray": _ray,
    "browser": _browser,
}
