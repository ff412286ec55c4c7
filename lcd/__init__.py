"""LCD tells a reinforcement-learning researcher why a benchmark is hard."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import lcd.envs  # noqa: F401

if TYPE_CHECKING:
    from lcd.envs.benchmarks import get_benchmark
    from lcd.envs.rewards import wrap_rewards
    from lcd.scores.diagnosis import Diagnosis, diagnose_curves
    from lcd.studies import Study, diagnose, import_curves, load_study

__version__ = "0.1.0"
__all__ = [
    "Diagnosis",
    "Study",
    "__version__",
    "diagnose",
    "diagnose_curves",
    "get_benchmark",
    "import_curves",
    "load_study",
    "wrap_rewards",
]

# Importing any sub-package runs this file, so nothing heavy is imported here but what registers our environments:
# Gymnasium loads no plugins, and `import lcd` is to be enough for `gymnasium.make_vec("lcd/…")`.
_HOMES = {
    "Diagnosis": "lcd.scores.diagnosis",
    "Study": "lcd.studies",
    "diagnose": "lcd.studies",
    "import_curves": "lcd.studies",
    "load_study": "lcd.studies",
    "diagnose_curves": "lcd.scores.diagnosis",
    "get_benchmark": "lcd.envs.benchmarks",
    "wrap_rewards": "lcd.envs.rewards",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lcd' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
