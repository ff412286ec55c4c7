import re
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

from lcd.analyses.taxonomy import taxonomy
from lcd.config.registries import sections
from lcd.envs.errors import InputError
from lcd.report.html import duration_text
from lcd.report.page import write_report
from lcd.report.provenance import provenance
from lcd.report.sentences import group_sentences, of_two, verdict
from lcd.report.terminal import terminal_table
from lcd.scores.diagnosis import Diagnosis, diagnose_curves

HOSTILE = "<script>alert('x')</script>[red]"


class Page(HTMLParser):
    """Tags, addresses and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "srcset", "href", "data", "poster")]

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def hostile(make_study):
    return make_study({HOSTILE: (0.2, 0.5, 0.8, 0.7, 0.6, 0.5), "b": (0.8, 0.82, 0.84, 0.83, 0.82, 0.8)}, 3, 0.01)


def test_the_page_has_the_scores_and_how_it_was_run(curves, tmp_path):
    diagnosis = diagnose_curves(curves)
    told = {"config": {"agent": {"name": "ppo"}}, "versions": {"numpy": "1.2.3"}, "command": "lcd diagnose"}
    path = write_report(tmp_path, diagnosis, curves, told)
    assert path == tmp_path / "report.html"
    text = " ".join(Page(path.read_text()).words)
    assert set(diagnosis.table["task"]) <= set(re.findall(r"toy/\w+", text))
    for words in ("0.86", "0.85", "0.81 to 0.91", "lcd diagnose", "1.2.3", '"name": "ppo"', "5 (0 to 4)", "R_max"):
        assert words in text
    figures = {file.name for file in (tmp_path / "figures").iterdir()}
    assert {"challenge-0.png", "challenge-0.svg", "curves-3.png", "curves-3.svg"} <= figures


def test_two_tasks_are_told_to_be_compared_with_each_other_alone(make_study, tmp_path):
    tasks = {"a": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5), "b": (0.4, 0.5, 0.6, 0.58, 0.57, 0.55)}
    two = diagnose_curves(make_study(tasks, 4, 0.01))
    told = of_two(two.table)
    assert told.startswith("Of two tasks, hard means harder than the other one: raw φ is ")
    for _, row in two.table.iterrows():
        assert f"{row['psi_raw']:.2f} ({row['task']})" in told
    text = " ".join(" ".join(Page(write_report(tmp_path, two).read_text()).words).split())
    assert told in text
    assert text.index("φ (phi) tells how hard a task is to see") < text.index(told)


def test_three_tasks_need_no_such_sentence(curves):
    assert of_two(diagnose_curves(curves).table) == ""


def test_curves_that_name_no_benchmark_have_a_heading_in_words(make_study, tmp_path):
    curves = make_study({"a": (0.2, 0.5, 0.8, 0.7, 0.6, 0.5)}, 2, benchmark="imported")
    assert "<h1>What makes these tasks hard</h1>" in write_report(tmp_path, diagnose_curves(curves)).read_text()


def test_what_was_not_tried_is_recommended_as_such(make_study, tmp_path):
    tasks = {"a": (0.2, 0.5, 0.8, 0.78, 0.77, 0.75), "b": (0.7, 0.72, 0.74, 0.5, 0.3, 0.1)}
    curves = make_study(tasks, 4, 0.01, agent="mine")
    text = write_report(tmp_path, diagnose_curves(curves)).read_text()
    assert "such as ppg (not tried here)" in text
    assert "such as flow (not tried here)" in text
    assert "such as mine" not in text


def test_sections_are_chosen_and_ordered(curves, tmp_path):
    text = write_report(tmp_path, diagnose_curves(curves), names=["methods", "scores"]).read_text()
    assert text.index("How to read it</h2>") < text.index("Task by task</h2>")
    assert "How it was run" not in text
    assert "Comparisons" not in text


def test_a_section_gives_a_text(curves, tmp_path, monkeypatch):
    monkeypatch.setitem(sections._built_in, "odd", lambda page: 3)
    with pytest.raises(InputError, match="The section 'odd' gives a int"):
        write_report(tmp_path, diagnose_curves(curves), names=["odd"])


def test_the_page_needs_nothing_from_elsewhere(curves, tmp_path):
    text = write_report(tmp_path, diagnose_curves(curves), provenance=provenance()).read_text()
    page = Page(text)
    assert page.addresses
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert page.tags.count("script") == 1
    assert not {"iframe", "object", "embed"} & set(page.tags)
    assert not re.search(r"url\(|@import", text)
    assert "default-src 'none'" in text


def test_whatever_a_task_is_called_stays_text(hostile, tmp_path):
    told = {"command": HOSTILE, "config": {HOSTILE: {HOSTILE: 1}}, "seeds": [HOSTILE], "versions": {HOSTILE: HOSTILE}}
    page = Page(write_report(tmp_path, diagnose_curves(hostile), provenance=told).read_text())
    assert page.tags.count("script") == 1
    assert HOSTILE in page.words


def test_a_diagnosis_read_back_is_reported_with_or_without_its_curves(curves, tmp_path):
    diagnosis = diagnose_curves(curves)
    back = Diagnosis.from_json(diagnosis.to_json())
    assert "Learning curves of" not in write_report(tmp_path / "a", back).read_text()
    assert "Learning curves of" in write_report(tmp_path / "b", back, diagnosis.curves).read_text()


def test_odd_diagnoses_are_reported(make_study, tmp_path):
    for place, tasks in enumerate(({"a": (0.0,) * 6}, {"a": (0.5, None, None, 0.4, None, None)})):
        path = write_report(tmp_path / str(place), diagnose_curves(make_study(tasks)))
        assert "</html>" in path.read_text()


def test_the_reading_names_the_hardest_and_how_sure_that_is(curves, make_study):
    table = diagnose_curves(curves).table
    told = " ".join(group_sentences(table))
    assert "Hardest to see is toy/perception (raw φ 0.69), easiest toy/easy (0.04); their intervals are apart." in told
    assert "Hardest to learn from reward is toy/both (raw ψ 0.66), easiest toy/easy (0.18)" in told
    classes = taxonomy(diagnose_curves(curves)).table
    assert verdict(classes, 5) == (
        "Of 5 tasks, 1 is hard both to see and to learn from reward, 1 is hard to see, 1 is hard to learn from reward "
        "and 1 is easy in both ways; 1 could not be placed."
    )
    noisy = make_study({"a": (0.5, 0.5, 0.5, 0.5, 0.5, 0.5), "b": (0.5, 0.51, 0.52, 0.5, 0.5, 0.5)}, 5, 0.1)
    assert "their intervals overlap" in " ".join(group_sentences(diagnose_curves(noisy).table))
    single = make_study({"a": (0.5, 0.6, 0.6, 0.5, 0.5, 0.5), "b": (0.2, 0.5, 0.6, 0.5, 0.5, 0.5)})
    assert "one seed cannot tell" in " ".join(group_sentences(diagnose_curves(single).table))
    assert taxonomy(diagnose_curves(single)).table["sure"].isna().all()


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminals_table_fits_and_is_whole(curves, hostile, width):
    stream = StringIO()
    console = Console(width=width, file=stream)
    console.print(terminal_table(diagnose_curves(curves), width))
    told = stream.getvalue()
    assert max(map(len, told.splitlines())) <= width
    assert "…" not in told
    for words in ("toy/perception", "[0.81, 0.91]", "0.20 0.50 0.80", "0.78 0.77 0.75", "φ [95 %]"):
        assert words in told
    console.print(terminal_table(diagnose_curves(hostile), 120))
    assert "[red]" in re.sub(r"\s", "", stream.getvalue())


@pytest.mark.parametrize("width", [80, 110, 120])
def test_long_names_do_not_push_the_terminals_table_over_the_edge(make_study, width):
    name = "toy/cluttered-sight-easy-reward"
    tasks = {name: (0.0, 0.4, 0.6, 0.5, 0.4, 0.3), name[:-1]: (0.8, 0.82, 0.84, 0.83, 0.82, 0.8)}
    stream = StringIO()
    diagnosis = diagnose_curves(make_study(tasks, 3, 0.05), definition="paper")
    Console(width=width, file=stream).print(terminal_table(diagnosis, width))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "signal" in stream.getvalue()
    assert width < 120 or name in stream.getvalue()


def test_provenance_tells_versions_and_no_paths():
    facts = provenance()
    assert {"python", "versions", "cores", "processor"} <= set(facts)
    assert "numpy" in facts["versions"]
    assert "/" not in str({key: value for key, value in facts.items() if key != "processor"})


@pytest.mark.parametrize(("seconds", "told"), [(12, "12 s"), (200, "3 min 20 s"), (3720, "1 h 02 min")])
def test_durations_are_said_as_people_do(seconds, told):
    assert duration_text(seconds) == told
