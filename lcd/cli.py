"""The console script `lcd`.

Commands are named as strings and imported when they run, so that `lcd --help` is fast and so that this
package needs nothing of the pipelines that are built on it.
"""

import errno
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from lcd import __version__, signals


class Command(NamedTuple):
    """What a command runs, and what the help says about it."""

    target: str
    usage: str
    meaning: str


COMMANDS = {
    "diagnose": Command(
        "lcd.pipelines.diagnose:run",
        "benchmark=toy [budget=smoke] [out=my/study] [--dry-run]",
        "train what a diagnosis needs and say what makes each task hard; continues a study that was stopped",
    ),
    "ablate": Command(
        "lcd.pipelines.diagnose:ablate",
        "study=frontend|shaping [benchmark=procgen]",
        "train what differs in one thing alone (front-ends, or reward for sub-goals), and say what it changes",
    ),
    "train": Command(
        "lcd.pipelines.train:run",
        "task=toy/… [view=semantic] [reward_p=0.5] [budget=smoke] [--dry-run]",
        "train one task under one condition for several seeds",
    ),
    "pretrain": Command(
        "lcd.pipelines.pretrain:run",
        "frontend=flow benchmark=procgen [pretraining=paper]",
        "film a benchmark and pretrain a front-end on the videos, without rewards",
    ),
    "sweep": Command(
        "lcd.pipelines.sweep:run",
        "experiment=delay [quick=true] [out=…]",
        "vary one or two dimensions of hardness over a grid, for some agents and seeds, and draw the result",
    ),
    "report": Command(
        "lcd.pipelines.report:run",
        "<study folder, .csv or .parquet> [another one] [tables=[latex]]",
        "diagnose a study again, or curves that were trained elsewhere; compare two",
    ),
    "power": Command(
        "lcd.pipelines.power:run",
        "<study folder, .csv or .parquet> [power=0.8] [definition=calibrated]",
        "say how many seeds and steps it takes to tell the scores of tasks apart",
    ),
    "view": Command(
        "lcd.pipelines.view:run",
        "toy/… | procgen/heist | procgen [view=pixels] [out=x.png]",
        "draw a task, or all of a benchmark, under each of its views, and its graph where it has one",
    ),
    "measure": Command(
        "lcd.pipelines.measure:run",
        "procgen ['tasks=[procgen/heist]'] [episodes=1000 | frontend=flow frontend.weights=…]",
        "measure a random agent's returns, beside the stated R_min; or how well a front-end's maps show objects",
    ),
    "list": Command(
        "lcd.pipelines.listing:run", "[benchmarks|tasks|agents|…]", "list what can be chosen, yours included"
    ),
    "doctor": Command("lcd.doctor:run", "", "say what works on this machine"),
}
OK, FAILED, MISTAKE, STOPPED = 0, 1, 2, 130
TRAINING = ("diagnose", "ablate", "train", "pretrain", "sweep")
OWN_CODE = re.compile(r"(benchmark|agent|frontend)(\.name)?=['\"]?[\w.]+:\w")
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    argv: the arguments without the program's name; None takes the process's own.
    Returns the exit code: 0 fine, 1 something failed, diverged or is not finished, 2 a user's mistake, 75 stopped by
    SIGTERM or SIGUSR1, 130 stopped by Ctrl-C.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_overview())
        return OK
    if arguments[0] in ("-V", "--version"):
        print(f"lcd {__version__}")
        return OK
    name, *overrides = arguments
    if name in TRAINING:
        signals.listen()
    overrides = ["dry_run=true" if override == "--dry-run" else override for override in overrides]
    try:
        return _run(name, overrides)
    except (KeyboardInterrupt, signals.Stopped) as told:
        line = shlex.join(["lcd", *arguments])
        print(f"\nStopped; what is trained is kept. The same command continues: {line}", file=sys.stderr)
        return STOPPED if isinstance(told, KeyboardInterrupt) else signals.CONTINUE_ME
    except BrokenPipeError:
        # What reads our output went away (lcd list | head); the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _run(name: str, overrides: list[str]) -> int:
    from lcd.envs.errors import InputError, Unfinished, nearest

    try:
        if name not in COMMANDS:
            raise InputError(f"'{name}' is not a command of lcd: {nearest(name, COMMANDS)}")
        if {"-h", "--help"} & set(overrides):
            from lcd.help import page_of

            print(page_of(name, COMMANDS[name].usage))
            return OK
        # A user's own module:object is looked for where the command is given, as `python` does; nothing else is,
        # because the working directory may be somebody else's study.
        if any(OWN_CODE.match(override) for override in overrides) and os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        from lcd.config import compose

        return int(_resolve(COMMANDS[name].target)(compose(name, overrides)) or OK)
    except InputError as mistake:
        print(f"lcd: {mistake}", file=sys.stderr)
        return MISTAKE
    except Unfinished as lack:
        print(f"lcd: {lack}", file=sys.stderr)
        return FAILED
    except OSError as trouble:
        if trouble.errno not in DISK:
            raise
        where = f" at {trouble.filename}" if trouble.filename else ""
        print(
            f"lcd: {trouble.strerror}{where}: what was written before is whole; make room, and the same command "
            "continues.",
            file=sys.stderr,
        )
        return FAILED


def _resolve(target: str) -> Callable[[Any], int]:
    module, _, function = target.partition(":")
    return getattr(import_module(module), function)


def _overview() -> str:
    lines = ["lcd says what makes each task of a reinforcement-learning benchmark hard.", ""]
    for name, command in COMMANDS.items():
        lines += [f"  lcd {name} {command.usage}".rstrip(), f"      {command.meaning}"]
    lines += [
        "",
        "  lcd <command> --help lists a command's groups and keys, all given as key=value.",
        "  lcd --version",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
