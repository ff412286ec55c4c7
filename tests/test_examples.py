"""What `examples/` adds from outside, as a package that is installed beside LCD, by the real commands."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from lcd import cli
from lcd.config.registries import KINDS, registry

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TASKS = ["corridors/lit", "corridors/dim"]
ADDED = {
    "benchmark": "corridors",
    "frontend": "edges",
    "agent": "habit",
    "contrast": "length",
    "job": "chance",
    "launcher": "in_turn",
    "tracker": "lines",
    "analysis": "spread",
    "section": "colophon",
}
LISTS = {"benchmark": "benchmarks", "analysis": "analyses"}
STUDY = ["benchmark=corridors", "study.seeds=2", "study.steps=256", "study.evaluation.every=128"]
STUDY += ["study.evaluation.copies=2", "study.evaluation.episodes=1", "device=cpu", "launcher=in_turn"]


def install(folder: Path) -> Path:
    """Write what an installation of `examples/` leaves: a folder that says which names the package has."""
    project = tomllib.loads((EXAMPLES / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / "lcd_examples-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    (folder / "lcd_examples").symlink_to(EXAMPLES / "lcd_examples")
    return folder


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package, installed for this process and those that it starts; the working directory is empty."""
    site = install(tmp_path / "site")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield site
    for name in [name for name in sys.modules if name.partition(".")[0] == "lcd_examples"]:
        del sys.modules[name]


def test_every_kind_has_an_example(installed):
    assert set(ADDED) == set(KINDS)
    for kind, name in ADDED.items():
        assert name in registry(kind).names()


@pytest.mark.parametrize("kind", ADDED)
def test_what_is_installed_is_listed_with_what_it_is(installed, kind, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["list", LISTS.get(kind, f"{kind}s")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(ADDED[kind] + " ")]
    assert len(line.split()) > 4


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """One study of which everything but PPO comes from the package, by the command as a user gives it."""
    folder = tmp_path_factory.mktemp("outside")
    site = install(folder / "site")
    command = [*STUDY, "agent=habit", "study.contrasts=[length]", "launcher.pause=0.01", "out=study"]
    command += ["tracker=lines", "tracker.folder=mirror", "analysis_params={spread: {wide: 0}}"]
    command += ["section_params={colophon: {author: A. Researcher}}"]
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from lcd.cli import main; sys.exit(main())", "diagnose", *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_benchmark_an_agent_and_a_contrast_from_outside(study):
    table = pd.read_csv(study / "study" / "diagnosis" / "challenge.csv")
    assert sorted(table["task"]) == sorted(TASKS)
    assert set(table["agent"]) == {"habit"}
    assert table["length_raw"].notna().all()


def test_a_launcher_from_outside(study):
    for status in (study / "study" / "runs").glob("*/status.json"):
        assert json.loads(status.read_text())["state"] == "done"


def test_a_tracker_from_outside(study):
    runs = sorted(path.name for path in (study / "study" / "runs").iterdir())
    assert sorted(path.stem for path in (study / "mirror").iterdir()) == runs
    for path in (study / "mirror").iterdir():
        curve = pd.read_csv(study / "study" / "runs" / path.stem / "curve.csv")
        assert len(path.read_text().splitlines()) == len(curve)


def test_a_kind_of_job_from_outside(installed):
    command = [sys.executable, "-m", "lcd_examples.chance", "benchmark=corridors", "study.steps=32", "tracker=none"]
    for _ in range(2):
        done = subprocess.run([*command, "out=chance"], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    found = {path.parent.name: path.read_text().splitlines() for path in Path("chance/runs").glob("*/rewards.txt")}
    assert [len(lines) for lines in found.values()] == [32] * len(TASKS)
    assert cli.main(["verify", "chance"]) == 0


def test_a_mistake_in_a_command_of_ones_own_is_one_sentence(installed):
    command = [sys.executable, "-m", "lcd_examples.chance", "benchmark=corridor", "tracker=none", "out=chance"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert done.stderr == "chance: benchmark=corridor is unknown: did you mean 'corridors'?\n"
    assert not Path("chance").exists()


def test_an_analysis_and_a_section_from_outside(study):
    folder = study / "study" / "diagnosis"
    page = (folder / "report.html").read_text()
    assert "How far apart do runs end?" in page
    assert "A. Researcher: 2 tasks." in page
    assert pd.read_csv(folder / "tables" / "spread.csv")["task"].isin(TASKS).sum() == len(TASKS)
    assert (folder / "figures" / "spread.png").is_file()


def test_a_front_end_from_outside(installed):
    # The task's name says its benchmark.
    common = ["task=corridors/lit", "agent=ppo", "frontend=edges", "frontend.strength=2"]
    common += ["seeds=1", "steps=256", "evaluation.every=256", "evaluation.copies=1", "evaluation.episodes=1"]
    assert cli.main(["train", *common, "device=cpu", "launcher=in_turn", "tracker=none", "out=study"]) == 0
    (config,) = Path("study/runs").glob("*/config.yaml")
    assert "strength: 2" in config.read_text()


def keys_told(capsys, *command):
    """What a command's help says of each key: its default and its meaning."""
    assert cli.main([*command, "--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    return dict(line.split("=", 1) for line in lines if "=" in line.partition(" ")[0])


@pytest.mark.parametrize(
    ("choice", "key", "said"),
    [
        ("agent=habit", "agent.epsilon", r"0\.2 +share of actions that are tried at random"),
        ("frontend=edges", "frontend.strength", r"1\.0 +what differences are multiplied by"),
        ("launcher=in_turn", "launcher.pause", r"0\.0 +seconds between two calls"),
        ("tracker=lines", "tracker.folder", r"mirror +where the files are written, one a run"),
        ("agent=lcd_examples.habit:Habit", "agent.epsilon", r"0\.2 +share of .*"),
        ("frontend=lcd_examples.edges:Edges", "frontend.strength", r"1\.0 +what .*"),
        ("launcher=lcd_examples.in_turn:launch", "launcher.pause", r"0\.0 +seconds .*"),
        ("tracker=lcd_examples.lines:Lines", "tracker.folder", r"mirror +where .*"),
    ],
)
def test_the_help_has_the_settings_of_what_is_chosen(installed, capsys, choice, key, said):
    told = keys_told(capsys, "train", choice)
    assert re.fullmatch(said, told[key])
    assert key not in keys_told(capsys, "train")


ODD = """
from dataclasses import dataclass, field

@dataclass
class Base:
    '''What all have.

    Attributes:
        many: how many there are,
            of each kind: all.

    More: is not one of them.
    '''
    many: list = field(default_factory=lambda: [1, 2])

@dataclass(kw_only=True)
class Config(Base):
    place: str
    plain: float | None = field(default=None, metadata={"meaning": "as the schemas say it"})

class Agent:
    Config = Config
"""


def test_the_help_of_a_file_in_the_working_directory(installed, capsys):
    Path("odd.py").write_text(ODD)
    told = keys_told(capsys, "diagnose", "agent=odd:Agent")
    found = {key: " ".join(text.split()) for key, text in told.items() if key.startswith("agent.")}
    assert found == {
        "agent.many": "[1, 2] how many there are, of each kind: all",
        "agent.place": "???",
        "agent.plain": "null as the schemas say it",
    }
    assert cli.main(["train", "agent=no_such_module:Agent", "--help"]) == 2
    assert capsys.readouterr().err.startswith("lcd: The agent 'no_such_module:Agent' cannot be imported")


TRAIN = ["train", "task=toy/easy-sight-easy-reward"]
ANALYSIS, SECTION = "lcd_examples.spread:spread", "lcd_examples.colophon:colophon"
WRONG = {
    "pause": [*TRAIN, "launcher=lcd_examples.in_turn:launch", "launcher.puse=1"],
    "folder": [*TRAIN, "tracker=lcd_examples.lines:Lines", "tracker.fodler=x"],
    "wide": ["report", "x.csv", f"analyses=[{ANALYSIS}]", f"analysis_params={{{ANALYSIS}: {{wid: 1}}}}"],
    "author": ["report", "x.csv", f"sections=[{SECTION}]", f"section_params={{{SECTION}: {{autor: x}}}}"],
}


@pytest.mark.parametrize("meant", WRONG)
def test_a_wrong_setting_of_an_object_in_a_module_is_one_sentence(installed, meant, capsys):
    assert cli.main(WRONG[meant]) == 2
    told = capsys.readouterr().err
    assert f"did you mean '{meant}'?" in told
    assert told.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_a_value_of_the_wrong_kind_is_refused(installed, capsys):
    assert cli.main(["train", "task=toy/easy-sight-easy-reward", "launcher=in_turn", "launcher.pause=long"]) == 2
    assert "launcher.pause=long should be of type float." in capsys.readouterr().err


MINE = """
import pandas as pd
from lcd.analyses import Analysis

def rows(evidence):
    table = pd.DataFrame({"task": ["corridors/lit", "corridors/dim"], "view": "pixels", "rows": [1.0, 2.0]})
    return Analysis("my_rows", "How many rows?", table, ["There are three rows."])

def nothing(evidence):
    return None

def footer(page):
    return '<section><h2>What I think &amp; say</h2></section>'
"""


def test_ones_own_stand_beside_the_usual_ones(installed, study, capsys):
    Path("mine.py").write_text(MINE)
    ask = ["report", str(study / "study"), "analyses=[all,mine:rows,mine:nothing]", "out=told"]
    assert cli.main([*ask, "sections=[all,mine:footer]"]) == 0
    page, told = Path("told/report.html").read_text(), " ".join(capsys.readouterr().out.split())
    assert "How many rows? There are three rows." in told
    assert "The analysis 'mine:nothing' is left out: these curves do not allow it." in told
    mine = page[page.index("<h3>How many rows?") :]
    assert mine[: mine.index("</table>")].count('data-name="view">pixels<') == 2
    assert '<a href="#section-mine-footer">What I think &amp; say</a>' in page
    assert 'id="section-mine-footer"' in page
    assert "Task by task</a>" in page
    assert "How far apart do runs end?" in page


def test_an_analysis_that_no_section_shows_is_told(installed, study, capsys):
    Path("mine.py").write_text(MINE)
    assert cli.main(["report", str(study / "study"), "analyses=[mine:rows]", "sections=[mine:footer]", "out=told"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "The analysis 'mine:rows' is in the tables, but in no section of the page" in told
    assert "How many rows?" not in Path("told/report.html").read_text()


def test_an_analysis_that_fails_is_left_out_and_named(installed, study, capsys):
    Path("broken.py").write_text("def analysis(evidence):\n    raise KeyError('nothing')\n")
    assert cli.main(["report", str(study / "study"), "analyses=[broken:analysis, taxonomy]", "out=told"]) == 0
    assert "The analysis 'broken:analysis' is left out: KeyError: 'nothing'" in " ".join(
        capsys.readouterr().out.split()
    )
