"""`lcd new benchmark`: the file that it writes runs as it is."""

import importlib
import re
import subprocess
import sys

import pandas as pd
import pytest

from lcd import cli
from lcd.envs.starters import gridworld
from lcd.starting import class_name, written_for


@pytest.fixture
def begun(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(["new", "benchmark", "my_worlds"]) == 0
    assert "lcd check my_worlds:MyWorlds" in capsys.readouterr().out
    yield tmp_path / "my_worlds.py"
    sys.modules.pop("my_worlds", None)


def test_the_file_passes_its_own_tests_and_names_itself_throughout(begun):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", begun.name],
        cwd=begun.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    assert not re.search("gridworld", begun.read_text(), re.IGNORECASE)


def test_its_tests_hold_for_other_rewards_once_r_min_is_what_a_random_agent_gets(begun):
    """A coin that pays 2 has another random mean than 0, which the test tells until the file says it."""
    import my_worlds

    paid = begun.read_text().replace('reward = float(self.at("coin"))', 'reward = 2 * float(self.at("coin"))')
    assert paid != begun.read_text()
    begun.write_text(paid)
    importlib.reload(my_worlds)
    with pytest.raises(AssertionError, match=r"r_min\['my_worlds/plain'\] is 0.0, and a random agent gets 0"):
        my_worlds.test_a_random_agent_gets_what_the_benchmark_says()
    for _ in my_worlds.TASKS:
        with pytest.raises(AssertionError) as told:
            my_worlds.test_a_random_agent_gets_what_the_benchmark_says()
        task, mean = re.search(r"r_min\['(.*)'\] is .* gets (\S+)", str(told.value).split("\n")[0]).groups()
        my_worlds.MyWorlds.r_min[task] = float(mean)
    my_worlds.test_a_random_agent_gets_what_the_benchmark_says()


def test_the_file_passes_the_check_and_is_diagnosed(begun, capsys):
    quick = ["study.seeds=2", "study.steps=256", "study.evaluation.every=256", "device=cpu", "launcher.workers=1"]
    one = "study.tasks=[my_worlds/plain]"
    assert cli.main(["check", "my_worlds:MyWorlds", *quick, one, "moments=2048", "--json", "forecast=false"]) == 0
    assert '"verdict": "fail"' not in capsys.readouterr().out
    two = "study.tasks=[my_worlds/plain,my_worlds/noisy]"
    quick += ["study.views=[pixels,semantic]", "study.reward_p=[1]"]
    command = ["diagnose", "benchmark=my_worlds:MyWorlds", *quick, two, "study.evaluation.copies=2", "tracker=none"]
    assert cli.main([*command, "out=study"]) == 0
    table = pd.read_csv("study/diagnosis/challenge.csv")
    assert sorted(table["task"]) == ["my_worlds/noisy", "my_worlds/plain"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["benchmark", "my_worlds"], "my_worlds.py is there already: nothing is written over"),
        (["benchmark"], "needs a name: lcd new benchmark my_worlds"),
        (["benchmark", "3d"], "name=3d must be a Python module's"),
        (["benchmark", "MyWorlds"], "name=MyWorlds must be a Python module's"),
        (["benchmark", "class"], "name=class must be a Python module's"),
        (["benchmark", "../up"], "name=../up must be a Python module's"),
        (["benchmark", "numpy"], "name=numpy is taken"),
        (["benchmark", "procgen"], "name=procgen is taken"),
        (["agent", "mine"], "what=agent is unknown"),
    ],
)
def test_what_cannot_be_begun_is_one_sentence_and_leaves_nothing(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_worlds.py").write_text("mine")
    assert cli.main(["new", *words]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["my_worlds.py"]
    assert (tmp_path / "my_worlds.py").read_text() == "mine"


def test_names():
    assert class_name("my_worlds") == "MyWorlds"
    assert "class Caves:" in written_for("benchmark", "caves")
    assert gridworld.Gridworld.tasks[0] == "gridworld/plain"
