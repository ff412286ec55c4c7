import sys
from itertools import permutations

import numpy as np
import pytest

from lcd.envs.errors import InputError
from lcd.envs.families.family import Family, grid_family
from lcd.families import quadrature
from lcd.families.accuracy import errors, usual_budgets
from lcd.families.choosing import RANDOM, WAYS, choose_points, without_replacement
from lcd.families.prevalence import CASES, prevalence
from lcd.families.quadrature import Kernels, learned, picks, positions, weights_of

FEATURES = {"mass": (0.1, 1, 6, 10), "length": (0.05, 0.5, 3), "gravity": (1, 9.8)}
GRID = grid_family(FEATURES, dict.fromkeys(FEATURES, 1.0))
RNG = np.random.default_rng(5)
UNEVEN = Family(GRID.points, GRID.default, tuple(RNG.uniform(0.1, 3, size=len(GRID.points))))


TWO = Kernels(
    np.array([[0.7, 1.1, 2.0], [0.3, 4.0, 0.5]]), np.array([0.1, 0.4]), np.array([0.2, 0.05]), np.array([0.75, 0.25])
)


def smooth(table: np.ndarray, methods: int = 2, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 1 / (1 + np.exp(-3 * (positions(table) - 0.5) @ rng.normal(size=(table.shape[1], methods)))).T


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("budget", [1, 5, 24])
def test_weights_sum_to_one_and_no_way_but_m1_takes_a_point_twice(how, budget):
    choice = choose_points(UNEVEN, budget, how, seed=2)
    assert len(choice.places) == len(choice.weights) == budget
    assert choice.weights.sum() == pytest.approx(1)
    assert how == "with_replacement" or len(set(choice.places)) == budget
    again = choose_points(UNEVEN, budget, how, seed=2)
    np.testing.assert_array_equal(choice.places, again.places)


@pytest.mark.parametrize("how", WAYS[1:])
def test_all_points_together_tell_the_overall_performance_exactly(how):
    scores = RNG.normal(size=(3, 24))
    choice = choose_points(UNEVEN, 24, how, seed=1)
    np.testing.assert_allclose(choice.overall(scores), scores @ UNEVEN.distribution, atol=1e-7)


def test_m1_is_right_on_average_and_m2_is_not_where_points_weigh_differently():
    # Four points, two of them chosen: what M2 expects is a sum over all orders of drawing.
    p, scores = np.array([0.4, 0.3, 0.2, 0.1]), np.array([[0.0, 1.0, 3.0, 7.0]])
    expected = sum(
        p[a] * p[b] / (1 - p[a]) * (p[a] * scores[0, a] + p[b] * scores[0, b]) / (p[a] + p[b])
        for a, b in permutations(range(4), 2)
    )
    truth = float(scores[0] @ p)
    assert abs(expected - truth) > 0.1
    ways = ["with_replacement", "without_replacement"]
    found = errors(np.arange(4.0)[:, None], p, scores, [2], ways, dict.fromkeys(ways, 4000))
    one, two = found.itertuples(index=False)
    assert abs(one.bias) < 4 * one.spread / np.sqrt(4000)
    assert two.bias == pytest.approx(expected - truth, abs=4 * two.spread / np.sqrt(4000))


def test_m2_never_draws_what_has_no_probability():
    p = np.array([0.5, 0.0, 0.5])
    for _ in range(20):
        assert 1 not in without_replacement(np.zeros((3, 1)), p, 3, RNG).places


def test_kmeans_takes_the_nearest_member_of_each_cluster_with_the_mass_of_all_of_them():
    points = [{"x": x} for x in (0.0, 1.0, 2.0, 100.0, 101.0, 200.0)]
    family = Family(tuple(points), points[0], (1, 2, 3, 4, 5, 6))
    choice = choose_points(family, 3, "kmeans", seed=4)
    found = dict(zip(choice.places.tolist(), choice.weights.tolist(), strict=True))
    assert found.keys() in ({1, 3, 5}, {1, 4, 5})
    assert found[1] == pytest.approx(6 / 21)
    assert found[5] == pytest.approx(6 / 21)


def test_without_scikit_learn_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(InputError, match=r"needs scikit-learn, which is not installed: install the extra 'families'"):
        choose_points(GRID, 3, "kmeans")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"how": "k-means"}, "k-means is no way to choose points"),
        ({"budget": 25}, "of a family of 24 points 1 to 24"),
        ({"scores_so_far": {0: 1.0}}, "looks at no scores"),
        ({"how": "quadrature", "scores_so_far": {24: 1.0}}, "the family has 24"),
    ],
)
def test_what_cannot_be_chosen_is_refused_in_a_sentence(asked, told):
    with pytest.raises(InputError, match=told):
        choose_points(GRID, **({"budget": 3, "how": "kmeans"} | asked))


def test_scores_go_together_by_a_product_over_the_features():
    def matern(distance: float) -> float:
        return (1 + np.sqrt(5) * distance + 5 * distance**2 / 3) * np.exp(-np.sqrt(5) * distance)

    (first, _) = TWO.between(np.array([[0.0, 0.5, 1.0]]), np.array([[0.25, 0.5, 0.0]]))[:, 0, 0]
    assert first == pytest.approx((0.1 + 0.9 * matern(0.25 / 0.7)) * (0.1 + 0.9 * matern(1 / 2.0)))


def test_weights_are_those_of_processes_of_unknown_mean():
    # The peer: all of the posterior under each kernel, with a mean of great variance, by plain linear algebra.
    features, places = positions(GRID.table), np.array([3, 8, 1, 20, 13])
    expected = np.zeros(5)
    for between, own, weight in zip(TWO.between(features, features), TWO.own, TWO.weights, strict=True):
        covariance = between + own * np.eye(24) + 1e7
        gain = np.linalg.solve(covariance[np.ix_(places, places)], covariance[places])
        expected += weight * (gain @ UNEVEN.distribution)
    np.testing.assert_allclose(weights_of(features, UNEVEN.distribution, TWO, places), expected, atol=1e-5)


def test_each_pick_is_the_point_that_leaves_the_least_variance_over_all_kernels():
    features, p = positions(GRID.table), UNEVEN.distribution
    covariances = TWO.between(features, features) + TWO.own[:, None, None] * np.eye(24) + 100.0

    def left(places: list[int]) -> float:
        across = p @ covariances[:, :, places]
        among = covariances[:, places][:, :, places]
        told = [one @ np.linalg.solve(all_, one) for one, all_ in zip(across, among, strict=True)]
        return float(TWO.weights @ (p @ covariances @ p - told))

    picked = picks(features, p, TWO, [5], 6, np.random.default_rng(0)).tolist()
    assert picked[0] == 5
    for step in range(1, 6):
        best = min(left([*picked[:step], place]) for place in set(range(24)) - set(picked[:step]))
        assert left(picked[: step + 1]) == pytest.approx(best, rel=1e-6)


def test_kernels_are_as_likely_as_the_contrasts_of_scores_are():
    # The peer: differences of scores, which have no mean, and a variance of each method at its best.
    features, scores = positions(GRID.table)[:9], smooth(GRID.table)[:, :9]
    contrasts = np.linalg.qr(np.column_stack([np.ones(9), np.eye(9)[:, 1:]]))[0][:, 1:].T
    expected = []
    for between, own in zip(TWO.between(features, features), TWO.own, strict=True):
        covariance = contrasts @ (between + own * np.eye(9)) @ contrasts.T
        for each in scores @ contrasts.T:
            variance = each @ np.linalg.solve(covariance, each) / 8
            expected.append(-0.5 * np.linalg.slogdet(variance * covariance)[1])
    first, second = quadrature._evidence(features, scores, TWO)
    assert first - second == pytest.approx(sum(expected[:2]) - sum(expected[2:]), abs=1e-5)


def test_few_points_leave_many_kernels_possible_and_many_points_few():
    features = positions(GRID.table)
    scores = smooth(GRID.table)
    few, many = learned(features[:6], scores[:, :6]), learned(features, scores)
    assert few.weights.max() < 0.5 < many.weights.max()
    assert few.weights.sum() == many.weights.sum() == pytest.approx(1)


def test_what_does_not_matter_is_learned_to_have_a_great_length():
    features = RNG.uniform(size=(40, 2))
    kernels = learned(features, np.sin(5 * features[:, 0])[None])
    first, second = kernels.weights @ np.log(kernels.lengths)
    assert second > first + np.log(2)
    assert kernels.weights @ kernels.own < 0.1


def test_scores_that_do_not_vary_teach_nothing_and_do_no_harm():
    choice = choose_points(GRID, 10, "quadrature", {place: np.array([1.0, 1.0]) for place in range(8)})
    assert choice.overall(np.ones((2, 24))) == pytest.approx([1, 1])


def test_points_that_are_trained_come_first_and_budgets_can_be_asked_again():
    scores = smooth(GRID.table)
    first = choose_points(GRID, 8, "quadrature")
    known = {int(place): scores[:, place] for place in first.places}
    more = choose_points(GRID, 12, "quadrature", known)
    np.testing.assert_array_equal(more.places[:8], first.places)
    known |= {int(place): scores[:, place] for place in more.places[8:]}
    last = choose_points(GRID, 12, "quadrature", known)
    np.testing.assert_array_equal(last.places, more.places)
    assert np.abs(last.overall(scores) - scores @ GRID.distribution).max() < 0.02


def test_on_a_smooth_family_quadrature_beats_kmeans_at_half_the_budget():
    family = grid_family({name: range(6) for name in "abc"}, dict.fromkeys("abc", 0))
    scores = np.concatenate([smooth(family.table, 4, seed) for seed in range(3)])
    ways = ["kmeans", "quadrature"]
    found = errors(family.table, family.distribution, scores, [12, 24], ways, dict.fromkeys(ways, 3))
    error = found.groupby(["how", "N"])["error"].apply(lambda each: np.sqrt((each**2).mean()))
    assert error["quadrature", 12] < error["kmeans", 24]


def test_what_is_known_of_points_beforehand_tells_of_a_cliff_that_features_hide():
    family = grid_family({name: range(6) for name in "abc"}, dict.fromkeys("abc", 0))
    known = np.random.default_rng(5).normal(size=(len(family.points), 1))
    scores = 0.8 * (known.T > 0.3) + 0.1 * smooth(family.table)

    def error(beforehand):
        repeats = {"quadrature": 4}
        found = errors(
            family.table, family.distribution, scores, [12, 24], ["quadrature"], repeats, beforehand=beforehand
        )
        return np.sqrt((found["error"] ** 2).mean())

    assert error(known) < error(None) / 2
    # Of what is not known of some points nothing is made.
    assert error(np.where(known > 2, np.nan, known)) == error(None)


def test_budgets_go_up_to_all_points():
    assert usual_budgets(576)[0] == 4
    assert usual_budgets(576)[-1] == 576
    assert usual_budgets(3) == [3]
    assert set(RANDOM) < set(WAYS)


@pytest.mark.parametrize("case", CASES)
def test_prevalences_are_distributions_in_which_failures_are_as_common_as_told(case):
    p, failed = UNEVEN.distribution, np.arange(24) < 6
    found = prevalence(case, p, failed, np.random.default_rng(0))
    assert found.sum() == pytest.approx(1)
    odds = (found[0] / found[-1]) / (p[0] / p[-1])
    if case in ("as it is", "failures rare", "failures common"):
        assert odds == pytest.approx({"as it is": 1, "failures rare": 0.1, "failures common": 10}[case])
    else:
        assert len(set(found.round(12))) > 10


def test_an_unknown_prevalence_is_refused():
    with pytest.raises(InputError, match="prevalence=often is unknown"):
        prevalence("often", np.ones(2) / 2, np.zeros(2, bool), RNG)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [[1e-20, 1e-19, 1.0, 2.0], [1e308, -1e308, 1.0, -1e307]])
def test_kmeans_makes_as_many_clusters_as_points_can_be_told_apart(values):
    family = Family(tuple({"a": value} for value in values), {"a": 0.5})
    choice = choose_points(family, 4, "kmeans")
    told_apart = 3 if values[0] < 1 else 4
    assert len(choice.places) == len(set(choice.places)) >= told_apart
    assert choice.weights.sum() == pytest.approx(1)
    assert max(choice.weights) == pytest.approx((4 - told_apart + 1) / 4)


def test_kmeans_takes_neither_end_of_a_pair_more_often():
    """24 points in 12 clusters: pairs, whose members are as near to their centre as each other."""
    lower, scores = 0, GRID.table @ np.array([1.0, 2.0, 0.5])
    wrong = []
    for seed in range(60):
        choice = choose_points(GRID, 12, "kmeans", seed=seed)
        wrong.append(choice.overall(scores) - scores.mean())
        lower += sum(GRID.table[place, 2] == 1 for place in choice.places)
    assert abs(np.mean(wrong)) < 3 * np.std(wrong) / np.sqrt(60)
    assert lower / (60 * 12) == pytest.approx(0.5, abs=0.1)
