"""Fuzzed files: curves, a study's own files, curricula, anybody's studies, videos, weights.

    python tests/soak/fuzz_files.py [--cases 1000] [--seed 1] [--first 0] [--processes 1]

Each case damages one file and gives it to a command that reads it. Reports what must not be: a stack trace, a hang, a
refused command that changed something.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml
from fuzz_configs import NESTED, NUMBERS, TEXTS
from fuzz_harness import Outcome, Sandbox, main, run_call, source
from fuzz_studies import STUDY
from fuzz_studies import fill as fill_studies

from lcd import cli
from lcd.envs.errors import InputError

NOBODY = 65534
CELLS = (
    "", " ", "nan", "NaN", "inf", "-inf", "1e308", "-1e308", "1e309", "1e999", "5e-324", "-0", "0", "-1", "1e18",
    "1e19", "9223372036854775808", "0.5", "1,000", "1.5.2", "True", "None", "NA", "=1+1", "日本語", "\udc80", "\0", '"',
    "'", "a\nb", "x" * 3000, "9" * 400, "0x10", "½", "\ufeff", "[]", "<script>", "pixels", "semantic", "eval",
    "train", "toy", "os:getcwd", "{}", "[bold]", "[/]", "\x1b[31m", "\u202e", "procgen", "mine/a", "\\", "$x$",
)  # fmt: skip
YAML = (
    "&a [*a]", "&a {b: *a}", "[&a [1], *a]", "2020-01-01", "2020-01-01T10:00:00Z", "12:30:45", "!!binary aGVsbG8=",
    "!!set {a, b}", "!!omap [a: 1]", "!!python/object/apply:os.getcwd []", "!!python/name:os.system", "!!timestamp x",
    "!!int x", "!!float x", ".nan", ".inf", "-.inf", "1e999", "1e308", "1_000", "0o17", "~", "null", "yes", "on",
    "[]", "{}", "[1, [2, {a: b}]]", "? [a, b] : c", "{[a]: b}", "{1: 2}", "{null: 1}", "{2020-01-01: 1}", "[" * 3000,
    "{a: " * 2000, '"\\ud800"', '"\\0"', "'a", "|\n  text", "!x y", "*nowhere", "%TAG", "\t", "- a", "9" * 5000, "-1",
    "1.5", "[0.5, a]", "{name: x}", "{name: [1]}", "{name: null}", "[a, a]", "[-1]", "[1.5]", "[true]", "os:getcwd",
    "{a: 1, a: 2}", "[null]", "[{}]", "'toy'", "'x\u2028y'", "<<: {a: 1}", "[18446744073709551616]",
    "[{requests: 1}]", "1:2",
)  # fmt: skip
JSON = (
    "1e999", "-1e999", "NaN", "Infinity", "1e308", "9" * 5000, "[" * 3000, '{"a":' * 3000, '"\\ud800"', '"\\u0000"',
    "null", "true", "[]", "{}", "-1", "1.5", '""', '"running"', '"done"', '"x"', "[1]", '{"a": 1}', "1e-320",
    "18446744073709551616", "0", '"' + "x" * 3000 + '"', '"[/]"',
)  # fmt: skip
STUDY_WORDS = [*STUDY, "out=study"]
RUN = "study/runs/first"
READ_STUDY = (
    ["report", "study"], ["report", "study"], ["power", "study"], ["report", "study", "curves.csv"],
    ["report", "curves.csv", "study"], ["diagnose", *STUDY_WORDS], ["diagnose", *STUDY_WORDS, "--dry-run"],
    ["diagnose", *STUDY_WORDS, "study.seeds=3"], ["diagnose", *STUDY_WORDS, "stopping=auto", "stopping.first=2"],
    ["train", "task=toy/easy-sight-easy-reward", "out=study", "budget=smoke"],
    ["pretrain", "frontend=flow", "policy=study", "tasks=[toy/easy-sight-easy-reward]"],
    ["diagnose", "study=adaptive", "study.source=study", "study.agents=[ppo]", "study.frontends=[identity]"],
    ["status", "study"], ["status", "study", "--json"], ["logs", "study", "state=[failed,damaged]"],
    ["report", "study", "out=elsewhere", "tables=[latex,markdown]"], ["report", "study", "definition=paper"],
)  # fmt: skip
READ_CURVES = (
    ["report", "{}"], ["report", "{}"], ["power", "{}", "out=pairs.csv"], ["report", "{}", "study"],
    ["report", "study", "{}"], ["report", "{}", "definition=paper", "tables=[latex,markdown]"],
)  # fmt: skip
WEIGHTS = ("train", "task=toy/easy-sight-easy-reward", "frontend=flow", "frontend.weights=weights.pt")
CURRICULUM = ("train", "curriculum=curricula.yaml", "benchmark=toy", "budget=smoke")


def fill(folder: Path) -> None:
    """The studies, and what else is read."""
    fill_studies(folder)
    runs = sorted((folder / "study" / "runs").iterdir())
    (folder / RUN).symlink_to(runs[0].name)
    content = {"state_dict": {"a": torch.zeros(3)}, "optimizer_states": [], "loops": {}, "callbacks": {}}
    torch.save({**content, "lcd_step": 500, "pytorch-lightning_version": "2.6"}, runs[0] / "checkpoints" / "last.ckpt")
    torch.save({"state_dict": {"a": torch.zeros(3)}}, folder / "weights.pt")
    from lcd.scores.diagnosis import diagnose_curves

    diagnose_curves(pd.read_csv(folder / "curves.csv")).save(folder / "saved")
    study = {"benchmark": "hardness", "tasks": ["hardness/discrete"], "views": ["state"], "reward_p": [1.0], "seeds": 2}
    study |= {"grid": {"knobs.delay": [0, 1]}, "agents": ["ppo"], "steps": 100, "knobs": {}, "of": {}, "tests": []}
    (folder / "sweep.yaml").write_text(yaml.safe_dump(study | {"agent_params": {}, "budgets": {"smoke": {"seeds": 1}}}))
    frames = zlib.compress(np.zeros((4, 8, 8, 3), np.uint8).tobytes())
    (folder / "videos.bin").write_bytes(frames)
    index = {"frame": [8, 8, 3], "starts": [0], "lengths": [4], "bytes": len(frames), "sums": [0.0] * 3}
    (folder / "videos.json").write_text(json.dumps(index | {"squares": [0.0] * 3, "sha256": "0"}))
    picture = folder / "study" / "views" / "toy-easy-sight-easy-reward" / "pixels.png"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")


def _asked(call: Callable[[], Any]) -> int:
    """A call of the library as a command: a mistake is told in one sentence."""
    try:
        call()
    except InputError as mistake:
        print(f"lcd: {getattr(cli, 'printable', str)(mistake)}", file=sys.stderr)
        return cli.MISTAKE
    return cli.OK


def _checkpoint() -> None:
    from lcd.pipelines.jobs.checkpoint import reached_step

    reached_step(Path(RUN).resolve() / "checkpoints" / "last.ckpt", 1)


def _policy() -> None:
    from lcd.envs.benchmarks import get_benchmark
    from lcd.files.atomic import sha256_of
    from lcd.pipelines.jobs import players
    from lcd.pipelines.study import store

    (run, *_) = store.Study("study").runs()
    checkpoint = run.path / "checkpoints" / "last.ckpt"
    player = {"file": str(checkpoint), "sha256": sha256_of(checkpoint) if checkpoint.is_file() else ""}
    env = get_benchmark("toy").make_vec("toy/easy-sight-easy-reward", view="pixels", split="train", num_envs=2, seed=0)
    players.load_policy(player, env, 0)


def _diagnosis() -> None:
    from lcd.scores.diagnosis import Diagnosis

    # Who calls the library reads the file.
    file, content = Path("saved/diagnosis.json"), b""
    with contextlib.suppress(OSError):
        content = file.read_bytes() if file.is_file() else b""
    Diagnosis.from_json(content.decode("utf-8", "surrogateescape")).to_json()


def _videos() -> None:
    from lcd.pipelines.jobs.videos import Pairs, VideoFile, statistics

    file = VideoFile(Path("videos"))
    statistics({"a": file})
    Pairs({"a": file}, 2, 1, 3, 0).draw(0)


LIBRARY: dict[str, Callable[[], Any]] = {"checkpoint": _checkpoint, "policy": _policy, "diagnosis": _diagnosis,
                                         "videos": _videos}  # fmt: skip
FILES: tuple[tuple[str, str, Sequence[Sequence[str] | str]], ...] = (
    ("curves.csv", "csv", [[word.format("curves.csv") for word in words] for words in READ_CURVES]),
    ("curves.csv", "csv", [[word.format("curves.csv") for word in words] for words in READ_CURVES]),
    ("curricula.csv", "csv", [["report", "curricula.csv"]]),
    ("curves.parquet", "parquet", [[word.format("curves.parquet") for word in words] for words in READ_CURVES]),
    ("study/study.yaml", "yaml", READ_STUDY),
    (f"{RUN}/config.yaml", "yaml", READ_STUDY),
    (f"{RUN}/status.json", "json", READ_STUDY),
    (f"{RUN}/curve.csv", "csv", READ_STUDY),
    ("study/.revisions/000001", "bytes", READ_STUDY),
    (f"{RUN}", "bytes", READ_STUDY),
    ("study/views/toy-easy-sight-easy-reward/pixels.png", "bytes", [["report", "study"]]),
    (f"{RUN}/checkpoints/last.ckpt", "bytes", ["checkpoint", "policy"]),
    ("saved/diagnosis.json", "json", ["diagnosis"]),
    ("curricula.yaml", "yaml", [CURRICULUM]),
    ("sweep.yaml", "yaml", [["sweep", "experiment=sweep.yaml"]]),
    ("videos.json", "json", ["videos"]),
    ("videos.bin", "bytes", ["videos"]),
    ("weights.pt", "bytes", [WEIGHTS]),
)  # fmt: skip


def run(box: Sandbox, seed: int, number: int) -> Outcome:
    """Case `number`: a file is damaged, a command reads it."""
    random = source(seed, number)
    place, kind, commands = FILES[number % len(FILES)]
    command = random.choice(commands)
    path = Path(place).resolve() if Path(place).exists() else Path(place)
    how = damage(random, path, kind)
    line = (
        f"seed {seed} case {number}: {place}: {how}; {' '.join(command) if not isinstance(command, str) else command}"
    )
    call = partial(_asked, LIBRARY[command]) if isinstance(command, str) and command in LIBRARY else None
    call = call or partial(cli.main, list(command))
    outcome = run_call(partial(_as_nobody, box, call) if how.startswith("mode") else call, box, line)
    box.restore()
    return outcome


def _as_nobody(box: Sandbox, call: Callable[[], int]) -> int:
    """Permissions count for less than root only."""
    if os.geteuid() != 0:
        return call()
    for folder, folders, files in os.walk(box.root.parent):
        for name in (".", *folders, *files):
            os.lchown(os.path.join(folder, name), NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        return call()
    finally:
        os.seteuid(0)


def damage(random: random.Random, path: Path, kind: str) -> str:
    """Damage a file; how, in a few words."""
    if random.random() < 0.12:
        return _other_thing(random, path)
    if random.random() < 0.08:
        return _forbidden(random, path)
    if path.is_dir():
        (path / "stray").write_text("x")
        return "with a stray file"
    content = path.read_bytes() if path.exists() else b""
    if kind == "bytes" or random.random() < 0.25:
        how, content = _bytes(random, content)
    else:
        how, content = {"csv": _csv, "yaml": _yaml, "json": _json, "parquet": _parquet}[kind](random, content)
    path.write_bytes(content)
    return how


def _other_thing(random: random.Random, path: Path) -> str:
    """Something that is no file, or lies elsewhere."""
    kinds = ("gone", "folder", "dangling link", "loop", "/dev/null", "/dev/zero", "fifo", "/proc/self/mem", "link")
    kind = random.choice(kinds)
    elsewhere = path.with_name("elsewhere-" + path.name)
    if path.exists():
        path.rename(elsewhere)
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind != "gone":
        targets = {"dangling link": "nowhere", "loop": path.name, "link": elsewhere.name}
        path.symlink_to(targets.get(kind, kind))
    return f"is {kind}"


def _forbidden(random: random.Random, path: Path) -> str:
    """A file or a folder that may not be read, or written."""
    target = random.choice((path, path, path.parent, Path("study"), Path(".")))
    mode = random.choice((0o000, 0o444, 0o555, 0o200))
    if target.exists():
        target.chmod(mode)
    return f"mode {mode:o} of {os.path.relpath(target)}"


def _bytes(random: random.Random, content: bytes) -> tuple[str, bytes]:
    place = random.randint(0, len(content))
    text = content.decode("latin-1")
    options: dict[str, Callable[[], bytes]] = {
        "empty": lambda: b"",
        "cut off": lambda: content[:place],
        "its first byte lost": lambda: content[1:],
        "a flipped byte": lambda: content[:place] + bytes([random.randrange(256)]) + content[place + 1 :],
        "random bytes within": lambda: content[:place] + random.randbytes(20) + content[place:],
        "random bytes": lambda: random.randbytes(200),
        "zeros": lambda: bytes(len(content)),
        "zeros at the end": lambda: content + bytes(500),
        "a BOM": lambda: b"\xef\xbb\xbf" + content,
        "UTF-16": lambda: text.encode("utf-16"),
        "UTF-32": lambda: text.encode("utf-32"),
        "latin-1": lambda: content + "é".encode("latin-1"),
        "twice": lambda: content * 2,
        "CR": lambda: content.replace(b"\n", b"\r"),
        "CRLF": lambda: content.replace(b"\n", b"\r\n"),
        "a NUL": lambda: content[:place] + b"\0" + content[place:],
        "a pickle": lambda: b"cos\ngetcwd\n(tR.",
        "one long line": lambda: b"x" * 1_000_000,
    }
    how = random.choice(tuple(options))
    return how, options[how]()


def _csv(random: random.Random, content: bytes) -> tuple[str, bytes]:
    frame = pd.read_csv(BytesIO(content), dtype=str, keep_default_na=False)
    how, frame = _frame(random, frame)
    return how, frame.to_csv(index=False).encode("utf-8", "surrogateescape")


def _parquet(random: random.Random, content: bytes) -> tuple[str, bytes]:
    frame = pd.read_parquet(BytesIO(content))
    kind = random.random()
    how = "types"
    if kind < 0.4:
        column = random.choice(list(frame.columns))
        values: dict[str, Callable[[], Any]] = {
            "bytes": lambda: b"\xff",
            "list": lambda: [1, 2],
            "mapping": lambda: {"a": 1},
            "date": lambda: pd.Timestamp("2020-01-01"),
            "truth": lambda: True,
            "null": lambda: None,
            "nan": lambda: float("nan"),
            "huge": lambda: 1e308,
            "duration": lambda: pd.Timedelta(1),
            "category": lambda: "x",
        }
        how = random.choice(tuple(values))
        frame[column] = pd.Series([values[how]()] * len(frame), dtype="category" if how == "category" else None)
        how = f"{column} holds a {how}"
    else:
        how, frame = _frame(random, frame.astype(str))
    try:
        stream = BytesIO()
        frame.to_parquet(stream)
        return how, stream.getvalue()
    except Exception:  # what pyarrow cannot write cannot be in a file
        return _bytes(random, content)


def _frame(random: random.Random, frame: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """A table with another cell, column or row."""
    column, cell = random.choice(list(frame.columns)), random.choice(CELLS)
    numbers = [name for name in ("return_mean", "step", "r_min", "r_max", "reward_p", "seed") if name in frame]
    kind = random.choice(("cell", "cell", "column", "column", "extremes", "number", "lost", "renamed", "twice", "rows",
                          "row twice", "boundary", "range", "one row", "many", "stage"))  # fmt: skip
    row = random.randrange(len(frame))
    if kind == "cell":
        frame.loc[row, column] = cell
    elif kind == "column":
        frame[column] = cell
    elif kind == "extremes":
        frame["return_mean"] = [("1e308", "-1e308")[place % 2] for place in range(len(frame))]
    elif kind == "number":
        column = random.choice(numbers)
        frame.loc[frame.sample(frac=0.5, random_state=row).index, column] = random.choice(
            (cell, "1e308", "-1e308", "0")
        )
    elif kind == "lost":
        frame = frame.drop(columns=column)
    elif kind == "renamed":
        frame = frame.rename(columns={column: cell})
    elif kind == "twice":
        frame.insert(0, column, frame[column], allow_duplicates=True)
    elif kind == "rows":
        frame = frame.sample(frac=random.random(), random_state=row)
    elif kind == "row twice":
        frame = pd.concat([frame, frame.iloc[[row]]])
    elif kind == "boundary" and "step" in frame:
        again = frame[frame["step"] == "500"].assign(trained_on="c", stage=random.choice(("mine/b", "x", "")))
        frame = pd.concat([frame, again])
    elif kind == "range":
        frame["r_min"], frame["r_max"] = random.choice((("0", "5e-324"), ("1", "0"), ("-1e308", "1e308"), ("", "1")))
    elif kind == "one row":
        frame = frame.iloc[[row]]
    elif kind == "stage":
        frame["stage"] = [random.choice(("", "mine/a", "mine/b")) for _ in range(len(frame))]
    return f"{kind} {column} {cell[:20]!r}", frame


def _yaml(random: random.Random, content: bytes) -> tuple[str, bytes]:
    """A value of the file, or all of it, is something else."""
    found = random.choice(YAML if random.random() < 0.8 else (*NUMBERS, *NESTED, *TEXTS))
    lines = content.decode().splitlines()
    place = random.randrange(len(lines))
    kind = random.random()
    if kind < 0.15:
        return f"only {found[:30]!r}", found.encode("utf-8", "surrogateescape")
    if kind < 0.25:
        return f"first {found[:30]!r}", f"{found}\n{content.decode()}".encode("utf-8", "surrogateescape")
    if kind < 0.35:
        content = _laughs(lines[place].partition(":")[0])
        return "a billion laughs", content
    head, colon, _ = lines[place].partition(":")
    lines[place] = f"{head}{colon} {found}" if colon else found
    # What was nested below the key that now has a value of its own goes.
    depth = len(head) - len(head.lstrip(" -"))
    rest = lines[place + 1 :]
    while rest and len(rest[0]) - len(rest[0].lstrip(" -")) > depth:
        rest.pop(0)
    told = f"{head.strip()}: {found[:30]!r}"
    return told, "\n".join([*lines[: place + 1], *rest, ""]).encode("utf-8", "surrogateescape")


def _laughs(key: str) -> bytes:
    """A few lines that stand for very many."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join([*lines, f"{key.strip(' -') or 'b'}: *a8", ""]).encode()


def _json(random: random.Random, content: bytes) -> tuple[str, bytes]:
    """A value of the file, or all of it, is something else."""
    found = random.choice(JSON)
    if random.random() < 0.15:
        return f"only {found[:30]!r}", found.encode()
    plain = json.loads(content)
    holder: Any = plain
    key = random.choice(list(plain))
    while isinstance(holder[key], dict | list) and holder[key] and random.random() < 0.7:
        holder = holder[key]
        key = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
    if isinstance(holder, dict) and random.random() < 0.15:
        del holder[key]
        return f"without {key}", json.dumps(plain).encode()
    holder[key] = "@@"
    return f"{key}: {found[:30]!r}", json.dumps(plain).replace('"@@"', found).encode()


if __name__ == "__main__":
    sys.exit(main(run, fill, 1000))
