"""The report in a real browser."""

import html
import os
import re
import shutil
import subprocess

import pytest
from matplotlib.image import imread

from lcd.report.page import write_report
from lcd.scores.diagnosis import diagnose_curves

HOSTILE = "<script>document.title='broken'</script>"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=3000",
]


@pytest.fixture(scope="module")
def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI") == "true":
        pytest.fail("no Chromium on this machine, and in CI the report has to be opened: .ci/run installs it")
    pytest.skip("no Chromium (chromium, chromium-browser or google-chrome) on this machine")


@pytest.fixture
def browse(chromium, tmp_path):
    def run(*flags):
        command = [chromium, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    return run


def test_the_report_opens_with_its_tasks_and_scores(curves, browse, tmp_path):
    diagnosis = diagnose_curves(curves)
    page = write_report(tmp_path / "out", diagnosis).as_uri()
    dom = html.unescape(re.sub(r"<[^>]*>", " ", browse("--dump-dom", page)))
    for row in diagnosis.table.itertuples():
        cells = re.escape(row.task) + rf"\s+{row.phi:.2f}\s+\S+ to \S+\s+{row.psi:.2f}\s"
        assert re.search(cells, dom), row.task


def test_the_figures_are_painted_at_any_width(curves, browse, tmp_path):
    page = write_report(tmp_path / "out", diagnose_curves(curves)).as_uri()
    for width in (390, 1200):
        shot = tmp_path / f"{width}.png"
        browse(f"--screenshot={shot}", f"--window-size={width},7000", page)
        pixels = (imread(shot)[..., :3] * 255).round()
        # The colour of p = 1, which is in the learning curves only.
        assert ((pixels == (0x08, 0x30, 0x6B)).all(-1)).sum() > 200


def test_a_hostile_name_does_nothing(make_study, browse, tmp_path):
    tasks = {HOSTILE: (0.2, 0.5, 0.8, 0.7, 0.6, 0.5), "b": (0.8, 0.82, 0.84, 0.83, 0.82, 0.8)}
    page = write_report(tmp_path / "out", diagnose_curves(make_study(tasks, 2, 0.01, benchmark=HOSTILE))).as_uri()
    dom = browse("--dump-dom", page)
    assert dom.count("<script") == 1
    assert "&lt;script&gt;document.title='broken'" in dom
    assert "<title>broken" not in dom


def test_a_click_on_a_head_sorts_and_nothing_else_runs(curves, browse, tmp_path):
    diagnosis = diagnose_curves(curves)
    page = write_report(tmp_path / "out", diagnosis)
    # The page's own script policy must not be loosened for the click, so that it is made where no policy holds.
    free = tmp_path / "free.html"
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text())
    free.write_text(
        text.replace("</body>", "<script>document.querySelectorAll('th button')[1].click()</script></body>")
    )
    tasks = re.findall(r'<td data-value="(toy/[^"]*)"', browse("--dump-dom", free.as_uri()))
    assert tasks == diagnosis.table.sort_values("phi", ascending=False)["task"].tolist()
    strict = tmp_path / "strict.html"
    strict.write_text(page.read_text().replace("</body>", "<script>document.title='ran'</script></body>"))
    dom = browse("--dump-dom", strict.as_uri())
    assert "<title>ran" not in dom
    assert dom.count("<th><button") > 5


def test_nothing_is_wider_than_a_phone(curves, browse, tmp_path):
    page = write_report(tmp_path / "out", diagnose_curves(curves))
    free = tmp_path / "free.html"
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text()).replace(
        "</body>",
        "<iframe id=phone width=360 height=800></iframe><script>var f=document.getElementById('phone');"
        "f.srcdoc=document.documentElement.outerHTML.replace(/<iframe.*/,'</body>');"
        "f.onload=function(){document.title='width '+f.contentDocument.documentElement.scrollWidth}</script></body>",
    )
    free.write_text(text)
    width = re.search(r"<title>width (\d+)", browse("--dump-dom", free.as_uri()))
    assert width
    assert int(width[1]) <= 360
