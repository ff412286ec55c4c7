"""Contrasts as data: what is compared, how it is scored, and what a study's file may ask for."""

import numpy as np
import pandas as pd
import pytest

from lcd.envs.errors import InputError
from lcd.report.page import write_report
from lcd.report.terminal import terminal_table
from lcd.scores.asked_contrasts import parse_contrasts
from lcd.scores.challenge_table import table_columns
from lcd.scores.contrasts import HEADLINE, PERCEPTION, REWARD, all_conditions, most_solved
from lcd.scores.diagnosis import Diagnosis, diagnose_curves

DELAY = {"name": "delay", "axis": "knobs.delay", "baseline": 0, "variants": [2, 4], "formula": "loss"}


def of_delays(make_study, areas, seeds=4):
    """Curves on the semantic view, of a task with each delay."""
    frames = [
        make_study({f"toy/a[delay={delay}]": (None, None, area, None, None, None)}, seeds, noise=0.02)
        for delay, area in areas.items()
    ]
    return np.concatenate([frame.to_records(index=False) for frame in frames])


def test_a_contrast_over_a_knob_is_scored_by_hand(make_study):
    curves = pd.DataFrame(of_delays(make_study, {0: 0.8, 2: 0.5, 4: 0.2}))
    asked = parse_contrasts([DELAY])
    diagnosis = diagnose_curves(curves, contrasts=asked)
    (row,) = diagnosis.table.to_dict("records")
    assert row["task"] == "toy/a"
    assert row["delay_raw"] == pytest.approx(0.8 - 0.35)
    assert row["delay_raw_low"] < row["delay_raw"] < row["delay_raw_high"]
    assert (row["auc_delay=0"], row["auc_delay=4"]) == (pytest.approx(0.8), pytest.approx(0.2))
    assert row["phi_status"] == PERCEPTION.lacks


def test_a_further_contrast_changes_no_digit_of_phi_and_psi(curves):
    plain = diagnose_curves(curves).table
    further = diagnose_curves(curves, contrasts=parse_contrasts([DELAY])).table
    shared = [name for name in plain if name in further]
    assert shared == list(plain)
    assert plain.equals(further[shared])
    assert set(further["delay_status"]) == {"missing_values"}


def test_psi_is_asked_on_the_view_whose_rewards_were_thinned(make_study):
    curves = make_study(
        {"x/a": (None, None, 0.8, 0.6, 0.4, 0.2), "x/b": (None, None, 0.8, 0.8, 0.8, 0.8)}, 3, noise=0.01
    )
    seen = diagnose_curves(curves.assign(view="state"))
    same = diagnose_curves(curves)
    assert seen.solved == {"imported": "state"}
    for name in ("psi_raw", "psi", "psi_raw_low", "psi_calibrated"):
        np.testing.assert_array_equal(seen.table[name], same.table[name])
    assert seen.table["auc_state"].tolist() == same.table["auc_semantic"].tolist()


def test_agents_are_compared_as_a_contrast(make_study):
    frames = [make_study({"x/a": (None, None, area, None, None, None)}, 3, agent=agent) for agent, area in
              (("ppo", 0.4), ("recurrent_ppo", 0.7))]  # fmt: skip
    memory = {"name": "memory", "axis": "agent", "baseline": "ppo", "variants": ["recurrent_ppo"], "formula": "gain"}
    table = diagnose_curves(pd.concat(frames, ignore_index=True), contrasts=parse_contrasts([memory])).table
    assert table["agent"].tolist() == ["ppo"]
    assert table["memory_raw"].tolist() == [pytest.approx(0.3)]


def test_conditions_have_one_name_each():
    assert list(all_conditions(HEADLINE, "semantic")) == [
        "pixels",
        "figure_ground",
        "semantic",
        "p0.75",
        "p0.5",
        "p0.25",
    ]
    assert [each.view for each in REWARD.conditions("state")] == ["state"] * 4
    assert most_solved(["pixels", "state"]) == "pixels"
    assert most_solved(["state"]) == "state"


def test_a_diagnosis_with_further_contrasts_is_read_back(curves):
    diagnosis = diagnose_curves(curves, contrasts=parse_contrasts([DELAY]))
    back = Diagnosis.from_json(diagnosis.to_json())
    assert back.to_json() == diagnosis.to_json()
    assert [each.name for each in back.contrasts] == ["phi", "psi", "delay"]


def test_the_terminal_shows_what_was_asked(make_study):
    import pandas as pd
    from rich.console import Console

    curves = pd.DataFrame(of_delays(make_study, {0: 0.8, 2: 0.5, 4: 0.2}))
    console = Console(width=120, record=True)
    console.print(terminal_table(diagnose_curves(curves, contrasts=parse_contrasts([DELAY]))))
    told = console.export_text()
    assert "delay, raw" in told
    assert "AUC, delay 0 2 4" in told
    assert "0.80 0.50 0.20" in told


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"axis": "view_"}, "did you mean 'view'"),
        ({"variants": []}, "must be a list of values"),
        ({"variants": [0, 2]}, "must not have the baseline"),
        ({"formula": "meen_change"}, "did you mean 'mean_change'"),
        ({"name": "phi"}, "that no other contrast has"),
        ({"at": {"knobs.delay": 3}}, "leave it out of `at`"),
        ({"nam": "x"}, "is no key of a contrast"),
        ({"formula": ["loss"]}, "is unknown"),
        ({"variants": [2, 2]}, "each value once"),
        ({"variants": [None]}, "is no value of knobs.delay"),
        ({"axis": "reward_p", "baseline": 1, "variants": [2]}, "must be a number in"),
        ({"axis": "reward_p", "baseline": "x", "variants": [0.5]}, "must be a number in"),
        ({"axis": "view", "baseline": 3, "variants": ["pixels"]}, "must be a name"),
        ({"at": {"view": ["pixels"]}}, "must be a name"),
        ({"at": {"reward_p": "x"}}, "must be a number in"),
    ],
)
def test_what_is_no_contrast_is_refused(changed, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_contrasts([DELAY | changed])


def test_no_contrast_takes_a_column_that_is_there_already(curves):
    for column in table_columns():
        with pytest.raises(InputError, match="name"):
            parse_contrasts([DELAY | {"name": column}])
    with pytest.raises(InputError, match="begins like the contrast delay"):
        parse_contrasts([DELAY, DELAY | {"name": "delay_raw", "variants": [3]}])


def test_contexts_are_compared_as_a_contrast(make_study, tmp_path):
    own, far, near = (
        make_study({"toy/a": (None, None, area, None, None, None)}, 4, noise=0.02, **where)
        for area, where in ((0.7, {}), (0.3, {"context": "far"}), (0.6, {"context": "near"}))
    )
    given = {"name": "delay", "axis": "context", "variants": ["far", "near"], "formula": "loss"}
    asked = parse_contrasts([given])
    diagnosis = diagnose_curves(pd.concat([own, far, near]), contrasts=asked)
    (row,) = diagnosis.table.to_dict("records")
    assert row["delay_raw"] == pytest.approx(0.7 - (0.3 + 0.6) / 2)
    assert row["delay_raw_low"] < row["delay_raw"] < row["delay_raw_high"]
    names = ("auc_semantic", "auc_context=far", "auc_context=near")
    assert [row[name] for name in names] == pytest.approx([0.7, 0.3, 0.6])
    assert asked[-1].label("") == "as trained"
    assert "as trained" in write_report(tmp_path, diagnosis).read_text("utf-8")
    (alone,) = diagnose_curves(own, contrasts=asked).table.to_dict("records")
    assert alone["delay_status"] == "missing_values"


def test_stages_are_compared_over_their_own_steps(make_study):
    stages = {"b": (0.2, (0, 500, 1000)), "c": (0.5, (1500, 2000)), "b (2)": (0.9, (2500, 3000))}
    curves = pd.concat(
        make_study(
            {"toy/a": (None, None, area, None, None, None)}, 3, noise=0.02, trained_on="mine", stage=stage, steps=steps
        )
        for stage, (area, steps) in stages.items()
    )
    given = {"name": "memory", "axis": "stage", "baseline": "b", "variants": ["c", "b (2)"], "formula": "mean_change"}
    asked = parse_contrasts([given | {"at": {"trained_on": "mine"}}])
    (row,) = diagnose_curves(curves, contrasts=asked).table.to_dict("records")
    assert row["memory_raw"] == pytest.approx((0.3 + 0.4) / 2)
    assert row["task"] == "toy/a"
    assert row["phi_status"] == PERCEPTION.lacks
    with pytest.raises(InputError, match=r"at\.trained_on is missing: a stage is one of a curriculum"):
        parse_contrasts([given])


def test_what_was_trained_is_compared_as_a_contrast(make_study):
    curves = pd.concat(
        make_study({"toy/a": (None, None, area, None, None, None)}, 3, noise=0.02, trained_on=trained)
        for trained, area in (("toy/a", 0.8), ("toy/b", 0.5), ("family", 0.7))
    )
    given = {"name": "held_out", "axis": "trained_on", "baseline": "toy/a", "variants": ["toy/b"], "formula": "loss"}
    (row,) = diagnose_curves(curves, contrasts=parse_contrasts([given])).table.to_dict("records")
    assert row["held_out_raw"] == pytest.approx(0.3)
    assert row["auc_semantic"] == pytest.approx(0.8)
