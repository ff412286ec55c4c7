"""`lcd check` finds in each world the one thing that is wrong with it, and nothing in worlds that are right."""

import json

import numpy as np
import pytest

from lcd import cli
from lcd.pipelines.check import checking, play_checks
from lcd.pipelines.check.examine import examined
from lcd.pipelines.check.examined_task import Case
from lcd.pipelines.check.random_play import Episodes
from lcd.pipelines.check.rows import Row, summed_up, worst_of

WORLDS = "wrong_worlds:Worlds"
EVALUATION = {"every": 1024, "copies": 8, "episodes": 1}


def rows_of(task, benchmark=WORLDS, views=("pixels", "figure_ground", "semantic"), moments=1600, steps=10240, **knobs):
    case = Case(benchmark, task, views, knobs, steps, EVALUATION, 0.8, moments, 20.0, 0)
    return list(examined(case))


def unsound(rows):
    return {(row.check, row.verdict) for row in rows if row.verdict != "pass"}


def test_a_sound_world_passes_everything():
    rows = rows_of("sound")
    assert unsound(rows) == set()
    looked_at = {row.check for row in rows}
    assert looked_at >= {"contract", "seeds", "views in lockstep", "views", "drawn alike", "R_min, R_max"}
    assert looked_at >= {"blind agents", "episodes", "budget", "γ", "speed"}


@pytest.mark.parametrize(
    ("flaw", "check", "verdict", "says"),
    [
        ("dict", "contract", "fail", "shows a Dict: an agent needs an array"),
        ("plain env", "contract", "fail", "not a gymnasium.vector.VectorEnv"),
        ("no mode", "contract", "fail", "does not say how its copies begin anew"),
        ("channels first", "contract", "fail", "(3, 24, 24) have their channels first"),
        ("float images", "contract", "fail", "images are float32"),
        ("outside its space", "contract", "fail", "are not in"),
        ("shared", "contract", "fail", "writes over the observations of the step before"),
        ("not finite", "contract", "fail", "rewards are not finite"),
        ("shared generator", "views in lockstep", "fail", "give other"),
        ("one for all", "seeds", "warn", "another seed gives the same"),
        ("all held in", "seeds", "warn", "what is held out is what is trained"),
        ("blank", "drawn alike", "fail", "'semantic' always shows the same"),
        ("alike", "drawn alike", "fail", "'semantic' draws alike what pixels tell apart"),
        ("not drawn", "drawn alike", "fail", "'figure_ground' draws alike what pixels tell apart"),
        ("low", "R_min, R_max", "warn", "R_min is said to be -0.9"),
        ("beyond", "R_min, R_max", "fail", "of them more than R_max = 0.5"),
        ("no range", "R_min, R_max", "warn", "R_min and R_max are not known"),
        ("blind", "blind agents", "fail", "100% of it is had blindly"),
        ("endless", "episodes", "fail", "no episode ended"),
        ("unpaid", "budget", "warn", "paid in none of"),
        ("far", "γ", "warn", "weighs them"),
    ],
)
def test_what_is_wrong_is_found_and_nothing_else(flaw, check, verdict, says):
    rows = rows_of(flaw, moments=4000 if flaw == "far" else 1600)
    assert any(row.check == check and row.verdict == verdict and says in row.found for row in rows), rows
    worst = {row.check for row in rows if row.verdict == "fail"}
    assert worst <= {check}, rows
    assert all(row.fix for row in rows if row.verdict == "fail" and row.check != "contract")
    # What makes one thing wrong may well be told of by a second warning, but by no more.
    assert len({row.check for row in rows if row.verdict != "pass"} - {check}) <= 1, rows


def test_a_probe_tells_what_noise_hides_from_comparing_looks():
    """Noise lets no picture come again: a network reads what the mask has lost."""
    told = [row for row in rows_of("noisy alike", moments=4000) if row.check == "what masks preserve"]
    assert [row.verdict for row in told] == ["warn"]
    assert "'semantic'" in told[0].found
    sound = [row for row in rows_of("noisy", moments=4000) if row.check == "what masks preserve"]
    assert all(row.verdict == "pass" for row in sound)


def test_long_episodes_and_rare_ones_are_told_with_steps_that_suit():
    (row,) = [row for row in rows_of("long", moments=16 * 1000) if row.check == "episodes"]
    assert row.verdict == "warn"
    assert "an evaluation takes about 7,200 steps" in row.found
    assert row.fix.startswith("study.evaluation.every=15000")


def test_episodes_that_were_not_looked_at_for_long_are_no_fault():
    none = Episodes(np.zeros(0), np.zeros(0), np.zeros(0), True)
    evaluation = {"every": 100, "copies": 2, "episodes": 1}
    long, short = (play_checks.episode_row("t", none, played, 1024, evaluation, 5000) for played in (1024, 226))
    assert (long.verdict, short.verdict) == ("fail", "warn")
    assert "226 steps of a copy; for 1,024 there was no time" in short.found


def test_a_benchmark_of_one_view_is_told_which_score_it_lacks():
    rows = rows_of("sound", "wrong_worlds:OfOneView", ("pixels",))
    (row,) = [row for row in rows if row.check == "views"]
    assert row.verdict == "warn"
    assert "φ cannot, for which figure_ground and semantic lack" in row.found


@pytest.mark.parametrize(
    ("benchmark", "task"),
    [
        ("toy", "toy/easy-sight-easy-reward"),
        ("toy", "toy/hard-sight-hard-reward"),
        ("ctgraph", "ctgraph/depth-1-wait-0.5"),
        ("procgen-easy", "procgen/coinrun"),
    ],
)
def test_benchmarks_that_are_right_fail_nothing(benchmark, task):
    if benchmark.startswith("procgen"):
        pytest.importorskip("gym3")
    from lcd.envs.benchmarks import get_benchmark

    views = tuple(view for view in get_benchmark(benchmark).views if view != "state")
    rows = rows_of(task, benchmark, views, moments=1024)
    assert not [row for row in rows if row.verdict == "fail"]
    assert not [row for row in rows if row.check in ("contract", "views in lockstep") and row.verdict != "pass"]


def command(*words):
    quick = ["launcher.workers=1", "study.seeds=2", "study.steps=256", "device=cpu", "moments=1024"]
    return cli.main(["check", *words, *quick])


def test_the_command_ends_with_0_and_tells_a_cost_where_all_is_well(capsys):
    assert command("toy", "study.tasks=[toy/easy-sight-easy-reward]", "study.evaluation.every=128", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    rows = {row["check"]: row for row in told["rows"]}
    assert rows["determinism"]["verdict"] == "pass"
    assert "6 runs: about" in rows["cost"]["found"]


@pytest.mark.parametrize(("flaw", "says"), [("raises", "the world has an edge"), ("no seed", "left to chance")])
def test_the_command_ends_with_1_where_something_fails(flaw, says, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.syspath_prepend("tests/pipelines")
    assert command(WORLDS, f"study.tasks=[{flaw}]", "study.views=[pixels]", "study.reward_p=[1]") == 1
    told = capsys.readouterr().out
    assert says in told
    assert "fail" in told
    assert "cost" not in told


def test_a_mistake_in_the_command_is_one_sentence(capsys):
    assert cli.main(["check", "toy", "study.tasks=[toy/easy]"]) == 2
    assert "study.tasks: 'toy/easy' is not in the benchmark 'toy'" in capsys.readouterr().err


def test_a_line_has_the_worst_verdict_and_its_tasks():
    rows = [Row("a", "pass", "fine", task="t"), Row("a", "warn", "odd", "mend", "u"), Row("b", "pass", "fine")]
    one, other = summed_up(rows)
    assert (one.verdict, one.found, one.fixes) == ("warn", ("u: odd",), ("mend",))
    assert (other.verdict, other.found) == ("pass", ("fine",))
    assert worst_of([]) == "pass"
    assert checking.STYLES.keys() == {"pass", "warn", "fail"}
