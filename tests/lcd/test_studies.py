"""LCD from Python: what is loaded is what the command line tells, and what is said is what a command would get."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import lcd
from lcd.config.compose import compose
from lcd.config.overrides import as_words
from lcd.envs.errors import InputError
from tests.shared.curve_sets import TASKS, study


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    path = tmp_path_factory.mktemp("curves") / "mine.csv"
    study(TASKS | {"toy/<b>&'": TASKS["toy/easy"]}, seeds=3, noise=0.01).to_csv(path, index=False)
    return path


def test_a_file_of_curves_is_loaded_as_it_is_diagnosed(curves):
    loaded = lcd.load_study(curves)
    direct = lcd.diagnose_curves(pd.read_csv(curves))
    pd.testing.assert_frame_equal(loaded.table, direct.table)
    assert len(loaded.runs) == 0
    assert len(loaded.curves) == len(pd.read_csv(curves))
    assert loaded.analysis("taxonomy").key == "taxonomy"


def test_a_table_of_curves_is_loaded_as_a_file_of_them_with_the_notes_of_who_made_it(curves):
    table = pd.read_csv(curves)
    table.attrs["notes"] = ("Of training alone.",)
    loaded, of_file = lcd.load_study(table), lcd.load_study(curves)
    pd.testing.assert_frame_equal(loaded.table, of_file.table)
    assert loaded.notes == ("Of training alone.", *of_file.notes)
    assert len(loaded.cards) == len(of_file.cards)
    assert "<function" not in repr(loaded.diagnosis)


def test_curves_of_several_front_ends_are_drawn_one_by_one():
    both = pd.concat([study({"toy/easy": TASKS["toy/easy"]}, seeds=2, frontend=name) for name in ("identity", "mine")])
    loaded = lcd.load_study(both)
    with pytest.raises(InputError, match="frontend is missing: choose from: identity, mine"):
        loaded.plot("curves", task="toy/easy")
    assert loaded.plot("curves", task="toy/easy", frontend="mine").axes
    with pytest.raises(InputError, match="frontend='min' has no scores: did you mean 'mine'"):
        loaded.plot("curves", frontend="min")


def test_a_notebook_shows_scores_and_nothing_of_a_name_is_markup(curves):
    shown = lcd.load_study(curves)._repr_html_()
    assert "toy/&lt;b&gt;&amp;&#39;" in shown
    assert "<b>" not in shown
    assert "data:image/svg+xml" in shown
    assert shown.count("<tr>") == 6  # a head and five tasks


def test_figures_are_matplotlibs_and_show_themselves(curves):
    loaded = lcd.load_study(curves)
    for figure in (loaded.plot(), loaded.plot("curves", task="toy/easy")):
        assert figure._repr_svg_().startswith("<?xml")
        assert figure.axes


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda it: it.plot("plan"), "did you mean 'plane'"),
        (lambda it: it.plot("curves"), "task is missing"),
        (lambda it: it.plot("curves", task="toy/eazy"), "did you mean 'toy/easy'"),
        (lambda it: it.plot(task="toy/easy"), "the plane has all tasks"),
        (lambda it: it.plot(agent="ppo"), "agent='ppo' has no scores"),
        (lambda it: it.analysis("taxonomie"), "did you mean 'taxonomy'"),
    ],
)
def test_mistakes_are_sentences(curves, ask, told):
    with pytest.raises(InputError, match=told):
        ask(lcd.load_study(curves))


def test_threshold_definition_and_ranges_are_checked(curves):
    for wrong in ({"definition": "papr"}, {"threshold": "midian"}, {"ranges": {"nobody": (0, 1)}}):
        with pytest.raises(InputError):
            lcd.load_study(curves, **wrong)
    for wrong in ({"ranges": 1}, {"ranges": [1]}, {"ranges": {"toy/easy": 3}}, {"definition": ["paper"]}, {"path": 1}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}.*="):
            lcd.load_study(**{"path": curves, **wrong})
    numpys = lcd.load_study(curves, ranges={"toy/easy": (np.float64(0), np.int64(2))}).table.set_index("task")
    assert numpys.loc["toy/easy", "auc_pixels"] == pytest.approx(0.4)
    half = lcd.load_study(curves, ranges={"toy/easy": (0, 2)}).table.set_index("task")
    assert half.loc["toy/easy", "auc_pixels"] == pytest.approx(0.4)


EVALUATION = ["study.evaluation.every=7", "study.evaluation.greedy=true"]


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ({"benchmark": "toy"}, ["benchmark=toy"]),
        (
            {"study": {"seeds": 3, "tasks": ["toy/easy-sight-hard-reward"]}, "agent": {"name": "ppo", "clip": 0.1}},
            ["study.seeds=3", "study.tasks=[toy/easy-sight-hard-reward]", "agent=ppo", "agent.clip=0.1"],
        ),
        ({"study": "paper", "definition": "calibrated"}, ["study=paper", "definition=calibrated"]),
        ({"study": {"agent_params": {"ppg": {"clip": 0.1}}}}, ["study.agent_params={ppg: {clip: 0.1}}"]),
        ({"study": {"grid": {"knobs.delay": [0, 2]}}}, ["study.grid={knobs.delay: [0, 2]}"]),
        ({"study": {"evaluation": {"every": 7, "greedy": True}}}, EVALUATION),
        ({"launcher": {"workers": 2}, "out": "a b/c"}, ["launcher.workers=2", "out=a b/c"]),
        ({"analyses": None, "tracker": "none"}, ["analyses=null", "tracker=none"]),
    ],
)  # fmt: skip
def test_what_is_said_in_python_is_what_is_typed(said, typed):
    assert compose("diagnose", as_words("diagnose", said)) == compose("diagnose", typed)


def test_wrong_keys_are_told_before_anything_is_made(tmp_path):
    with pytest.raises(InputError, match=r"study\.seedz is not a key"):
        lcd.diagnose("toy", study={"seedz": 3}, out=tmp_path / "s")
    with pytest.raises(InputError, match="is not defined at the top of a module"):
        lcd.diagnose(type("Mine", (), {"__module__": "__main__"}), out=tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_progress_is_drawn_anew_in_a_notebooks_cell(monkeypatch):
    from lcd.pipelines.study.progress import Progress

    shown = []
    place = types.SimpleNamespace(update=shown.append)
    display = types.ModuleType("IPython.display")
    display.HTML, display.display = str, lambda first, display_id: place
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with Progress([], Console(force_jupyter=True)) as progress:
        progress.update()
    assert len(shown) == 2
    assert "0/0 runs done" in shown[-1]
    assert '<progress value="0.000"' in shown[-1]


def test_everything_public_has_types():
    for name in lcd.__all__:
        each = getattr(lcd, name)
        if callable(each) and not isinstance(each, type):
            assert "return" in each.__annotations__, name
            assert set(each.__code__.co_varnames[: each.__code__.co_argcount]) <= set(each.__annotations__), name
