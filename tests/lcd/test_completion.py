"""Shell completion: what bash itself makes of the script."""

import shutil
import subprocess

import pytest

from lcd.cli import COMMANDS, main
from lcd.completion import script


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    path = tmp_path_factory.mktemp("completion") / "lcd.bash"
    path.write_text(script("bash"))

    def completed(line):
        words = line.split(" ")
        code = (
            f"source {path}; COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; "
            f"COMP_LINE={line!r}; COMP_POINT={len(line)}; _lcd; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.split()

    return completed


def test_commands_keys_and_names_are_completed(bash):
    assert bash("lcd dia") == ["diagnose"]
    assert set(bash("lcd ")) == set(COMMANDS)
    assert bash("lcd diagnose benchm") == ["benchmark=", *(w for w in bash("lcd diagnose benchm") if w != "benchmark=")]
    # Readline completes what is behind the equals sign.
    assert "toy" in bash("lcd diagnose benchmark=")
    assert bash("lcd report definition=cal") == ["calibrated"]
    assert bash("lcd diagnose study.see") == ["study.seeds=", "study.seeds_per_run="]
    assert "--watch" in bash("lcd status --")
    assert bash("lcd diagnose nonsense") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_the_same_words(shell):
    made = script(shell)
    assert all(command in made for command in COMMANDS)
    assert "benchmark=toy" in made
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=made, text=True, check=True)


def test_an_unknown_shell_is_a_mistake(capsys):
    assert main(["completion", "bsh"]) == 2
    assert "did you mean 'bash'?" in capsys.readouterr().err
