"""Controllers that learn nothing: plans in turn, pressures by hand, and which of them loses least time."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from lcd.envs.traffic import reference, rules
from lcd.envs.traffic.controllers import CYCLE, fixed_time, max_pressure, plans, pressures, untuned_plan
from lcd.envs.traffic.intersections import family
from lcd.envs.traffic.network import MOVEMENTS, exit_of, is_main
from lcd.envs.traffic.rules import chosen, compare, main, told
from lcd.envs.traffic.sensing import Seen
from lcd.envs.traffic.simulation import DECISION

ALL, NO_LEFT = (True, True, True, True), (True, False, True, False)


def seen(phase, age, served=ALL, queues=None, leaving=None):
    copies = len(phase)
    queues = np.zeros((copies, 4, 3)) if queues is None else queues
    leaving = np.zeros((copies, 4)) if leaving is None else leaving
    zeros = np.zeros((copies, 4, 3))
    return Seen(queues, zeros, leaving, np.array(phase), np.array(age, float), np.array([served] * copies))


def shown(plan, steps):
    """The phases of a plan, decision by decision, from the first phase on."""
    phase, age, found = 0, 0.0, []
    for _ in range(steps):
        (following,) = fixed_time(seen([phase], [age]), np.array([plan]))
        age = DECISION if following != phase else age + DECISION
        phase = int(following)
        found.append(phase)
    return found


@pytest.mark.parametrize("plan", [(3, 1, 2, 1), (2, 0, 2, 0), (1, 1, 1, 1), (4, 0, 1, 2)])
def test_phases_come_in_turn_for_as_long_as_the_plan_says(plan):
    cycle = [phase for phase, steps in enumerate(plan) for _ in range(steps)]
    assert shown(plan, 3 * len(cycle)) == 3 * cycle


def test_the_untuned_plan_is_a_cycle_of_90_seconds_for_both_roads():
    for served in (ALL, NO_LEFT):
        (plan,) = untuned_plan(np.array([served]))
        assert plan.sum() == CYCLE
        assert plan[0] == plan[2]
        assert ((plan > 0) == served).all()
        assert plans(served)[0] == tuple(plan)
        assert len(set(plans(served))) == len(plans(served))
        assert all(((np.array(other) > 0) == served).all() for other in plans(served))


@pytest.mark.parametrize("served", [ALL, NO_LEFT])
def test_pressures_are_who_is_before_less_who_is_behind(served):
    generator = np.random.default_rng(0)
    queues, leaving = generator.integers(0, 9, (20, 4, 3)), generator.integers(0, 9, (20, 4))
    found = pressures(seen(np.zeros(20, int), np.zeros(20), served, queues, leaving))
    for copy in range(20):
        for phase in range(4):
            expected = 0.0
            for approach in range(4):
                for number, movement in enumerate(MOVEMENTS):
                    own_phase = movement == "left" and served[1]
                    goes = is_main(approach) == (phase < 2) and own_phase == (phase % 2 == 1)
                    behind = leaving[copy, exit_of(approach, movement)] / 3
                    expected += goes * (queues[copy, approach, number] - behind)
            assert found[copy, phase] == pytest.approx(expected if served[phase] else -np.inf)


def test_max_pressure_changes_only_for_more():
    queues = np.zeros((3, 4, 3))
    queues[1, 1, 1] = 2
    queues[2, 0, 2] = 5
    assert max_pressure(seen([2, 0, 0], [5, 5, 5], ALL, queues)).tolist() == [2, 2, 1]
    assert max_pressure(seen([2, 0, 2], [5, 5, 5], NO_LEFT, queues)).tolist() == [2, 2, 0]


@pytest.fixture
def short(monkeypatch):
    """Fewer episodes than it takes to know."""
    monkeypatch.setattr(rules, "TRIALS", 1)
    monkeypatch.setattr(reference, "MOST", 6)


def test_where_it_is_busy_tuning_helps_and_max_pressure_more(short):
    points, weights = chosen(2)
    rows = compare([family().default, points[1]], 200)
    delay = {row["controller"]: row["delay"] for row in rows[::2]}
    assert delay["max_pressure"] < delay["tuned"] < delay["untuned"]
    assert rows[0]["score"] == 1
    assert rows[2]["score"] == delay["tuned"] / delay["untuned"]
    assert all(row["failed"] == (row["waiting"] > 20) for row in rows)
    text = told(rows, np.array([1.0]))
    assert f"max_pressure: {rows[4]['score']:.2f} where it is reported, {rows[5]['score']:.2f} over the family" in text
    assert weights.sum() == pytest.approx(1)


def test_the_command_writes_what_it_tells(short, tmp_path, capsys):
    out = tmp_path / "rows.csv"
    assert main(["--points", "1", "--horizon", "50", "--out", str(out)]) == 0
    assert "over the family" in capsys.readouterr().out
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["controller"] for row in rows] == [
        "untuned",
        "untuned",
        "tuned",
        "tuned",
        "max_pressure",
        "max_pressure",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--points", "0"], "lcd: points is 0, but it must be a whole number of at least 1.\n"),
        (["--points", "251"], "lcd: points is 251, but it must be a whole number of at most 250.\n"),
        (["--points", "1", "--horizon", "12"], "lcd: horizon is 12, but it must be a multiple of 5 seconds.\n"),
    ],
)
def test_wrong_words_are_one_sentence(words, sentence, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err == sentence
