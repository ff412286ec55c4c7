"""Families whose points take turns at the seeds: what is told of them, and how sure it is."""

import numpy as np
import pandas as pd
import pytest
from family_curves import GRID, NAMES, family_curves, told

from lcd.curves.table import as_trained, attach_ranges, check_curves, normalised, of_points
from lcd.families.measured import measured_families
from lcd.families.over_points import whole_families
from lcd.families.quadrature import Kernels, surprises
from lcd.families.turns import Turns, turns_of
from lcd.statistics.intervals import mean_interval

RNG = np.random.default_rng(7)
SCORES = {agent: RNG.uniform(size=(len(NAMES), 3)) for agent in ("ppo", "dqn")}
SEED_OF = np.arange(len(NAMES)) * 2 % 3


def taking_turns(default=None, **columns):
    """Curves of `SCORES` with one seed a point, and their scores, agent → (points,)."""
    frame = family_curves("cart", NAMES, SCORES, default, **columns)
    turn = dict(zip(NAMES, SEED_OF, strict=True))
    own = frame["context"].map(turn)
    scores = {agent: each[np.arange(len(NAMES)), SEED_OF] for agent, each in SCORES.items()}
    return frame[(frame["context"] == "") | (frame["seed"] == own)], scores


def parted(frame):
    """The curves of points, and those of the default point."""
    curves, _ = attach_ranges(check_curves(frame))
    curves["normalised"] = normalised(curves)
    return curves[of_points(curves)], curves[as_trained(curves)]


def measured(frame):
    (found,) = measured_families(*parted(frame))
    return found


def test_each_point_counts_with_its_one_agent():
    frame, scores = taking_turns({agent: np.full(3, 0.8) for agent in SCORES})
    found = measured(frame)
    by_name = dict(zip(found.contexts, found.table, strict=True))
    assert len(by_name) == len(NAMES)
    for agent, expected in scores.items():
        assert found.scores[agent].shape == (len(NAMES), 1)
        assert found.seeds[agent] == (0, 1, 2)
        assert found.overall[agent].shape == (3,)
        assert found.overall[agent].mean() == pytest.approx(expected.mean())
        assert dict(zip(found.contexts, found.scores[agent][:, 0], strict=True)) == pytest.approx(
            dict(zip(NAMES, expected, strict=True))
        )
        np.testing.assert_allclose(found.reported[agent], 0.8)


def test_a_report_has_intervals_and_says_what_they_are_of():
    frame, _ = taking_turns({agent: np.full(3, 0.8) for agent in SCORES})
    made = told(frame)
    table = made["families"].table
    assert (table["overall_low"] < table["overall"]).all()
    assert (table["overall"] < table["overall_high"]).all()
    assert "take turns" in " ".join(made["families"].says)
    assert "Solved: its agent has" in made["families"].note
    fewer = frame[(frame["agent"] == "dqn") | (frame["context"] != NAMES[2])]
    assert "1 points are left out: some method has no agent there." in told(fewer)["families"].says
    assert made["families-pairs"].table["overall_low"].notna().all()
    assert made["families-distributions"].table["D1_low"].notna().all()


def test_curves_of_the_whole_family_are_on_average_those_of_its_points():
    frame, scores = taking_turns({agent: np.full(3, 0.8) for agent in SCORES})
    whole = whole_families(*parted(frame))
    last = whole[whole["step"] == whole["step"].max()].groupby("agent", observed=True)["normalised"]
    assert last.size().to_dict() == {"ppo": 3, "dqn": 3}
    assert last.mean().to_dict() == pytest.approx({agent: mine.mean() for agent, mine in scores.items()})


def test_a_seed_on_all_points_is_no_turn():
    frame = family_curves("cart", NAMES, {"ppo": SCORES["ppo"][:, :1]})
    found = measured(frame)
    assert not found.turns
    both = measured(family_curves("cart", NAMES, SCORES))
    assert not both.turns
    assert both.scores["ppo"].shape == (len(NAMES), 3)


def test_a_default_that_is_given_again_as_a_point_may_have_all_seeds():
    frame, scores = taking_turns({agent: np.full(3, 0.8) for agent in SCORES})
    again = family_curves("cart", ["length=3,mass=1"], {agent: np.array([[0.1, 0.5, 0.9]]) for agent in SCORES})
    found = measured(pd.concat([frame, again]))
    for agent, expected in scores.items():
        assert found.turns[agent].seeds == (0, 1, 2)
        assert found.overall[agent].mean() == pytest.approx((expected.sum() + 0.1) / (len(NAMES) + 1))
        assert len(whole_families(*parted(pd.concat([frame, again])))["seed"].unique()) == 3


def test_points_that_weigh_nothing_have_no_say_in_whether_the_others_take_turns():
    frame, scores = taking_turns()
    others = family_curves("cart", ["length=3,mass=1", "length=3,mass=3"], {agent: np.ones((2, 3)) for agent in SCORES})
    found = measured(pd.concat([frame.assign(weight=1.0), others.assign(weight=0.0)]))
    for agent, expected in scores.items():
        assert found.turns[agent].seeds == (0, 1, 2)
        assert found.overall[agent].mean() == pytest.approx(expected.mean())


def test_points_that_weigh_nothing_have_no_say_in_which_seeds_count():
    frame = family_curves("cart", NAMES[:1], {"ppo": np.array([[0.4]])}).assign(weight=1.0)
    others = family_curves("cart", NAMES[1:3], {"ppo": np.full((2, 3), 0.9)}).assign(weight=0.0)
    found = measured(pd.concat([frame, others]))
    assert found.seeds["ppo"] == (0,)
    np.testing.assert_allclose(found.overall["ppo"], [0.4])


def test_turns_of_which_one_seed_is_left_are_none():
    frame, _ = taking_turns()
    lost = (frame["agent"] == "dqn") & (frame["seed"] > 0)
    found = measured(frame[~lost])
    assert {agent: len(seeds) for agent, seeds in found.seeds.items()} == {"ppo": 1, "dqn": 1}
    assert not any("take turns" in note for note in found.notes)


def test_a_surprise_is_the_distance_to_what_all_others_lead_to_expect():
    features = np.random.default_rng(3).uniform(size=(7, 2))
    one = Kernels(np.array([[0.6, 1.3]]), np.array([0.1]), np.array([0.2]), np.ones(1))
    among = one.between(features, features)[0]
    scores = np.random.default_rng(4).normal(size=7)
    expected = []
    for place in range(7):
        rest = np.delete(np.arange(7), place)
        covariance = among[np.ix_(rest, rest)] + 0.2 * np.eye(6)
        # The mean of a process of unknown mean, by generalised least squares.
        inverse = np.linalg.inv(covariance)
        mean = inverse.sum(0) @ scores[rest] / inverse.sum()
        expected.append(scores[place] - mean - among[place, rest] @ inverse @ (scores[rest] - mean))
    np.testing.assert_allclose(surprises(features, one) @ scores, expected, rtol=1e-6)


def test_where_points_have_nothing_in_common_the_interval_is_students_of_the_points():
    count, scores = 12, np.random.default_rng(5).normal(size=12)
    # Then a surprise is the distance to the mean of the others.
    surprise = (np.eye(count) - 1 / count) * count / (count - 1)
    weights = Turns(tuple(range(count)), 0, np.arange(count), surprise).weights(np.full(count, 1 / count))
    np.testing.assert_allclose(weights.sum(1), 1)
    np.testing.assert_allclose(weights.mean(0), 1 / count)
    found, plain = mean_interval(weights @ scores), mean_interval(scores)
    assert found.high - found.low == pytest.approx((plain.high - plain.low) * count / (count - 1))


@pytest.mark.parametrize("common", [0.0, 0.3])
def test_intervals_cover_what_they_promise(common):
    """Over draws of smooth families with noise of points and, perhaps, of seeds that is the same on all points."""
    rng, hits, draws = np.random.default_rng(11), 0, 150
    table, seeds = GRID.table, 6
    distribution = np.full(len(table), 1 / len(table))
    turn = np.arange(len(table)) % seeds
    rows = pd.DataFrame({"agent": "ppo", "context": NAMES, "seed": 0, "turn": turn.astype(float)})
    for _ in range(draws):
        smooth = np.sin(rng.normal(size=2) @ (table / table.max(0)).T * 2 + rng.uniform(0, 6))
        scores = smooth + rng.normal(size=len(table)) * 0.4 + common * rng.normal(size=seeds)[turn]
        found = turns_of(rows, NAMES, table, None, {"ppo": scores[:, None]})["ppo"]
        low, high = mean_interval(found.weights(distribution) @ scores)
        hits += low <= smooth.mean() <= high
    assert 0.9 <= hits / draws <= 0.995
