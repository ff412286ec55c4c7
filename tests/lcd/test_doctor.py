"""The doctor's findings, on machines that are imagined by hiding or planting what it looks for."""

import builtins
import importlib
import re
import socket
import sys
import tomllib
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from lcd import doctor


def finding(name: str) -> doctor.Check:
    (check,) = [check for check in doctor.report() if check.name == name]
    return check


@pytest.fixture
def hide(monkeypatch):
    """Make modules look as if they were not installed."""

    def hide(*names: str) -> None:
        seen = doctor._installed
        monkeypatch.setattr(doctor, "_installed", lambda name: name not in names and seen(name))

    return hide


@pytest.fixture
def procgen(monkeypatch, tmp_path):
    """A machine with Procgen, whatever the real one has."""
    library = tmp_path / "procgen" / "data" / "prebuilt" / "libenv.so"
    library.parent.mkdir(parents=True)
    library.touch()
    origin = SimpleNamespace(origin=str(tmp_path / "procgen" / "__init__.py"))
    present = {"procgen", "gym3", "cffi", "imageio"}
    monkeypatch.setattr(doctor, "_installed", lambda name: name in present)
    monkeypatch.setattr(doctor, "find_spec", lambda name: origin)
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(__version__="1"))
    return SimpleNamespace(present=present, library=library)


def test_this_machine_runs_lcd():
    report = doctor.report()
    assert {"python", "torch", "torchvision", "numpy", "procgen", "wandb", "slurm", "ray"} <= {c.name for c in report}
    assert [check for check in report if check.status == "broken"] == []
    assert all(check.detail.endswith(".") for check in report)


def test_the_network_is_never_used(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the doctor opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert not [check for check in doctor.report() if "connection" in check.detail]


@pytest.mark.parametrize(("broken", "code"), [(False, 0), (True, 1)])
def test_exit_code_and_table(monkeypatch, broken, code):
    if broken:
        real = importlib.import_module

        def fail(name, *rest):
            if name == "torchvision":
                raise RuntimeError("operator torchvision::nms does not exist")
            return real(name, *rest)

        monkeypatch.setattr(importlib, "import_module", fail)
    out = StringIO()
    assert doctor.run(console=Console(file=out, width=400)) == code
    lines = [line for line in out.getvalue().splitlines() if line.startswith("torchvision")]
    assert len(lines) == 1
    assert ("torchvision::nms" in lines[0] and "torch==2.15.*" in lines[0]) is broken


def test_a_failing_optional_part_is_missing_and_harmless(monkeypatch):
    monkeypatch.setitem(doctor.OPTIONAL, "ray", lambda: 1 / 0)
    assert finding("ray").status == "missing"
    assert "ZeroDivisionError" in finding("ray").detail
    assert doctor.run(console=Console(file=StringIO())) == 0


def test_engines_of_benchmarks_are_found_without_being_imported(monkeypatch):
    before = set(sys.modules)
    monkeypatch.setattr(doctor, "_installed", lambda name: name not in ("dm_control", "ocatari"))
    monkeypatch.setattr(doctor, "version", lambda name: f"7 of {name}")
    found = {name: doctor._engine(name) for name in doctor.ENGINES}
    assert {name for name, check in found.items() if check.status == "missing"} == {"dm_control", "ocatari"}
    assert found["dm_control"].detail.startswith(
        "Not installed: dm_control. benchmark=dm_control needs it: pip install"
    )
    assert "pip install --no-deps ocatari" in found["ocatari"].detail
    assert found["sumo"].detail == "libsumo 7 of libsumo, sumo 7 of eclipse-sumo: benchmark=traffic."
    assert not {name.partition(".")[0] for name in set(sys.modules) - before} & {"minigrid", "ale_py", "mujoco"}


@pytest.mark.parametrize("name", doctor.ENGINES)
def test_every_engine_has_an_extra_and_every_version_can_be_asked(name):
    check = doctor._engine(name)
    assert check.status in ("ok", "missing")
    extras = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"\.\[([\w-]+)\]", doctor.ENGINES[name][2])) <= set(extras)


def test_procgen_is_explained_when_it_is_missing(procgen):
    procgen.present -= {"gym3", "imageio"}
    check = doctor._procgen()
    assert check.status == "missing"
    assert "gym3, imageio." in check.detail
    assert "pip install --no-deps procgen-mirror gym3" in check.detail


def test_procgen_beside_gym_warns_and_without_it_does_not(procgen):
    assert doctor._procgen().status == "ok"
    procgen.present.add("gym")
    check = doctor._procgen()
    assert check.status == "warn"
    assert "pip uninstall gym" in check.detail


def test_procgen_without_its_library_is_missing(procgen):
    procgen.library.unlink()
    assert doctor._procgen().status == "missing"
    assert "libenv.so" in doctor._procgen().detail


def test_the_doctor_never_imports_gym(monkeypatch):
    real = builtins.__import__

    def guard(name, *args, **kwargs):
        assert name.split(".")[0] not in ("gym", "procgen"), f"imported {name}"
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guard)
    assert "AssertionError" not in finding("procgen").detail


def test_wandb_can_be_missing(hide):
    hide("wandb")
    assert finding("wandb").status == "missing"
    assert "tracker=none" in finding("wandb").detail


@pytest.mark.parametrize(
    ("key", "base", "text", "expected"),
    [
        (None, None, None, False),
        ("0" * 40, None, None, True),
        (None, None, "machine api.wandb.ai login user password secret", True),
        (None, None, "machine example.org login user password secret", False),
        (None, "https://wandb.example.org", "machine wandb.example.org login user password secret", True),
        (None, None, "this is not a netrc file", False),
    ],
)
def test_login_is_found_where_wandb_looks(monkeypatch, tmp_path, key, base, text, expected):
    for name, value in (("WANDB_API_KEY", key), ("WANDB_BASE_URL", base)):
        monkeypatch.delenv(name, raising=False)
        if value:
            monkeypatch.setenv(name, value)
    path = tmp_path / "netrc"
    if text:
        path.write_text(text)
        path.chmod(0o600)
    monkeypatch.setenv("NETRC", str(path))
    assert doctor._logged_in() is expected
    assert "secret" not in doctor._wandb().detail


@pytest.mark.parametrize(("found", "status"), [("/usr/bin/sbatch", "ok"), (None, "missing")])
def test_slurm_is_looked_up_on_the_path(monkeypatch, found, status):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: found if name == "sbatch" else None)
    assert finding("slurm").status == status
    assert finding("browser").status == "missing"
