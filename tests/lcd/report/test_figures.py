import re
import sys
import xml.etree.ElementTree as ElementTree
from base64 import b64decode

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from lcd.envs.errors import InputError
from lcd.report.curve_figures import draw_curves, one_below_the_other
from lcd.report.curve_lines import POINTS, curves_by_task, task_curves
from lcd.report.figures import data_uri, draw_svg, save_figure, short_name
from lcd.report.plane_figures import challenge_plane, planes
from lcd.scores.diagnosis import diagnose_curves

HOSTILE = r"a_b^$\frac{1}$ <script>alert(1)</script> & 100%"


@pytest.fixture
def diagnosis(curves):
    return diagnose_curves(curves)


def all_figures(diagnosis):
    yield from planes(diagnosis)
    for name, curves in curves_by_task(diagnosis):
        yield name, draw_curves(curves)


def learning_curves(diagnosis, row):
    return draw_curves(task_curves(diagnosis, row))


def words(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


def test_each_group_and_task_has_a_figure(diagnosis):
    names = [name for name, figure in all_figures(diagnosis) if isinstance(figure, Figure)]
    assert names == ["challenge-0", "curves-0", "curves-1", "curves-2", "curves-3"]


def test_drawing_leaves_matplotlib_as_it_was(diagnosis):
    before = dict(mpl.rcParams)
    for _, figure in (*planes(diagnosis, narrow=True), *all_figures(diagnosis)):
        draw_svg(figure)
    assert dict(mpl.rcParams) == before
    if "matplotlib.pyplot" in sys.modules:
        assert not sys.modules["matplotlib.pyplot"].get_fignums()


def test_points_and_intervals_are_where_the_table_says(diagnosis):
    axes = challenge_plane(diagnosis.table).axes[0]
    points = {tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() == "o"}
    assert points == set(zip(diagnosis.table["phi"], diagnosis.table["psi"], strict=True))
    spans = {tuple(line.get_xdata()) for line in axes.lines}
    for row in diagnosis.table.itertuples():
        assert (row.phi_low, row.phi_high) in spans


def test_labels_of_close_points_do_not_overlap(make_study):
    rng = np.random.default_rng(0)
    tasks = {}
    for place in range(16):
        pixels, low = 0.4 + 0.02 * rng.random(), 0.3 + 0.02 * rng.random()
        tasks[f"procgen/game-{place}"] = (pixels, 0.6, 0.8, 0.7, 0.5, low)
    tasks["procgen/outlier"] = (0.1, 0.6, 0.8, 0.4, 0.2, 0.0)
    figure = challenge_plane(diagnose_curves(make_study(tasks)).table)
    figure.draw_without_rendering()
    boxes = [mpl.text.Text.get_window_extent(text) for text in figure.findobj(Annotation) if text.get_text()]
    assert len(boxes) == 17
    overlaps = sum(a.overlaps(b) for place, a in enumerate(boxes) for b in boxes[:place])
    assert overlaps <= 2


def test_a_task_without_both_scores_is_listed_with_the_reason(make_study):
    tasks = {"a": (0.8, 0.82, 0.84, 0.83, 0.82, 0.8), "b": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5)}
    tasks |= {"dead": (0.0,) * 6, "blind": (0.0, 0.4, 0.6, 0.5, 0.4, 0.3)}
    told = " ".join(words(challenge_plane(diagnose_curves(make_study(tasks, 2), definition="paper").table)))
    assert "class withheld" in told
    assert "not placed" not in told
    own = " ".join(words(challenge_plane(diagnose_curves(make_study(tasks, 2)).table)))
    assert re.search(r"not placed: dead \(φ floor, ψ \d\.\d\d\)|not placed: dead \(floor, ψ \d\.\d\d\)", own)
    alone = challenge_plane(diagnose_curves(make_study({"a": tasks["a"]}, 2)).table)
    assert {"φ, raw  →", "ψ, raw  →", "a"} <= set(words(alone))


def test_without_a_task_on_the_plane_the_scores_there_are_are_bars(make_study):
    curves = make_study({"a": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5), "b": (0.4, 0.5, 0.6, 0.5, 0.4, 0.3)}, 3, 0.01)
    rewards = diagnose_curves(curves[curves["view"] == "semantic"]).table
    (axes,) = challenge_plane(rewards).axes
    assert [bar.get_width() for bar in axes.patches] == list(rewards["psi_raw"])
    assert axes.get_xlabel() == "ψ, raw  →"
    neither = diagnose_curves(curves[(curves["view"] == "pixels")])
    assert list(planes(neither)) == []
    with pytest.raises(InputError, match="no task has a score"):
        challenge_plane(neither.table)


def test_a_learning_curve_is_the_mean_over_seeds(make_study):
    diagnosis = diagnose_curves(make_study({"a": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5)}, 4, noise=0.03))
    figure = learning_curves(diagnosis, diagnosis.table.iloc[0])
    by_view, by_p = ({line.get_label(): line for line in axes.lines} for axes in figure.axes)
    np.testing.assert_allclose(by_view["pixels"].get_ydata(), 0.2 * np.array([0.8, 1.0, 1.2]))
    np.testing.assert_allclose(by_p["p = 0.25"].get_ydata(), 0.5 * np.array([0.8, 1.0, 1.2]))
    assert list(by_view["pixels"].get_xdata()) == [0, 500, 1000]
    assert any(list(line.get_ydata()) == [1, 1] for line in figure.axes[0].lines)


def test_a_long_curve_is_drawn_by_some_of_its_points_and_measured_by_all(make_study):
    few, steps = make_study({"a": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5)}, 3, noise=0.03), np.linspace(0, 1000, 5001)
    longer = {"step": steps, "return_mean": lambda rows: np.interp(steps, few["step"][:3], rows["return_mean"][:3])}
    many = [
        rows.iloc[np.arange(len(steps)) % 3].assign(**longer) for _, rows in few.groupby(["view", "reward_p", "seed"])
    ]
    diagnosis = diagnose_curves(pd.concat(many))
    np.testing.assert_allclose(diagnosis.table["auc_pixels"], diagnose_curves(few).table["auc_pixels"])
    axes = learning_curves(diagnosis, diagnosis.table.iloc[0]).axes[0]
    drawn = next(line for line in axes.lines if line.get_label() == "pixels")
    assert len(drawn.get_xdata()) == POINTS
    assert {0, 1000} <= set(drawn.get_xdata()) <= set(steps)
    np.testing.assert_allclose(drawn.get_ydata(), 0.2 * np.interp(drawn.get_xdata(), [0, 500, 1000], [0.8, 1, 1.2]))


def test_panels_are_complete_and_go_one_below_the_other(diagnosis):
    figure = learning_curves(diagnosis, diagnosis.table.iloc[0])
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]
    assert labels == [("environment steps", "held-out return, normalised")] * 2
    wide = draw_svg(figure)
    across, down = (float(each) for each in ElementTree.fromstring(wide).get("viewBox").split()[2:])
    root = ElementTree.fromstring(one_below_the_other(wide))
    panels = [[float(each) for each in part.get("viewBox").split()] for part in root if part.tag.endswith("svg")]
    assert [float(each) for each in root.get("viewBox").split()] == [0, 0, across / 2, 2 * down]
    assert panels == [[place, 0, across / 2, down] for place in (0, across / 2)]


def test_names_are_drawn_as_they_are(make_study, tmp_path):
    diagnosis = diagnose_curves(make_study({HOSTILE: (0.2, 0.5, 0.8, 0.7, 0.6, 0.5), "b_$": (0.3,) * 6}, 2))
    for name, figure in all_figures(diagnosis):
        png, svg = save_figure(figure, tmp_path, name)
        assert png.read_bytes().startswith(b"\x89PNG")
        root = ElementTree.fromstring(svg.read_bytes())
        assert not [node for node in root.iter() if node.tag.endswith("script")]


def test_the_same_curves_give_the_same_file(diagnosis):
    first, again = (draw_svg(challenge_plane(diagnosis.table)) for _ in range(2))
    assert first == again
    head, _, content = data_uri(first).partition(",")
    assert head == "data:image/svg+xml;base64"
    assert b64decode(content) == first


def test_one_seed_and_a_missing_view_can_be_drawn(make_study):
    diagnosis = diagnose_curves(make_study({"a": (0.2, None, 0.8, None, None, None)}))
    assert [name for name, _ in all_figures(diagnosis)] == ["curves-0"]
    only_thinned = diagnose_curves(make_study({"a": (None, None, None, 0.5, None, None)}))
    (alone,) = task_curves(only_thinned, only_thinned.table.iloc[0]).panels
    assert [line.label for line in alone.lines] == ["p = 0.75"]
    assert "p = 0.75" in words(learning_curves(only_thinned, only_thinned.table.iloc[0]))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("toy/easy", "toy/easy"),
        ("calibration-heldout/perception-0-reward-1", "…/perception-0-reward-1"),
        ("a/" + "b" * 40, "…/" + "b" * 23 + "…"),
        ("toy/delay[knob=1/2,another=3,and-a-third=4]", "toy/delay[knob=1/2,anothe…"),
    ],
)
def test_a_short_name_keeps_what_tells_tasks_apart(name, shown):
    assert short_name(name, 26) == shown


@pytest.mark.filterwarnings("error")
def test_letters_that_the_font_lacks_are_no_warnings(curves, tmp_path):
    named = curves.assign(task=curves["task"] + " 中文", benchmark="任务")
    for name, figure in all_figures(diagnose_curves(named)):
        save_figure(figure, tmp_path, name)
