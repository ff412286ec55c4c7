import builtins

import numpy as np
import pandas as pd
import pytest

from lcd.curves.spans import area, common_interval
from lcd.curves.table import (
    COLUMNS,
    as_trained,
    attach_ranges,
    check_curves,
    evaluated_names,
    read_curves,
)
from lcd.envs.errors import InputError

MINIMAL = "task,view,reward_p,seed,step,return_mean\nNA,pixels,1,0,0,0.5\nNA,pixels,1,0,100,1.5\n"


@pytest.fixture
def minimal():
    return pd.DataFrame(
        {
            "task": "a",
            "view": "pixels",
            "reward_p": 1.0,
            "seed": 0,
            "step": [0, 10],
            "return_mean": [1.0, 2.0],
        }
    )


def test_a_minimal_csv_gets_the_defaults_and_keeps_awkward_names(tmp_path):
    path = tmp_path / "curves.csv"
    path.write_text(MINIMAL, encoding="utf-8-sig")
    curves = read_curves(path)
    assert list(curves.columns) == list(COLUMNS)
    assert list(curves["task"]) == ["NA", "NA"]
    first = curves.iloc[0]
    told = [first[name] for name in ("benchmark", "frontend", "shaping", "agent", "split")]
    assert told == ["imported", "identity", "none", "unknown", "eval"]
    assert list(curves["return_mean"]) == [0.5, 1.5]
    assert curves["r_min"].isna().all()


def test_a_row_is_of_the_task_as_it_was_trained_unless_it_says_otherwise(minimal):
    curves = check_curves(minimal)
    assert (curves["trained_on"] == curves["task"]).all()
    assert set(curves["stage"]) == set(curves["context"]) == {""}
    assert as_trained(curves).all()
    for column in ("trained_on", "stage", "context"):
        named = {"trained_on": "c", column: "other"}
        assert not as_trained(check_curves(minimal.assign(**named))).any()
    half = check_curves(minimal.assign(trained_on=["", "c"]))
    assert half["trained_on"].tolist() == [half["task"][0], "c"]


def test_a_stage_without_a_curriculum_is_refused(minimal):
    with pytest.raises(
        InputError, match="'trained_on' is empty in row 2, which has the stage 's': name the curriculum"
    ):
        check_curves(minimal.assign(stage=["", "s"], trained_on=["", None]))
    with pytest.raises(InputError, match="'trained_on' is empty in row 1"):
        check_curves(minimal.assign(stage="s"))


def test_what_is_evaluated_otherwise_is_another_curve(minimal):
    for column in ("trained_on", "stage", "context"):
        named = {"trained_on": "c"} if column == "stage" else {}
        both = pd.concat([minimal.assign(**named, **{column: value}) for value in ("one", "two")])
        assert len(check_curves(both)) == 2 * len(minimal)
    with pytest.raises(InputError, match=r"two rows at step 0 .*context 'far'"):
        check_curves(pd.concat([minimal.assign(context="far")] * 2))


def test_a_context_has_a_range_of_its_own(minimal):
    both = check_curves(pd.concat([minimal, minimal.assign(context="far")]))
    name = minimal["task"][0]
    ranged, _ = attach_ranges(both, {name: (0, 1), f"{name}@far": (0, 2)})
    assert ranged.groupby("context")["r_max"].first().to_dict() == {"": 1, "far": 2}
    assert evaluated_names(both) == {name, f"{name}@far"}


def test_parquet_reads_as_csv_does(tmp_path, curves):
    pytest.importorskip("pyarrow")
    curves.to_csv(tmp_path / "c.csv", index=False)
    curves.to_parquet(tmp_path / "c.parquet")
    pd.testing.assert_frame_equal(read_curves(tmp_path / "c.csv"), read_curves(tmp_path / "c.parquet"))


def test_parquet_without_pyarrow_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "c.parquet").write_bytes(b"")
    real = builtins.__import__

    def refusing(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise AttributeError("_ARRAY_API not found")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(InputError, match=r"needs pyarrow.*extra 'parquet'"):
        read_curves(tmp_path / "c.parquet")


def test_a_study_is_its_runs_without_half_written_rows(tmp_path):
    for run, seed in (("aaa", 0), ("bbb", 1)):
        folder = tmp_path / "runs" / run
        folder.mkdir(parents=True)
        header = "task,view,reward_p,seed,step,return_mean\n"
        (folder / "curve.csv").write_text(
            header + f"a,pixels,1,{seed},0,1\na,pixels,1,{seed},10,2\na,pix", encoding="utf-8"
        )
        with (folder / "curve.csv").open("ab") as file:
            file.write("é".encode()[:1])
    (tmp_path / "runs" / "queued").mkdir()
    (tmp_path / "runs" / "started").mkdir()
    (tmp_path / "runs" / "started" / "curve.csv").write_text("")
    curves = read_curves(tmp_path)
    assert sorted(curves["seed"]) == [0, 0, 1, 1]


def test_the_same_seed_of_a_condition_in_two_runs_is_refused(tmp_path):
    for run in ("aaa", "bbb"):
        folder = tmp_path / "runs" / run
        folder.mkdir(parents=True)
        (folder / "curve.csv").write_text(MINIMAL)
    with pytest.raises(InputError, match=r"Seed 0 has two rows at step 0.*task 'NA'"):
        read_curves(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("missing.csv", None, "There is nothing at"),
        ("c.xlsx", "x", "should end in .csv or .parquet"),
        ("c.csv", "", "no rows"),
        ("c.csv", MINIMAL.splitlines()[0] + "\n", "no rows"),
        ("c.csv", 'a,b\n"1', "not readable as CSV"),
        ("c.csv", MINIMAL.replace("return_mean", "mean_return"), "did you mean 'mean_return'"),
        ("c.csv", MINIMAL.replace("1.5", "high"), "'return_mean' holds 'high' in row 2"),
        ("c.csv", MINIMAL.replace("1.5", "nan"), "'return_mean' holds 'nan' in row 2"),
        ("c.csv", MINIMAL.replace(",1,0,100", ",1.5,0,100"), r"'reward_p' holds '1.5' in row 2.*\(0, 1\]"),
        ("c.csv", MINIMAL.replace("1,0,100", "1,0.5,100"), "'seed' holds '0.5' in row 2"),
        ("c.csv", MINIMAL.replace("NA,pixels,1,0,100", ",pixels,1,0,100"), "'task' is empty in row 2"),
        (
            "c.csv",
            "".join(f"{line},9\n" if "NA" in line else f"{line}\n" for line in MINIMAL.splitlines()),
            "more cells than",
        ),
        ("c.csv", "".join(f"{line},step\n" for line in MINIMAL.splitlines()), "has the column 'step' twice"),
        ("c.parquet", "not parquet", "not readable as Parquet"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(tmp_path, name, content, sentence):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=sentence) as caught:
        read_curves(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no curves"):
        read_curves(tmp_path)


def test_an_unknown_split_is_refused(minimal):
    with pytest.raises(InputError, match="'split' holds 'test' in row 1"):
        check_curves(minimal.assign(split="test"))


def test_checking_leaves_the_input_alone_and_keeps_other_columns(minimal):
    before = minimal.copy()
    checked = check_curves(minimal.assign(colour="red"))
    pd.testing.assert_frame_equal(minimal, before)
    assert list(checked.columns) == [*COLUMNS, "colour"]


def test_area_is_exact_for_a_piecewise_linear_curve():
    # (0, 0) to (2, 1) to (4, 1): 1 + 2 over 4 steps; from 1 to 4: (.5 + 1)/2 + 2 over 3 steps.
    steps, heights = np.array([0.0, 2.0, 4.0]), np.array([0.0, 1.0, 1.0])
    assert area(steps, heights, 0, 4) == pytest.approx(0.75)
    assert area(steps, heights, 1, 4) == pytest.approx(2.75 / 3)


def test_area_does_not_depend_on_where_a_line_is_sampled():
    rng = np.random.default_rng(0)
    grid = np.sort(rng.uniform(0, 100, 20))
    heights = rng.normal(size=20)
    fine = np.unique(np.concatenate([grid, rng.uniform(grid[0], grid[-1], 200)]))
    low, high = grid[2] + 0.1, grid[-2] - 0.1
    refined = area(fine, np.interp(fine, grid, heights), low, high)
    assert area(grid, heights, low, high) == pytest.approx(refined)


def test_curves_share_nine_tenths_of_their_steps_or_are_refused():
    assert common_interval([np.array([0, 100]), np.array([5, 95])], "a") == (5, 95)
    with pytest.raises(InputError, match=r"'a' have 89% of their steps in common.*90%"):
        common_interval([np.array([0, 100]), np.array([0, 89])], "'a'")
    with pytest.raises(InputError, match="0% of their steps"):
        common_interval([np.array([0, 100]), np.array([200, 300])], "'a'")
    with pytest.raises(InputError, match="one evaluation only"):
        common_interval([np.array([0, 100]), np.array([0])], "'a'")


def test_a_name_with_unprintable_characters_is_refused(minimal):
    with pytest.raises(InputError, match=r"'task' holds '\\x1b\[2J' in row 1"):
        check_curves(minimal.assign(task="\x1b[2J"))


def test_all_missing_columns_are_named_at_once():
    with pytest.raises(
        InputError, match=r"lack the columns 'view', 'reward_p' and 'seed': add them \(there are: task, ste"
    ):
        check_curves(pd.DataFrame(columns=["task", "step", "return_mean"]))
    with pytest.raises(InputError, match=r"lack the column 'seed': did you mean 'seeds'\?"):
        check_curves(pd.DataFrame(columns=["task", "view", "reward_p", "seeds", "step", "return_mean"]))


def test_what_is_no_table_of_curves_is_a_sentence(minimal):
    for wrong in (None, "curves.csv", minimal.to_dict("records"), minimal["task"]):
        with pytest.raises(InputError, match=r"give a pandas\.DataFrame"):
            check_curves(wrong)
    with pytest.raises(InputError, match="have the column 'step' twice"):
        check_curves(pd.concat([minimal, minimal[["step"]]], axis=1))


def test_columns_that_pandas_has_renamed_are_others(minimal, tmp_path):
    minimal.assign(**{"step.1": 3}).to_csv(tmp_path / "c.csv", index=False)
    assert "step.1" in read_curves(tmp_path / "c.csv")


def test_numbers_of_any_length_are_refused(minimal):
    with pytest.raises(InputError, match="Column 'return_mean' holds 'inf' in row 1: a finite number"):
        check_curves(minimal.assign(return_mean=[10**400] * len(minimal)))


def test_a_seeds_returns_are_normalised_by_one_range(minimal):
    ranges = minimal.assign(r_min=0.0, r_max=10.0)
    assert set(attach_ranges(check_curves(ranges))[0]["r_max"]) == {10.0}
    with pytest.raises(InputError, match="several ranges for seed 0"):
        attach_ranges(check_curves(minimal.assign(r_min=0.0, r_max=[10.0, 20.0])))


def test_bytes_are_no_numbers(minimal):
    """As a Parquet file may hold them; not all bytes are text."""
    with pytest.raises(InputError, match=r"Column 'return_mean' holds .* a number is needed"):
        check_curves(minimal.assign(return_mean=[b"\xff"] * len(minimal)))
