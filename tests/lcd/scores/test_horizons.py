"""Effective horizons in a diagnosis: from a file, from a benchmark, or unknown; and scores against them."""

import math

import numpy as np
import pandas as pd
import pytest

from lcd import cli
from lcd.analyses import Evidence, analyse
from lcd.envs.errors import InputError
from lcd.scores.asked_contrasts import parse_contrasts
from lcd.scores.diagnosis import Diagnosis, diagnose_curves
from lcd.scores.horizons import horizons_of, note_of_strangers, read_horizons

TASKS = {"x/a": 0.1, "x/b": 0.2, "x/c": 0.4, "x/d": 0.7}


def curves():
    """Four tasks; the later its letter, the more φ: pixels are learned less and less beside a perfect semantic view."""
    rows = []
    for task, lost in TASKS.items():
        for view, height in (("pixels", 1 - lost), ("figure_ground", 1.0), ("semantic", 1.0)):
            for p in (1.0, 0.75, 0.5, 0.25) if view == "semantic" else (1.0,):
                for seed in (0, 1):
                    for step in (0, 100):
                        rows.append((task, view, p, seed, step, height * p * 0.9 + 0.001 * seed, 0.0, 1.0))
    columns = ["task", "view", "reward_p", "seed", "step", "return_mean", "r_min", "r_max"]
    return pd.DataFrame(rows, columns=columns)


def table(tmp_path, rows):
    path = tmp_path / "horizons.csv"
    path.write_text("\n".join(["task,h,h_low,h_high", *rows]) + "\n")
    return path


def test_a_file_gives_columns_of_the_table(tmp_path):
    found = read_horizons(table(tmp_path, ["x/a,3.5,3,4", "x/b,,8.1,"]))
    rows = diagnose_curves(curves(), horizons=found).table.set_index("task")
    assert rows.loc["x/a", ["H", "H_low", "H_high"]].tolist() == [3.5, 3.0, 4.0]
    assert math.isnan(rows.loc["x/b", "H"])
    assert rows.loc["x/b", "H_low"] == 8.1
    assert rows.loc["x/c", ["H", "H_low", "H_high"]].isna().all()


def test_they_survive_being_written_and_read(tmp_path):
    diagnosis = diagnose_curves(curves(), horizons={"x/a": (3.5, 3.0, 4.0)})
    again = Diagnosis.from_json(diagnosis.to_json())
    pd.testing.assert_frame_equal(again.table, diagnosis.table, check_dtype=False)
    diagnosis.save(tmp_path)
    assert pd.read_csv(tmp_path / "challenge.csv")["H"].tolist()[0] == 3.5


def test_a_benchmark_tells_what_it_knows():
    hanoi = "ehc/hanoi-4"
    assert horizons_of([("ehc", hanoi)], {})[hanoi][1] > 5
    assert horizons_of([("ehc", hanoi)], {hanoi: (1.0, 1.0, 1.0)}) == {hanoi: (1.0, 1.0, 1.0)}
    assert horizons_of([("ehc", "ehc/other"), ("toy", "toy/x"), ("nobody", "nobody/x"), ("os:system", "x")], {}) == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("task,h\nx,1\n", "no columns 'h_low', 'h_high'"),
        ("task,h,h_low,h_high\nx,1,1,1\nx,2,2,2\n", "the task 'x' twice"),
        ("", "no columns 'task'"),
        ("task,h,h,h_low,h_high\nx,1,2,1,2\n", "two columns 'h'"),
        ("task,h,h_low,h_high\nx,y,1,2,3\n", "other cells than columns in line 2"),
        ("task,h,h_low,h_high\n,1,1,1\n", "line 2, names no task"),
        ("task,h,h_low,h_high\nx,> 8.10,8.1,\n", "'> 8.10' for h"),
        ("task,h,h_low,h_high\nx,,8.1,inf\n", "'inf' for h_high"),
        ("task,h,h_low,h_high\nx,-1,0,1\n", "'-1' for h"),
        ("task,h,h_low,h_high\nx,,9,2\n", "h_low 9 above"),
        ("task,h,h_low,h_high\nx,5,1,2\n", "h 5 above h_high 2"),
        ("task,h,h_low,h_high\nx,1\n", "other cells than columns in line 2"),
        ("task,h,h_low,h_high\nx,nan,1,2\n", "'nan' for h"),
        ("task,h,h_low,h_high\nx,1_0,1,20\n", "'1_0' for h"),
        ("task,h,h_low,h_high\nx,\u0663,1,20\n", "for h"),
        ("task,h,h_low,h_high\n\n\nx,y,1,2\n", "line 4, has 'y' for h"),
        ("task,h,h_low,h_high\n", "has no task"),
        ('task,h,h_low,h_high\n"x,1,1,1\n', "cannot be read"),
    ],
)
def test_a_file_that_is_no_table_of_horizons_is_refused(tmp_path, text, told):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        read_horizons(path)


def test_other_columns_may_be_called_anything(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("task,more,h,h_low,h_high\nx,a,1e0,.5,2.\n")
    assert read_horizons(path) == {"x": (1.0, 0.5, 2.0)}


def test_what_may_never_end_is_not_read():
    with pytest.raises(InputError, match="no regular file"):
        read_horizons("/dev/zero")


def analysed(horizons):
    evidence = Evidence(diagnose_curves(curves(), horizons=horizons))
    made, _ = analyse(evidence, ["horizon"])
    return made


def test_scores_are_ranked_against_horizons():
    horizons = {task: (3.0 + place, 3.0, 12.0) for place, task in enumerate(TASKS)} | {"x/d": (9.0, 8.5, 10.0)}
    (found,) = analysed(horizons)
    phi = found.table[found.table["score"] == "φ"].iloc[0]
    assert (phi["n"], phi["Spearman"]) == (4, pytest.approx(1.0))
    assert (phi["n (H ≥ 8)"], phi["n (H < 8)"]) == ("1", "3")
    assert phi["mean (H ≥ 8)"] > phi["mean (H < 8)"]
    assert any("longer effective horizon have higher φ" in sentence for sentence in found.says)
    assert [drawing.name for drawing in found.figures] == ["horizon"]
    for narrow in (False, True):
        assert len(found.figures[0].draw(narrow).axes) == 2


def test_lower_bounds_take_no_part_in_the_correlation_but_in_the_count():
    nan = math.nan
    (found,) = analysed(
        {"x/a": (2.0, 2.0, 2.0), "x/b": (3.0, 3.0, 3.0), "x/c": (nan, 8.1, nan), "x/d": (nan, 6.0, nan)}
    )
    phi = found.table.iloc[0]
    assert phi["n"] == 2
    assert math.isnan(phi["Spearman"])
    assert (phi["n (H ≥ 8)"], phi["n (H < 8)"]) == ("1", "2")
    assert found.figures[0].draw(False).axes


def test_without_any_horizon_there_is_nothing_to_tell():
    assert analysed({}) == []


def test_a_report_takes_them_from_a_file(tmp_path, capsys):
    path = table(tmp_path, ["x/a,3,2.5,3.5", "x/b,4,4,4", "x/c,5,5,5", "x/d,9,8.5,9.5"])
    curves().to_csv(tmp_path / "curves.csv", index=False)
    out = tmp_path / "report"
    asked = ["report", str(tmp_path / "curves.csv"), f"out={out}", "analyses=[horizon]", "sections=[comparisons]"]
    assert cli.main([*asked, f"horizons={path}"]) == 0
    assert pd.read_csv(out / "challenge.csv").set_index("task").loc["x/d", "H"] == 9
    assert "effective horizon" in (out / "report.html").read_text()
    assert (out / "figures" / "horizon.png").is_file()
    assert cli.main([*asked, "horizons=nowhere.csv"]) == 2
    assert "horizons=nowhere.csv cannot be read" in capsys.readouterr().err.replace("\n", " ")


def test_a_misspelt_task_is_told(tmp_path, capsys):
    curves().to_csv(tmp_path / "curves.csv", index=False)
    asked = ["report", str(tmp_path / "curves.csv"), f"out={tmp_path / 'report'}", "analyses=[]", "sections=[]"]
    assert cli.main([*asked, f"horizons={table(tmp_path, ['x/aa,3,2,4'])}"]) == 2
    told = capsys.readouterr().err.replace("\n", " ")
    assert "horizons: the curves have no task 'x/aa': did you mean 'x/a'?" in told
    assert not (tmp_path / "report").exists()
    rows = ["x/aa,3,2,4", "x/b,4,4,4", "x/c,5,5,5", "x/d,9,8,9", "y/p,1,1,1", "y/q,1,1,1", "y/r,1,1,1"]
    assert cli.main([*asked, f"horizons={table(tmp_path, rows)}"]) == 0
    used = "3 of the 7 tasks in horizons are used"
    told = f"{used}: the curves have no 'x/aa', 'y/p', 'y/q' and 1 more; the file has no 'x/a'."
    assert told in capsys.readouterr().out.replace("\n", " ")
    assert told in (tmp_path / "report" / "diagnosis.json").read_text()
    assert cli.main([*asked, f"horizons={table(tmp_path, rows[1:4])}"]) == 0
    assert "horizons" not in capsys.readouterr().out


def test_a_file_without_tasks_is_none_of_strangers():
    assert note_of_strangers({}, {"x/a"}) is None
    assert "no 'x/b' or 'x/c'." in note_of_strangers(dict.fromkeys(["x/a", "x/b", "x/c"], (1.0, 1.0, 1.0)), {"x/a"})


def test_what_a_long_horizon_costs_is_asked_near_the_end():
    (*_, asked) = parse_contrasts(["horizon_loss"])
    assert [found.name for found in asked.conditions("semantic")] == ["semantic", "left=4", "left=8"]
    areas = np.array([0.1, 0.9, 0.5])
    assert asked.formulas["gain"].score(areas, 0.0) == pytest.approx(0.6)
