"""What is shipped is what is on disk, for wheels and for editable installs."""

import ast
import email
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lcd

REPO = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())
ROOMS = PROJECT["tool"]["setuptools"]["package-dir"]


def shipped_files() -> set[str]:
    """Every file that an installed copy must have, by its path below site-packages."""
    files = set()
    for package, folder in ROOMS.items():
        inside = package.replace(".", "/")
        for pattern in ("*.py", "*.yaml", "*.csv", "*.j2", "*.js", "*.css", "*.json", "py.typed"):
            for path in (REPO / folder).rglob(pattern):
                files.add(f"{inside}/{path.relative_to(REPO / folder).as_posix()}")
    return files


def python(code: str, cwd: Path, **environment: str) -> str:
    """Run `code` in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder into which a freshly built wheel was installed, and nothing else."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for folder in ROOMS.values():
        shutil.copytree(REPO / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPO / name, source)
    pip = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "install", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--no-compile", "--target", str(site)]
    subprocess.run([*pip, *options, str(source)], check=True)
    return site


def test_the_package_list_is_the_folders_on_disk():
    on_disk = set()
    for package, folder in ROOMS.items():
        for path in (REPO / folder).rglob("__init__.py"):
            on_disk.add(".".join([package, *path.parent.relative_to(REPO / folder).parts]))
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == on_disk


def test_the_wheel_holds_every_file(installed):
    held = {path.relative_to(installed).as_posix() for path in (installed / "lcd").rglob("*") if path.is_file()}
    assert held == shipped_files()
    assert {path.name for path in installed.iterdir() if "dist-info" not in path.name} <= {"lcd", "bin"}


def test_the_wheel_imports_without_the_repository(installed, tmp_path):
    packages = ", ".join(PROJECT["tool"]["setuptools"]["packages"])
    hide = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'Editable' not in str(f)]"
    show = "print(*{m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'lcd'}, sep='\\n')"
    code = f"{hide}; import {packages}; {show}"
    places = python(code, cwd=tmp_path, PYTHONPATH=str(installed)).splitlines()
    assert places
    assert [place for place in places if not place.startswith(str(installed))] == []


def test_the_wheel_declares_its_metadata(installed):
    (info,) = installed.glob("*.dist-info")
    metadata = email.message_from_string((info / "METADATA").read_text())
    assert metadata["Version"] == lcd.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == "<3.13,>=3.11"
    assert (info / "licenses" / "LICENSE").is_file()
    assert "lcd = lcd.cli:main" in (info / "entry_points.txt").read_text()


def test_this_install_imports_from_anywhere(tmp_path):
    code = "import lcd, lcd.envs, lcd.configs; print(lcd.__file__, lcd.envs.__file__, lcd.configs.__file__)"
    assert len(python(code, cwd=tmp_path).split()) == 3


def test_gymnasium_finds_our_environments_by_their_module(tmp_path):
    """Gymnasium 1.x has no plugins: an id may name the module that registers it, or that module is imported first."""
    for first, name in (("", "lcd.envs:lcd/hardness-discrete-v0"), ("import lcd.envs;", "lcd/hardness-discrete-v0")):
        options = "num_envs=2, vectorization_mode='vector_entry_point', view='semantic', split='train'"
        code = f"import gymnasium; {first} print(gymnasium.make_vec('{name}', {options}).num_envs)"
        assert python(code, cwd=tmp_path) == "2"


def test_constraints_fix_every_dependency_and_name_no_index():
    lines = [line for line in (REPO / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(line.count("==") == 1 for line in lines)
    fixed = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    assert needs() <= fixed


def locked() -> dict[str, str]:
    """What the lock's two files list: names and versions."""
    found = {}
    for name in ("build.txt", "linux-x86_64.txt"):
        for entry in re.split(r"\n(?=\S)", (REPO / "lock" / name).read_text().strip()):
            if not entry.startswith("#"):
                first, *hashes = entry.split(" \\\n    ")
                assert hashes, entry
                assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), entry
                found[first.split("==")[0]] = first.split("==")[1]
    return found


def test_the_lock_holds_what_the_constraints_list_and_so_does_the_bill_of_materials():
    lines = [line for line in (REPO / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert locked() == dict(line.split("==") for line in lines), "constraints.txt was changed: make lock"
    bill = json.loads((REPO / "lock" / "sbom.json").read_text())
    assert {each["name"]: each["version"] for each in bill["components"]} == locked()
    assert not any("://" in path.read_text() for path in (REPO / "lock").glob("*.[tj]*"))


def test_the_lock_lacks_nothing_that_anything_in_it_needs():
    """It is installed without asking packages what they need; numpy < 2 and gym are left out on purpose."""
    versions = {canonicalize_name(name): version for name, version in locked().items()}
    without = {"gym3", "procgen-mirror", "ocatari"}
    todo, seen, missing = [("learning-challenge-diagnosticator", ("all",))], set(), []
    while todo:
        name, extras = todo.pop()
        for text in importlib.metadata.requires(name) or []:
            need = Requirement(text)
            if need.marker and not any(need.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                continue
            wanted = canonicalize_name(need.name)
            if wanted != "learning-challenge-diagnosticator" and not need.specifier.contains(versions.get(wanted, "0")):
                missing.append(f"{name} needs {need}")
            elif (wanted, *need.extras) not in seen and wanted not in without:
                seen.add((wanted, *need.extras))
                todo.append((wanted, tuple(need.extras)))
    assert missing == []


def test_whatever_is_imported_is_declared():
    declared = {name.replace("-", "_") for name in needs()}
    modules = {"hydra_core": "hydra", "pyyaml": "yaml", "procgen_mirror": "procgen", "pillow": "PIL"}
    modules |= {"open_clip_torch": "open_clip", "scikit_learn": "sklearn", "eclipse_sumo": "sumo", "protobuf": "google"}
    declared = {modules.get(name, name) for name in declared}
    # Every notebook brings IPython along, and only there it is imported.
    assert {name for name in imported() if name not in declared | {"lcd", "IPython"}} == set()


def needs() -> set[str]:
    """The names of everything that pyproject.toml asks for, extras included."""
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *(need for name in extras if name != "all" for need in extras[name])]
    return {need.replace("=", " ").replace(">", " ").split()[0].lower().replace("_", "-") for need in wanted}


def imported() -> set[str]:
    """The top-level names, outside the standard library, that the shipped rooms import anywhere."""
    names = set()
    for folder in ROOMS.values():
        for path in (REPO / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names)
