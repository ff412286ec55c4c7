"""From where on tasks are hard: by a number, the median, the widest gap."""

import numpy as np
import pandas as pd
import pytest

from lcd.analyses.gains import gains
from lcd.analyses.taxonomy import taxonomy
from lcd.config.compose import compose
from lcd.envs.errors import InputError
from lcd.scores.diagnosis import diagnose_curves
from lcd.scores.hard import HardFrom

SCORES = pd.DataFrame({"phi": [0.0, 0.1, 0.2, 0.9, 1.0, np.nan], "psi": [0.0, 0.05, 0.1, 0.2, 1.0, 0.3]})


def hard(rule, scores=SCORES):
    found = HardFrom.parse("threshold", rule).of(scores)
    return found, {name: int((scores[name] >= number).sum()) for name, number in found.items()}


def test_rules_by_hand():
    assert hard(0.5) == ({"phi": 0.5, "psi": 0.5}, {"phi": 2, "psi": 1})
    # Of five known scores the third is the median; of six it lies between the third and the fourth.
    assert hard("median")[0] == pytest.approx({"phi": 0.2, "psi": 0.15})
    assert hard("largest-gap")[0] == pytest.approx({"phi": 0.55, "psi": 0.65})
    assert hard({"phi": "median", "psi": 0.2})[0] == pytest.approx({"phi": 0.2, "psi": 0.2})
    assert hard({"psi": "median"})[0] == pytest.approx({"phi": 0.5, "psi": 0.15})


def test_the_median_makes_half_of_any_tasks_hard():
    rng = np.random.default_rng(0)
    for count in (2, 7, 16):
        scores = pd.DataFrame(
            rng.permuted(np.linspace(0, 1, count)[:, None].repeat(2, 1) ** 3, axis=0), columns=["phi", "psi"]
        )
        assert hard("median", scores)[1] == dict.fromkeys(("phi", "psi"), (count + 1) // 2)
        assert 1 <= hard("largest-gap", scores)[1]["phi"] < count


def test_a_single_score_has_neither_median_nor_gap():
    assert all(np.isnan(number) for number in hard("median", SCORES[:1])[0].values())


@pytest.mark.parametrize("rule", ["largest-gap", "median", {"phi": 0.3, "psi": "median"}])
def test_classes_and_groups_of_gains_follow_the_same_numbers(make_study, rule):
    tasks = {
        "a": (0.20, 0.50, 0.80, 0.78, 0.77, 0.75),
        "b": (0.70, 0.72, 0.74, 0.50, 0.30, 0.10),
        "c": (0.50, 0.55, 0.60, 0.40, 0.25, 0.20),
        "d": (0.60, 0.62, 0.64, 0.60, 0.55, 0.50),
    }
    flow = {name: (area + 0.1, *[None] * 5) for name, (area, *_) in tasks.items()}
    diagnosis = diagnose_curves(pd.concat([make_study(tasks, 4, 0.01), make_study(flow, 4, 0.01, frontend="flow")]))
    threshold = HardFrom.parse("threshold", rule)
    plain = diagnosis.table[diagnosis.table["frontend"] == "identity"].set_index("task")
    least = threshold.of(plain)
    found = taxonomy(diagnosis, threshold)
    seen = found.table.set_index("task")["class"].isin(["perception", "both"])
    assert seen.to_dict() == (plain["phi"] >= least["phi"]).to_dict()
    _, grouped = gains(diagnosis, "frontend", threshold)
    assert grouped.table.set_index("tasks of")["n"]["hard φ"] == seen.sum()
    assert any(f"φ is hard from {least['phi']:.2f} on" in sentence for sentence in found.says)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("threshold=most", "threshold=most must be a number, median, largest-gap"),
        ("threshold=true", "must be a number, median"),
        ("threshold={phi: x}", "threshold.phi=x must be a number, median"),
        ("threshold={fi: 0.5}", "threshold.fi is no score: choose from: phi, psi."),
    ],
)
def test_what_is_no_threshold_is_refused(words, sentence):
    with pytest.raises(InputError) as refused:
        compose("report", ["path=x.csv", words])
    assert sentence in str(refused.value)
