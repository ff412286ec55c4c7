"""Families of MDPs: what the analysis tells of curves whose overall performances are known."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from curve_sets import TASKS, study
from family_curves import NAMES, family_curves, scores, told

from lcd.analyses import Evidence, analyse
from lcd.analyses.families import families
from lcd.analyses.family_settings import FamilySettings
from lcd.config.settings import settings_for
from lcd.curves.names import FAMILY, evaluated_name
from lcd.envs.errors import InputError
from lcd.report.figures import draw_svg
from lcd.report.page import write_report
from lcd.scores.diagnosis import diagnose_curves


@pytest.fixture
def frame() -> pd.DataFrame:
    return family_curves("cart", NAMES, scores(0.4, 0.6), {"a": np.array([0.9, 0.95, 1.0]), "b": np.full(3, 0.8)})


def test_reported_and_overall_performance_stand_side_by_side(frame):
    found = told(frame)["families"]
    table = found.table.set_index("agent")
    assert table.index.tolist() == ["b", "a"]
    np.testing.assert_allclose(table["overall"], [0.6, 0.4])
    np.testing.assert_allclose(table["reported"], [0.8, 0.95])
    # Student's interval of three seeds: 4.303 standard errors, here 0.02 / √3.
    assert (table["overall_high"] - table["overall"]).tolist() == pytest.approx(
        [4.303 * 0.02 / np.sqrt(3)] * 2, rel=0.05
    )
    assert table["rank"].tolist() == ["1", "2"]
    assert table["reported rank"].tolist() == ["2", "1"]
    first, *more = found.says
    assert first == "On the default MDP b reaches 0.80 and a 0.95; over the family 0.60 and 0.40."
    assert "Worse over the family than reported, by more than both intervals: b and a." in more
    assert any(each.startswith("On the default MDP a leads b; over the family b leads a (under") for each in more)


def test_a_single_method_is_told_of_and_one_seed_says_that_it_cannot_tell():
    ramp = np.linspace(0.3, 0.5, len(NAMES))[:, None]
    seeds = np.array([[-0.1, 0.0, 0.1]])
    frame = family_curves("cart", NAMES, {"a": ramp + seeds}, {"a": np.array([0.3, 0.5, 0.6])})
    assert told(frame)["families"].says[:2] == [
        "On the default MDP a reaches 0.47; over the family 0.40.",
        "Of a what is reported and what holds over the family cannot be told apart (their intervals overlap): "
        "more seeds would tell.",
    ]
    alone = told(frame[frame["seed"] == 1])["families"].says
    assert alone[0] == "On the default MDP a reaches 0.50; over the family 0.40."
    assert alone[1] == "One seed cannot tell how sure this is."
    assert alone[2].endswith("% of the family is not solved by a.")


def test_the_family_comes_first_on_its_page(frame, tmp_path):
    diagnosis, quick = diagnose_curves(frame), list(told(frame).values())
    page = write_report(tmp_path, diagnosis, analyses=quick).read_text()
    assert "<h1>Does it hold over the family of cart?</h1>" in page
    assert page.index('<p class="verdict">On the default MDP b reaches') < page.index("φ and ψ were not asked")
    assert page.count("The family of cart, state</h3>") == 1
    assert "<figcaption>Reported and overall performance, cart, state</figcaption>" in page
    assert '<td class="num" data-name="overall">' in page  # what a narrow page calls a cell, which has no head
    assert "missing view" not in page  # a study that never asked for φ is not told what φ lacks
    chosen = write_report(tmp_path, diagnosis, analyses=quick[:1], names=["comparisons"]).read_text()
    assert "The family of cart, state</h3>" in chosen  # a page without the section loses nothing


def test_a_study_of_views_keeps_its_question(tmp_path):
    points = family_curves("cart", NAMES, scores(0.4, 0.6))
    both = pd.concat([study(TASKS), points])
    page = write_report(tmp_path, diagnose_curves(both), analyses=list(told(both).values())).read_text()
    assert "<h1>What makes" in page
    assert 'id="over-the-family"' in page


def test_shares_of_points_that_are_solved(frame):
    table = told(frame, FamilySettings(approximations=False, solved=0.6))["families"]
    best = frame[(frame["step"] == frame["step"].max()) & (frame["context"] != "")]
    mean = best.groupby(["agent", "context"])["return_mean"].mean().unstack() / 500
    assert table.table.set_index("agent")["solved %"].to_dict() == pytest.approx(
        (100 * (mean >= 0.6 - 1e-9).mean(axis=1)).to_dict()
    )
    nobody = 100 * (mean < 0.6 - 1e-9).all().mean()
    assert f"{nobody:.1f} % of the family is not solved by any of a and b." in table.says


def test_nothing_is_called_solved_where_nobody_knows_the_best_return(frame):
    without = frame.drop(columns=["r_min", "r_max"])
    found = told(without, FamilySettings())
    assert not any("solved" in sentence for sentence in found["families"].says)
    assert "solved %" not in found["families"].table
    assert "families-prevalence" not in found
    assert "solved %" in told(without, FamilySettings(approximations=False, solved=250))["families"].table


def test_where_low_is_good_everything_turns_round(frame):
    found = told(frame, FamilySettings(approximations=False, higher_is_better=False))
    assert found["families"].table["agent"].tolist() == ["a", "b"]
    up, down = told(frame)["families-pairs"].table.iloc[0], found["families-pairs"].table.iloc[0]
    assert (down["better"], down["than"]) == (up["than"], up["better"])
    assert down["ahead, distributions %"] == pytest.approx(up["ahead, distributions %"])
    assert down["against"] == pytest.approx(up["against"])


def test_points_do_not_flood_what_is_told_of_tasks(frame):
    diagnosis = diagnose_curves(frame)
    assert len(diagnosis.table) == 2
    assert diagnosis.others.empty
    assert set(diagnosis.points["context"]) == set(NAMES)
    made, notes = analyse(Evidence(diagnosis), settings={"families": {"approximations": False}})
    assert notes == []
    assert not {"outcomes", "returns"} & {found.key for found in made}


def test_what_is_lost_over_the_family_is_a_contrast(frame):
    diagnosis = diagnose_curves(frame)
    row = diagnosis.table.set_index("agent").loc["a"]
    # Curves rise as the square of the step: any two areas are as the last returns.
    height = row["auc_state"] / 0.95
    assert row["family_loss_raw"] == pytest.approx(height * (0.95 - 0.4))
    assert row["final_context=family"] == pytest.approx(0.4)
    assert row["family_loss_raw_low"] < row["family_loss_raw"] < row["family_loss_raw_high"]
    assert evaluated_name("cart", FAMILY) not in set(diagnosis.curves["task"])


def test_points_alone_are_told_of_without_a_default():
    found = told(family_curves("cart", NAMES, scores(0.4, 0.6)))
    assert found["families"].table["reported"].isna().all()
    assert "Over the family b leads a (under" in found["families"].says[0]


def test_one_point_is_judged_by_how_far_it_leads_off(frame):
    table = told(frame)["families-choices"].table.set_index("choice")
    assert table.loc["default", "off by"] == pytest.approx((0.95 - 0.4 + 0.8 - 0.6) / 2)
    assert table.loc["default", "same order %"] == 0
    assert table.loc["family", "off by"] == 0


@pytest.mark.parametrize("change", ["one point", "one seed", "one method", "no ranges", "weights", "one feature"])
def test_the_least_that_a_family_can_be_is_told_of(frame, change):
    few = {
        "one point": frame[frame["context"] == NAMES[0]],
        "one seed": frame[frame["seed"] == 1],
        "one method": frame[frame["agent"] == "a"],
        "no ranges": frame.drop(columns=["r_min", "r_max"]),
        "weights": frame.assign(weight=[1.0 + len(name) for name in frame["context"]]),
        "one feature": family_curves("cart", [f"length={k}" for k in range(len(NAMES))], scores(0.4, 0.6)),
    }[change]
    made, notes = analyse(Evidence(diagnose_curves(few)), ["families", "family_scores", "family_claims"])
    assert all(note.endswith("is left out: these curves do not allow it.") for note in notes)
    assert made[0].key == "families"
    for analysis in made:
        for drawing in analysis.figures:
            drawing.draw(True)


def test_a_table_that_is_no_family_costs_no_other_analysis(frame):
    broken = pd.concat([frame, family_curves("cart", ["wheels=4"], {"a": np.ones((1, 3)), "b": np.ones((1, 3))})])
    made, notes = analyse(Evidence(diagnose_curves(broken)))
    assert "final" in {found.key for found in made}
    assert any("name in each context all of length, mass, wheels" in note for note in notes)


def test_a_table_that_is_no_family_costs_no_other_family(frame):
    strange = family_curves("pole", [*NAMES[1:], "wheels=4"], scores(0.4, 0.6))
    found = told(pd.concat([frame, strange]))["families"]
    assert set(found.table["task"]) == {"cart"}
    assert any("A family is left out: The points of 'pole' have different features" in each for each in found.says)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"score": "last"}, "score=last is no score of a point: take final or auc"),
        ({"draws": 0}, "draws=0 must be a whole number from 1 to"),
        ({"draws": 10**9}, "draws=1000000000 must be"),
        ({"concentration": 0.0}, "concentration=0 must lie from"),
        ({"concentration": -1.0}, "concentration=-1 must lie from"),
        ({"concentration": 1e-300}, "concentration=1e-300 must lie from"),
    ],
)
def test_settings_that_nothing_can_be_computed_with_are_refused(setting, told):
    with pytest.raises(InputError, match=rf"^analysis_params\.families\.{told}"):
        settings_for(families, setting, "analysis_params.families", "analysis 'families'")


def test_settings_are_a_set():
    with pytest.raises(InputError, match=r"analysis_params\.families=5 must be a set of settings"):
        settings_for(families, 5, "analysis_params.families", "analysis 'families'")  # type: ignore[arg-type]


@pytest.mark.parametrize("high_is_good", [True, False])
@pytest.mark.parametrize("reported", [0.9, 0.1])
def test_who_leads_on_the_default_point_is_said_even_of_methods_that_tie_overall(high_is_good, reported):
    same = np.linspace(0.2, 0.6, len(NAMES))[:, None] + np.zeros((1, 3))
    default = {"a": np.full(3, reported), "b": np.full(3, 0.5)}
    settings = FamilySettings(approximations=False, higher_is_better=high_is_good)
    says = told(family_curves("cart", NAMES, {"a": same, "b": same}, default), settings)["families"].says
    first, second = "ab" if (reported > 0.5) == high_is_good else "ba"
    assert f"On the default MDP {first} leads {second}; over the family they do the same." in " ".join(says)


def test_an_order_that_seeds_leave_open_is_said_to_be():
    ramp, seeds = np.linspace(0.3, 0.5, len(NAMES))[:, None], np.array([[-0.1, 0.0, 0.1]])
    default = {"a": np.full(3, 0.5), "b": np.full(3, 0.9)}
    for gap, opened in ((0.001, True), (0.2, False)):
        frame = family_curves("cart", NAMES, {"a": ramp + seeds, "b": ramp - gap + 0.9 * seeds}, default)
        (said,) = [each for each in told(frame)["families"].says if "over the family a leads b" in each]
        assert said.endswith("which the seeds leave open.") == opened


def test_small_returns_that_differ_are_not_said_to_be_the_same():
    small = {name: values / 500 * 0.001 for name, values in scores(0.4, 0.6).items()}
    default = {"a": np.full(3, 0.9 / 500 * 0.001), "b": np.full(3, 0.8 / 500 * 0.001)}
    frame = family_curves("cart", NAMES, small, default).drop(columns=["r_min", "r_max"])
    says = " ".join(told(frame)["families"].says)
    assert "On the default MDP a leads b; over the family b leads a" in says


def test_every_figure_is_drawn_for_both_widths(frame):
    found = told(frame, FamilySettings())
    names = {drawing.name for analysis in found.values() for drawing in analysis.figures}
    usual = ("bars", "profile", "histogram", "map", "distributions")
    usual += ("accuracy", "accuracy-by-method", "prevalence")
    assert names == {f"families-{name}" for name in usual}
    for analysis in found.values():
        for drawing in analysis.figures:
            assert all(draw_svg(drawing.draw(narrow)).startswith(b"<?xml") for narrow in (False, True))


FIVE = ["lower=6,upper=0", "lower=3,upper=0.5", "lower=4,upper=0.625", "lower=2,upper=1", "lower=5,upper=1"]


def test_few_points_are_shown_one_by_one():
    both = {"ppo": np.linspace(0.1, 0.5, 5)[:, None] + np.array([[-0.1, 0.1]]), "trpo": np.full((5, 2), 0.3)}
    frame = family_curves(
        "families/quad", FIVE, both, {name: each[2] for name, each in both.items()}, benchmark="families"
    )
    drawn = {each.name: each for each in told(frame)["families"].figures}
    assert {"families-points", "families-training"} <= drawn.keys()
    (axes,) = drawn["families-points"].draw(False).axes
    heights = {label.get_text(): [bars[place].get_height() for bars in axes.containers if hasattr(bars, "patches")]
               for place, label in enumerate(axes.get_xticklabels())}  # fmt: skip
    assert heights["lower 6\nupper 0\nsimplified"] == pytest.approx([0.1, 0.3])
    assert heights["lower 5\nupper 1\n"] == pytest.approx([0.5, 0.3])


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("features", [("a", "b"), ("force_mag", "masscart"), ("torso_mass_multiplier", "gravity")])
def test_names_of_points_do_not_overlap(features, narrow):
    first, second = features
    points = [f"{first}={value:g},{second}={value / 4:g}" for value in (1, 10.125, 50.5, 75, 99, 100.25)]
    both = {name: np.full((6, 2), 0.3) for name in ("ppo", "trpo")}
    frame = family_curves("mine/poles", points, both, {name: each[2] for name, each in both.items()})
    (drawing,) = [each for each in told(frame)["families"].figures if each.name == "families-points"]
    figure = drawing.draw(narrow)
    figure.canvas.draw()
    (axes,) = figure.axes
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert boxes[0].y0 >= axes.xaxis.label.get_window_extent().y1 or not axes.get_xlabel()
    told_names = axes.get_xticklabels()[0].get_text() + axes.get_xlabel()
    assert all(name in told_names for name in features)
