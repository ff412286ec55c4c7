"""Each figure and table of the paper has a table of its own, with its numbers beside; curves over each other."""

import numpy as np
import pandas as pd
import pytest

from lcd.analyses import Evidence, analyse
from lcd.analyses.gains import gains
from lcd.analyses.paper_artefacts import ARTEFACTS
from lcd.scores.diagnosis import diagnose_curves

AREAS = {
    "maze": (0.20, 0.40, 0.60, 0.40, 0.25, 0.10),
    "leaper": (0.30, 0.50, 0.90, 0.88, 0.86, 0.84),
    "climber": (0.70, 0.72, 0.74, 0.50, 0.30, 0.10),
    "fruitbot": (0.60, 0.62, 0.64, 0.60, 0.55, 0.50),
}
SEEN = {"maze": 0.3, "leaper": 0.2, "climber": 0.75, "fruitbot": 0.6}


@pytest.fixture
def curves(make_study):
    def named(tasks, **columns):
        tasks = {f"procgen/{name}": areas for name, areas in tasks.items()}
        return make_study(tasks, 3, 0.01, benchmark="procgen", r_min=0, r_max=1, **columns)

    better = {name: tuple(area + 0.05 for area in areas) for name, areas in AREAS.items()}
    on_pixels = {name: (area, *[None] * 5) for name, area in SEEN.items()}
    solved = {name: (None, None, areas[2] + 0.05, *[None] * 3) for name, areas in AREAS.items()}
    parts = [named(AREAS, agent="ppo"), named(better, agent="ppg"), named(solved, agent="ppo", shaping="subgoals")]
    parts += [named(on_pixels, agent="ppo", frontend=name) for name in ("flow", "clip")]
    return pd.concat(parts, ignore_index=True)


def diagnosis_of(curves):
    return diagnose_curves(curves, ranges={f"procgen/{name}": (0, 1) for name in AREAS})


def test_each_artefact_has_a_table_with_the_papers_numbers_beside(curves):
    found = {each.key: each for each in analyse(Evidence(diagnosis_of(curves)))[0]}["artefacts"]
    here = found.table.set_index("artefact")["here"]
    assert list(here.index) == [each.name for each in ARTEFACTS]
    # These curves have no training levels, of which figures 6, 7, 10 and 11 are.
    assert set(here.index[here.str.startswith("not in this study")]) == {"figures-6-7", "figures-10-11"}
    beside = found.files["table-A.7"].set_index("task")
    assert beside.loc["procgen/leaper", "gain % (the paper)"] == -117.6
    assert beside.loc["procgen/leaper", "gain %"] == pytest.approx(-100 / 3, abs=5)
    assert np.isnan(beside.loc["procgen/maze", "gain % (the paper)"])
    assert set(beside["frontend"]) == {"flow"}
    assert set(found.files["figure-12"]["frontend"]) == {"clip"}
    assert found.files["figure-13"].set_index("task").loc["procgen/leaper", "t (the paper)"] == 41.03
    classes = found.files["figure-1d"].query("agent == 'ppo'").set_index("task")
    assert classes.loc["procgen/maze", "class (the paper)"] == "both"


def test_what_stands_beside_the_paper_is_by_its_definition_whatever_the_headline(curves):
    ranges = {f"procgen/{name}": (0, 1) for name in AREAS}
    paper, ours = (
        {each.key: each for each in analyse(Evidence(diagnose_curves(curves, ranges, definition=name)))[0]}
        for name in ("paper", "calibrated")
    )
    assert not ours["taxonomy"].table.equals(paper["taxonomy"].table)
    pd.testing.assert_frame_equal(ours["published"].table, paper["published"].table)
    pd.testing.assert_frame_equal(ours["artefacts"].table, paper["artefacts"].table)
    assert list(ours["artefacts"].files) == list(paper["artefacts"].files)
    for name, table in paper["artefacts"].files.items():
        pd.testing.assert_frame_equal(ours["artefacts"].files[name], table)
    asked = analyse(Evidence(diagnose_curves(curves, ranges, definition="calibrated")), ["synergy", "artefacts"])[0]
    assert list(asked[-1].files) == ["figure-5"]


def test_what_was_not_trained_is_said_with_its_command(curves):
    plain = curves[curves["frontend"].isna() & curves["shaping"].isna() & (curves["agent"] == "ppo")]
    found = {each.key: each for each in analyse(Evidence(diagnosis_of(plain)))[0]}["artefacts"]
    here = found.table.set_index("artefact")["here"]
    assert here["figure-12"] == "not in this study: study=figure-12 frontend=clip"
    assert set(found.files) == {"figure-1d"}


def test_other_benchmarks_have_no_artefacts(curves):
    other = curves.assign(benchmark="w", task=curves["task"].str.replace("procgen", "w"))
    assert "artefacts" not in {each.key for each in analyse(Evidence(diagnose_curves(other)))[0]}


@pytest.mark.parametrize(("factor", "values"), [("frontend", ["clip", "flow"]), ("shaping", ["subgoals"])])
def test_curves_with_and_without_lie_over_each_other(curves, factor, values):
    diagnosis = diagnosis_of(curves)
    (drawing,) = gains(diagnosis, factor)[0].figures[1:]
    figure = drawing.draw(False)
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_lines()}
    assert set(panels) == set(AREAS)
    lines = {line.get_label(): line for line in panels["leaper"].get_lines()}
    base = {"frontend": "identity", "shaping": "none"}[factor]
    assert list(lines) == [base, *values]
    held = diagnosis.curves.query("task == 'procgen/leaper' and agent == 'ppo' and split == 'eval' and reward_p == 1")
    view = {"frontend": "pixels", "shaping": "semantic"}[factor]
    last = held[(held["view"] == view) & (held[factor] == values[-1])]
    expected = last[last["step"] == last["step"].max()]["normalised"].mean()
    assert lines[values[-1]].get_ydata()[-1] == pytest.approx(expected)
