"""The small studies that are disturbed (a pretraining, a study that uses it, PPG, a learner), and comparisons."""

import csv
import json
from pathlib import Path

import torch
import yaml

from lcd.files.outputs import MANIFEST
from lcd.pipelines.study.store import read_status

TASK = "toy/hard-sight-easy-reward"
SMALL = [
    *("tracker=none", "device=cpu", "launcher.workers=1"),
    *("agent.copies=4", "agent.rollout=16", "agent.epochs=1", "agent.width=8"),
]
UNFINISHED = (".partial", ".tmp")
MAKES = {"pretrain": "pretrained", "diagnose": "study", "ppg": "ppg", "learner": "learner", "report": "study"}
"""The commands in their order, and the folder that each works in."""
NEEDS = {"pretrain": (), "diagnose": ("pretrained",), "ppg": (), "learner": (), "report": ("study",)}
"""The folders that must be there before."""
ORDER = tuple(MAKES)


def command(root: Path, name: str, work: int = 1) -> list[str]:
    """A command of lcd that works in a folder below `root`; `work` times as much is trained."""
    work *= 2 if name in ("ppg", "learner") else 1
    evaluation = [f"evaluation.{each}" for each in (f"every={64 * work}", "copies=2", "episodes=1")]
    if name == "pretrain":
        asked = [f"pretraining.iterations={2 * work}", f"pretraining.every={work}", "tracker=none", "device=cpu"]
        return ["pretrain", "benchmark=toy", f"tasks=[{TASK}]", "budget=smoke", *asked,
                f"out={root / 'pretrained'}"]  # fmt: skip
    if name == "diagnose":
        (weights,) = (root / "pretrained").glob("runs/*/flow.pt")
        study = ["study.views=[pixels,semantic]", "study.reward_p=[1.0]", "study.frontends=[flow]",
                 "study.seeds=2", f"study.steps={128 * work}", f"study.tasks=[{TASK}]",
                 f"study.frontend_params.flow.weights={weights}"]  # fmt: skip
        return ["diagnose", "benchmark=toy", *SMALL, *study, *(f"study.{each}" for each in evaluation),
                f"out={root / 'study'}"]  # fmt: skip
    if name == "ppg":
        sizes = ["agent=ppg", "agent.phase=2", "agent.auxiliary_rollouts=2", "agent.auxiliary_epochs=1"]
        return [
            "train",
            f"task={TASK}",
            *SMALL,
            *sizes,
            "seeds=1",
            f"steps={128 * work}",
            *evaluation,
            f"out={root / 'ppg'}",
        ]
    if name == "learner":
        given = ["agent=tabular/q_learning", "tracker=none", "device=cpu", "seeds=2", f"steps={256 * work}"]
        return ["train", "task=hardness/discrete", "view=state", *given, *evaluation, f"out={root / 'learner'}"]
    return ["report", str(root / "study"), "tables=[markdown]"]


def curves(root: Path) -> dict[str, list[dict[str, str]]]:
    """All curves below a folder by their run, without the one column that may differ."""
    found = {}
    for path in sorted(root.rglob("curve.csv")):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        found[str(path.parent.relative_to(root))] = [{k: v for k, v in row.items() if k != "wall_s"} for row in rows]
    return found


def scores(root: Path) -> dict[str, str]:
    """All tables of scores below a folder."""
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("challenge.csv"))}


def broken(root: Path) -> list[str]:
    """The files below a folder that are not whole: whatever happens, there must be none."""
    found = []
    for path in sorted(path for path in root.rglob("*") if path.is_file() and not unfinished(path)):
        try:
            if path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix in (".yaml", ".yml"):
                assert yaml.safe_load(path.read_text()) is not None
            elif path.suffix in (".ckpt", ".pt"):
                torch.load(path, map_location="cpu", weights_only=True)
            elif path.suffix == ".png":
                assert path.read_bytes().endswith(b"IEND\xaeB`\x82")
            elif path.suffix == ".html":
                assert path.read_text().rstrip().endswith("</html>")
            elif path.suffix == ".svg":
                assert path.read_text().rstrip().endswith("</svg>")
        except Exception as error:
            found.append(f"{path}: {type(error).__name__} {error}"[:300])
    return found


KEPT = (MANIFEST,)
"""Hidden files that belong to a finished study."""


def unfinished(path: Path) -> bool:
    """Is this a file that is only there while another one is written?"""
    return path.name.endswith(UNFINISHED) or (path.name.startswith(".") and path.name not in KEPT)


def left_over(root: Path) -> list[str]:
    """The temporary files below a folder."""
    return [str(path.relative_to(root)) for path in sorted(root.rglob("*")) if path.is_file() and unfinished(path)]


def states(root: Path) -> dict[str, str]:
    """What each run says of itself."""
    found = {}
    for path in sorted(root.rglob("runs/*/config.yaml")):
        found[path.parent.name] = read_status(path.parent)["state"]
    return found
