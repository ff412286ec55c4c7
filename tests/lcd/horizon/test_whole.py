"""`lcd horizon BENCHMARK`: every MDP once, gone on with after a kill, as rows, files and a figure."""

import csv
import json

import numpy as np
import pytest

from lcd import cli
from lcd.envs.benchmarks import BENCHMARKS
from lcd.envs.errors import InputError
from lcd.envs.tabular.files import digest, load
from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon import whole
from lcd.horizon.histogram import read_bridge
from lcd.horizon.listed import COLUMNS, MEASURED, is_row, long_share, table_of


def chain(length):
    """Right `length` times pays 1 at the end; left goes back to the first state."""
    after = np.stack([np.zeros(length, int), np.arange(1, length + 1)], axis=1)
    after[-1, 1] = -1
    rewards = np.zeros((length, 2))
    rewards[-1, 1] = 1
    return TabularMDP(after, rewards, length, name=f"chain-{length}")


class Chains:
    name = "chains"
    tasks = ("chains/3", "chains/5")
    views = ("state",)
    r_min = r_max = {}
    made = 0

    def make_vec(self, task, **how):
        raise NotImplementedError

    def tabular(self, task, seed, **knobs):
        return chain(int(task[-1]) + knobs.get("longer", 0))


@pytest.fixture
def chains(monkeypatch):
    monkeypatch.setitem(BENCHMARKS._built_in, "chains", Chains())
    monkeypatch.setenv("COLUMNS", "200")


def rows_in(out):
    with (out / "horizons.csv").open() as file:
        return list(csv.DictReader(file))


def test_all_tasks_are_rows_of_a_table(chains, tmp_path, capsys):
    out = tmp_path / "all"
    assert cli.main(["horizon", "chains", "timesteps=1e4", "save=true", f"out={out}"]) == 0
    told = capsys.readouterr().out
    assert "chains/5" in told
    assert "0 of 2 MDPs survive" in told or "None of 2 MDPs survives" in told
    rows = rows_in(out)
    assert tuple(rows[0]) == COLUMNS
    assert [(row["task"], row["states"], row["steps"], row["k"]) for row in rows] == [
        ("chains/3", "3", "3", "1"),
        ("chains/5", "5", "5", "1"),
    ]
    assert all(float(row["h_low"]) <= float(row["h"]) <= float(row["h_high"]) + 1e-9 for row in rows)
    assert rows[0]["filter"] == "random guessing solves it"
    saved = load(out / "mdps" / "chains-5.npz")
    assert digest(saved) == rows[1]["digest"] == digest(chain(5))
    assert (out / "horizons.png").stat().st_size > 1000
    assert "| chains/5 | 5 | 2 | 5 |" in (out / "horizons.md").read_text()


def test_what_is_done_is_not_done_again(chains, tmp_path, monkeypatch, capsys):
    out, analysed = tmp_path / "all", []
    real = whole.analyse

    def counted(mdp, settings, progress):
        analysed.append(mdp.name)
        if len(analysed) == 2:
            raise KeyboardInterrupt
        return real(mdp, settings, progress)

    monkeypatch.setattr(whole, "analyse", counted)
    asked = ["horizon", "chains", "timesteps=1e4", f"out={out}"]
    assert cli.main(asked) == 130
    assert "Stopped; every MDP that is done is kept. The same command continues: lcd horizon" in capsys.readouterr().err
    assert cli.main(asked) == 0
    assert analysed == ["chain-3", "chain-5", "chain-5"]
    first = rows_in(out)
    # Other settings, or other tables, are looked at anew.
    assert cli.main([*asked, "runs=100"]) == 0
    assert cli.main([*asked, "runs=100", "knobs.longer=1"]) == 0
    assert len(analysed) == 3 + 2 + 2
    assert cli.main(asked) == 0
    for one, again in zip(first, rows_in(out), strict=True):
        assert {key: one[key] for key in COLUMNS if key not in MEASURED} == {
            key: again[key] for key in COLUMNS if key not in MEASURED
        }


def test_some_tasks_alone_and_the_rest_later(chains, tmp_path, capsys):
    out = tmp_path / "all"
    asked = ["horizon", "chains", "timesteps=1e4", f"out={out}"]
    assert cli.main([*asked, "tasks=[chains/5]"]) == 0
    assert [row["task"] for row in rows_in(out)] == ["chains/5"]
    written = (out / "mdps" / "chains-5.json").read_bytes()
    assert cli.main(asked) == 0
    assert [row["task"] for row in rows_in(out)] == ["chains/3", "chains/5"]
    assert (out / "mdps" / "chains-5.json").read_bytes() == written
    capsys.readouterr()
    for wrong, told in (
        (["chains", "tasks=[chains/4]"], "tasks has 'chains/4': did you mean 'chains/"),
        (["chains", "tasks=[]"], "tasks is empty"),
        (["ctgraph/ct-fo-b1", "tasks=[chains/4]"], "no benchmark"),
    ):
        assert cli.main(["horizon", *wrong]) == 2
        assert told in capsys.readouterr().err.replace("\n", " ")


def test_saved_tables_are_not_taken_away(chains, tmp_path, capsys):
    out = tmp_path / "all"
    asked = ["horizon", "chains", "timesteps=1e4", f"out={out}"]
    assert cli.main([*asked, "save=true"]) == 0
    saved = out / "mdps" / "chains-5.npz"
    # Looked at in another way they are the same tables, and stay.
    assert cli.main([*asked, "runs=100"]) == 0
    assert digest(load(saved)) == digest(chain(5))
    written = saved.read_bytes()
    for save in ("save=true", "save=false"):
        assert cli.main([*asked, "knobs.longer=1", save]) == 2
        told = capsys.readouterr().err.replace("\n", " ")
        assert "which save=true wrote of other tables: give another folder" in told
    assert saved.read_bytes() == written


def test_what_cannot_be_tabulated_is_named_and_left_out(chains, tmp_path, monkeypatch, capsys):
    real = Chains.tabular

    def some(self, task, seed, **knobs):
        if task == "chains/3":
            raise InputError("noise is 0.3, but a tabular MDP is deterministic.")
        return real(self, task, seed, **knobs)

    monkeypatch.setattr(Chains, "tabular", some)
    assert cli.main(["horizon", "chains", "timesteps=1e4", f"out={tmp_path / 'all'}"]) == 0
    assert "left out   chains/3: noise is 0.3" in capsys.readouterr().out
    assert [row["task"] for row in rows_in(tmp_path / "all")] == ["chains/5"]


def test_a_narrow_terminal_gets_what_matters():
    row = dict.fromkeys(COLUMNS, 1) | {"task": "a", "filter": "survives"}
    heads = [[column.header for column in table_of([row], width).columns] for width in (80, 200)]
    assert heads[0] == ["MDP", "S", "A", "T", "k", "H", "filter"]
    assert len(heads[1]) == 13


def test_a_broken_row_is_made_again(chains, tmp_path):
    out = tmp_path / "all"
    asked = ["horizon", "chains", "timesteps=1e4", f"out={out}"]
    assert cli.main(asked) == 0
    path = out / "mdps" / "chains-3.json"
    content = json.loads(path.read_text())
    content["row"].pop("h")
    path.write_text(json.dumps(content))
    # It is the user's file now.
    assert cli.main(asked) == 2


@pytest.mark.parametrize(("column", "value"), [("states", None), ("h", "<b>"), ("k", 1.5), ("task", "chains/5")])
def test_a_row_of_other_kinds_is_none(column, value):
    row = dict.fromkeys(COLUMNS, 1) | {"task": "chains/3", "filter": "survives", "digest": "d", "h": None}
    assert is_row(row, "chains/3", "d")
    assert not is_row(row | {column: value}, "chains/3", "d")


def test_what_cannot_be_analysed_is_left_out(chains, capsys):
    assert cli.main(["horizon", "chains", "timesteps=0", "discount=1e-80"]) == 0
    assert "left out   chains/5: discount=1e-80 and horizon=5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["save=true"], "out is missing"),
        (["bridge=x.csv"], "out is missing"),
        (["bridge=x.csv", "out=o"], "bridge=x.csv cannot be read"),
        (["horizon=3"], "horizon is 3, but is of one task"),
        (["up_to=0"], "up_to is 0"),
        (["most_steps=0"], "most_steps is 0"),
    ],
)
def test_mistakes_are_told_in_a_sentence(chains, more, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["horizon", "chains", *more]) == 2
    assert told in capsys.readouterr().err.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_save_is_of_benchmarks_alone(capsys):
    assert cli.main(["horizon", "ctgraph/ct-fo-b1", "save=true"]) == 2
    assert "no benchmark" in capsys.readouterr().err.replace("\n", " ")


def test_a_benchmark_without_tables_is_refused(monkeypatch, capsys):
    class Plain:
        name, tasks, views, r_min, r_max, make_vec = "plain", ("plain/a",), ("state",), {}, {}, None

    monkeypatch.setitem(BENCHMARKS._built_in, "plain", Plain())
    assert cli.main(["horizon", "plain"]) == 2
    assert "cannot be tabulated" in capsys.readouterr().err.replace("\n", " ")


def test_bridge_s_summary_is_read_by_its_columns(tmp_path):
    path = tmp_path / "summary.csv"
    lines = ["mdp_name,origin,type,effective_horizon", "a,atari,base,3.5", "b,atari,base,inf", "c,procgen,base,9"]
    path.write_text("\n".join([*lines, "d,minigrid,base,2", "e,procgen,reward_shaping,1"]))
    found = read_bridge(path)
    assert {name: values.tolist() for name, values in found.items()} == {
        "Atari (BRIDGE)": [3.5, np.inf],
        "Procgen (BRIDGE)": [9.0],
    }


def test_bridge_is_drawn_beside(chains, tmp_path):
    path, out = tmp_path / "summary.csv", tmp_path / "all"
    for wrong in ("-5", "far"):
        path.write_text(f"mdp_name,origin,type,effective_horizon\na,atari,base,3.5\nb,atari,base,{wrong}\n")
        with pytest.raises(InputError, match="for 'b': give numbers of at least 0"):
            read_bridge(path)
    path.write_text("mdp_name,origin,type,effective_horizon\na,atari,base,3.5\nb,atari,base,inf\n")
    assert cli.main(["horizon", "chains", "timesteps=1e4", f"bridge={path}", f"out={out}"]) == 0
    assert (out / "horizons.png").is_file()
    assert path.read_text().startswith("mdp_name")


def test_without_gorp_nothing_survives_or_not():
    rows = [{"filter": "GORP not run", "h": None, "h_low": None}, {"filter": "random guessing solves it"}]
    assert long_share(rows).startswith("Without GORP, which timesteps=0 leaves out, the filter cannot say")
    assert long_share(rows[1:]) == "None of 1 MDPs survives the filter."


def test_the_share_counts_lower_bounds_that_decide():
    rows = [
        {"filter": "survives", "h": 9.0, "h_low": 8.5},
        {"filter": "survives", "h": None, "h_low": 8.1},
        {"filter": "survives", "h": 5.0, "h_low": 4.0},
        {"filter": "survives", "h": None, "h_low": 6.0},
        {"filter": "GORP solves it", "h": 2.0, "h_low": 2.0},
    ]
    assert long_share(rows) == ("4 of 5 MDPs survive the filter; 2 of them (50%) have H ≥ 8, and of 1 it is not known.")
