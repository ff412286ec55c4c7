"""The console script `lcd`.

Commands are named as strings and imported when they run, so that `lcd --help` is fast and so that this
package needs nothing of the pipelines that are built on it.
"""

import contextlib
import logging
import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from lcd import __version__
from lcd.process import exits, signals
from lcd.process.exits import FAILED, MISTAKE, OK, PIPE, STOPPED, print_error


class Command(NamedTuple):
    """What a command runs, and what the help says about it."""

    target: str
    usage: str
    meaning: str


COMMANDS = {
    "diagnose": Command(
        "lcd.pipelines.study.diagnose:run",
        "benchmark=toy [budget=smoke] [out=my/study] [--dry-run]",
        "train what a diagnosis needs and say what makes each task hard; continues a study that was stopped",
    ),
    "ablate": Command(
        "lcd.pipelines.study.diagnose:run",
        "study=frontend|shaping [benchmark=procgen]",
        "train what differs in one thing alone (front-ends, or reward for sub-goals), and say what it changes",
    ),
    "train": Command(
        "lcd.pipelines.study.one_run:run",
        "task=toy/… [view=…] [reward_p=0.5] [budget=smoke] [--dry-run]",
        "train one task under one condition for several seeds",
    ),
    "pretrain": Command(
        "lcd.pipelines.jobs.pretrain:run",
        "frontend=flow benchmark=procgen [budget=smoke]",
        "film a benchmark and pretrain a front-end on the videos, without rewards",
    ),
    "sweep": Command(
        "lcd.pipelines.study.diagnose:run",
        "experiment=delay [budget=smoke] [out=…]",
        "vary one or two dimensions of hardness over a grid, for some agents and seeds, and draw the result",
    ),
    "report": Command(
        "lcd.pipelines.publish.report:run",
        "<study folder, .csv, .parquet or wandb:entity/project/group> [another one] [tables=[latex]]",
        "diagnose a study again, or curves that were trained elsewhere (also anybody's W&B runs); compare two",
    ),
    "import": Command(
        "lcd.pipelines.importing.import_curves:run",
        "<folder of logs, file, or wandb:entity/project> [map=map.yaml] [folders={task}/{view}/p{reward_p}/{seed}]",
        "make curves of logs that others wrote (W&B, TensorBoard, Stable-Baselines3, RLlib, CleanRL, rliable, CSV)",
    ),
    "verify": Command(
        "lcd.pipelines.study.verify:run",
        "<study folder>",
        "check that a study's files are what its runs left there; exits with 1 where one is not",
    ),
    "sync": Command(
        "lcd.pipelines.publish.sync:run",
        "<study folder>",
        "upload a study's offline W&B runs",
    ),
    "wandb-sweep": Command(
        "lcd.pipelines.publish.wandb_sweep:run",
        "<study folder>",
        "make a W&B sweep whose agents (wandb agent) train a study's runs",
    ),
    "status": Command(
        "lcd.pipelines.steering.status:run",
        "<study folder> [state=failed task=toy/*] [--watch] [--json]",
        "say how far a study is; exits with 0 where all is done, 1 where something failed, 75 where it goes on",
    ),
    "logs": Command(
        "lcd.pipelines.steering.logs:run",
        "<study folder> [run ids | state=failed] [--follow]",
        "show what runs have printed, and why they failed",
    ),
    "cancel": Command(
        "lcd.pipelines.steering.cancel:run",
        "<study folder> [run ids | task=toy/*] [wait=60]",
        "stop runs, wherever they are trained, and keep what they have",
    ),
    "retry": Command(
        "lcd.pipelines.steering.retry:run",
        "<study folder> [run ids | state=diverged] [anew=true]",
        "let runs that failed, diverged or were cancelled be tried again",
    ),
    "remove": Command(
        "lcd.pipelines.steering.remove:run",
        "<study folder> state=failed [agent=ppg] [--yes]",
        "remove runs from a study, after a look at which",
    ),
    "power": Command(
        "lcd.pipelines.publish.power:run",
        "<study folder, .csv or .parquet> [power=0.8] [definition=paper]",
        "say how many seeds and steps it takes to tell the scores of tasks apart",
    ),
    "view": Command(
        "lcd.pipelines.publish.view:run",
        "toy/… | procgen/heist | procgen [view=…] [out=x.png]",
        "draw a task, or all of a benchmark, under each of its views, and its graph where it has one",
    ),
    "measure": Command(
        "lcd.pipelines.jobs.measure:run",
        "procgen ['tasks=[procgen/heist]'] [episodes=1000 | frontend=flow frontend.weights=…]",
        "measure a random agent's returns, beside the stated R_min; or how well a front-end's maps show objects",
    ),
    "new": Command(
        "lcd.starting:run",
        "benchmark my_worlds [out=folder]",
        "write a benchmark of your own to begin with: one commented file that runs as it is",
    ),
    "check": Command(
        "lcd.pipelines.check.checking:run",
        "my_worlds:MyWorlds | toy ['study.tasks=[toy/…]'] [--json]",
        "say what is wrong with a benchmark before anything is trained; exits with 1 where something fails",
    ),
    "horizon": Command(
        "lcd.pipelines.study.study_horizons:run",
        "mdp.npz horizon=50 | module:object | ctgraph/ct-fo-b1 | ehc | <study folder> [timesteps=1e6] [out=x]",
        "say how far a deterministic task asks an agent to look ahead: its effective horizon, from its tables",
    ),
    "list": Command(
        "lcd.pipelines.publish.listing:run", "[benchmarks|tasks|agents|…]", "list what can be chosen, yours included"
    ),
    "completion": Command(
        "lcd.completion:run", "bash | zsh | fish", "print what a shell needs to complete lcd's words"
    ),
    "doctor": Command("lcd.doctor:run", "", "say what works on this machine"),
}


SWITCHES = {
    "--detach": "launcher.detach=true",
    "--dry-run": "dry_run=true",
    "--follow": "follow=true",
    "--json": "format=json",
    "--watch": "watch=true",
    "--yes": "yes=true",
}
"""Words that stand for a key and its value."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        argv: the arguments without the program's name; None takes the process's own.

    Returns:
        The exit code, one of `lcd.process.exits.EXITS`.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    line = shlex.join(["lcd", *arguments])
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding has no letters for must not end a command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _main(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except (KeyboardInterrupt, signals.Stopped) as told:
        kept = signals.kept(told)
        # The terminal may be what went away.
        with contextlib.suppress(OSError):
            rest = f"; {kept} is kept" if kept else ""
            print(f"\nStopped{rest}. The same command continues: {line}", file=sys.stderr)
        return STOPPED if isinstance(told, KeyboardInterrupt) else signals.CONTINUE_ME
    except (BrokenPipeError, SystemExit) as gone:
        # Rich ends a process whose output nobody reads any more.
        if isinstance(gone, SystemExit) and not isinstance(gone.__context__, BrokenPipeError):
            raise
        exits.discard_output()
        return PIPE
    except MemoryError:
        return print_error("there is not enough memory for this: ask for less, or take a machine with more.", FAILED)
    except Exception as fault:
        if (sentence := exits.system_refusal(fault)) is not None:
            # Where it is the output itself that cannot be written, the interpreter would complain again.
            exits.discard_output()
            return print_error(sentence, FAILED)
        from lcd.config.own_code import OWN_CODE

        modules = {found.partition(":")[0] for argument in arguments for found in OWN_CODE.findall(argument)}
        return exits.report_unexpected(fault, line, modules)


def _main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_overview())
        return OK
    if arguments[0] in ("-V", "--version"):
        print(f"lcd {__version__}")
        return OK
    name, *overrides = arguments
    # Where no home can be written it would tell where it keeps its fonts.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    signals.handle_stop_signals()
    return _run(name, [SWITCHES.get(override, override) for override in overrides])


def _run(name: str, overrides: list[str]) -> int:
    from lcd.envs.errors import Elsewhere, InputError, Unfinished, nearest

    try:
        if name not in COMMANDS:
            raise InputError(f"'{name}' is not a command of lcd: {nearest(name, COMMANDS)}")
        if {"-h", "--help"} & set(overrides):
            from lcd.config.help import page_of

            print(page_of(name, COMMANDS[name].usage, overrides))
            return OK
        from lcd.config.carried_out import carry_out
        from lcd.config.compose import compose

        return int(carry_out(compose(name, overrides), COMMANDS[name].target) or OK)
    except InputError as mistake:
        return print_error(str(mistake), MISTAKE)
    except Unfinished as lack:
        return print_error(str(lack), FAILED)
    except Elsewhere as where:
        print(exits.printable(where))
        return OK


def _overview() -> str:
    lines = ["lcd says what makes each task of a reinforcement-learning benchmark hard.", ""]
    for name, command in COMMANDS.items():
        lines += [f"  lcd {name} {command.usage}".rstrip(), f"      {command.meaning}"]
    lines += [
        "",
        "  lcd <command> --help lists a command's groups and keys, all given as key=value (agent=NAME: also its own).",
        "  lcd --version",
        "",
        "Exit codes:",
        *exits.exit_code_table(),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
