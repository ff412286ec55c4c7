"""`lcd check` finds in each world the one thing that is wrong with it, and nothing in worlds that are right."""

import json
import re

import numpy as np
import pytest

from lcd import cli
from lcd.envs.gym_names import with_masks
from lcd.pipelines.check import checking, mask_probes, mask_shapes, play_checks
from lcd.pipelines.check.examine import examined
from lcd.pipelines.check.examined_task import Case
from lcd.pipelines.check.random_play import Episodes, Moments
from lcd.pipelines.check.rows import Row, summed_up, worst_of

WORLDS = "wrong_worlds:Worlds"
EVALUATION = {"every": 1024, "copies": 8, "episodes": 1}


def rows_of(task, benchmark=WORLDS, views=("pixels", "figure_ground", "semantic"), moments=1600, steps=10240, **knobs):
    case = Case(benchmark, task, views, knobs, steps, EVALUATION, 0.8, moments, 20.0, 0)
    return list(examined(case))


def unsound(rows):
    return {(row.check, row.verdict) for row in rows if row.verdict in ("warn", "fail")}


def test_a_sound_world_passes_everything():
    rows = rows_of("sound")
    assert unsound(rows) == set()
    looked_at = {row.check for row in rows}
    assert looked_at >= {"contract", "seeds", "views in lockstep", "views", "drawn alike", "R_min, R_max"}
    assert looked_at >= {"blind agents", "episodes", "budget", "γ", "speed"}
    assert {row.verdict for row in rows} == {"pass"}


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
    assert len({check for check, _ in unsound(rows)} - {check}) <= 1, rows


def test_a_probe_tells_what_noise_hides_from_comparing_looks():
    """Noise lets no picture come again: a network reads what the mask has lost."""
    told = [row for row in rows_of("noisy alike", moments=4000) if row.check == "what masks preserve"]
    assert [row.verdict for row in told] == ["warn"]
    assert "'semantic'" in told[0].found
    sound = [row for row in rows_of("noisy", moments=4000) if row.check == "what masks preserve"]
    assert [row.verdict for row in sound] == ["pass"]


def test_things_of_one_shape_are_named_where_no_picture_tells():
    """Three kinds of things that are one white block: noise lets no pixels come again, and no look is compared."""
    rows = rows_of("noisy blocks")
    (alike,) = [row for row in rows if row.check == "drawn alike" and "'figure_ground'" in row.found]
    assert (alike.verdict, alike.found.partition(": ")[2]) == (
        "not judged",
        "what looks the same in it is hardly ever the same in 'pixels'.",
    )
    (shapes,) = [row for row in rows if row.check == "shapes"]
    assert shapes.verdict == "warn"
    assert shapes.found == "grey 85, grey 170 and grey 255 have one shape in 'figure_ground'."


def moments_of(seen, rewards, actions=None):
    steps = np.shape(rewards)
    actions = np.zeros(steps, int) if actions is None else actions
    return Moments(seen, actions, np.asarray(rewards, float), np.zeros(steps, bool), np.ones(steps, bool), {})


def test_looks_that_say_nothing_are_no_pass():
    rng = np.random.default_rng(0)
    never = rng.permutation(400).astype(np.uint64)
    told = mask_probes._lost(never, never, moments_of({}, rng.integers(0, 2, (20, 20))))
    assert told.why == "no picture came twice with the same action."
    always = np.zeros(400, np.uint64)
    rewards = np.zeros((20, 20))
    assert "paid otherwise than the rest" in mask_probes._lost(always, always, moments_of({}, rewards)).why
    # The same picture is paid 1 each time: this says that nothing is lost.
    looks = np.arange(400, dtype=np.uint64) % 10
    rewards.ravel()[looks == 3] = 1
    assert mask_probes._lost(looks, looks, moments_of({}, rewards)) == ""
    assert "only 0%" in mask_probes._lost(looks, looks // 2, moments_of({}, rewards))


def test_a_probe_that_reads_nothing_from_pixels_does_not_judge():
    rng = np.random.default_rng(0)
    seen = {view: rng.integers(0, 256, (20, 16, 12, 12, 3), np.uint8) for view in ("pixels", "semantic")}
    (row,) = mask_probes._read("t", moments_of(seen, rng.integers(0, 2, (20, 16))), ["semantic"], 0)
    assert row.verdict == "not judged"
    assert "nothing of the coming reward even from pixels" in row.found


def of_line(masks, moments=512):
    return rows_of("gym/Line-v0", with_masks("gym:coloured_worlds:Line-v0", masks), moments=moments)


def test_a_table_of_colours_is_held_against_the_pictures():
    """Walker and coin are blocks of one size; nothing has the third colour. A grey of its own mends the first."""
    rows = of_line("colours(walker=ff0000,coin=00ff00,lily=0000ff)")
    told = {row.check: row.found for row in rows if row.verdict == "warn"}
    assert told["shapes"] == "walker and coin have one shape in 'figure_ground'."
    assert told["colours"] == "the colour of lily was in none of 512 pictures."
    assert "R_min and R_max are not known" in told["R_min, R_max"]
    (fix,) = [row.fix for row in rows if row.check == "R_min, R_max"]
    assert fix.startswith("lcd report STUDY 'ranges.gym/Line-v0=[0.75,R_MAX]'")
    apart = {row.check: row for row in of_line("colours(walker=ff0000,coin=00ff00@170)")}
    assert (apart["shapes"].verdict, apart["colours"].verdict) == ("pass", "pass")


def test_shapes_are_compared_whatever_their_place_and_not_whatever_their_size():
    def shapes(*things):
        figures, classes = np.zeros((1, 64, 64), np.uint8), np.zeros((1, 64, 64), np.int32)
        for code, (drawn, row, column) in enumerate(things, 1):
            height, width = drawn.shape
            figures[0, row : row + height, column : column + width] = drawn
            classes[0, row : row + height, column : column + width] = code
        return mask_shapes._alike(mask_shapes._shapes(figures, classes))

    square, disc = np.full((5, 5), 255), np.pad(np.full((3, 3), 255), 1)
    disc[0, 2] = disc[4, 2] = disc[2, 0] = disc[2, 4] = 255
    assert shapes((square, 3, 3), (np.full((6, 6), 255), 30, 40), (disc, 20, 20)) == [[1, 2]]
    assert shapes((square, 3, 3), (np.full((12, 12), 255), 30, 40)) == []
    assert shapes((square, 3, 3), (np.full((5, 5), 170), 30, 40)) == []


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
    captured = capsys.readouterr()
    assert captured.err == ""
    told = json.loads(captured.out)
    assert told["verdict"] == worst_of(row["verdict"] for row in told["rows"] if row["verdict"] != "not judged")
    assert told["not_judged"] == [row["check"] for row in told["rows"] if row["verdict"] == "not judged"]
    rows = {row["check"]: row for row in told["rows"]}
    assert rows["determinism"]["verdict"] == "pass"
    assert "6 runs: about" in rows["cost"]["found"]


@pytest.mark.parametrize(("flaw", "says"), [("raises", "the world has an edge"), ("no seed", "left to chance")])
def test_the_command_ends_with_1_where_something_fails(flaw, says, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.syspath_prepend("tests/pipelines")
    assert command(WORLDS, f"study.tasks=[{flaw}]", "study.views=[pixels]", "study.reward_p=[1]") == 1
    told = capsys.readouterr()
    assert says in told.out
    assert "fail" in told.out
    # What was not looked at stands there, too.
    assert re.search(r"cost +– +not looked at: mend first what fails", told.out)
    assert re.search(r"speed +(–|pass)", told.out)
    # What a quick look is at is not always told in time.
    assert "determinism (made twice" in told.err or flaw == "raises"


def test_a_mistake_in_the_command_is_one_sentence(capsys):
    assert cli.main(["check", "toy", "study.tasks=[toy/easy]"]) == 2
    assert "study.tasks: 'toy/easy' is not in the benchmark 'toy'" in capsys.readouterr().err


def test_a_line_has_the_worst_verdict_and_its_tasks():
    rows = [Row("a", "pass", "fine", task="t"), Row("a", "warn", "odd", "mend", "u"), Row("b", "pass", "fine")]
    one, other = summed_up(rows)
    assert (one.verdict, one.found, one.fixes) == ("warn", ("u: odd",), ("mend",))
    assert (other.verdict, other.found) == ("pass", ("fine",))
    assert worst_of([]) == "pass"
    assert checking.STYLES.keys() == {"pass", "not judged", "warn", "fail"}
    unsure = [Row("a", "pass", "fine", task="t"), Row("a", "not judged", "no episode ended.", task="u")]
    assert [line.verdict for line in summed_up(unsure)] == ["not judged"]
    assert checking._end("pass", 1) == "Nothing is wrong in what could be judged; 1 check could not judge (–)."


def test_of_what_sets_one_key_the_largest_is_told():
    fixes = ["study.evaluation.every=4900, or fewer copies", "study.evaluation.every=14700, or fewer copies", "look"]
    rows = [Row("a", "warn", f"odd {n}", fix, f"t{n}") for n, fix in enumerate(fixes)]
    (line,) = summed_up(rows)
    assert line.fixes == (fixes[1], "look")


def test_less_than_one_reward_is_no_number_of_times():
    episodes = Episodes(np.array([1.0] + [0.0] * 99), np.full(100, 50), np.array([True] + [False] * 99), False)
    row = play_checks.budget_row("t", moments_of({}, np.zeros((50, 100))), episodes, 1000)
    assert "so fewer than once in a seed's 1,000 steps" in row.found
