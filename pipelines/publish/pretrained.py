"""What is told of a pretrained front-end: its losses, and how well its maps show objects."""

from __future__ import annotations

import pandas as pd
from rich.console import Console
from rich.table import Table

from lcd.files import outputs
from lcd.frontends.flow.config import GROUPS
from lcd.pipelines.jobs import objectness
from lcd.pipelines.kinds.pretrain import WEIGHTS_FILE
from lcd.pipelines.study.store import Pretraining
from lcd.report import seeing

PRODUCT = "pretraining"


def publish(made: Pretraining, console: Console) -> None:
    """Print what a pretraining learned and where its files are, and write its page."""
    losses = _losses(made)
    console.print(_summary(losses), highlight=False)
    still = losses[losses.speed == 0].task.tolist()
    if still and made.config["frontend"].get("encoder_kind") == GROUPS:
        where = f"in the held-out videos of {', '.join(still)}"
        told = f"Nothing is seen to move by itself {where}: no things are found there."
        console.print(told, highlight=False, markup=False)
    path = made.path / objectness.KEPT
    measured = pd.read_csv(path) if path.is_file() else pd.DataFrame()
    if len(measured):
        last = measured[measured.step == measured.step.max()]
        console.print(objectness.summary_table(last))
        console.print(*seeing.verdict(last), sep="\n", highlight=False)
    sheets = sorted(path for path in (made.path / "pictures").glob("step-*.png") if path.is_file())[-1:]
    pictures = {f"Frames, motion, what comes of it, and maps: {sheet.stem}": sheet.read_bytes() for sheet in sheets}
    asked = made.config
    facts = {
        "tasks": ", ".join(asked["videos"]["tasks"]),
        "videos a task": f"{asked['videos']['count']:,}",
        "policy": asked["videos"]["policy"] if isinstance(asked["videos"]["policy"], str) else "trained agents",
        "batches": f"{asked['steps']:,} of {asked['batch']}",
        "learning rate": f"{asked['learning_rate']:g}",
        "run": made.path.name,
    }
    with outputs.drafted(made.path, PRODUCT) as draft:
        page = seeing.write_seeing(draft, asked["benchmark"], measured, losses, pictures, facts).name
    places = {"report": made.path / page, "pictures": made.path / "pictures", "curve": made.path / "curve.csv"}
    for name, place in (places | {"front-end": made.path / WEIGHTS_FILE}).items():
        console.print(f"{name:<10} {place}", highlight=False, soft_wrap=True, markup=False)
    console.print(f"Use it: frontend=flow frontend.weights={made.path / WEIGHTS_FILE}", highlight=False, soft_wrap=True)


def _losses(made: Pretraining) -> pd.DataFrame:
    """The last held-out loss of each task, beside that of frames left as they are."""
    curve = pd.read_csv(made.path / "curve.csv")
    last = curve[curve.split == "eval"].groupby("task", sort=False).tail(1)
    return last[["task", "static_loss", "loss", "speed", "outside"]].reset_index(drop=True)


def _summary(losses: pd.DataFrame) -> Table:
    heads = ("task", "loss of knowing nothing", "loss", "explained", "motion, pixels", "lost")
    table = Table(*heads, box=None)
    for row in losses.itertuples(index=False):
        explained = 1 - row.loss / row.static_loss if row.static_loss > 0 else float("nan")
        numbers = (f"{row.static_loss:.3g}", f"{row.loss:.3g}", f"{explained:.0%}", f"{row.speed:.2g}")
        table.add_row(str(row.task), *numbers, f"{row.outside:.1%}")
    return table
