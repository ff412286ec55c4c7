import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import lcd
from lcd.analyses.taxonomy import taxonomy
from lcd.envs import benchmarks
from lcd.envs.errors import InputError
from lcd.scores.challenge_table import table_columns
from lcd.scores.diagnosis import Diagnosis, diagnose_curves

EASY = (0.80, 0.82, 0.84, 0.83, 0.82, 0.80)


def by_task(diagnosis):
    return diagnosis.table.set_index("task")


def test_the_hand_computed_table(curves):
    table = by_task(diagnose_curves(curves))
    # φ = 1 - P/((F + S)/2) ; ψ = 1 - (S + p.75 + p.5 + p.25)/4
    raw = {
        "toy/easy": (0.03 / 0.83, 0.1775),
        "toy/perception": (0.45 / 0.65, 0.225),
        "toy/reward": (0.03 / 0.73, 0.59),
        "toy/both": (0.6, 0.6625),
    }
    for task, (phi, psi) in raw.items():
        assert table.loc[task, "phi_raw"] == pytest.approx(phi)
        assert table.loc[task, "psi_raw"] == pytest.approx(psi)
    assert table.loc["toy/both", "phi"] == pytest.approx((0.6 - 0.03 / 0.83) / (0.45 / 0.65 - 0.03 / 0.83))
    assert table.loc["toy/reward", "psi"] == pytest.approx((0.59 - 0.1775) / (0.6625 - 0.1775))
    assert table["psi"].min() == 0
    assert table["psi"].max() == 1


def test_the_papers_hand_computed_table(curves):
    table = by_task(diagnose_curves(curves, definition="paper"))
    # φ = ((F - P)/P + (S - P)/P)/2 ; ψ = (|S - p.75| + |p.75 - p.5| + |p.5 - p.25|)/3
    raw = {
        "toy/easy": (0.0375, 0.04 / 3),
        "toy/perception": (2.25, 0.05 / 3),
        "toy/reward": (0.03 / 0.7, 0.64 / 3),
        "toy/both": (1.5, 0.5 / 3),
    }
    for task, (phi, psi) in raw.items():
        assert table.loc[task, "phi_raw"] == pytest.approx(phi)
        assert table.loc[task, "psi_raw"] == pytest.approx(psi)
    assert table.loc["toy/both", "phi"] == pytest.approx((1.5 - 0.0375) / 2.2125)
    assert table.loc["toy/both", "psi"] == pytest.approx(0.46 / 0.6)
    assert table["phi"].min() == 0
    assert table["phi"].max() == 1
    assert table.loc["toy/perception", "phi_gain"] == pytest.approx(0.45)
    assert table.loc["toy/reward", "auc_p0.25"] == pytest.approx(0.1)
    assert set(table["status"]) == {"ok"}
    assert set(table["seeds"]) == {5}
    assert set(table["steps"]) == {1000}


def test_scores_separate_what_is_hard(curves):
    table = by_task(diagnose_curves(curves))
    assert table.loc["toy/perception", "phi_low"] > table.loc["toy/easy", "phi_high"]
    assert table.loc["toy/reward", "psi_low"] > table.loc["toy/easy", "psi_high"]


def test_intervals_are_the_raw_ones_under_the_estimates_scale(curves):
    table = diagnose_curves(curves).table
    for score in ("phi", "psi"):
        raw = table[f"{score}_raw"]
        for end in ("_low", "_high"):
            scaled = (table[f"{score}_raw{end}"] - raw.min()) / (raw.max() - raw.min())
            np.testing.assert_allclose(table[score + end], scaled)
    assert (table["phi_low"].min(), table["phi_high"].max()) != (0, 1)


def test_areas_are_averaged_over_seeds_before_dividing(make_curve):
    rows = []
    for seed, pixels in enumerate((0.1, 0.9)):
        for condition, area in {"pixels": pixels, "figure_ground": 0.6, "semantic": 0.7}.items():
            rows += make_curve(area, condition=condition, seed=seed)
    table = diagnose_curves(pd.DataFrame(rows), definition="paper").table
    # Mean of pixels .5: (.65 - .5)/.5 = .3; a mean of ratios would give (5.5 + (-.278))/2.
    assert table["phi_raw"].item() == pytest.approx(0.3)


def test_a_missing_reward_p_or_view_leaves_the_other_score(make_study):
    diagnosis = diagnose_curves(
        make_study({"a": EASY, "b": (0.2, 0.5, 0.8, 0.7, None, 0.5), "c": (0.3, None, 0.8, 0.7, 0.6, 0.5)}, 3)
    )
    table = by_task(diagnosis)
    assert math.isnan(table.loc["b", "psi"])
    assert math.isnan(table.loc["b", "psi_raw_low"])
    assert table.loc["b", "psi_status"] == "missing_p"
    assert table.loc["b", "phi_raw"] == pytest.approx(0.45 / 0.65)
    assert math.isnan(table.loc["c", "phi_raw"])
    assert table.loc["c", "phi_status"] == "missing_view"
    assert table.loc["c", "psi_raw"] == pytest.approx(0.35)
    assert list(table["status"]) == ["ok", "ok", "ok"]


FLOOR = (0.001, 0.04, 0.05, 0.02, 0.03, 0.01)
BLIND = (0.01, 0.41, 0.61, 0.51, 0.41, 0.31)


def test_our_own_definition_drops_an_unsolved_task_and_the_paper_scores_it(make_study):
    tasks = {"a": EASY, "b": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5), "floor": FLOOR}
    curves = make_study(tasks, 3, noise=0.001)
    own = by_task(diagnose_curves(curves)).loc["floor"]
    assert own[["status", "phi_status"]].tolist() == ["floor"] * 2
    assert own[["phi", "phi_raw", "phi_raw_low"]].isna().all()
    paper = diagnose_curves(curves, definition="paper")
    table = by_task(paper)
    row = table.loc["floor"]
    assert row[["status", "phi_status", "psi_status"]].tolist() == ["floor"] * 3
    assert row["phi_raw"] == pytest.approx((0.045 - 0.001) / 0.01)
    assert row["psi_raw"] == pytest.approx((0.03 + 0.01 + 0.02) / 3)
    assert row["phi_raw_low"] < row["phi_raw"] < row["phi_raw_high"]
    # It neither sets the scale nor leaves it, and nobody calls it hard.
    assert table["phi"].tolist() == [0, 1, 1]
    assert 0 < row["psi"] < 1
    assert "nothing_learned" in row["validity"]
    assert "floor" not in set(taxonomy(paper).table["task"])


def test_without_a_signal_on_pixels_the_papers_phi_is_told_with_a_warning(make_study):
    tasks = {"a": EASY, "b": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5), "blind": BLIND}
    diagnosis = diagnose_curves(make_study(tasks, 3), definition="paper")
    row = by_task(diagnosis).loc["blind"]
    assert row["status"] == row["phi_status"] == "no_pixels_signal"
    assert row["phi_raw"] == pytest.approx(50)
    assert row[["phi", "phi_low", "phi_high"]].tolist() == [1, 1, 1]
    assert [severity for severity, says in diagnosis.warnings if "from pixels (AUC 0.01 at most" in says] == ["warning"]
    assert row["phi_gain"] == pytest.approx(0.5)
    assert row["psi_status"] == "ok"
    assert row["psi_raw"] == pytest.approx(0.1)
    assert row["psi"] == pytest.approx(1)


def test_a_task_solved_at_once_is_scored_and_flagged(make_study):
    tasks = {"top": (0.96, 0.97, 0.98, 0.97, 0.96, 0.95), "b": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5)}
    row = by_task(diagnose_curves(make_study(tasks, 3))).loc["top"]
    assert row["status"] == "ceiling"
    assert row["phi"] == 0
    assert row["psi_raw"] == pytest.approx(0.035)
    assert row["phi_status"] == row["psi_status"] == "ok"


def test_one_task_has_nothing_to_be_scaled_against(make_study):
    row = diagnose_curves(make_study({"a": EASY}, 3)).table.iloc[0]
    assert math.isnan(row["phi"])
    assert row["phi_raw"] == pytest.approx(0.03 / 0.83)
    assert row["phi_status"] == row["psi_status"] == row["status"] == "single_task"


def test_equal_tasks_have_no_spread(make_study):
    table = diagnose_curves(make_study({"a": EASY, "b": EASY}, 3)).table
    assert table[["phi", "psi"]].isna().all(axis=None)
    assert set(table["status"]) == set(table["phi_status"]) == {"no_spread"}


def test_groups_are_scaled_apart(make_study):
    hard = (0.2, 0.5, 0.8, 0.7, 0.6, 0.5)
    frames = [make_study({"a": EASY, "b": hard}, 2), make_study({"a": EASY}, 2, agent="other")]
    table = diagnose_curves(pd.concat(frames)).table
    assert table[["agent", "task"]].to_numpy().tolist() == [
        ["other", "a"],
        ["unknown", "a"],
        ["unknown", "b"],
    ]
    assert table["phi_status"].tolist() == ["single_task", "ok", "ok"]


def test_unequal_grids_give_the_areas_of_the_common_interval(make_curve):
    rows = make_curve(0.5, condition="pixels", steps=(0, 300, 1000))
    rows += make_curve(0.6, condition="figure_ground", steps=(0, 100, 200, 1000))
    rows += [
        {"task": "toy/a", "view": "semantic", "reward_p": 1, "seed": 0, "step": step, "return_mean": height}
        | {"r_min": 0, "r_max": 1}
        for step, height in ((0, 0.0), (475, 1.0), (950, 1.0))
    ]
    row = diagnose_curves(pd.DataFrame(rows)).table.iloc[0]
    assert row["steps"] == 950
    assert row["auc_semantic"] == pytest.approx(0.75)
    # From .8 × .5 at step 0 to (.8 + .4 × .95) × .5 at step 950.
    assert row["auc_pixels"] == pytest.approx((0.4 + 0.59) / 2)
    assert row["final_pixels"] == pytest.approx(0.59)


def test_curves_that_overlap_too_little_are_refused(make_curve):
    rows = make_curve(0.5, condition="pixels", steps=(0, 1000))
    rows += make_curve(0.6, condition="semantic", steps=(0, 800))
    with pytest.raises(InputError, match=r"task 'toy/a' have 80% of their steps in common"):
        diagnose_curves(pd.DataFrame(rows))


def test_each_seed_is_normalised_by_its_own_range(make_curve):
    rows = []
    for seed, (r_min, r_max) in enumerate(((0, 1), (-5, 15))):
        for condition, area in {"pixels": 0.25, "figure_ground": 0.5, "semantic": 0.75}.items():
            rows += make_curve(area, condition=condition, seed=seed, r_min=r_min, r_max=r_max)
    row = diagnose_curves(pd.DataFrame(rows)).table.iloc[0]
    assert row["auc_pixels"] == pytest.approx(0.25)
    assert row["phi_raw"] == pytest.approx(0.6)


def test_the_order_of_rows_changes_nothing(curves):
    shuffled = curves.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(diagnose_curves(curves).table, diagnose_curves(shuffled).table)


def test_other_tasks_do_not_change_a_tasks_raw_numbers(curves):
    alone = diagnose_curves(curves[curves["task"] == "toy/both"]).table.iloc[0]
    among = by_task(diagnose_curves(curves)).loc["toy/both"]
    for name in ("phi_raw", "phi_raw_low", "psi_raw_high", "final_pixels_low"):
        assert alone[name] == among[name]


def test_fewer_seeds_of_one_condition_leave_the_score_without_it_as_it_is(make_study):
    curves = make_study({"a": (0.3, 0.5, 0.7, 0.6, 0.5, 0.4), "b": (0.5,) * 6}, 6, noise=0.05)
    fewer = curves[~((curves["view"] == "pixels") & (curves["seed"] >= 4))]
    diagnosis = diagnose_curves(fewer, definition="calibrated")
    row, whole = diagnosis.table.iloc[0], diagnose_curves(curves, definition="calibrated").table.iloc[0]
    assert row["seeds"] == 4
    assert row["phi_raw_low"] < row["phi_raw"] < row["phi_raw_high"]
    assert row["validity"] == whole["validity"]
    for name in ("psi_raw", "auc_semantic", "auc_p0.25"):
        assert row[name] == whole[name]
        # Drawn from other random numbers of the same seeds.
        widths = [each[f"{name}_high"] - each[f"{name}_low"] for each in (row, whole)]
        assert widths[0] == pytest.approx(widths[1], rel=0.05)
    alone = diagnose_curves(fewer[fewer["view"] == "pixels"]).table.iloc[0]
    assert row["auc_pixels"] == alone["auc_pixels"]
    assert Diagnosis.from_json(diagnosis.to_json()).table["seeds"].tolist() == [4, 4]


def test_each_score_has_the_level_of_its_own_look(make_study):
    curves = make_study({"a": (0.3, 0.5, 0.7, 0.6, 0.5, 0.4)}, 6, noise=0.05)
    usual, stricter = (diagnose_curves(curves, levels=levels).table.iloc[0] for levels in (None, {"a": {"phi": 0.99}}))
    assert stricter["psi_raw_high"] == usual["psi_raw_high"]
    assert stricter["phi_raw_high"] > usual["phi_raw_high"]
    assert stricter["auc_p0.25_high"] > usual["auc_p0.25_high"]


def test_one_seed_has_scores_and_no_intervals(make_study):
    diagnosis = diagnose_curves(make_study({"a": EASY, "b": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5)}, 1))
    table = diagnosis.table
    assert table["phi"].tolist() == [0, 1]
    ends = [name for name in table if name.endswith(("_low", "_high"))]
    assert table[ends].isna().all(axis=None)


def test_training_rows_and_other_views_take_no_part(curves):
    train = curves.assign(split="train", return_mean=0.0)
    state = curves[curves["view"] == "pixels"].assign(view="state", return_mean=9.0)
    diagnosis = diagnose_curves(pd.concat([curves, train, state]))
    pd.testing.assert_frame_equal(diagnosis.table, diagnose_curves(curves).table)
    assert any("'state'" in note for note in diagnosis.notes)
    with pytest.raises(InputError, match="split 'eval'"):
        diagnose_curves(train)


def test_a_task_without_any_scored_condition_does_not_crash(make_study):
    curves = make_study({"a": (0.5, None, None, None, None, None)}, 2)
    table = diagnose_curves(curves.assign(view="state")).table
    assert table["status"].tolist() == ["missing_view"]


@pytest.fixture
def toys(monkeypatch):
    """A registered benchmark whose range is another one for every seed."""
    mine = SimpleNamespace(name="toys", tasks=["toy/a"], views=["pixels", "semantic"], r_min={}, r_max={})
    mine.make_vec = None
    monkeypatch.setitem(benchmarks.BENCHMARKS._built_in, "toys", mine)
    monkeypatch.setattr(benchmarks, "reward_range", lambda benchmark, task, seed: (0.0, 2.0 + seed))


def test_ranges_come_from_the_argument_then_the_columns_then_the_benchmark(make_curve, toys):
    def areas(name, task, **options):
        rows = [row for seed in (0, 1) for row in make_curve(1.0, task=task, seed=seed, benchmark=name)]
        frame = pd.DataFrame(rows).drop(columns=options.pop("drop", []))
        diagnosis = diagnose_curves(frame, **options)
        return diagnosis.table["auc_pixels"].item(), diagnosis.notes

    assert areas("toys", "toy/a", ranges={"toy/a": (0, 4)})[0] == pytest.approx(0.25)
    written, notes = areas("toys", "toy/a")
    assert written == pytest.approx(1)
    assert "differ from benchmark 'toys': the columns are used" in notes[0]
    assert areas("toys", "toy/a", drop=["r_max"])[0] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert areas("toys", "toy/a", drop=["r_min", "r_max"]) == (pytest.approx((1 / 2 + 1 / 3) / 2), ())
    assert areas("toys", "toy/other")[0] == pytest.approx(1)
    assert areas("strangers", "toy/a")[0] == pytest.approx(1)
    unknown, notes = areas("strangers", "toy/a", drop=["r_min", "r_max"])
    assert math.isnan(unknown)
    assert "Nothing tells the range of toy/a" in notes[0]


def test_a_benchmarks_name_in_a_file_never_imports_anything(make_study, monkeypatch):
    def resolved(name):
        raise AssertionError(name)

    monkeypatch.setattr(benchmarks, "get_benchmark", resolved)
    table = diagnose_curves(make_study({"a": EASY}, 2, benchmark="os:system")).table
    assert table["benchmark"].tolist() == ["os:system"]


@pytest.mark.parametrize("pair", [(1, 1), (2, 1), (0, math.inf), (0,), "ab", 3])
def test_a_useless_range_is_one_sentence(curves, pair):
    with pytest.raises(InputError, match=r"ranges\['toy/easy'\] is"):
        diagnose_curves(curves, ranges={"toy/easy": pair})


def test_json_is_strict_and_comes_back(make_study, tmp_path):
    diagnosis = diagnose_curves(make_study({"a": EASY, "b": (0.2, 0.5, 0.8, 0.7, None, 0.5)}, 1))

    def refuse_constant(name):
        raise AssertionError(name)

    content = json.loads(diagnosis.to_json(), parse_constant=refuse_constant)
    assert content["tasks"][1]["psi"] is None
    back = Diagnosis.from_json(diagnosis.to_json())
    pd.testing.assert_frame_equal(back.table, diagnosis.table, check_dtype=False)
    assert back.thresholds == diagnosis.thresholds
    paths = diagnosis.save(tmp_path / "diagnosis")
    assert Diagnosis.from_json(paths["json"].read_text()).to_json() == diagnosis.to_json()
    challenge = pd.read_csv(paths["csv"])
    assert list(challenge.columns) == list(table_columns())
    assert sorted(path.name for path in (tmp_path / "diagnosis").iterdir()) == [
        "challenge.csv",
        "diagnosis.json",
    ]


def test_the_public_names_are_lazy():
    assert lcd.diagnose_curves is diagnose_curves
    assert lcd.Diagnosis is Diagnosis
    with pytest.raises(AttributeError, match="nonsense"):
        _ = lcd.nonsense
