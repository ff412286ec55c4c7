"""The import contract: which room may import what, read from the source of every room."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
ROOMS = {
    "envs": "lcd.envs",
    "frontends": "lcd.frontends",
    "pipelines": "lcd.pipelines",
    "configs": "lcd.configs",
    "lcd": "lcd",
}

# Beside the standard library; an engine or a backbone that a room takes in is added here, on purpose.
THIRD_PARTY = {
    "envs": {
        "numpy",
        "gymnasium",
        "gym3",
        "cffi",
        "imageio",
        "PIL",
        "mujoco",
        "libsumo",
        "sumo",
        "minigrid",
        "dm_control",
        "dm_env",
        "crafter",
    },
    "frontends": {"numpy", "torch", "torchvision", "open_clip", "timm", "safetensors", "huggingface_hub"},
    "configs": set(),
}
OURS = {
    "envs": {"lcd.envs"},
    "frontends": {"lcd.frontends", "lcd.envs"},
    "configs": {"lcd.configs"},
    "lcd": set(ROOMS.values()) - {"lcd.pipelines"},
    "pipelines": set(ROOMS.values()),
}
# The same idea in two rooms may have the same name: a benchmark of each family, say, or the numbers and their command.
SAME_IDEA = {
    "adaptive": {"lcd.analyses", "lcd.pipelines.study"},
    "against": {"lcd.analyses", "lcd.pipelines.publish"},
    "analysis": {"lcd.analyses", "lcd.horizon"},
    "benchmark": {
        f"lcd.envs.{room}"
        for room in (
            "atari",
            "bodies",
            "crafter",
            "ctgraph",
            "ehc",
            "families",
            "hardness",
            "minigrid",
            "procgen",
            "traffic",
        )
    },
    "calibration": {"lcd.envs", "lcd.scores"},
    "files": {"lcd.envs.ctgraph", "lcd.envs.tabular"},
    "images": {"lcd.envs.ctgraph", "lcd.envs.hardness"},
    "knobs": {"lcd.envs.ctgraph", "lcd.envs.hardness", "lcd.envs.procgen"},
    "mdp": {"lcd.envs.hardness", "lcd.envs.tabular"},
    "networks": {"lcd.agents", "lcd.frontends.flow"},
    "objectness": {"lcd.frontends", "lcd.pipelines.jobs"},
    "population": {"lcd.agents", "lcd.envs"},
    "pretrain": {"lcd.pipelines.jobs", "lcd.pipelines.kinds"},
    "power": {"lcd.pipelines.publish", "lcd.statistics"},
    "protocols": {"lcd.agents", "lcd.envs", "lcd.frontends"},
    "ranks": {"lcd.agents", "lcd.pipelines.jobs"},
    "reading": {"lcd.curves", "lcd.files"},
    "recipes": {"lcd.envs.ehc.games", "lcd.envs.ehc.puzzles"},
    "tables": {"lcd.horizon", "lcd.report"},
    "settings": {"lcd.agents", "lcd.config"},
    "tabular": {"lcd.agents", "lcd.envs.ctgraph", "lcd.envs.hardness"},
    "train": {"lcd.pipelines.jobs", "lcd.pipelines.kinds"},
    "vector": {"lcd.envs.procgen", "lcd.envs.tabular"},
}


def violations(root: Path) -> list[str]:
    """One sentence for every forbidden import or call in the rooms under `root`."""
    found = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            source, package = path.read_text(encoding="utf-8"), package_of(root / room, path)
            found += [f"{path.relative_to(root)}:{told}" for told in forbidden(room, package, source)]
    return found


@cache
def forbidden(room: str, package: str, source: str) -> list[str]:
    """Line and sentence for every forbidden import or call in a module."""
    tree = ast.parse(source)
    found = [
        f"{line}: {room}/ may not import {target}"
        for line, target in imports(tree, package)
        if not allowed(room, target)
    ]
    return found + [f"{line}: .cuda() is forbidden: use .to(device)" for line in cuda_calls(tree)]


def package_of(folder: Path, path: Path) -> str:
    """The package that relative imports in `path` start from."""
    return ".".join([ROOMS[folder.name], *path.parent.relative_to(folder).parts])


def imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything imported, inside functions too; `from a import b` names `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            start = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def allowed(room: str, target: str) -> bool:
    """Whether `room` may import the absolute name `target`."""
    top = target.split(".")[0]
    if top in {"tests", *ROOMS} - {"lcd"}:
        return False
    if top != "lcd":
        return top in sys.stdlib_module_names or room not in THIRD_PARTY or top in THIRD_PARTY[room]
    owner = max((name for name in ROOMS.values() if f"{target}.".startswith(f"{name}.")), key=len)
    return owner in OURS[room]


def module_graph(root: Path) -> dict[str, set[str]]:
    """Module → the modules of ours that it imports."""
    paths = {}
    for room, name in ROOMS.items():
        for path in sorted((root / room).rglob("*.py")):
            inner = path.relative_to(root / room).with_suffix("").parts
            paths[".".join([name, *(inner[:-1] if inner[-1] == "__init__" else inner)])] = (room, path)
    graph = {}
    for module, (room, path) in paths.items():
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        typing_only = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            for inner in ast.walk(node)
        }
        kept = ast.Module([node for node in ast.walk(tree) if id(node) not in typing_only], [])
        flat = ast.Module([node for node in kept.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        names = [target for _, target in imports(flat, package_of(root / room, path))]
        graph[module] = {name if name in paths else name.rpartition(".")[0] for name in names} & paths.keys()
    return graph


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Modules that reach themselves, those of one cycle together."""
    reach = {module: set(uses) for module, uses in graph.items()}
    for through in graph:
        for module in graph:
            if through in reach[module]:
                reach[module] |= reach[through]
    found = {tuple(sorted(other for other in reach[module] if module in reach[other])) for module in graph}
    return sorted(list(cycle) for cycle in found if cycle)


def cuda_calls(tree: ast.AST) -> Iterator[int]:
    """Lines that call a method `.cuda(...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            yield node.lineno


def test_rooms_keep_the_contract():
    assert violations(REPO) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("envs/planted.py", "import torch"),
        ("envs/planted.py", "import lightning as L"),
        ("envs/hardness/planted.py", "import pandas"),
        ("envs/planted.py", "import lcd"),
        ("envs/planted.py", "from lcd import Diagnosis"),
        ("envs/planted.py", "from .. import curves"),
        ("envs/hardness/planted.py", "from ...agents import networks"),
        ("envs/planted.py", "from lcd import *"),
        ("frontends/planted.py", "import lightning"),
        ("frontends/planted.py", "from lcd import agents"),
        ("frontends/planted.py", "from ..curves import read_curves"),
        ("lcd/planted.py", "import lcd.pipelines"),
        ("lcd/planted.py", "import lcd.pipelines.jobs.train as train"),
        ("lcd/planted.py", "from lcd import pipelines"),
        ("lcd/planted.py", "from . import pipelines"),
        ("lcd/agents/planted.py", "from ..pipelines import train"),
        ("lcd/planted.py", "def late():\n    from lcd.pipelines.jobs.train import run\n    return run"),
        ("lcd/planted.py", "import envs"),
        ("pipelines/planted.py", "from tests.envs import contract"),
        ("pipelines/planted.py", "network.cuda()"),
        ("lcd/agents/planted.py", "batch['obs'].cuda(0)"),
        ("configs/planted.py", "import yaml"),
    ],
)
def test_a_planted_violation_is_found(tmp_path, path, source):
    copy_rooms(tmp_path)
    (tmp_path / path).write_text(source)
    assert [found.split(":")[0] for found in violations(tmp_path)] == [path]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "envs/hardness/planted.py",
            "import lcd.envs\nfrom lcd import envs\nfrom ..errors import InputError",
        ),
        (
            "frontends/planted.py",
            "import torch\nfrom ..envs.errors import InputError\nfrom . import identity",
        ),
        (
            "lcd/agents/planted.py",
            "import lightning\nfrom lcd import frontends\nfrom ..curves import COLUMNS",
        ),
        ("lcd/planted.py", "import torch\ntorch.cuda.is_available()\nname = 'lcd.pipelines.jobs.train:run'"),
        ("pipelines/planted.py", "from lcd import agents, envs, frontends\nfrom . import store"),
    ],
)
def test_what_the_contract_allows_passes(tmp_path, path, source):
    copy_rooms(tmp_path)
    (tmp_path / path).write_text(source)
    assert violations(tmp_path) == []


def test_importing_environments_loads_nothing_heavy():
    heavy = ["torch", "lightning", "pandas", "wandb", "gym"]
    code = f"import sys, lcd, lcd.envs; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPO.anchor)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def copy_rooms(target: Path) -> None:
    for room in ROOMS:
        shutil.copytree(REPO / room, target / room, ignore=shutil.ignore_patterns("__pycache__"))


def test_modules_import_each_other_in_no_cycle():
    """Imports within functions count; those for type checkers alone do not."""
    graph = {module: uses - {module} for module, uses in module_graph(REPO).items()}
    assert cycles(graph) == []


def test_a_cycle_is_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def spelled_values(repo: Path) -> list[str]:
    """Where the values that φ and ψ compare are spelled as constants, outside their definition."""
    found = []
    for path in sorted([*(repo / "lcd").rglob("*.py"), *(repo / "pipelines").rglob("*.py")]):
        where = path.relative_to(repo).as_posix()
        if where == "lcd/scores/contrasts.py":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        found += [f"{where}:{node.lineno}" for node in texts if SPELLED.search(node.value)]
    return found


# "pixels" is also a word of its own, so that it counts only where nothing else stands beside it.
SPELLED = re.compile(r"\Apixels\Z|\b(figure_ground|semantic)\b|p0?\.\d+\b")


def test_only_the_contrasts_spell_what_they_compare():
    assert spelled_values(REPO) == []


@pytest.mark.parametrize("text", ["view = 'pixels'", "def f():\n    'On the semantic view.'", "column = 'auc_p0.75'"])
def test_a_value_that_is_spelled_is_found(tmp_path, text):
    copy_rooms(tmp_path)
    (tmp_path / "lcd/planted.py").write_text(text)
    assert [where.partition(":")[0] for where in spelled_values(tmp_path)] == ["lcd/planted.py"]


# What is no thing of a third party's: the platform, an object's own state, libraries' objects, and configs of commands.
ASKED_BY_NAME = {"os", "signal", "self", "stream", "error", "network", "inside", "cfg"}


def asked_by_name(root: Path) -> list[str]:
    """Every place that asks what a benchmark, an environment, a front-end or an agent has, but for the protocols."""
    found = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1):
                    continue
                asks = node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) == 3)
                if asks and isinstance(node.args[1], ast.Constant) and _root(node.args[0]) not in ASKED_BY_NAME:
                    found.append(f"{path.relative_to(root)}:{node.lineno}: declare a protocol and ask `offers`")
    return found


def _root(node: ast.AST) -> str:
    """The name that an expression starts from: `cfg` of `getattr(cfg, "stopping", None).name`."""
    names = [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and inner.id != "getattr"]
    return names[0] if names else ""


def test_what_third_parties_may_offer_is_declared():
    assert asked_by_name(REPO) == []


@pytest.mark.parametrize(
    "source",
    ['hasattr(benchmark, "make_pairs")', 'getattr(get_benchmark(name), "truth", {})', 'getattr(agent, "draws", ())'],
)
def test_an_offer_that_is_asked_for_by_name_is_found(tmp_path, source):
    (tmp_path / "lcd").mkdir()
    (tmp_path / "lcd" / "planted.py").write_text(f"x = {source}\n")
    assert asked_by_name(tmp_path) == ["lcd/planted.py:1: declare a protocol and ask `offers`"]


def namesakes(modules: Iterable[str]) -> dict[str, set[str]]:
    """Name → the packages that have a module of this name, where there are several."""
    packages: dict[str, set[str]] = {}
    for module in modules:
        package, _, name = module.rpartition(".")
        packages.setdefault(name, set()).add(package)
    return {name: found for name, found in packages.items() if len(found) > 1}


def test_modules_of_one_name_are_the_same_idea():
    graph = module_graph(REPO)
    rooms = {module.rpartition(".")[0] for module in graph} | set(ROOMS.values())
    assert namesakes(graph.keys() - rooms) == SAME_IDEA


def test_namesakes_are_found():
    assert namesakes(["lcd.a.store", "lcd.b.store", "lcd.b.knobs"]) == {"store": {"lcd.a", "lcd.b"}}
