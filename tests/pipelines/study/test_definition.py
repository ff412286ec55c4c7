"""A study remembers the definition that it was asked for with, and who reads it keeps to it."""

import json
from pathlib import Path

import fake_training
import pytest

import lcd
from lcd import cli
from lcd.config.compose import compose
from lcd.envs.errors import InputError
from lcd.pipelines.study import adaptive, diagnose, store
from lcd.pipelines.study.remembered import definition_of

SMALL = ["study.tasks=[toy/easy-sight-easy-reward,toy/hard-sight-hard-reward]", "study.seeds=2", "study.steps=400"]


@pytest.fixture(scope="module", autouse=True)
def made_up():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        fake_training.instead(patch)
        yield


def made(out, *words):
    assert cli.main(["diagnose", *SMALL, *words, f"out={out}", "tracker=none", "launcher.workers=2"]) == 0
    return out


@pytest.fixture(scope="module")
def by_the_paper(tmp_path_factory):
    return made(tmp_path_factory.mktemp("studies") / "paper", "definition=paper")


def told(folder):
    return json.loads((folder / "diagnosis.json").read_text())["definition"]


def test_a_report_keeps_to_what_a_study_was_diagnosed_by(by_the_paper, tmp_path, capsys):
    assert told(by_the_paper / "diagnosis") == "paper"
    assert cli.main(["report", str(by_the_paper), f"out={tmp_path / 'kept'}"]) == 0
    assert told(tmp_path / "kept") == "paper"
    assert cli.main(["report", str(by_the_paper), f"out={tmp_path / 'other'}", "definition=calibrated"]) == 0
    assert told(tmp_path / "other") == "calibrated"
    assert lcd.load_study(by_the_paper).diagnosis.definition == "paper"
    assert lcd.load_study(by_the_paper, definition="calibrated").diagnosis.definition == "calibrated"
    capsys.readouterr()
    assert cli.main(["power", str(by_the_paper)]) == 0
    assert "definition paper" in capsys.readouterr().out
    assert cli.main(["power", str(by_the_paper), "definition=calibrated"]) == 0
    assert "definition calibrated" in capsys.readouterr().out


def test_asked_again_without_it_a_study_has_the_usual_one(by_the_paper, tmp_path):
    usual = made(tmp_path / "usual")
    assert told(usual / "diagnosis") == "calibrated"
    made(usual, "definition=paper")
    assert definition_of(store.Study(usual)) == told(usual / "diagnosis") == "paper"
    made(usual)
    assert definition_of(store.Study(usual)) == told(usual / "diagnosis") == "calibrated"
    # Which one a study was diagnosed by is no part of what is trained.
    assert {run.path.name for run in store.Study(usual).runs()} == {
        run.path.name for run in store.Study(by_the_paper).runs()
    }


def test_the_papers_study_is_reported_by_the_papers_definition(tmp_path):
    out = made(tmp_path / "study", "study=paper", "study.frontends=[]")
    assert told(out / "diagnosis") == "paper"
    assert cli.main(["report", str(out)]) == 0
    assert told(out / "diagnosis") == "paper"


def test_it_is_remembered_before_anything_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(diagnose, "train_missing", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        diagnose.run(compose("diagnose", [*SMALL, "study=paper", "study.frontends=[]", f"out={tmp_path / 'study'}"]))
    assert definition_of(store.Study(tmp_path / "study")) == "paper"


def test_two_studies_are_compared_by_the_definition_that_they_share(by_the_paper, tmp_path):
    usual = made(tmp_path / "usual")
    for other, expected in ((by_the_paper, "paper"), (usual, "calibrated")):
        out = tmp_path / f"beside-{expected}"
        assert cli.main(["report", str(by_the_paper), str(other), f"out={out}"]) == 0
        assert f"Raw scores by the definition “{expected}”" in (out / "comparison.html").read_text()


def test_what_is_recommended_follows_the_sources_definition(by_the_paper, tmp_path, monkeypatch):
    from lcd.scores import diagnosis

    asked, real = [], diagnosis.diagnose_curves
    monkeypatch.setattr(
        diagnosis, "diagnose_curves", lambda *args, **keys: asked.append(keys["definition"]) or real(*args, **keys)
    )
    for source in (by_the_paper, made(tmp_path / "usual")):
        asked.clear()
        with pytest.raises(InputError, match="recommends nothing"):  # two seeds place no task
            adaptive.recommend(compose("diagnose", ["study=adaptive", f"study.source={source}"]))
        assert asked == [definition_of(store.Study(source))]


def test_a_strangers_record_may_hold_anything(tmp_path):
    study = store.Study(tmp_path / "study", create=True)
    for odd in (["paper"], 3, None, "papre", {}):
        study.note(definition=odd)
        assert definition_of(study) == "calibrated"
    assert definition_of(None) == "calibrated"
