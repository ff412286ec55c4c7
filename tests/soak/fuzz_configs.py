"""Fuzzed command lines: hostile keys, values, types and nesting over every command and every key.

    python tests/soak/fuzz_configs.py [--cases 5000] [--seed 1] [--first 0] [--processes 1]

Reports what must not be: a stack trace, a hang, a refused command that changed something. A case is known by its seed
and number; what is printed of a fault are the fewest of its words that still give it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from functools import cache

from fuzz_harness import FAULTS, Outcome, Sandbox, main, run_words, source
from fuzz_studies import fill

from lcd.cli import COMMANDS
from lcd.config.budgets import choices
from lcd.config.chosen_files import defaults
from lcd.config.keys import GROUPS, registered, schema_fields
from lcd.config.nested import flatten
from lcd.config.overrides import POSITIONAL
from lcd.config.schemas import SCHEMAS
from lcd.config.study_files import SWEEPS

TEXTS = (
    "", " ", "null", "none", "None", "on", "off", "yes", "true", "false", "auto", "random", "own", "all", "custom",
    "~", "~nosuchuser", "~nosuchuser/x", "~/x", "/", "//", ".", "..", "../..", "./x", "-", "--", "-h", "=", "a=b",
    "/dev/null", "/dev/full", "/proc/self/mem", "/nonexistent/a/b", "x.png", "x.csv", "study", "curves.csv",
    "empty.csv", "folder", "notes.txt", "gone", "loop", "\0", "a\0b", "x\0.png", "x\0.csv", "a\nb", "a\tb", "a\rb",
    "\x1b[31mred", "日本語", "🔥", "\u202egnp.x", "é" * 200, "x" * 300, "y" * 5000, "\udc80", "a\udcff.csv", "\ufeff",
    "'", '"', "'a", '"a', "''", "'on'", "'1'", "\\", "a\\", "[", "]", "{", "}", "(", ")", "[a", "{a", "$", "${x}",
    "${oc.env:HOME}", "${oc.env:NOT_THERE}", "${now:%Y}", "${.}", "$(ls)", "`ls`", "%s", "{0}", "#x", "?", "???", "*",
    "_target_", "__class__", "a.b.c", "a/b", "toy/", "/toy", "toy/easy", "<b>", "[bold]x[/bold]", "[/]", "a,b",
    "1:2:3",
)  # fmt: skip
NUMBERS = (
    "0", "-0", "1", "-1", "2", "3", "7", "0.5", "-0.5", "1.5", "1.0", "1e3", "1e-320", "5e-324", "1e308", "-1e308",
    "1e400", "-1e400", "nan", "inf", "-inf", ".nan", ".inf", "0x10", "1_000", "01", "1e5", "2147483648", "4294967296",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "-9223372036854775809", "1" + "0" * 30,
    "9" * 400, "9" * 5000, "0." + "0" * 400 + "1", "1e", "1.", ".5", "½", "١٢",
)  # fmt: skip
NESTED = (
    "[]", "{}", "[[]]", "[{}]", "[null]", "[a,b]", "[a,a]", "[1,2]", "[1,1]", "[1,[2]]", "[0.5,a]", "[1,nan]",
    "[1,1e400]", "[true]", "[1.5]", "[-1]", "{a:b}", "{a:{b:c}}", "{name:x}", "{1:2}", "{null:1}", "{true:1}",
    "{a:[1,{b:2}]}", "{_target_:os.getcwd}", "[{_target_:os.getcwd}]", "[" * 60 + "]" * 60,
    "{a:" * 60 + "1" + "}" * 60, "[[1,2],[3]]", "{toy/easy-sight-easy-reward:1}", "[[toy/easy-sight-easy-reward,10]]",
    "[~]", "[${x}]", "{a:${a}}", "['',' ']", "[{tasks:[]}]", "[{views:[pixels],reward_p:[1]}]", "[{reward_p:a}]",
    "[{optional:1}]", "[{views:[1]}]", "[{frontends:[flow]},{agents:[x]}]", "{discrete:1}", "{discrete:{grid:1}}",
    "{delay:[0,1]}", "{delay:0}", "{delay:[a]}", "{delay:[null]}", "{delay:[[1]]}", "{ppo:1}", "{ppo:{copies:a}}",
    "{default:10}", "[{metric:x}]", "[[toy/easy-sight-easy-reward,5],[toy/hard-sight-easy-reward,5]]",
)  # fmt: skip
HYDRA = (
    "range(1,3)", "choice(a,b)", "glob(*)", "sort(3,1)", "shuffle(1,2)", "interval(0,1)", "int(a)", "float(1)",
    "bool(x)", "str([1])", "tag(a,b)", "extend_list(1)", "json_str({a:1})",
)  # fmt: skip
OBJECTS = (
    "os:getcwd", "os:path", "os:sep", "os:", ":x", ":", "::", "a:b:c", "os:path.join.x", "math:pi", "math:sqrt",
    "builtins:int", "builtins:dict", "builtins:list", "builtins:type", "builtins:object", "builtins:Exception",
    "builtins:None", "builtins:print", "builtins:__import__", "json:loads", "json:decoder", "collections:OrderedDict",
    "lcd.envs.toy:TOY", "lcd.envs.toy:Toy", "lcd.agents.ppo:PPO", "lcd.frontends.identity:Identity",
    "lcd.agents.ppo:Config", "a..b:c", ".:x", "..:x", ".os:path", "0:1", "not there:x", "os :path", "os\0:x", "é:ü",
    "torch.nn:Identity", "torch.nn:Linear", "torch:nn", "broken:x", "raising:x", "sys:modules", "sys:stdout",
    "fractions:Fraction", "types:SimpleNamespace", "enum:Enum", "typing:Any",
)  # fmt: skip
KNOBS = (
    "delay", "sparsity", "sequence_length", "state_size", "states", "actions", "noise", "transition_noise", "dim",
    "reward_noise", "shape", "size", "mdp_seed", "episode_length", "density", "b", "d", "p", "mode", "num_levels",
    "start_level", "shaping", "x", "view", "split", "seed", "num_envs", "task", "self", "", "image_size", "copies",
)  # fmt: skip
WRAPPED = ("{}", "{}", "{}", "{}", "'{}'", '"{}"', "[{}]", "[{},{}]", "{{a:{}}}", " {}", "{} ")
TASKS = (
    "toy/easy-sight-easy-reward", "hardness/discrete", "hardness/continuous", "ctgraph/ct-su-b1", "procgen/heist",
    "calibration/p0-r0", "hardness/discrete:delay=1",
)  # fmt: skip


def case(random: random.Random) -> list[str]:
    """The words of one command line."""
    command = random.choice(tuple(COMMANDS) if random.random() < 0.98 else (value(random), "help"))
    if command not in COMMANDS:
        return [command]
    words = usual(random, command)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3))):
        words.insert(random.randint(0, len(words)), word(random, command))
    return [command, *words]


def usual(random: random.Random, command: str) -> list[str]:
    """What makes a command complete, most of the time."""
    if random.random() < 0.1:
        return []
    if command in ("report", "power"):
        return [random.choice(("study", "curves.csv", "curves.parquet", "curricula.csv"))]
    if command in ("view", "train"):
        return [f"task={random.choice(TASKS) if random.random() < 0.3 else TASKS[0]}"]
    if command == "measure":
        return [random.choice(("toy", "toy", "hardness", "ctgraph", "calibration"))]
    if command == "horizon":
        return [random.choice(("ctgraph/ct-fo-b1", "toy/easy-sight-easy-reward", "curves.csv"))]
    if command == "sweep":
        names = [name.removeprefix(SWEEPS) for name in choices("study") if name.startswith(SWEEPS)]
        return [f"experiment={random.choice(names)}"]
    if command in ("diagnose", "ablate") and random.random() < 0.2:
        return [f"benchmark={random.choice(registered('benchmark'))}", f"study={random.choice(choices('study'))}"]
    if command == "pretrain":
        return ["frontend=flow"]
    return ["out=study"] if random.random() < 0.1 and command != "list" else []


def word(random: random.Random, command: str) -> str:
    """One hostile word."""
    keys, groups = keys_of(command)
    kind = random.random()
    if kind < 0.55 and keys:
        return f"{random.choice(keys)}={value(random)}"
    if kind < 0.70 and groups:
        group = random.choice(groups)
        names = [*choices(group), *registered(group)]
        return f"{group}={random.choice(names) if random.random() < 0.3 and names else value(random)}"
    if kind < 0.80 and keys:
        nested = f"{random.choice((*keys, *groups))}.{random.choice((*KNOBS, '0', 'name', '_target_'))}"
        return f"{nested}={value(random)}"
    if kind < 0.85:
        return f"task.knobs.{random.choice(KNOBS)}={value(random)}"
    if kind < 0.90 and command in POSITIONAL:
        return value(random)
    if kind < 0.95:
        prefix = random.choice(("+", "++", "~", "-", "--", "@", " ", "hydra.", "", "/", "++~", "\0"))
        return f"{prefix}{random.choice((*keys, *groups, *KNOBS, 'hydra', 'defaults'))}={value(random)}"
    return random.choice(
        (value(random), f"{value(random)}={value(random)}", "--dry-run", "--cfg", "~agent", "agent@x=ppo")
    )


def value(random: random.Random) -> str:
    """One hostile value."""
    kinds = (TEXTS, TEXTS, NUMBERS, NUMBERS, NESTED, OBJECTS, HYDRA)
    found = random.choice(random.choice(kinds))
    if random.random() < 0.1:
        found = random.choice(WRAPPED).format(found, random.choice(NUMBERS))
    if random.random() < 0.03:
        place = random.randint(0, len(found))
        found = found[:place] + chr(random.choice((0, 7, 10, 27, 39, 34, 92, 0x200B, 0x1F525))) + found[place:]
    return found


@cache
def keys_of(command: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A command's keys, those of its open parts included, and its groups."""
    documented = [name for name, _ in schema_fields(SCHEMAS[command])]
    keys = {*documented, *flatten(defaults(command))}
    if "agent" in documented:
        keys |= {f"agent.{key}" for key in ("copies", "rollout", "adam_eps", "gamma", "hidden", "minibatches", "name")}
    if "frontend" in documented:
        keys |= {f"frontend.{key}" for key in ("name", "weights", "keep", "memory_gb", "precision", "width", "model")}
    groups = tuple(name for name in GROUPS if any(key.partition(".")[0] == name for key in keys))
    return tuple(sorted(keys)), groups


def run(box: Sandbox, seed: int, number: int) -> Outcome:
    """Case `number`; of a fault the fewest words that still give it."""
    words = case(source(seed, number))
    outcome = run_words(words, box, told(words, seed, number))
    if outcome.kind not in FAULTS:
        return outcome
    for place in reversed(range(1, len(words))):
        fewer = [*words[:place], *words[place + 1 :]]
        again = run_words(fewer, box, told(fewer, seed, number))
        if again.kind == outcome.kind:
            words, outcome = fewer, again
    return outcome


def told(words: Sequence[str], seed: int, number: int) -> str:
    """The line that reproduces a case."""
    return f"seed {seed} case {number}: lcd.cli.main({words!r})"


if __name__ == "__main__":
    sys.exit(main(run, fill, 5000))
