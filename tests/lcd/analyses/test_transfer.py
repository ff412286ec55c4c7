"""Transfer and forgetting: GEM's formulas, by hand and from curves."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from lcd.analyses.lifelong import of_returns
from lcd.analyses.transfer import MEASURES, gem_measures, save_transfers, transfers
from lcd.envs.errors import InputError
from lcd.report.page import write_report
from lcd.report.terminal import transfer_table
from lcd.scores.diagnosis import Diagnosis, diagnose_curves

# Three stages, three tasks: b, then R.
MATRIX = np.array([[0.0, 0.1, 0.2], [0.9, 0.3, 0.2], [0.5, 1.0, 0.6], [0.7, 0.4, 0.8]])


def test_gems_formulas_by_hand():
    found = gem_measures(MATRIX, [0, 1, 2])
    assert found["average"] == pytest.approx((0.7 + 0.4 + 0.8) / 3)
    assert found["backward"] == pytest.approx(((0.7 - 0.9) + (0.4 - 1.0)) / 2)
    assert found["forward"] == pytest.approx(((0.3 - 0.1) + (0.6 - 0.2)) / 2)
    assert found["forgetting"] == pytest.approx(((0.9 - 0.7) + (1.0 - 0.4)) / 2)


def test_gems_formulas_as_matrices():
    """Written as in the paper, for random matrices."""
    rng = np.random.default_rng(0)
    for tasks in (2, 3, 6):
        b, r = rng.random(tasks), rng.random((tasks, tasks))
        found = gem_measures(np.vstack([b, r]), list(range(tasks)))
        last = tasks - 1
        assert found["backward"] == pytest.approx(np.mean([r[last, i] - r[i, i] for i in range(last)]))
        assert found["forward"] == pytest.approx(np.mean([r[i - 1, i] - b[i] for i in range(1, tasks)]))
        assert found["forgetting"] == pytest.approx(np.mean([r[:last, j].max() - r[last, j] for j in range(last)]))


def test_a_task_that_comes_again():
    returns = np.array([[0.0, 0.0], [1.0, 0.1], [0.2, 1.0], [0.9, 0.5]])
    found = gem_measures(returns, [0, 1, 0])
    assert found["backward"] == pytest.approx(0.5 - 1.0)
    assert found["forward"] == pytest.approx(0.1)
    assert found["forgetting"] == pytest.approx(1.0 - 0.5)


def curves(matrices=(MATRIX,), stages=("a", "b", "c")) -> pd.DataFrame:
    """Held-out rows at the ends of stages of 100 steps and half-way, for one seed a matrix; returns span 2 to 4."""
    rows = []
    for seed, matrix in enumerate(matrices):
        for step in range(0, 100 * len(stages) + 1, 50):
            low, high = matrix[step // 100], matrix[-(-step // 100)]
            stage = stages[max(-(-step // 100) - 1, 0)]
            for place, task in enumerate("abc"):
                value = 2 + 2 * (low[place] + high[place]) / 2
                rows.append(
                    {"task": task, "view": "state", "reward_p": 1, "seed": seed, "step": step, "return_mean": value}
                    | {"r_min": 2.0, "r_max": 4.0, "trained_on": "c", "stage": stage, "agent": "ppo"}
                )
    return pd.DataFrame(rows)


def of(table: pd.DataFrame):
    """The curricula in curves."""
    return transfers(diagnose_curves(table).others)


def test_the_matrix_is_read_from_curves():
    (found,) = of(curves([MATRIX, MATRIX**2]))
    assert (found.stages, found.tasks, found.ends) == (("a", "b", "c"), ("a", "b", "c"), (100, 200, 300))
    assert np.allclose(found.returns, [MATRIX, MATRIX**2])
    each = [gem_measures(matrix, [0, 1, 2])["backward"] for matrix in (MATRIX, MATRIX**2)]
    mean, low, high = found.measures["backward"]
    assert mean == pytest.approx(np.mean(each))
    assert low < mean < high


def test_rows_in_any_order_and_other_splits_change_nothing():
    table = curves([MATRIX, MATRIX**2])
    training = table[table.task == table.stage].assign(split="train", return_mean=99.0)
    mixed = pd.concat([training, table.assign(split="eval")]).sample(frac=1, random_state=0)
    one, other = of(table)[0], of(mixed)[0]
    assert one.plain() == other.plain()


def test_missing_evaluations_are_told():
    table = curves()
    for part in (table[table.step > 0], table[~((table.step == 200) & (table.task == "a"))]):
        with pytest.raises(InputError, match="transfer needs them"):
            of(part)


def test_curricula_and_ordinary_runs_are_told_apart():
    table = curves()
    ordinary = table[table.task == "a"].drop(columns=["stage", "trained_on"])
    diagnosis = diagnose_curves(pd.concat([table, ordinary]))
    assert len(diagnosis.curves) == len(ordinary)
    assert len(diagnosis.others) == len(table)
    assert diagnosis.table["task"].tolist() == ["a"]
    assert len(diagnose_curves(ordinary).others) == 0


def test_the_report_tells_matrix_and_measures(tmp_path):
    found = of(curves([MATRIX, MATRIX**2]))
    page = write_report(tmp_path, Diagnosis.empty(), transfers=found).read_text("utf-8")
    told = ("What learning one task does to the others", "after b", "forgetting", "backward transfer")
    assert [words for words in told if words not in page] == []
    assert "−" in page
    assert (tmp_path / "figures" / "transfer-0.png").is_file()
    save_transfers(tmp_path / "transfer.json", found)
    (told,) = json.loads((tmp_path / "transfer.json").read_text())
    assert np.allclose(told["matrix"], (MATRIX + MATRIX**2)[1:] / 2)
    table = transfer_table(found[0])
    assert table.row_count == 4


def alone(task, values, seed=0):
    """Held-out rows of a task that is trained by itself, evaluated every 50 steps."""
    return [
        {"task": task, "view": "state", "reward_p": 1, "seed": seed, "step": 50 * place, "return_mean": 2 + 2 * value}
        | {"r_min": 2.0, "r_max": 4.0, "agent": "ppo"}
        for place, value in enumerate(values)
    ]


def test_bakers_metrics_are_read_from_curves():
    """On the way through stage 2 the curve of task b is .3, .65, 1; alone it is .1, .4, .5 in as many steps."""
    both = pd.concat([curves(), pd.DataFrame([*alone("b", [0.0, 0.4, 0.4]), *alone("b", [0.2, 0.4, 0.6], seed=1)])])
    diagnosis = diagnose_curves(both)
    (found,) = transfers(diagnosis.others, diagnosis.curves)
    relative = (0.3 / 2 + 0.65 + 1.0 / 2) / (0.1 / 2 + 0.4 + 0.5 / 2)
    assert found.measures["relative_performance"][0] == pytest.approx(relative)
    assert found.measures["sample_efficiency"][0] == pytest.approx(1.0 / 0.5)
    assert found.measures["maintenance"][0] == pytest.approx(of_returns(MATRIX, [0, 1, 2])["maintenance"])
    assert set(found.measures) == set(MEASURES)
    (without,) = transfers(diagnosis.others)
    assert set(MEASURES) - set(without.measures) == {"relative_performance", "sample_efficiency"}
