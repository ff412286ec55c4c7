"""The source of a `module:object`: what counts as it, and what becomes of a study when it is edited."""

import hashlib
import sys

import pytest

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import runs, sources, store
from lcd.pipelines.study.configs import run_id

WORLDS = """
import helper
import numpy
raise RuntimeError("imported")
class Worlds: ...
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    # Another test may have imported a module of that name.
    monkeypatch.delitem(sys.modules, "worlds", raising=False)

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return hashlib.sha256(text.encode()).hexdigest()

    return write


def test_a_module_counts_with_what_it_imports_from_its_folder(code):
    """Nothing is imported: the module would say so."""
    expected = {"worlds": code("worlds.py", WORLDS), "helper": code("helper.py", "def f():\n    import deeper\n")}
    expected["deeper"] = code("deeper.py", "not Python")
    code("unrelated.py", "")
    assert sources.hashes_of("worlds:Worlds") == expected
    assert not {"worlds", "helper"} & set(sys.modules)


def test_a_package_counts_with_the_packages_around_and_relative_imports(code):
    names = {
        "pack": code("pack/__init__.py", "raise RuntimeError"),
        "pack.inner": code("pack/inner/__init__.py", "from . import tables"),
        "pack.inner.tables": code("pack/inner/tables.py", ""),
        "pack.inner.worlds": code("pack/inner/worlds.py", "from ..rules import PAY\nfrom .. import walls"),
        "pack.rules": code("pack/rules.py", "PAY = 1"),
        "pack.walls": code("pack/walls.py", ""),
    }
    code("pack/other.py", "")
    assert sources.hashes_of("pack.inner.worlds:Worlds") == names


@pytest.mark.parametrize("name", ["", ":x", "no_such:x", "a..b:x", "..:x", "a\0b:x", "sys:x"])
def test_what_is_not_found_has_no_source(name):
    assert sources.hashes_of(name) == {}


def test_installed_packages_count_alone():
    assert set(sources.hashes_of("gymnasium.vector.vector_env:VectorEnv")) >= {"gymnasium", "gymnasium.vector"}
    assert {name.partition(".")[0] for name in sources.hashes_of("gymnasium.vector.vector_env:VectorEnv")} == {
        "gymnasium"
    }


def test_a_run_of_registered_names_is_the_run_that_it_was():
    config = runs.run_config_from(compose("train", ["task=toy/easy-sight-easy-reward", "seeds=2", "steps=100"]))
    assert sources.SOURCE not in config
    assert run_id(config) == "940185aeb776"


BENCHMARK = """
import rules
class Worlds:
    name, tasks, views = "worlds", ("worlds/cave",), ("pixels",)
    r_min, r_max = {"worlds/cave": 0.0}, {"worlds/cave": rules.BEST}
    def make_vec(self, *args, **kwargs): raise RuntimeError
"""


@pytest.fixture
def worlds(code):
    code("edited_worlds.py", BENCHMARK.replace("rules", "edited_rules"))
    code("edited_rules.py", "BEST = 1.0")
    yield "edited_worlds:Worlds"
    for name in ("edited_worlds", "edited_rules"):
        sys.modules.pop(name, None)


def test_an_edited_benchmark_is_another_run_and_the_study_says_which_module(code, worlds, tmp_path, capsys):
    words = [f"benchmark={worlds}", "task=worlds/cave", "seeds=2", "steps=100"]
    before = runs.run_config_from(compose("train", words))
    (made,) = store.Study(tmp_path / "study", create=True).ask({}, [Job(before)])
    store.finish(made.path)
    code("edited_rules.py", "BEST = 2.0")
    now = runs.run_config_from(compose("train", words))
    assert run_id(now) != run_id(before)
    with pytest.raises(InputError, match="has changed \\(modules: edited_rules\\) since run"):
        store.Study(tmp_path / "study").ask({}, [Job(now)])
    with pytest.raises(InputError, match="since the run was asked for"):
        sources.refuse_changed(before)
    sources.refuse_changed(now)
    assert cli.main(["verify", str(tmp_path / "study")]) == 1
    assert "benchmark=edited_worlds:Worlds has changed since (modules: edited_rules)" in capsys.readouterr().out
    code("edited_rules.py", "BEST = 1.0")
    assert store.Study(tmp_path / "study").ask({}, [Job(before)])[0].path == made.path


def test_a_run_that_kept_no_source_is_not_taken_for_one_of_this_source(worlds, tmp_path):
    now = runs.run_config_from(compose("train", [f"benchmark={worlds}", "task=worlds/cave", "seeds=2", "steps=100"]))
    old = {key: value for key, value in now.items() if key != sources.SOURCE}
    study = store.Study(tmp_path / "study", create=True)
    study.ask({}, [Job(old)])
    with pytest.raises(InputError, match="It is not known whether the source of benchmark=edited_worlds:Worlds has"):
        study.ask({}, [Job(now)])


@pytest.mark.parametrize("trained", [True, False])
def test_a_renamed_benchmark_does_not_mix_with_the_runs_of_its_old_name(code, worlds, tmp_path, trained):
    """Curves know it by what it calls itself, and would hold each seed twice."""
    words = ["task=worlds/cave", "seeds=2", "steps=100"]
    before = runs.run_config_from(compose("train", [f"benchmark={worlds}", *words]))
    study = store.Study(tmp_path / "study", create=True)
    (made,) = study.ask({}, [Job(before)])
    if trained:
        name = get_benchmark(worlds).name
        (made.path / "curve.csv").write_text(f"benchmark,task\n{name},worlds/cave\n")
    code("renamed_worlds.py", BENCHMARK.replace("rules", "edited_rules"))
    now = runs.run_config_from(compose("train", ["benchmark=renamed_worlds:Worlds", *words]))
    with pytest.raises(InputError, match="calls itself 'worlds' as that does: give benchmark=edited_worlds:Worlds, or"):
        study.ask({}, [Job(now)])
    assert [run.path for run in study.runs()] == [made.path]
    sys.modules.pop("renamed_worlds", None)


def test_benchmarks_of_different_names_may_share_a_study(code, worlds, tmp_path):
    words = ["task=worlds/cave", "seeds=2", "steps=100"]
    study = store.Study(tmp_path / "study", create=True)
    (made,) = study.ask({}, [Job(runs.run_config_from(compose("train", [f"benchmark={worlds}", *words])))])
    (made.path / "curve.csv").write_text("benchmark,task\nanother,worlds/cave\n")
    code("renamed_worlds.py", BENCHMARK.replace("rules", "edited_rules"))
    now = runs.run_config_from(compose("train", ["benchmark=renamed_worlds:Worlds", *words]))
    study.ask({}, [Job(now)])
    assert len(study.runs()) == 2
    sys.modules.pop("renamed_worlds", None)
