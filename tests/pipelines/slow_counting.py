"""A kind of job that goes on from where it was: it counts, row by row, and keeps how far it came."""

import json
import os
import time
from pathlib import Path

from rich.console import Console

from lcd.config.compose import compose
from lcd.files.atomic import write_atomic
from lcd.pipelines.kinds.kind import Job, Kind
from lcd.pipelines.study import store
from lcd.pipelines.study.hands import require
from lcd.pipelines.study.sources import with_source
from lcd.pipelines.study.store import finish, update_status
from lcd.pipelines.study.training import train_missing
from lcd.process import signals
from lcd.process.deadlines import beat

PAUSE = "LCD_TEST_PAUSE_S"
KEPT = "count.json"
STEPS = 12


def rows(seed, steps):
    """The lines of a curve up to a step."""
    return "".join(["step,square\n", *(f"{step},{step**2 + seed}\n" for step in range(1, steps + 1))])


def count(config, folder, tracker, device):
    """Rows up to `steps`, each with its square; who is told to stop does so after a row."""
    folder, seed = Path(folder), config["seeds"][0]
    kept, curve = folder / KEPT, folder / "curve.csv"
    state = json.loads(kept.read_text()) if kept.exists() else {"step": 0, "starts": 0}
    state["starts"] += 1
    # Rows that nothing relies on are made again, as a training does.
    before = curve.read_text().splitlines(keepends=True)[: 1 + state["step"]] if curve.exists() else ["step,square\n"]
    write_atomic(curve, "".join(before))
    with signals.deferring_stops():
        while state["step"] < config["steps"]:
            time.sleep(float(os.environ.get(PAUSE, 0)))
            state["step"] += 1
            require(folder)
            with curve.open("a") as file:
                file.write(f"{state['step']},{state['step'] ** 2 + seed}\n")
            write_atomic(kept, json.dumps(state))
            update_status(folder, step=state["step"])
            beat()
            if signals.stop_requested():
                raise signals.Stopped
    finish(folder, step=config["steps"])


SLOW = Kind(work="slow_counting:count", label=lambda config: f"slow count {config['seeds'][0]}", outputs=(KEPT,))


def config(seed, after=None):
    """What such a job is asked for; it may wait for another one."""
    told = {"kind": "slow_counting:SLOW", "benchmark": "toy", "seeds": [seed], "steps": STEPS}
    return with_source(told | ({"begin": {"job": after.id, "file": KEPT}} if after else {}))


def have_made(folder, seeds, *overrides, first=False, told=False):
    """Have counts made as a command would; whether all are done.

    Args:
        folder: the study's.
        seeds: of the counts.
        *overrides: keys of the command.
        first: whether all others wait for the first one.
        told: whether it says what a command says.
    """
    cfg = compose("diagnose", ["tracker=none", "device=cpu", *overrides])
    study = store.Study(folder, create=True)
    begin = Job(config(seeds[0]))
    jobs = [begin, *(Job(config(seed, begin if first else None)) for seed in seeds[1:])]
    with open(os.devnull, "w") as nowhere, study.at_work():
        console = Console() if told else Console(file=nowhere)
        return train_missing(cfg, study, study.ask({"count": list(seeds)}, jobs), console)


COMMAND = """
import json, sys
from lcd.process.exits import print_error, system_refusal
from lcd.process.signals import CONTINUE_ME, Stopped, handle_stop_signals
from slow_counting import have_made
folder, seeds, *words = sys.argv[1:]
handle_stop_signals()
try:
    how = {word: word in words for word in ("first", "told")}
    sys.exit(not have_made(folder, json.loads(seeds), *(word for word in words if word not in how), **how))
except Stopped:
    sys.exit(CONTINUE_ME)
except OSError as fault:
    sys.exit(print_error(system_refusal(fault), 1))
"""


def command(folder, seeds, *words):
    """A command of its own that has counts made, all others after the `first` if so, and ends as commands do."""
    from fork_server import interpret

    return interpret(COMMAND, str(folder), json.dumps(seeds), *words)


def until(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.1)


def steps_of(folder):
    """How far each count is."""
    return [run.status["step"] for run in store.Study(folder).runs()] if (folder / "study.yaml").exists() else []


def hands(folder):
    """The processes of the workers that are at runs."""
    told = [run.status["where"] for run in store.Study(folder).runs() if run.status["state"] == "running"]
    return [int(where.rpartition(" ")[2]) for where in told if where]


def parent(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def starts_of(folder, seeds):
    """How often each count was begun or gone on with, once it is as an uninterrupted one, and was done once.

    Args:
        folder: the study's.
        seeds: of its counts, of which none is lost.
    """
    runs = {run.config["seeds"][0]: run for run in store.Study(folder).runs()}
    assert sorted(runs) == sorted(seeds), f"there are {sorted(runs)}"
    for seed, run in runs.items():
        found = (run.path / "curve.csv").read_text()
        assert found == rows(seed, STEPS), f"the curve of {seed} is {found}"
        told = [json.loads(path.read_text())["what"] for path in sorted((run.path / "leases").iterdir())]
        assert told.count("done") == 1, f"{seed} was {told}"
        assert not (run.path / "at-work").exists(), f"{seed} was {told}, and {sorted(run.path.rglob('at-work/**/*'))}"
    return {seed: json.loads((run.path / KEPT).read_text())["starts"] for seed, run in runs.items()}
