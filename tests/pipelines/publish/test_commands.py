"""lcd view, list and report."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.benchmarks import BENCHMARKS, get_benchmark
from lcd.pipelines.publish.view import frames

HERE = Path(__file__).parent
TASK = "task=toy/hard-sight-easy-reward"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_view_writes_a_picture_of_every_view(tmp_path, capsys):
    from PIL import Image

    sizes = {}
    for name, more in {"all": [], "one": ["view=pixels"]}.items():
        assert cli.main(["view", TASK, "steps=3", f"out=deep/{name}.png", *more]) == 0
        assert capsys.readouterr().out == f"deep/{name}.png\n"
        sizes[name] = Image.open(tmp_path / "deep" / f"{name}.png").size
    assert sizes["all"][0] == sizes["one"][0]
    assert sizes["all"][1] > 1.8 * sizes["one"][1]
    assert cli.main(["view", TASK, "steps=1"]) == 0
    assert (tmp_path / "toy-hard-sight-easy-reward.png").exists()


def test_all_views_show_the_same_moments():
    toy = get_benchmark("toy")
    shown = {view: frames(toy, view, compose("view", [TASK, "steps=12", "seed=3"])) for view in toy.views}
    rewards = {view: [reward for _, reward in moments] for view, moments in shown.items()}
    assert rewards["pixels"] == rewards["figure_ground"] == rewards["semantic"]
    assert any(rewards["pixels"])
    for (figure, _), (labels, _) in zip(shown["figure_ground"], shown["semantic"], strict=True):
        np.testing.assert_array_equal(figure.max(-1) > 0, labels.max(-1) > 0)


def test_list_shows_what_there_is(capsys):
    assert cli.main(["list"]) == 0
    told = capsys.readouterr().out
    for name in (
        "toy/easy-sight-easy-reward",
        "ppo",
        "identity",
        "local",
        "wandb",
        "lcd",
        "smoke",
        "paper",
        "semantic",
    ):
        assert name in told
    assert cli.main(["list", "agent"]) == 0
    told = capsys.readouterr().out.split()
    assert told[:3] == ["agent", "is", "ppo"]
    assert {"recurrent_ppo", "sb3/dqn", "tabular/sarsa"} <= set(told)


def test_every_task_that_ships_is_listed_in_whole_with_a_line_of_what_it_is(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["list", "tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in filter(BENCHMARKS.is_built_in, BENCHMARKS.names()):
        benchmark = get_benchmark(name)
        assert any(line.startswith(f"benchmark={name} ") for line in lines)
        assert set(benchmark.about) == set(benchmark.tasks), name
        for task, about in benchmark.about.items():
            assert any(line.split()[:2] == [task, about.split()[0]] for line in lines), task


def test_tasks_of_one_benchmark_are_listed_alone(capsys):
    for words in (["tasks", "minigrid"], ["tasks", "benchmark=minigrid"]):
        assert cli.main(["list", *words]) == 0
        told = capsys.readouterr().out
        assert "minigrid/DoorKey-5x5" in told
        assert "toy/" not in told
    assert cli.main(["list", "tasks", "gym:CartPole-v1"]) == 0
    assert "  gym/CartPole-v1" in capsys.readouterr().out
    for words, says in ((["tasks", "minigrd"], "did you mean 'minigrid'"), (["agents", "minigrid"], "goes with tasks")):
        assert cli.main(["list", *words]) == 2
        assert says in capsys.readouterr().err


def test_where_there_is_no_terminal_lines_are_not_broken(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert cli.main(["list", "contrasts"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert all(line[0] != " " for line in lines), "no line goes on below another"
    assert max(map(len, lines)) > 100


def test_one_task_is_drawn_into_the_file_that_is_named(tmp_path, capsys, monkeypatch):
    """Of a benchmark of one task, too; and a colour that its pictures do not have is told."""
    monkeypatch.syspath_prepend(str(HERE.parent))
    masks = "masks=colours.yaml"
    (tmp_path / "colours.yaml").write_text("walker: ff0000\ncoin: 00ff00\nlily: '0000ff'\n")
    line = ["view", "gym:coloured_worlds:Line-v0", masks, "frames=2", "levels=2"]
    assert cli.main([*line, "out=a.png"]) == 0
    told = capsys.readouterr()
    assert told.out == "a.png\na.apng\n"
    assert told.err == "gym/Line-v0: the colour of lily was in none of 4 pictures.\n"
    assert (tmp_path / "a.png").is_file()
    assert cli.main(["view", "toy", "out=a.png"]) == 2
    assert "out=a.png is one file, and toy has 7 tasks: give a folder" in capsys.readouterr().err


def curves(path):
    level = {"pixels": 0.4, "figure_ground": 0.6, "semantic": 0.8}
    conditions = [(view, 1.0) for view in level] + [("semantic", p) for p in (0.75, 0.5, 0.25)]
    rows = [
        {
            "task": f"mine/{task}",
            "view": view,
            "reward_p": p,
            "seed": seed,
            "step": step,
            "return_mean": level[view] * p**hard * (1 + 0.01 * seed),
            "r_min": 0.0,
            "r_max": 1.0,
        }
        for task, hard in (("easy", 0.1), ("hard", 1.0))
        for view, p in conditions
        for seed in range(3)
        for step in (0, 100)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)


def test_report_diagnoses_curves_from_elsewhere(tmp_path, capsys):
    curves(tmp_path / "other people's (1).csv")
    assert cli.main(["report", "other people's (1).csv"]) == 0
    folder = tmp_path / "other people's (1)-diagnosis"
    assert {"report.html", "challenge.csv", "diagnosis.json", "figures"} <= {path.name for path in folder.iterdir()}
    told = capsys.readouterr().out
    assert "mine/hard" in told
    assert "other people's (1)-diagnosis/report.html" in told
    assert cli.main(["report", "other people's (1).csv", "out=here"]) == 0
    assert (tmp_path / "here" / "report.html").exists()
    table = pd.read_csv(tmp_path / "here" / "challenge.csv").set_index("task")
    assert table.loc["mine/hard", "psi"] == 1.0
    assert table.loc["mine/easy", "psi"] == 0.0


def test_report_refuses_with_a_sentence(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.csv").write_text("task,view\na,b\n")
    curves(tmp_path / "good.csv")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    for words in (
        *(["empty"], ["x.csv"], ["x.txt"], ["good.csv", "out=x.csv"]),
        *(["good.csv", "loop.csv"], ["loop.csv", "good.csv"], ["loop.csv"]),
    ):
        assert cli.main(["report", *words]) == 2
        told = capsys.readouterr()
        assert told.err.startswith("lcd: ")
        assert told.err.count("\n") == 1


def test_a_wrong_knob_is_told_before_anything_is_written(tmp_path, capsys):
    assert cli.main(["train", TASK, "task.knobs.dela=3", "out=study", "tracker=none"]) == 2
    assert "delay" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def test_a_report_runs_nothing_that_lies_beside_the_curves(tmp_path):
    """Pandas looks for numexpr, which a stranger may have put beside the curves."""
    curves(tmp_path / "curves.csv")
    (tmp_path / "numexpr.py").write_text("open('was_run', 'w').close()")
    command = [sys.executable, "-P", "-m", "lcd.cli", "report", "curves.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "was_run").exists()


def test_view_draws_a_graph_beside_the_sheet(tmp_path, capsys):
    assert cli.main(["view", "ctgraph/ct-co-b1"]) == 0
    assert capsys.readouterr().out.split() == ["ctgraph-ct-co-b1.png", "ctgraph-ct-co-b1-graph.png"]
    assert (tmp_path / "ctgraph-ct-co-b1-graph.png").is_file()
    assert cli.main(["view", "ctgraph", "task.knobs.graph_shape.d=9"]) == 2
    assert "512 end states" in capsys.readouterr().err


def test_the_picture_of_a_graph_shows_every_state_once():
    from lcd.envs.ctgraph.theory import num_states
    from lcd.pipelines.publish.graph_pictures import GOAL, KINDS, draw_graph

    knobs, goal = get_benchmark("ctgraph").graph("ctgraph/ct-fo-b2", 0, graph_shape={"b": 3, "d": 2})
    (axes,) = draw_graph(knobs, goal, "a graph").axes
    states = [line for line in axes.lines if len(line.get_xdata()) == 1]
    assert len(states) == num_states(3, 2)
    assert len({(line.get_xdata()[0], line.get_ydata()[0]) for line in states}) == len(states)
    ids = [text.get_text() for text in axes.texts if text.get_text().isdigit() and text.get_bbox_patch() is None]
    assert sorted(map(int, ids)) == list(range(num_states(3, 2)))
    way = [line for line in axes.lines if line.get_color() == GOAL]
    # Home, then a wait and a decision state at each level, a last wait state and the end.
    assert len(way) == 2 * 2 + 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*KINDS, "way to the goal"]


def listing(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*") if ".lcd-" not in path.name}


def test_a_report_keeps_what_the_user_has_in_its_folder(tmp_path, capsys):
    curves(tmp_path / "curves.csv")
    for name in ("figures/fig1.pdf", "tables/mine.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("mine")
    before = listing(tmp_path)
    for _ in range(2):
        assert cli.main(["report", "curves.csv", "out=."]) == 0
        assert before.items() <= listing(tmp_path).items()
    (tmp_path / "challenge.csv").write_text("mine")
    changed = listing(tmp_path)
    assert cli.main(["report", "curves.csv", "out=."]) == 2
    assert "challenge.csv was not written by LCD" in capsys.readouterr().err
    assert listing(tmp_path) == changed


def test_no_result_goes_through_a_link(tmp_path, capsys):
    (tmp_path / "elsewhere" / "figures").mkdir(parents=True)
    (tmp_path / "elsewhere" / "figures" / "fig1.pdf").write_text("mine")
    (tmp_path / "study" / "runs" / "one").mkdir(parents=True)
    curves(tmp_path / "study" / "runs" / "one" / "curve.csv")
    (tmp_path / "study" / "study.yaml").write_text("requests: []")
    (tmp_path / "study" / "diagnosis").symlink_to(tmp_path / "elsewhere")
    before = listing(tmp_path)
    assert cli.main(["report", "study"]) == 2
    assert "study/diagnosis is a link" in capsys.readouterr().err
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    "words",
    [
        ["power", "curves.csv", "out=curves.csv"],
        ["power", "curves.csv", "out=mine.csv"],
        ["power", "curves.csv", "out=."],
        ["power", "missing.csv", "out=new/pairs.csv"],
        ["report", "missing.csv", "out=new/folder"],
        ["report", "curves.csv", "curves.csv", "out=mine.csv"],
        ["view", TASK, "steps=1", "out=mine.png"],
        ["view", TASK, "view=semantic", "steps=1", "task.knobs.dela=1", "out=new/x.png"],
        ["train", TASK, "out=new/study", "tracker=none", "devices=2", "agent=tabular/sarsa"],
        ["train", TASK, "out=new/study", "tracker=none", "launcher=loca"],
        ["diagnose", "benchmark=toy", "budget=smoke", "out=new/study", "tracker=none", "launcher.name=loca"],
    ],
)
def test_a_refused_command_changes_nothing(tmp_path, capsys, words):
    curves(tmp_path / "curves.csv")
    for name in ("mine.csv", "mine.png"):
        (tmp_path / name).write_text("mine")
    before = listing(tmp_path)
    assert cli.main(words) == 2
    assert capsys.readouterr().err.startswith("lcd: ")
    assert listing(tmp_path) == before


def test_a_command_may_write_its_own_files_anew(tmp_path):
    curves(tmp_path / "curves.csv")
    for _ in range(2):
        assert cli.main(["power", "curves.csv", "out=pairs.csv"]) == 0
        assert cli.main(["report", "curves.csv", "curves.csv", "out=beside"]) == 0
    # A report beside them is another product.
    assert cli.main(["report", "curves.csv", "out=."]) == 0
    assert (tmp_path / "pairs.csv").is_file()
    assert not list(tmp_path.rglob(".lcd-draft-*"))


def test_a_range_too_small_to_divide_by_is_refused(tmp_path, capsys):
    curves(tmp_path / "curves.csv")
    table = pd.read_csv(tmp_path / "curves.csv")
    for least, most in ((0.0, 5e-324), (-1.7e308, 1.7e308)):
        table.assign(r_min=least, r_max=most).to_csv(tmp_path / "curves.csv", index=False)
        assert cli.main(["report", "curves.csv"]) == 2
        assert "cannot be divided by a range" in capsys.readouterr().err


def curves_without_ranges(path, task="a/x=1 [b]"):
    rows = [
        {"task": task, "view": view, "reward_p": 1, "seed": seed, "step": step, "return_mean": step / 20}
        for view in ("pixels", "figure_ground", "semantic")
        for seed in (0, 1)
        for step in (0, 100)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)


def auc(folder):
    return pd.read_csv(folder / "challenge.csv")["auc_pixels"].item()


def test_ranges_are_given_by_key_or_file(tmp_path, capsys):
    curves_without_ranges(tmp_path / "c.csv")
    assert cli.main(["report", "c.csv"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Give the columns r_min and r_max, or 'ranges.a/x=1 [b]=[R_min,R_max]'" in told
    assert "Returns of tasks whose range is not known" in told
    (row,) = pd.read_csv(tmp_path / "c-diagnosis" / "challenge.csv").to_dict("records")
    assert (row["status"], row["phi_status"]) == ("no_range", "no_range")
    assert cli.main(["power", "c.csv"]) == 2
    assert "No task has a range" in capsys.readouterr().err
    assert cli.main(["report", "c.csv", "ranges.a/x=1 [b]=[0,10]", "out=one"]) == 0
    assert auc(tmp_path / "one") == pytest.approx(0.25)
    (tmp_path / "r.yaml").write_text("a/x=1 [b]: [0, 5]\nanother: [0, 1]\n")
    assert cli.main(["report", "c.csv", "ranges=r.yaml", "out=two"]) == 0
    assert auc(tmp_path / "two") == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ranges.b=[0,10]"], "the curves have no task 'b'"),
        (["ranges.a=10"], "cannot be read: write ranges"),
        (["ranges.a=[1]"], "ranges.a=[1] must be two numbers"),
        (["ranges.a=[5,1]"], "R_max should be above R_min"),
        (["ranges=none.yaml"], "ranges=none.yaml cannot be read"),
        (["ranges=c.csv"], "ranges=c.csv holds no ranges"),
        (["ranges=/dev/zero"], "no regular file"),
        ([f"ranges.a=[0,1{'0' * 400}]"], "must be two numbers"),
        (["ranges=r.yaml", "ranges.a=[0,1]"], "cannot both be given"),
    ],
)
@pytest.mark.parametrize("command", ["report", "power"])
def test_ranges_that_make_no_sense_are_one_sentence(tmp_path, capsys, command, words, told):
    curves_without_ranges(tmp_path / "c.csv", task="a")
    assert cli.main([command, "c.csv", *words]) == 2
    assert told in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.csv"]
