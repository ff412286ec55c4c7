"""A kind of job from outside, in one file: it counts on from where the job before it came to."""

from pathlib import Path

from lcd.envs.errors import InputError
from lcd.files.atomic import write_atomic
from lcd.pipelines.kinds.kind import Kind
from lcd.pipelines.study.lease import run_folder
from lcd.pipelines.study.sources import with_source
from lcd.pipelines.study.store import finish


def count(config, folder, tracker, device):
    """Write a number; of a job that is told to fail, none."""
    (run_folder(Path(folder)).parent / "told").open("a").write(f"{config['steps']}\n")
    if (run_folder(Path(folder)).parents[1] / f"fail-{config['steps']}").exists():
        raise InputError("it was told to fail.")
    before = int(Path(config["before"]["file"]).read_text()) if "before" in config else 0
    write_atomic(Path(folder) / "count.txt", str(before + config["steps"]))
    finish(folder, step=config["steps"])


COUNT = Kind(
    work="counting:count",
    label=lambda config: f"count by {config['steps']}",
    outputs=("count.txt",),
)


def config(steps, before=None):
    """What such a job is asked for, maybe after another one."""
    asked = {"kind": "counting:COUNT", "benchmark": "toy", "seeds": [], "steps": steps}
    if before is not None:
        asked["before"] = {"job": before, "file": "count.txt"}
    return with_source(asked)
