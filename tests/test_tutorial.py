"""The tutorial, followed to the letter: what it says to type is typed, what it says to see is seen."""

import os
import re
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r'^```(?P<kind>\w+)(?: title="(?P<file>[^"]+)")?\n(?P<text>.*?)^```', re.MULTILINE | re.DOTALL)


def test_the_tutorial_does_what_it_says(tmp_path):
    """Blocks of sh and python are run, those with a file's name are written, those of text are looked for."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "120", "PYTHONPATH": ""}
    printed, ran = "", 0
    for block in BLOCK.finditer((REPO / "docs" / "tutorial.md").read_text("utf-8")):
        kind, file, text = block["kind"], block["file"], block["text"]
        if kind == "text":
            for line in text.splitlines():
                assert line in printed, f"{line!r} is not in what was printed:\n{printed[-3000:]}"
        elif file:
            (tmp_path / file).write_text(text)
        else:
            command = ["bash", "-e", "-c", text] if kind == "sh" else [sys.executable, "-c", text]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
            # lcd status ends with 0 where all is done.
            assert done.returncode == 0, f"{text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            printed, ran = done.stdout, ran + 1
    assert ran == 7
    assert (tmp_path / "toy.png").stat().st_size > 1000
    assert (tmp_path / "curves.png").stat().st_size > 1000
    cave, maze = scores(tmp_path / "mine-curves-diagnosis")
    assert cave["phi_raw"] > maze["phi_raw"]
    assert maze["psi_raw"] > cave["psi_raw"]


def scores(folder):
    import json

    return json.loads((folder / "diagnosis.json").read_text("utf-8"))["tasks"]
