import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lcd.process import children
from lcd.report import drawers
from lcd.report.curve_figures import Line, Panel, TaskCurves

LINE = Line("all", ("black", "-"), np.arange(2.0), np.arange(2.0), None)
PANELS = (Panel("one", (LINE,)), Panel("another", (LINE,)))
CURVES = {f"curves-{number}": TaskCurves(f"my/task{number}", PANELS, ranged=True) for number in range(16)}
# Says when a process draws beside this one, and is then interrupted as a terminal does it.
# A shell's background job hands down an ignored SIGINT; a terminal's does not.
INTERRUPTED = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
from test_drawers import CURVES, draw_with_two_cores
with draw_with_two_cores(Path(sys.argv[1])):
    while not Path(sys.argv[1], "curves-15.png").exists():
        time.sleep(0.01)
    print("drawing", flush=True)
    time.sleep(60)
"""


def draw_with_two_cores(folder, monkeypatch=None):
    cores = {0, 1}
    if monkeypatch is None:
        os.sched_getaffinity = lambda _: cores
    else:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores, raising=False)
    return drawers.drawing_beside(folder, CURVES)


def test_ctrl_c_is_told_by_the_command_alone(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout.readline() == "drawing\n"
    os.killpg(process.pid, signal.SIGINT)
    told = process.communicate()[1]
    assert told.count("KeyboardInterrupt") == 1
    assert "draw_for_parent" not in told


@pytest.mark.filterwarnings("error")
def test_what_no_process_can_be_started_for_is_drawn_all_the_same(tmp_path, monkeypatch):
    def refused(*_args, **_kwargs):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(children, "start", refused)
    with draw_with_two_cores(tmp_path, monkeypatch) as finish:
        assert finish().keys() == CURVES.keys()
