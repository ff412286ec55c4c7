"""What a command imports before it knows that what it was asked for is right."""

import subprocess
import sys

import pytest

TRAINING = ("torch", "lightning", "torchvision", "torchmetrics", "wandb", "procgen", "gym", "gym3", "stable_baselines3")
TABLES = ("pandas", "scipy", "matplotlib")

PROGRAM = """
import sys
from lcd.cli import main
code = main(sys.argv[2:])
print("imported", *(name for name in sys.argv[1].split() if name in sys.modules))
sys.exit(code)
"""


def imported(*arguments: str, heavy: tuple[str, ...] = TRAINING) -> tuple[int, list[str], str]:
    """A command's exit code, which of some libraries it imported, and what it said of a mistake."""
    command = [sys.executable, "-c", PROGRAM, " ".join(heavy), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1].split()[1:], done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("train task=toy/easy-sight-easy-reward agent.gammma=3", "did you mean 'gamma'?"),
        ("train task=toy/easy-sight-easy-reward agent=ppg agent.phase=0", "agent.phase=0 should be at least 1"),
        ("train task=toy/easy-sight-easy-reward agent=sb3/dqn agent.copies=0", "agent.copies=0 should be at least 1"),
        ("train task=toy/easy-sight", "'toy/easy-sight' is not in the benchmark 'toy'"),
        ("train task=procgen/heist task.knobs.wide=1", "wide"),
        ("train task=toy/easy-sight-easy-reward seeds=[1,1]", "seeds"),
        ("train task=toy/easy-sight-easy-reward view=state", "view"),
        ("diagnose benchmark=toy agent.gammma=3", "did you mean 'gamma'?"),
        ("diagnose benchmark=nothing", "benchmark=nothing is unknown"),
        ("diagnose study=nothing.yaml", "nothing.yaml"),
        ("sweep experiment=nothing", "study=hardness/nothing is unknown"),
        ("verify nothing", "is not a study's folder"),
        ("report nothing.csv", "There is nothing at 'nothing.csv'"),
        ("power nothing.csv", "There is nothing at 'nothing.csv'"),
        ("view toy/easy-sight", "'toy/easy-sight' is not in the benchmark 'toy'"),
    ],
)
def test_a_mistake_is_found_before_what_trains_is_imported(arguments, says):
    reads = arguments.startswith(("report", "power", "diagnose"))
    code, found, error = imported(*arguments.split(), heavy=TRAINING if reads else (*TRAINING, *TABLES))
    assert (code, found) == (2, []), error
    assert says in error


@pytest.mark.parametrize("arguments", ["--help", "--version", "train --help", "diagnose --help"])
def test_help_imports_nothing_that_trains_or_reads_tables(arguments):
    assert imported(*arguments.split(), heavy=(*TRAINING, *TABLES))[1] == []


def test_listing_imports_nothing_that_trains():
    # The explanations of analyses are theirs, and these read tables.
    assert imported("list")[:2] == (0, [])
    assert imported("list", "tasks", heavy=(*TRAINING, *TABLES))[:2] == (0, [])


def test_a_report_on_curves_imports_nothing_that_trains(make_study, tmp_path):
    make_study({"toy/a": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5)}, 2).to_csv(tmp_path / "curves.csv", index=False)
    code, found, error = imported("report", str(tmp_path / "curves.csv"))
    assert (code, found) == (0, []), error
