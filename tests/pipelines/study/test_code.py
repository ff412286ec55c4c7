"""Only a command names code: no file of a study, whatever it says, makes a command import anything."""

import json
import os
import shutil
import textwrap
from pathlib import Path

import pytest
import torch
import yaml
from fork_server import interpret

from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.envs.registry import code_names, naming
from lcd.pipelines.launch.launchers import Call, launch

NAME = "mischief:thing"
MISCHIEF = """
from pathlib import Path
Path(__file__).with_name("imported").touch()
"""
COMMANDS = """
import json, sys
from lcd import cli
import fake_training

fake_training.instead()
codes = []
for arguments in json.loads(sys.argv[1]):
    print("$", *arguments, flush=True)
    codes.append(cli.main(arguments))
print(json.dumps(codes))
"""
ASKED = ["benchmark=toy", "study.tasks=[toy/easy-sight-easy-reward]", "study.seeds=1", "study.steps=100"]
ASKED += ["tracker=none", "device=cpu", "launcher.workers=1"]


@pytest.fixture
def place(tmp_path):
    """A folder with a module that leaves a mark when it is imported, and a study that names it wherever it can."""
    (tmp_path / "mischief.py").write_text(textwrap.dedent(MISCHIEF))
    return tmp_path


def run(place, *commands):
    """Run commands where the module lies, which is on the path as well; returns exit codes and what was printed."""
    here = str(Path(__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(place), here]), "PYTHONSAFEPATH": ""}
    process = interpret(COMMANDS, json.dumps(commands), environment=environment, folder=place, piped=True)
    told, _ = process.communicate()
    assert process.returncode == 0, told
    return json.loads(told.splitlines()[-1]), told


def poison(study):
    """Name the module in every field of every file that holds a name, in runs that nobody asked for as well."""
    runs = study / "runs"
    one = next(iter(sorted(runs.iterdir())))
    config = yaml.safe_load((one / "config.yaml").read_text())
    parts = {"benchmark": NAME, "agent": {"name": NAME}, "frontend": {"name": NAME}, "task": NAME, "view": NAME}
    parts |= {"knobs": {"config": NAME, "image_folder": NAME}, "shaping": NAME, "videos": {"policy": NAME}}
    parts |= {"curriculum": [{"name": NAME, "task": NAME, "knobs": {}, "steps": 5}] * 2}
    parts |= {"frontend ": {"name": "flow", "weights": NAME}, "task ": "hardness/gym/mischief:thing", "kind ": NAME}
    (one / "checkpoints").mkdir()
    torch.save({"state_dict": {}}, one / "checkpoints" / "last.ckpt")
    for number, (key, value) in enumerate([*parts.items(), ("all", None)]):
        other = runs / f"{number:012x}"
        shutil.copytree(one, other)
        changed = config | {"seeds": [number + 100]} | (parts if key == "all" else {key.strip(): value})
        changed.pop("videos" if number % 2 else "", None)
        (other / "config.yaml").write_text(yaml.safe_dump(changed))
        curve = (other / "curve.csv").read_text()
        for cell in ("toy/easy-sight-easy-reward", ",toy,"):
            curve = curve.replace(cell, f",{NAME}," if cell.startswith(",") else NAME)
        (other / "curve.csv").write_text(curve if number % 3 else curve.replace(NAME, "hardness/gym/mischief:thing"))
    hostile = {"benchmark": {"name": NAME}, "agent": {"name": NAME}, "frontend": {"name": NAME}, "launcher": NAME}
    record = yaml.safe_load((study / "study.yaml").read_text())
    record["requests"] += [hostile, {"train": config | parts}]
    record |= hostile | {"recommended": {"tasks": {NAME: {"agent": NAME, "frontend": NAME}}, "shared_seeds": True}}
    record["stopping"] = {"tasks": {NAME: {"level": 0.9}}}
    (study / "study.yaml").write_text(yaml.safe_dump(record))
    for diagnosis in study.glob("diagnosis/diagnosis.json"):
        text = diagnosis.read_text()
        diagnosis.write_text(text.replace("toy/easy-sight-easy-reward", NAME).replace('"toy"', f'"{NAME}"'))


def test_no_command_imports_what_a_study_names(place):
    study = str(place / "study")
    codes, told = run(place, ["diagnose", *ASKED, f"out={study}"])
    assert codes == [0], told
    poison(place / "study")
    again = ["diagnose", *ASKED, f"out={study}"]
    one = next(str(path) for path in sorted((place / "study" / "runs").iterdir()))
    curves = one + "/curve.csv"
    view = yaml.safe_load((Path(one) / "config.yaml").read_text())["view"]
    filmed = ["pretrain", "benchmark=toy", "tasks=[toy/easy-sight-easy-reward]", f"view={view}", "frontend=flow"]
    filmed += ["tracker=none", "pretraining.videos.count=1", "pretraining.videos.held_out=1"]
    players = [path for path in (place / "study" / "runs").iterdir() if path.name.startswith("0000")]
    shutil.copytree(study, place / "other")
    shutil.rmtree(place / "study" / "views")
    codes, told = run(
        place,
        again,
        [*again[:-1], "stopping=auto", "stopping.first=2", "study.seeds=2", f"out={study}"],
        [*again, "--dry-run"],
        [*again, "study.steps=50", "study.seeds=[5]"],
        ["train", "task=toy/easy-sight-easy-reward", "seeds=[7]", "steps=100", "tracker=none", f"out={study}"],
        ["diagnose", "study=adaptive", f"study.source={study}", *ASKED, f"out={place}/adaptive"],
        ["report", study],
        ["report", study, str(place / "other")],
        ["report", curves],
        ["power", study],
        ["power", curves],
        ["view", "toy/easy-sight-easy-reward", f"out={place}/x.png"],
        ["measure", "toy", "tasks=[toy/easy-sight-easy-reward]", "episodes=2"],
        *([*filmed, f"policy={each}", f"out={place}/filmed"] for each in players),
        ["list"],
    )
    assert not (place / "imported").exists(), told
    assert "only a command names code" in told


def test_what_the_command_names_is_imported(place):
    codes, told = run(place, ["diagnose", f"benchmark={NAME}", *ASKED[1:]])
    assert (place / "imported").exists()
    assert codes == [2], told


def test_a_command_says_what_may_be_imported():
    config = {"benchmark": {"name": "toy"}, "study": {"agents": ["a:b", "ppo"], "agent_params": {"c:d": {}}}}
    assert code_names(config) == {"a:b", "c:d"}
    with naming({"a:b"}):
        with pytest.raises(InputError, match=r"'mischief:thing' is named by a file, and only a command names code"):
            get_benchmark(NAME)
        with pytest.raises(InputError, match="cannot be imported"):
            get_benchmark("a:b")


def test_workers_import_what_the_launching_process_may(place, monkeypatch):
    monkeypatch.syspath_prepend(place)
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    with naming({"a:b"}):
        (outcome,) = launch("local", "launched:benchmark", [Call((NAME,))], workers=1)
    assert "only a command names code" in outcome.error
    assert not (place / "imported").exists()
    with naming({NAME}):
        launch("local", "launched:benchmark", [Call((NAME,))], workers=1)
    assert (place / "imported").exists()
