import numpy as np
import pandas as pd
import pytest
from family_curves import STEPS, family_curves

from lcd.curves.names import evaluated_name
from lcd.curves.spans import area
from lcd.curves.table import as_trained, attach_ranges, check_curves, normalised, of_points
from lcd.envs import benchmarks
from lcd.envs.errors import InputError
from lcd.envs.families.family import Family, parse_point, point_name
from lcd.families.measured import measured_families
from lcd.families.over_points import whole_families
from lcd.scores.diagnosis import diagnose_curves

POINTS = [{"mass": mass, "length": length} for mass in (1.0, 2.0) for length in (0.5, 1.0, 3.0)]
NAMES = [point_name(point) for point in POINTS]


def measured(frame: pd.DataFrame, measure: str = "final"):
    curves, _ = attach_ranges(check_curves(frame))
    curves["normalised"] = normalised(curves)
    return list(measured_families(curves[of_points(curves)], curves[as_trained(curves)], measure))


@pytest.fixture
def levels() -> dict[str, np.ndarray]:
    """Agent → (points, seeds)."""
    rng = np.random.default_rng(4)
    return {agent: rng.uniform(size=(6, 3)) for agent in ("ppo", "dqn")}


def test_scores_are_the_last_returns_of_each_point_and_seed(levels):
    (found,) = measured(family_curves("cart", NAMES, levels, {"ppo": np.array([0.9, 1.0, 0.8])}))
    assert found.methods == ["dqn", "ppo"]
    assert found.features == ("length", "mass")
    places = [NAMES.index(point_name(dict(zip(found.features, row, strict=True)))) for row in found.table]
    for agent, wanted in levels.items():
        np.testing.assert_allclose(found.scores[agent], wanted[places])
        np.testing.assert_allclose(found.overall[agent], wanted.mean(0))
    assert {agent: values.tolist() for agent, values in found.reported.items()} == {"ppo": [0.9, 1.0, 0.8]}
    assert found.scale == "normalised"


def test_the_mean_height_is_that_of_the_projects_areas(levels):
    (found,) = measured(family_curves("cart", NAMES, levels), "auc")
    heights = levels["ppo"][NAMES.index("length=0.5,mass=1"), 1] * (STEPS / STEPS[-1]) ** 2
    assert found.scores["ppo"][0, 1] == pytest.approx(area(STEPS, heights, STEPS[0], STEPS[-1]))


def test_rows_may_come_in_any_order(levels):
    frame = family_curves("cart", NAMES, levels)
    (one,), (two,) = measured(frame), measured(frame.sample(frac=1, random_state=3))
    np.testing.assert_array_equal(one.scores["ppo"], two.scores["ppo"])


def test_a_point_takes_part_if_every_method_has_all_of_its_seeds_there(levels):
    frame = family_curves("cart", NAMES, levels)
    lost = (frame["agent"] == "ppo") & (frame["context"] == NAMES[2]) & (frame["seed"] == 1)
    (found,) = measured(frame[~lost])
    assert len(found.table) == 5
    assert "1 points are left out: some method has not all of its seeds there." in found.notes
    # A seed that is missing nearly everywhere is left out itself.
    rare = (frame["agent"] == "ppo") & (frame["context"] != NAMES[2]) & (frame["seed"] == 1)
    (found,) = measured(frame[~rare])
    assert (len(found.table), found.scores["ppo"].shape[1], found.scores["dqn"].shape[1]) == (6, 2, 3)
    apart = {"ppo": NAMES[0], "dqn": NAMES[1]}
    none = frame[frame["context"] == frame["agent"].map(apart)]
    with pytest.raises(InputError, match="have no point of 'cart' in common"):
        measured(none)


def test_a_column_says_how_much_points_count(levels):
    frame = family_curves("cart", NAMES, levels)
    weights = dict(zip(NAMES, (1, 2, 3, 4, 0, 6), strict=True))
    (found,) = measured(frame.assign(weight=frame["context"].map(weights)))
    np.testing.assert_allclose(found.overall["ppo"], np.array([1, 2, 3, 4, 0, 6]) / 16 @ levels["ppo"])
    (plain,) = measured(frame)
    assert plain.notes == ("Nobody says how much each point counts: all of them count alike.",)
    with pytest.raises(InputError, match=r"The column 'weight' holds .* give each point one weight"):
        measured(frame.assign(weight=frame["seed"]))
    with pytest.raises(InputError, match=r"holds -1 for the point .* give each point one weight, 0 or more"):
        measured(frame.assign(weight=-1))
    with pytest.raises(
        InputError, match=r"holds 'much' for the point 'length=0\.5,mass=1': give each point one weight"
    ):
        measured(frame.assign(weight="much"))
    assert measured(frame.assign(weight=None))[0].notes == plain.notes
    assert measured(frame.assign(weight=""))[0].notes == plain.notes
    with pytest.raises(InputError, match="is 0 for all points"):
        measured(frame.assign(weight=0))
    with pytest.raises(InputError, match=r"holds 1 to 7 for the point 'length=0\.5,mass=1'"):
        measured(frame.assign(weight=np.where(frame.index == 1, 7.0, 1.0)))
    with pytest.raises(InputError, match="holds no number, or several, for the point"):
        measured(frame.assign(weight=np.where(frame["seed"] == 1, np.nan, 1.0)))
    (huge,) = measured(frame.assign(weight=frame["context"].map(weights) * 1e307))
    np.testing.assert_allclose(huge.distribution, found.distribution)


def test_the_default_needs_no_weight_of_its_own(levels):
    frame = family_curves("cart", NAMES, levels, {agent: np.ones(3) for agent in levels})
    weights = dict(zip(NAMES, ("1", "2", "3", "4", "0", "6"), strict=True))
    (found,) = measured(frame.assign(weight=frame["context"].map(weights).fillna("")))  # as a CSV has empty cells
    np.testing.assert_allclose(found.overall["ppo"], np.array([1, 2, 3, 4, 0, 6]) / 16 @ levels["ppo"])


def test_two_seeds_on_each_point_that_no_other_has_are_no_family():
    frame = family_curves("cart", NAMES[:3], {"ppo": np.random.default_rng(1).uniform(size=(3, 6))})
    alone = frame[frame["seed"] // 2 == frame["context"].map(NAMES.index)]
    with pytest.raises(InputError, match=r"No seed of 'ppo' is trained on at least half of its 3 points of 'cart'"):
        measured(alone)
    with pytest.raises(InputError, match="No seed of 'ppo'"):  # there is nothing else to be told of
        diagnose_curves(alone)


def test_a_wrong_weight_is_refused_whatever_else_the_curves_hold(levels):
    for default in ({}, {agent: np.ones(3) for agent in levels}):
        frame = family_curves("cart", NAMES, levels, default)
        with pytest.raises(InputError, match=r"'weight' holds -1 for the point 'length=0\.5,mass=1'"):
            diagnose_curves(frame.assign(weight=-1))
    plain = frame[frame["context"] == ""]
    assert len(diagnose_curves(plain.assign(weight=-1)).table) == 2  # without points nobody asks for weights


class Registered:
    """A benchmark that knows the family, in which the default point is one of the points."""

    name, tasks, views = "known", ("cart",), ("state",)
    r_min, r_max = {}, {}

    def family(self, task: str) -> Family:
        return Family(tuple(POINTS), POINTS[1], (1, 2, 3, 4, 5, 6), {"generic": 4})


def test_a_registered_benchmark_says_how_much_points_count_and_which_is_the_default(levels, monkeypatch):
    monkeypatch.setattr(benchmarks, "registered_benchmark", lambda name: Registered())
    own = NAMES[1]
    frame = family_curves("cart", NAMES, levels).assign(benchmark="known")
    default = (frame["context"] == own).to_numpy()
    frame.loc[default, ["context", "trained_on"]] = ["", "cart"]
    (found,) = measured(frame)
    np.testing.assert_allclose(found.overall["dqn"], np.arange(1, 7) / 21 @ levels["dqn"])
    np.testing.assert_allclose(found.reported["dqn"], levels["dqn"][1])
    assert found.table[found.marks["generic"]].tolist() == [1.0, 2.0]
    assert found.notes == ()
    (part,) = measured(frame[frame["context"] != NAMES[5]])
    assert "5 of the family's 6 points are measured" in part.notes[0]
    np.testing.assert_allclose(part.overall["dqn"], np.arange(1, 6) / 15 @ levels["dqn"][:5])


def test_a_default_that_is_a_point_weighs_what_is_said_of_it_with_its_context(levels, monkeypatch):
    monkeypatch.setattr(benchmarks, "registered_benchmark", lambda name: Registered())
    own = NAMES[1]
    frame = family_curves("cart", NAMES, levels, {agent: each[1] for agent, each in levels.items()})
    frame = frame.assign(benchmark="known", weight=frame["context"].map(dict(zip(NAMES, range(1, 7), strict=True))))
    for of_default in (7.0, np.nan):  # its own rows' weight is not read
        (found,) = measured(frame.assign(weight=frame["weight"].fillna(of_default)))
        np.testing.assert_allclose(found.overall["ppo"], np.arange(1, 7) / 21 @ levels["ppo"])
    # Where it is not given a second time, it counts if its own rows have a weight.
    once = frame[frame["context"] != own]
    (found,) = measured(once.assign(weight=once["weight"].fillna(2.0)))
    np.testing.assert_allclose(found.overall["ppo"], np.arange(1, 7) / 21 @ levels["ppo"])
    (found,) = measured(once)
    np.testing.assert_allclose(found.overall["ppo"], np.array([1, 0, 3, 4, 5, 6]) / 19 @ levels["ppo"])


def test_without_ranges_scores_are_returns(levels):
    (found,) = measured(family_curves("cart", NAMES, levels).drop(columns=["r_min", "r_max"]))
    assert found.scale == "return"
    assert "Nobody knows the range" in found.notes[0]


def test_points_of_different_features_are_no_family(levels):
    names = [*NAMES[:5], "gravity=3"]
    with pytest.raises(InputError, match="name in each context all of gravity, length, mass"):
        measured(family_curves("cart", names, levels))


def rewritten(frame: pd.DataFrame, rows, name: str) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[rows, "context"] = name
    changed.loc[rows, "trained_on"] = evaluated_name("cart", name)
    return changed


def test_a_point_is_one_however_seeds_write_it(levels):
    frame = family_curves("cart", NAMES, levels)
    first = frame["context"] == NAMES[0]
    (plain,), (other,) = measured(frame), measured(rewritten(frame, first & (frame["seed"] == 1), "mass=1.0,length=.5"))
    assert plain.contexts == other.contexts
    np.testing.assert_allclose(other.scores["ppo"], plain.scores["ppo"])
    curves, _ = attach_ranges(check_curves(rewritten(frame, first & (frame["seed"] == 1), "mass=1.0,length=.5")))
    curves["normalised"] = normalised(curves)
    whole = whole_families(curves[of_points(curves)], curves[as_trained(curves)])
    last = whole[(whole["agent"] == "ppo") & (whole["step"] == STEPS[-1])].sort_values("seed")
    np.testing.assert_allclose(last["normalised"], levels["ppo"].mean(0))


def test_a_point_that_a_seed_has_twice_is_refused(levels):
    frame = family_curves("cart", NAMES, levels)
    with pytest.raises(InputError, match=r"Seed 0 of 'ppo' has one point twice, as 'length=0.5,mass=1' and 'mass=1"):
        measured(rewritten(frame, frame["context"] == NAMES[1], "mass=1,length=0.50"))


def test_a_feature_without_a_finite_value_is_refused(levels):
    frame = family_curves("cart", NAMES, levels)
    with pytest.raises(InputError, match="'length=inf,mass=1' has a feature without a finite value"):
        measured(rewritten(frame, frame["context"] == NAMES[0], "length=inf,mass=1"))


def test_agents_that_are_evaluated_elsewhere_than_trained_are_no_points(levels):
    frame = family_curves("cart", [*NAMES[:5], "far"], levels)
    frame.loc[frame["context"] == NAMES[3], "trained_on"] = "cart"
    curves = check_curves(frame)
    points = curves[of_points(curves)]
    assert set(points["context"]) == {NAMES[0], NAMES[1], NAMES[2], NAMES[4]}
    assert all(parse_point(name) for name in points["context"])
    assert set(points["trained_on"]) == {evaluated_name("cart", name) for name in points["context"]}
