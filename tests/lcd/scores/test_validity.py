"""What keeps a class from being trusted is found, said and acted on; sound curves raise nothing."""

import json
import re
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from curve_sets import TASKS
from rich.console import Console

from lcd.analyses.taxonomy import recommendations, taxonomy
from lcd.report.page import write_report
from lcd.report.sentences import group_sentences
from lcd.report.terminal import terminal_table, validity_text
from lcd.scores.diagnosis import Diagnosis, diagnose_curves

# A user's masks that hide what the task needs: less is learned from them, everywhere.
POOR = {
    "u/a": (0.80, 0.50, 0.60, 0.58, 0.55, 0.50),
    "u/b": (0.70, 0.20, 0.30, 0.10, 0.05, 0.02),
    "u/c": (0.60, 0.30, 0.50, 0.40, 0.30, 0.20),
    "u/d": (0.90, 0.85, 0.88, 0.88, 0.87, 0.85),
}
DEFINITIONS = ("paper", "calibrated")


@pytest.fixture
def poor(make_study):
    return make_study(POOR, 5, 0.03)


def keys(diagnosis):
    return [found.key for found in diagnosis.findings]


def tasks_of(diagnosis, key):
    return {task for found in diagnosis.findings if found.key == key for task in found.tasks}


def without(table):
    return table.drop(columns="validity")


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_sound_curves_raise_nothing(curves, definition):
    diagnosis = diagnose_curves(curves, definition=definition)
    assert diagnosis.findings == ()
    assert set(diagnosis.table["validity"]) == {"ok"}
    assert validity_text(diagnosis) is None


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_views_that_hide_what_is_needed_withhold_every_class_and_no_score(poor, definition):
    diagnosis = diagnose_curves(poor, definition=definition)
    assert keys(diagnosis) == ["solved_views_worse", "nothing_to_see"]
    assert tasks_of(diagnosis, "solved_views_worse") == {"u/a", "u/b", "u/c"}
    assert diagnosis.table[["phi", "psi"]].notna().all(axis=None)
    assert taxonomy(diagnosis).table.empty
    advice = recommendations(diagnosis, taxonomy(diagnosis))
    assert set(advice["class"]) == {""}
    assert set(advice["use agent"]) == set(advice["use front-end"]) == {"–"}
    assert "ardest" not in " ".join(group_sentences(diagnosis.table))


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_the_report_says_so_on_top_and_calls_nothing_hard(poor, tmp_path, definition):
    page = write_report(tmp_path, diagnose_curves(poor, definition=definition)).read_text()
    body = page[page.index("<body>") :]
    assert body.index("more is learned from pixels") < body.index('class="verdict"') < body.index("0.55")
    assert "no task is called hard or easy" in body
    for claim in ("Hard to see", "Hard to learn", "Easy in both ways", "% sure", 'class="tile', 'class="badge'):
        assert claim not in body


def test_a_single_bad_task_leaves_the_others_their_class(make_study, tmp_path):
    tasks = TASKS | {"toy/hidden": (0.88, 0.80, 0.84, 0.83, 0.82, 0.80)}
    diagnosis = diagnose_curves(make_study(tasks, 5, 0.01))
    assert [(found.key, found.tasks) for found in diagnosis.findings] == [("solved_views_worse", ("toy/hidden",))]
    assert set(taxonomy(diagnosis).table["task"]) == set(TASKS)
    page = write_report(tmp_path, diagnosis).read_text()
    assert "1 is easy in both ways; the class of 1 is withheld." in page


def test_a_loss_within_noise_or_of_no_consequence_is_none(make_study):
    noisy = make_study(TASKS | {"toy/x": (0.85, 0.80, 0.82, 0.80, 0.80, 0.78)}, 5, 0.08)
    tiny = make_study(TASKS | {"toy/x": (0.85, 0.84, 0.84, 0.83, 0.82, 0.80)}, 5, 0.001)
    for curves in (noisy, tiny):
        assert "solved_views_worse" not in keys(diagnose_curves(curves))


def test_noise_alone_rarely_says_that_views_are_worse():
    """Of studies of 16 tasks in which solved views change nothing, a few in a hundred may be accused."""
    from scipy.special import stdtrit

    from lcd.scores.validity import Evidence, solved_views_worse

    rng = np.random.default_rng(0)
    accused = 0
    for _ in range(200):
        draws = rng.normal(0, 0.2, (16, 5))
        gain, half = draws.mean(1), stdtrit(4, 0.975) * draws.std(1, ddof=1) / np.sqrt(5)
        columns = {"phi_gain": gain, "phi_gain_low": gain - half, "phi_gain_high": gain + half, "seeds": 5.0}
        rows = pd.DataFrame(columns | {"task": [str(place) for place in range(16)]})
        accused += bool(list(solved_views_worse(Evidence(rows, pd.DataFrame()))))
    assert accused <= 12


def test_definitions_that_order_tasks_oppositely_withhold_all(make_study):
    # What is hardly learned at all loses little to thinned rewards: easy by the paper's ψ, hard by the calibrated one.
    tasks = {
        "u/high": (0.75, 0.80, 0.90, 0.75, 0.65, 0.55),
        "u/middle": (0.55, 0.60, 0.65, 0.55, 0.47, 0.40),
        "u/low": (0.15, 0.18, 0.20, 0.18, 0.16, 0.14),
    }
    diagnosis = diagnose_curves(make_study(tasks, 5, 0.005))
    (found,) = (found for found in diagnosis.findings if found.key == "definitions_disagree")
    assert set(found.tasks) == set(tasks)
    assert "order them by ψ in opposite ways (rank correlation -1.00)" in found.says
    assert "definitions_disagree" not in keys(diagnose_curves(make_study(tasks, 5, 0.2)))


def test_a_task_on_opposite_sides_of_two_scales_is_withheld_alone(make_study):
    tasks = TASKS | {"toy/unlearned": (0.05, 0.10, 0.15, 0.13, 0.12, 0.10)}
    diagnosis = diagnose_curves(make_study(tasks, 5, 0.005))
    assert tasks_of(diagnosis, "definitions_disagree") == {"toy/unlearned"}


def test_a_gain_over_pixels_that_may_be_chance_is_no_hardness_of_seeing(make_study, tmp_path):
    areas = {"u/noise": (-0.01, 0.06, 0.09, 0.08, 0.07, 0.06), "u/fine": (0.5, 0.6, 0.7, 0.6, 0.5, 0.4)}
    chance, sure = (diagnose_curves(make_study(areas, 4, noise), definition="paper") for noise in (0.2, 0.001))
    assert sure.table.set_index("task").loc["u/noise", "status"] == "no_pixels_signal"
    assert "nothing_learned_from_pixels" in keys(sure)
    assert tasks_of(chance, "no_view_surely_learned") == {"u/noise"}
    for found, told in ((sure, "perception is in the way"), (chance, "no more for sure from other views")):
        rows = found.table[found.table["task"] == "u/noise"]
        assert any(told in sentence for sentence in group_sentences(rows)), told
    used = recommendations(chance, taxonomy(chance)).set_index("task").loc["u/noise"]
    assert (used["class"], used["use front-end"]) == ("", "–")


def test_intervals_over_the_whole_scale_and_single_seeds_withhold(make_study, curves):
    wide = diagnose_curves(
        make_study({"a": (0.5, 0.51, 0.5, 0.5, 0.5, 0.5), "b": (0.5, 0.52, 0.5, 0.5, 0.5, 0.5)}, 5, 0.1)
    )
    assert "interval_covers_scale" in keys(wide)
    single = diagnose_curves(curves[curves["seed"] == 0])
    assert keys(single) == ["one_seed"]
    assert taxonomy(single).table.empty


def test_returns_far_outside_their_range_are_named(curves):
    curves.loc[curves["task"] == "toy/easy", "return_mean"] *= 14
    diagnosis = diagnose_curves(curves)
    (found,) = (found for found in diagnosis.findings if found.key == "returns_out_of_range")
    assert found.tasks == ("toy/easy",)
    assert re.search(r"as far off as 1[0-9]\.\d\d, .* correct r_min and r_max", found.says)


@pytest.mark.parametrize(("pair", "key"), [(("pixels", "semantic"), "views_identical"),
                                           (("figure_ground", "semantic"), "solved_views_identical")])  # fmt: skip
def test_curves_that_are_equal_under_two_views_are_found(curves, pair, key):
    mine = curves[(curves["task"] == "toy/both") & (curves["reward_p"] == 1)]
    copied = mine[mine["view"] == pair[0]].assign(view=pair[1])
    rest = curves.drop(mine[mine["view"] == pair[1]].index)
    diagnosis = diagnose_curves(pd.concat([rest, copied]))
    assert tasks_of(diagnosis, key) == {"toy/both"}
    # Solved views may rightly show the same; pixels and semantic labels never do.
    assert ("toy/both" in set(taxonomy(diagnosis).table["task"])) == (key == "solved_views_identical")


def test_views_are_alike_by_the_seeds_that_both_have(curves):
    mine = curves[(curves["task"] == "toy/both") & (curves["reward_p"] == 1)]
    copied = mine[(mine["view"] == "pixels") & (mine["seed"] < 3)].assign(view="semantic")
    rest = curves.drop(mine[mine["view"] == "semantic"].index)
    assert tasks_of(diagnose_curves(pd.concat([rest, copied])), "views_identical") == {"toy/both"}


def test_pixels_may_be_nothing_but_the_figures(curves):
    """As in the toys that are easy to see, where pixels and figure_ground are the same picture."""
    figures = (curves["view"] == "figure_ground") & (curves["task"] == "toy/easy")
    shown = curves[(curves["view"] == "pixels") & (curves["task"] == "toy/easy")].assign(view="figure_ground")
    assert diagnose_curves(pd.concat([curves[~figures], shown])).findings == ()


def test_views_that_all_fail_alike_are_not_called_identical(make_study):
    diagnosis = diagnose_curves(make_study(TASKS | {"toy/never": (0.0,) * 6}, 5))
    assert "views_identical" not in keys(diagnosis)


def test_dynamics_that_differ_between_views_withhold(curves):
    diagnosis = diagnose_curves(curves, dynamics={"toy/easy": ["under the view 'semantic' all is other."]})
    assert [(found.key, found.says) for found in diagnosis.findings] == [
        ("dynamics_differ", "toy/easy: under the view 'semantic' all is other.")
    ]


def test_findings_are_kept_in_json_and_csv(poor, tmp_path):
    diagnosis = diagnose_curves(poor)
    paths = diagnosis.save(tmp_path)
    kept = json.loads(paths["json"].read_text())["findings"]
    assert [found["key"] for found in kept] == keys(diagnosis)
    assert {"severity", "tasks", "says", "group"} <= set(kept[0])
    assert Diagnosis.from_json(diagnosis.to_json()).findings == diagnosis.findings
    assert pd.read_csv(paths["csv"])["validity"].tolist() == [
        *["solved_views_worse nothing_to_see"] * 3,
        "nothing_to_see",
    ]


def test_what_concerns_several_groups_is_said_once(poor):
    both = pd.concat([poor.assign(agent="ppo"), poor.assign(agent="ppg")])
    assert len(diagnose_curves(both).warnings) == 2
    mixed = diagnose_curves(pd.concat([poor.assign(agent="ppo"), poor[poor["view"] == "pixels"].assign(agent="ppg")]))
    assert all("(In imported · ppo · identity · none.)" in sentence for _, sentence in mixed.warnings)


def test_every_status_of_a_score_is_shown(make_study, tmp_path):
    tasks = TASKS | {"toy/p": (0.5, 0.6, 0.6, None, None, None), "toy/view": (0.5, None, 0.6, 0.5, 0.4, 0.3)}
    diagnosis = diagnose_curves(make_study(tasks, 5, 0.01))
    stream = StringIO()
    Console(width=120, file=stream).print(terminal_table(diagnosis, 120))
    told = stream.getvalue()
    assert re.search(r"toy/p .*ψ missing", told)
    assert re.search(r"toy/view .*φ missing", told)
    page = write_report(tmp_path, diagnosis).read_text()
    assert ">ψ missing p<" in page
    assert "ψ: not trained at every reward p" in page
