"""How commands end: the table of exit codes, sentences for whatever goes wrong, the last resort."""

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lcd import cli
from lcd.process import exits

TASK = "task=toy/easy-sight-easy-reward"
USE = Path(__file__).parents[3] / "docs" / "use.md"

MISTAKES = [
    (["diagnose", "agent.name=on"], "agent=on is unknown"),
    (["diagnose", "agent.name=[a,b]"], 'agent=["a", "b"] is unknown'),
    (["diagnose", "agent.name=null"], "agent=null is unknown"),
    (["diagnose", "benchmark.name=[]"], "benchmark=[] is unknown"),
    (["train", TASK, "frontend=os:getcwd"], "frontend=os:getcwd makes a str"),
    (["train", TASK, "frontend=math:pi"], "frontend=math:pi is a float"),
    (["train", TASK, "frontend=flow", "frontend.weights=untrained", "frontend.width=[1]"], "frontend"),
    (["train", TASK, "agent=math:sqrt"], "agent=math:sqrt is no agent"),
    (["train", TASK, "agent.adam_eps=1e400"], "agent.adam_eps holds inf, which is no finite number"),
    (["train", TASK, "agent.copies=99999999999999999999"], "agent.copies holds a whole number of more than 64 bits"),
    (["train", TASK, "task.knobs.delay=nan"], "task.knobs.delay holds nan"),
    (["train", "task.knobs.delay=1"], "task is missing"),
    (["view", TASK, "task.knobs.self=1"], "task.knobs.self: 'self' is no knob of an environment"),
    (["train", "benchmark=toy", "curriculum=[{task:x,steps:1,knobs:{view:x}}]"], "'view' is no knob"),
    (["report", "path=~nosuchuser"], "path=~nosuchuser: nobody on this machine is called so"),
    (["report", "~nosuchuser/study"], "path=~nosuchuser/study: nobody on this machine is called so"),
    (["report", "x" * 300], "is too long for a path"),
    (["diagnose", "study.reward_p=[[1,0.5],[1]]"], "study.reward_p"),
    (["diagnose", "study.parts=[{reward_p:[1,a]}]"], "study.parts[0].reward_p"),
    (["train", TASK, "out=a\0b"], "out holds 'a\\x00b', which is no text that can be written to a file"),
    (["report", "curves\0.csv"], "path holds 'curves\\x00.csv'"),
    (["measure", "videos=" + "9" * 5000], "cannot be read"),
    (["view", "definition=a\nb"], "\\n"),
    (["measure", "benchmark=broken:x"], "The benchmark 'broken:x' cannot be imported: SyntaxError"),
    (["measure", "benchmark=leaving:x"], "The benchmark 'leaving:x' cannot be imported: SystemExit"),
    (["measure", "benchmark=:x"], "The benchmark ':x' cannot be imported"),
    (["measure", "benchmark=typing:Any"], "The benchmark 'typing:Any' cannot be made without arguments"),
    (["sweep", "experiment=delay", "devices=7"], "cannot be trained by several processes"),
    (["diagnose", "launcher.name=nowhere"], "launcher=nowhere is unknown"),
    (["sweep", "study.grid.knobs.delay.a=x"], "study.grid.knobs.delay"),
]


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if "__pycache__" not in path.parts)


@pytest.mark.parametrize(("words", "sentence"), MISTAKES, ids=[ascii(" ".join(w))[1:60] for w, _ in MISTAKES])
def test_a_mistake_is_one_sentence_and_leaves_nothing_behind(words, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "broken.py").write_text("def\n")
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(5)\n")
    before = names(tmp_path)
    assert cli.main(words) == exits.MISTAKE
    told = capsys.readouterr()
    assert sentence in told.err
    assert re.fullmatch(r"lcd: .*\n", told.err)
    assert names(tmp_path) == before


def test_the_table_of_exit_codes_is_in_the_help_and_in_the_docs(capsys):
    cli.main(["--help"])
    told = capsys.readouterr().out
    documented = dict(re.findall(r"^\| `(\d+)` \| (.*) \|$", USE.read_text("utf-8"), re.MULTILINE))
    assert documented == {str(code): meaning for code, meaning in exits.EXITS.items()}
    for code, meaning in exits.EXITS.items():
        assert f"{code:>3}  {meaning}" in told


def test_what_nobody_foresaw_is_one_sentence_and_a_log(monkeypatch, capsys, tmp_path):
    def fail(_):
        raise KeyError("x\ny")

    monkeypatch.setattr("lcd.process.children.resolve", lambda _: fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cli.main(["list", "agents"]) == exits.OURS
    told = capsys.readouterr().err
    (log,) = tmp_path.iterdir()
    assert re.fullmatch(r"lcd: this is a fault of lcd, not yours \(KeyError: .*\n", told)
    assert str(log) in told
    assert "lcd list agents" in log.read_text()
    assert "Traceback" in log.read_text()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert cli.main(["list", "agents"]) == exits.OURS
    assert "no room for a log" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "code", "sentence"),
    [
        (MemoryError(), exits.FAILED, "there is not enough memory"),
        (PermissionError(errno.EACCES, "Permission denied", "study/.lock"), exits.FAILED, "denied at study/.lock: "),
        (OSError(errno.ENOSPC, "No space left on device", "x.csv"), exits.FAILED, "make room"),
        (FileNotFoundError(errno.ENOENT, "No such file", "ours.yaml"), exits.OURS, "a fault of lcd"),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"), exits.FAILED, "by TMPDIR"),
        (BrokenPipeError(), exits.PIPE, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_system_refuses_is_no_fault_of_ours(fault, code, sentence, monkeypatch, capsys, tmp_path):
    def fail(_):
        raise fault

    monkeypatch.setattr("lcd.process.children.resolve", lambda _: fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cli.main(["list"]) == code
    assert sentence in capsys.readouterr().err


def test_a_users_own_code_that_fails_is_called_the_users(tmp_path, monkeypatch, capsys):
    (tmp_path / "failing_bench.py").write_text(
        "class Mine:\n    name, tasks, views = 'mine', ('only',), ('pixels',)\n"
        "    r_min, r_max = {'only': 0}, {'only': 1}\n"
        "    def make_vec(self, *a, **k):\n        raise KeyError('mine')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cli.main(["view", "benchmark=failing_bench:Mine", "task=only"]) == exits.FAILED
    assert "failing_bench, which is yours, failed (KeyError: 'mine')" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "code"), [("list tasks | true", exits.PIPE), ("list tasks > /dev/full", exits.FAILED)]
)
def test_an_output_that_takes_nothing_is_no_stack_trace(command, code):
    line = f"set -o pipefail; {sys.executable} -m lcd.cli {command}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.count("\n") <= 1
    assert "Traceback" not in done.stderr


def test_a_terminal_without_the_letters_is_told_all_the_same():
    line = [sys.executable, "-m", "lcd.cli", "report", "nöwhere φ.csv"]
    done = subprocess.run(line, capture_output=True, env={"PYTHONIOENCODING": "ascii"}, check=False)
    assert done.returncode == exits.MISTAKE
    assert b"n\\xf6where \\u03c6.csv" in done.stderr
