"""Ablations, adaptive studies and comparisons from the command line, with made-up training."""

from pathlib import Path

import curve_sets
import fake_training
import pandas as pd
import pytest

from lcd import cli
from lcd.frontends import frontends
from lcd.frontends.identity import Identity
from lcd.pipelines.publish.view_pictures import read_pictures
from lcd.pipelines.study import adaptive, diagnose, stopping, store
from lcd.scores import diagnosis

SMALL = ["study.seeds=2", "study.steps=400", "tracker=none", "launcher.workers=2"]
TASKS = "study.tasks=[toy/easy-sight-easy-reward,toy/hard-sight-hard-reward]"


class Glasses(Identity):
    """A front-end in name only: what it trains is made up."""


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    fake_training.instead(monkeypatch)
    monkeypatch.setitem(frontends._built_in, "glasses", Glasses)


@pytest.fixture
def source(tmp_path):
    out = tmp_path / "source"
    assert cli.main(["diagnose", TASKS, *SMALL, f"out={out}"]) == 0
    return out


def test_an_ablations_table_comes_first(tmp_path, capsys):
    out = tmp_path / "ablation"
    words = ["ablate", "study=frontend", TASKS, *SMALL, "study.frontends=[identity,glasses]", f"out={out}"]
    assert cli.main(words) == 0
    told = capsys.readouterr().out
    assert "What front-ends gain, task by task" in " ".join(told.split())
    assert "AUC by view" not in told
    table = pd.read_csv(out / "diagnosis" / "tables" / "frontend.csv")
    assert len(table) == 2
    # Made-up training takes no notice of front-ends.
    assert table["gain"].abs().max() < 1e-9
    page = (out / "diagnosis" / "report.html").read_text()
    assert page.index('id="frontend"') < page.index('class="verdict"')


@pytest.fixture
def diagnosed(monkeypatch):
    """How many rows of curves each diagnosis was made of, in turn."""
    calls, diagnose = [], diagnosis.diagnose_curves

    def counted(dataframe, *arguments, **named):
        calls.append(len(dataframe))
        return diagnose(dataframe, *arguments, **named)

    for module in (diagnosis, stopping):
        monkeypatch.setattr(module, "diagnose_curves", counted)
    return calls


def test_nothing_is_diagnosed_twice(tmp_path, monkeypatch, diagnosed):
    asked, choice = [], {"agent": "ppo", "frontend": "glasses"}
    tasks = dict.fromkeys(("toy/easy-sight-easy-reward", "toy/hard-sight-hard-reward"), choice)
    monkeypatch.setattr(adaptive, "recommend", lambda cfg: asked.append(cfg) or {"tasks": tasks, "shared_seeds": False})
    words = ["study=adaptive", "study.source=elsewhere", "study.frontends=[identity,glasses]", TASKS, *SMALL]
    assert cli.main(["diagnose", *words, f"out={tmp_path / 'a'}"]) == 0
    assert (len(asked), len(diagnosed)) == (1, 1)


def test_the_last_look_of_a_study_is_its_report(tmp_path, diagnosed):
    rounds = ["stopping=auto", "stopping.first=2", "stopping.every=2", "stopping.phi=1e-9", *SMALL, "study.seeds=4"]
    assert cli.main(["diagnose", TASKS, *rounds, f"out={tmp_path / 'b'}"]) == 0
    # A look at half of the seeds, and the report of all of them.
    assert len(diagnosed) == 2
    assert diagnosed[1] > diagnosed[0]


def test_an_adaptive_study_trains_what_is_recommended_and_compares(tmp_path, capsys):
    areas = {"toy/easy-sight-easy-reward": curve_sets.TASKS["toy/easy"]}
    areas["toy/hard-sight-hard-reward"] = curve_sets.TASKS["toy/both"]
    source, out = tmp_path / "source.csv", tmp_path / "adaptive"
    curve_sets.study(areas, seeds=8, noise=0.01, benchmark="toy", agent="ppo").to_csv(source, index=False)
    words = ["study=adaptive", f"study.source={source}", "study.agents=[ppo,recurrent_ppo]", *SMALL[1:]]
    words += ["study.frontends=[identity,glasses]", "study.seeds=[10,11]", TASKS, f"out={out}"]
    assert cli.main(["diagnose", *words]) == 0
    chosen = store.Study(out).record["recommended"]
    assert set(chosen["tasks"]) == {"toy/easy-sight-easy-reward", "toy/hard-sight-hard-reward"}
    assert chosen["shared_seeds"] is False
    pairs = {(run.config["agent"]["name"], run.config["frontend"]["name"]) for run in store.Study(out).runs()}
    wanted = {(each["agent"], each["frontend"]) for each in chosen["tasks"].values()} | {("ppo", "identity")}
    assert pairs == wanted
    table = pd.read_csv(out / "diagnosis" / "tables" / "adaptive.csv")
    assert len(table) == len(wanted)
    assert "Adapting to each task" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["diagnose", "study=adaptive", *SMALL]) == 2
    assert "study.source is missing" in capsys.readouterr().err


def test_two_studies_are_compared(source, tmp_path, capsys):
    other = tmp_path / "other"
    assert cli.main(["diagnose", TASKS, *SMALL, "study.seeds=[5,6]", f"out={other}"]) == 0
    capsys.readouterr()
    assert cli.main(["report", str(source), str(other), "tables=[markdown]"]) == 0
    told = capsys.readouterr().out
    assert "gain over pixels: none of 2 tasks differs" in told
    folder = source / "against-other"
    assert (folder / "comparison.html").stat().st_size > 1000
    table = pd.read_csv(folder / "tables" / "against.csv")
    assert set(table["task"]) == {"toy/easy-sight-easy-reward", "toy/hard-sight-hard-reward"}
    assert (folder / "tables" / "against.md").is_file()
    assert cli.main(["report", str(source), "tables=[markdwn]"]) == 2
    assert "did you mean 'markdown'" in capsys.readouterr().err


def test_views_are_pictured_once_and_shown(source):
    study = store.Study(source)
    found = read_pictures(study)
    assert {task: sorted(views) for task, views in found.items()} == {
        task: ["figure_ground", "pixels", "semantic"]
        for task in ("toy/easy-sight-easy-reward", "toy/hard-sight-hard-reward")
    }
    page = (source / "diagnosis" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 6
    before = {path: path.stat().st_mtime_ns for path in source.glob("views/*/*.png")}
    diagnose.take_pictures(study, [run.config for run in study.runs()])
    assert before == {path: path.stat().st_mtime_ns for path in source.glob("views/*/*.png")}
    picture = next(iter(before))
    picture.write_bytes(b"<svg onload=alert(1)>")
    assert sum(len(views) for views in read_pictures(study).values()) == 5
