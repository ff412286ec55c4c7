"""What a page says of a front-end's maps: who finds more, on which classes, and by how much."""

import re

import pandas as pd
import pytest

from lcd.report import seeing
from lcd.report.seeing import FIGURE, OWN, UNTRAINED

IOUS = {OWN: {"ball": 0.8, "wall": 0.1, FIGURE: 0.5}, UNTRAINED: {"ball": 0.4, "wall": 0.3, FIGURE: 0.2}}
CHANGES = {"ball": 0.9, "wall": 0.1, FIGURE: 0.4}


def objectness(step=0, scale=1.0, tasks=("a", "b")):
    rows = [
        {"task": task, "by": by, "class": name, "iou": value * (scale if by == OWN else 1), "iou_error": 0.1}
        | {"rand": value / 2, "share": 0.005 if name == "ball" else 0.2, "changes": CHANGES[name], "frames": 9}
        | {"videos": 5, "step": step}
        for task in tasks
        for by, of in IOUS.items()
        for name, value in of.items()
    ]
    return pd.DataFrame(rows)


def test_a_summary_means_over_classes_and_keeps_all_objects_apart():
    found = seeing.summary(objectness()).set_index(["task", "by"])
    assert found.loc[("a", OWN), "class IoU"] == pytest.approx(0.45)
    assert found.loc[("a", UNTRAINED), "class IoU"] == pytest.approx(0.35)
    assert found.loc[("b", OWN), ["object IoU", "object Rand"]].tolist() == [0.5, 0.25]


def test_who_is_better_is_counted_and_so_is_what_is_missing():
    (line,) = seeing.verdict(objectness())
    assert line == "better than untrained on 2 of 2 tasks, by +0.100 on average"
    (line,) = seeing.verdict(objectness(scale=0.5))
    assert line == "behind untrained on 2 of 2 tasks, by 0.125 on average"
    mixed = pd.concat([objectness(tasks=["a"]), objectness(scale=0.5, tasks=["b"])])
    (line,) = seeing.verdict(mixed)
    assert line == "better than untrained on 1 of 2 tasks, by -0.012 on average; it is behind by 0.125 on the others"


def test_reasons_divide_the_classes_by_motion_and_by_size():
    explained = pd.Series({"a": 0.2, "b": 0.6})
    motion, changing, size = seeing.reasons(objectness(), explained)
    assert "explains 40% in the median task (20% in a, 60% in b)" in motion
    assert "0.80 (untrained 0.40) for the 2 classes that mostly change from frame to frame" in changing
    assert "0.10 (untrained 0.30) for the 2 classes that mostly stay as they are" in changing
    assert "0.10 (untrained 0.30) for the 2 classes that cover at least one pixel in a hundred" in size
    assert "0.80 (untrained 0.40) for the 2 classes that are smaller" in size


def test_intervals_are_those_of_few_videos():
    found = seeing.analyses(objectness())[0].table.set_index("task")
    # Student's t with four degrees of freedom, from a table; no IoU is below 0.
    assert found.loc["a", f"{OWN}_high"] - found.loc["a", OWN] == pytest.approx(2.776 * 0.1, abs=1e-4)
    assert found.loc["b", [UNTRAINED, f"{UNTRAINED}_low"]].tolist() == pytest.approx([0.35, 0.35 - 0.2776], abs=1e-4)
    assert found.columns.tolist() == [by + end for by in (OWN, UNTRAINED) for end in ("", "_low", "_high")]


def test_the_last_step_is_told_and_every_step_is_drawn(tmp_path):
    table = pd.concat([objectness(0, 0.5), objectness(600, 1.0)], ignore_index=True)
    losses = pd.DataFrame({"task": ["a", "b"], "static_loss": [0.01, 0.02], "loss": [0.005, 0.005]})
    page = seeing.write_seeing(tmp_path, "<b>mine</b>", table, losses, {"a & b": b"PNG"}, {"policy": "<i>"})
    text = page.read_text()
    assert "better than untrained on 2 of 2 tasks" in text
    assert "behind" not in text
    for part in ("50.0", "75.0"):
        assert part in text, "the part of the change that is explained"
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        *("objectness.png", "objectness.svg", "learning.png", "learning.svg")
    }
    assert "<b>mine" not in text
    assert "<i>" not in text.split("How it was made")[1]
    assert not re.search(r"(src|href)=\"(?!data:|#)", text), "the page needs no other file"


def test_a_benchmark_without_true_masks_has_a_page_of_motion_alone(tmp_path):
    losses = pd.DataFrame({"task": ["a"], "static_loss": [0.0], "loss": [0.0]})
    text = seeing.write_seeing(tmp_path, "mine", pd.DataFrame(), losses).read_text()
    assert "What it learned of motion" in text
    assert "Does it see objects?" not in text
