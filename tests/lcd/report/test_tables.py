"""Tables as files: what they hold, and that a name cannot become markup."""

import io
import json

import pandas as pd

from lcd.analyses import Analysis, Evidence, analyse
from lcd.files.spreadsheets import csv_text
from lcd.report.tables import latex, markdown, save_tables
from lcd.scores.diagnosis import diagnose_curves

HOSTILE = "<script>x</script>|a_b&50%"


def test_numbers_have_their_intervals_and_names_stay_names():
    table = pd.DataFrame({"task": [HOSTILE], "gain": [0.5], "gain_low": [-0.125], "gain_high": [1.0], "p": [0.0004]})
    told = markdown(table, "Gains")
    assert told.splitlines()[2:] == [
        "| task | gain | p |",
        "| --- | --- | --- |",
        "| &lt;script>x&lt;/script>\\|a\\_b&amp;50% | 0.50 [−0.12, 1.00] | &lt; 0.001 |",
    ]
    line = latex(table, "Gains").splitlines()[5]
    assert line == r"$<$script$>$x$<$/script$>$|a\_b\&50\% & 0.50 [$-$0.12, 1.00] & $<$ 0.001 \\"
    assert latex(table, "a\nb").startswith("% a b\n\\begin{tabular}{lrr}")


def test_a_name_is_no_link_and_no_end_of_a_row():
    table = pd.DataFrame({"task": ["1[click](http://evil)", "−[a](www.evil.com)"], "x": [1.0, -2.0]})
    told = markdown(table, "[a](b)")
    assert told.splitlines()[0] == "**\\[a\\](b)**"
    assert told.splitlines()[4:] == [
        r"| 1\[click\](http&#58;//evil) | 1.00 |",
        r"| −\[a\](www&#46;evil.com) | −2.00 |",
    ]
    rows = latex(pd.DataFrame({"task": ["[1cm]", "*"]}), "x").splitlines()
    assert rows[5:7] == [r"{[}1cm{]} \\", r"{*} \\"]


def test_no_cell_of_a_csv_is_a_formula():
    names = ["=1+1", "+cmd", "-x", "@sum", " =1", "\t=1", "plain", "-0.5", "a=b"]
    table = pd.DataFrame({"task": names, "=x": [-1.0] * len(names), "n": [-1] * len(names)})
    read = pd.read_csv(io.StringIO(csv_text(table)), dtype=str)
    assert read["task"].tolist() == ["'=1+1", "'+cmd", "'-x", "'@sum", "' =1", "'\t=1", "plain", "-0.5", "a=b"]
    assert read["'=x"].tolist() == ["-1.0"] * len(names)
    assert read["n"].tolist() == ["-1"] * len(names)


def test_every_analysis_is_a_csv_and_all_are_strict_json(curves, tmp_path):
    diagnosis = diagnose_curves(curves)
    found, _ = analyse(Evidence(diagnosis))
    found.append(Analysis("odd", "Odd", pd.DataFrame({"x": [float("nan")]})))
    save_tables(tmp_path, diagnosis, found, ["markdown", "latex"])
    content = json.loads((tmp_path / "analyses.json").read_text(), parse_constant=lambda name: 1 / 0)
    assert set(content) == {analysis.key for analysis in found}
    assert content["odd"]["rows"] == [{"x": None}]
    for analysis in found:
        pd.testing.assert_frame_equal(
            pd.read_csv(tmp_path / f"{analysis.key}.csv"), analysis.table, check_dtype=False, rtol=1e-12
        )
    assert "toy/perception" in (tmp_path / "scores.md").read_text()
    assert r"$\phi$" in (tmp_path / "scores.tex").read_text() or "phi" in (tmp_path / "scores.tex").read_text()
