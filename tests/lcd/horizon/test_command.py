"""`lcd horizon` on files, on somebody's code and on tasks; mistakes end in one sentence."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from lcd import cli
from lcd.envs.tabular.files import save

sys.path.insert(0, str(Path(__file__).parent))
from horizon_worlds import EASY, both

WORLDS = "horizon_worlds"


@pytest.fixture
def file(tmp_path):
    save(both()[1], tmp_path / "deep.npz")
    return tmp_path / "deep.npz"


def test_a_file_is_analysed(file, tmp_path, capsys):
    out = tmp_path / "found.json"
    assert cli.main(["horizon", str(file), "timesteps=1e5", f"out={out}"]) == 0
    told = capsys.readouterr().out
    assert "5 × 2, T = 4" in told
    assert "effective horizon" in told
    (found,) = json.loads(out.read_text())["mdps"]
    assert found["solvable"] == {"k": 4, "tried": 4}
    assert (found["optimal_return"], found["p_opt"]) == (1.0, 1 / 16)
    assert found["horizon"]["low"] <= found["horizon"]["h"] <= 4
    assert json.loads(out.read_text())["settings"]["timesteps"] == 1e5


def test_keys_change_the_mdp(file, capsys):
    assert cli.main(["horizon", str(file), "horizon=2", "sticky=0.5"]) == 0
    told = capsys.readouterr().out
    assert "T = 2" in told
    assert "sticky actions 0.5" in told
    assert "GORP" not in told


def test_several_mdps_are_rows_of_one_table(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    assert cli.main(["horizon", f"{WORLDS}:both", "timesteps=1e4"]) == 0
    told = capsys.readouterr().out
    assert "easy" in told
    assert "[deep]" in told


def test_tasks_that_export_themselves_are_analysed(capsys):
    assert cli.main(["horizon", "ctgraph/ct-fo-b1", "timesteps=0"]) == 0
    assert "11 × 3, T = 6" in capsys.readouterr().out
    toy = ["toy/easy-sight-delayed-reward", "knobs.transition_noise=0", "knobs.start=1", "timesteps=0"]
    assert cli.main(["horizon", *toy]) == 0
    assert cli.main(["horizon", "hardness/discrete:delay=1,terminal_states=3+,init_state_dist=1+0+0+0+0+0+0+0"]) == 0


def test_one_mdp_by_name(capsys):
    assert cli.main(["horizon", f"mdp={WORLDS}:EASY"]) == 0
    assert f"{EASY.num_states} × 2, T = 3" in capsys.readouterr().out


def test_a_name_commands_no_terminal(file, capsys):
    evil = file.with_name("e\x1b[31mvil\x07.npz")
    file.rename(evil)
    assert cli.main(["horizon", str(evil)]) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "e\\x1b[31mvil\\x07" in told


def test_a_lower_bound_may_be_reached(file, capsys):
    assert cli.main(["horizon", str(file), "timesteps=1"]) == 0
    assert "≥ 1.00" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "mdp is missing"),
        (["nowhere.npz"], "nowhere.npz cannot be read"),
        (["nothing"], "mdp=nothing is nothing that is known"),
        (["FILE", "knobs.a=1"], "is no task of a benchmark: leave knobs out"),
        (["FILE", "horizon=0"], "horizon is 0"),
        (["FILE", "horizon=5"], "horizon is 5, but the tables in FILE are for 4 steps"),
        (["ctgraph/ct-fo-b1", "horizon=7"], "the tables of ctgraph/ct-fo-b1 are for 6 steps"),
        (["FILE", "sticky=2"], "sticky is 2"),
        (["FILE", "confidence=1"], "confidence is 1.0"),
        (["FILE", "discount=0"], "discount is 0.0"),
        (["FILE", "tolerance=-1"], "tolerance is -1.0"),
        (["FILE", "timesteps=-1"], "timesteps is -1.0"),
        (["FILE", "runs=0"], "runs=0 must be a whole number of at least 1"),
        (["FILE", "most_k=0"], "most_k is 0"),
        (["FILE", "out=FILE"], "FILE"),
        ([f"{WORLDS}:NUMBER"], "gives a int, but must give a TabularMDP"),
        ([f"{WORLDS}:NONE"], "gives no MDP at all"),
        ([f"{WORLDS}:asking"], "cannot be called without arguments"),
        ([f"{WORLDS}:simulator", "horizon=0"], "horizon is 0"),
        ([f"{WORLDS}:simulator", "horizon=4", "simulated=9"], "simulated is 9, but checking"),
        ([f"{WORLDS}:endless", "horizon=4"], "pays inf, but rewards must be finite"),
        (["FILE", "tolerance=1"], "tolerance is 1.0, but must be a number from 0 to below 1"),
        ([f"{WORLDS}:EASE"], "did you mean 'EASY'"),
        (["no_such_module_here:mdp"], "cannot be imported"),
        (["procgen/heist", "simulated=0"], "simulated=0 must be a whole number of at least 1"),
        (["ctgraph/ct-fo-b9"], "has no task 'ctgraph/ct-fo-b9'"),
        (["toy/easy-sight-easy-reward"], "transition_noise is 0.3"),
        (["ctgraph/ct-fo-b1", "knobs.nothing=1"], "'nothing' is no knob of a CT-graph"),
    ],
)
def test_mistakes_are_one_sentence(file, arguments, sentence, capsys):
    before = file.read_bytes()
    assert cli.main(["horizon", *(each.replace("FILE", str(file)) for each in arguments)]) == 2
    error = capsys.readouterr().err
    assert sentence.replace("FILE", str(file)) in error
    assert error.count("\n") == 1
    assert file.read_bytes() == before
    assert sorted(path.name for path in file.parent.iterdir()) == ["deep.npz"]


def test_a_file_too_large_for_this_machine_is_refused_before_it_is_solved(file, monkeypatch, capsys):
    monkeypatch.setattr("lcd.process.limits.machine_memory", lambda: 100)
    assert cli.main(["horizon", str(file)]) == 2
    assert "would take at least" in capsys.readouterr().err


def test_nothing_is_said_to_be_kept_where_nothing_is(file, monkeypatch, capsys):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("lcd.horizon.command.analyse", stopped)
    assert cli.main(["horizon", str(file)]) == 130
    assert "\nStopped. The same command continues: lcd horizon" in capsys.readouterr().err


def test_help_lists_every_key(capsys):
    assert cli.main(["horizon", "--help"]) == 0
    told = capsys.readouterr().out
    for key in (
        "mdp",
        "knobs",
        "horizon",
        "sticky",
        "discount",
        "tolerance",
        "timesteps",
        "runs",
        "most_k",
        "seed",
        "out",
    ):
        assert f"{key}=" in told


def test_the_same_command_finds_the_same(file, tmp_path):
    found = []
    for name in ("one.json", "other.json"):
        assert cli.main(["horizon", str(file), "timesteps=1e4", f"out={tmp_path / name}"]) == 0
        (mdp,) = json.loads((tmp_path / name).read_text())["mdps"]
        found.append({key: value for key, value in mdp.items() if key not in ("seconds", "memory")})
    assert found[0] == found[1]
    assert np.isfinite(found[0]["horizon"]["low"])
