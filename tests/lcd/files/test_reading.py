"""Files that anybody may have written: plain data comes back, or a reason."""

import os

import pandas as pd
import pytest
import yaml

from lcd.analyses.transfer import transfers
from lcd.curves.table import check_curves, read_curves
from lcd.envs.errors import InputError
from lcd.files.reading import Unreadable, not_plain, read_json, read_table, read_yaml
from lcd.pipelines.study import store
from lcd.scores.diagnosis import Diagnosis, diagnose_curves

LAUGHS = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 8)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
ODD_YAML = {
    b"a: caf\xe9": "not UTF-8",
    b"a: &a [*a]": "nested too deeply",
    b"a: 2020-01-01": "a date",
    b"a: !!binary aGk=": "a bytes",
    b"a: !!set {x}": "a set",
    b"a: .inf": r"inf, which is no finite number \(a\)",
    b"a: {b: 1, c: [{d: .nan}]}": r"nan, which is no finite number \(a\.c\.d\)",
    b"a: 2020-99-99": "not YAML",
    b"a: !!python/name:os.system": "see line 1",
    b"{1: 2}": "the key 1",
    b"[" * 5000: "nested too deeply",
    b"a: " + b"9" * 5000: "not YAML",
    LAUGHS.encode(): "too many entries",
    b"a: 1\nb: 2\na: 3": r"the key 'a' twice: see line 3",
    b"a: 1\n'a': 3": r"the key 'a' twice: see line 2",
    b"a: {b: 1, c: [{d: 1, d: 2}]}": r"the key 'd' twice: see line 1",
    b"a:\n  b: 1\n  c: 2\n  b: 3": r"the key 'b' twice: see line 4",
}


@pytest.mark.parametrize(("content", "reason"), ODD_YAML.items(), ids=lambda value: ascii(value)[:20])
def test_odd_yaml_is_refused_with_a_reason(content, reason, tmp_path):
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match=reason):
        read_yaml(path)
    with pytest.raises(InputError, match=r"study\.yaml cannot be read"):
        store.Study(tmp_path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "content", ['{"a": 1e999}', '{"a": NaN}', "[" * 5000, "9" * 5000, '"\\ud800"', '"\\u0000"', ""]
)
def test_odd_json_is_refused(content, tmp_path):
    (tmp_path / "status.json").write_text(content)
    with pytest.raises(Unreadable):
        read_json(tmp_path / "status.json")
    assert store.read_status(tmp_path) == store.STATUS
    with pytest.raises(InputError, match="no diagnosis"):
        Diagnosis.from_json(content)


ENTRIES = (
    "a: 1\nb:\n- 1\n- x: 2.5e-05\nc: {}\n",
    "a: 'x: y'\nb: |\n  c: 1\n\n  d\ne: >-\n  f\n  g\n",
    "a: &x [1]\nb: *x\n",
    "a: 1\n<<: {b: 2}\n",
    "a: {<<: {b: 2}, b: 1}\n",
    "a: {<<: {b: 2}, <<: {c: 3}}\n",
    "a: {b: &x {<<: {c: 1}, c: 2}, <<: *x}\n",
    "a: {b: 1}\nc: {b: 1}\n",
    "a: 1\rb: 2\n",
    "a: 1\n# b: 2\nc: 3\n",
    "a: 1\n---\n",
    "yes: 1\nb: on\n",
    "a: [1,\nb: 2]\n",
    "a: 'x\nb: y'\n",
    "a:\nb: ~\n",
    "a_b: 12345678901234567890\n",
    "? a\n: b\n",
    "{a: 1}\n",
    "a: 1e3\nb: 1_000\nc: 0x1f\nd: 2020-01-01\n",
    "",
)


@pytest.mark.parametrize("text", ENTRIES)
def test_entries_are_read_as_the_whole_is(text, tmp_path):
    (tmp_path / "a.yaml").write_text(text)
    try:
        expected = yaml.safe_load(text)
        refused = not_plain(expected) is not None
    except yaml.YAMLError:
        refused = True
    if refused:
        with pytest.raises(Unreadable):
            read_yaml(tmp_path / "a.yaml")
    else:
        first, second = read_yaml(tmp_path / "a.yaml"), read_yaml(tmp_path / "a.yaml")
        assert first == second == expected
        # What is remembered of a text must not be what somebody may change.
        assert first is not second or not isinstance(first, dict)


def test_a_status_of_no_number_counts_as_none(tmp_path):
    (tmp_path / "status.json").write_text('{"state": "done", "step": 1e999}')
    assert store.read_status(tmp_path) == store.STATUS


def test_what_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "curves.csv")
    with pytest.raises(InputError, match="no regular file"):
        read_curves(tmp_path / "curves.csv")


def test_a_file_that_may_not_be_read_is_a_mistake(tmp_path, monkeypatch):
    (tmp_path / "curves.csv").write_text("task\n")

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("lcd.files.reading.open", refused, raising=False)
    with pytest.raises(InputError, match=r"curves.csv' cannot be read \(Permission denied\)"):
        read_curves(tmp_path / "curves.csv")


def test_numbers_without_sums_are_refused(curves):
    with pytest.raises(InputError, match="numbers above 1e\\+100 have no sums"):
        diagnose_curves(curves.assign(return_mean=[(-1e308, 1e308)[row % 2] for row in range(len(curves))]))
    with pytest.raises(InputError, match="cannot be divided"):
        diagnose_curves(curves.assign(benchmark="mine", r_min=0.0, r_max=5e-324))


def test_a_step_in_two_stages_is_refused(make_curve):
    rows = make_curve(0.5, benchmark="mine", task="mine/a", trained_on="c", stage="mine/a")
    again = [row | {"stage": "mine/b"} for row in rows[-1:]]
    curves = check_curves(pd.DataFrame(rows + again)).assign(normalised=0.5)
    with pytest.raises(InputError, match="stages 'mine/a' and 'mine/b' of the curriculum 'c' overlap at step 1000"):
        transfers(curves)


def test_a_table_that_lacks_columns_names_all_of_them(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text("task,h\na,1\n")
    assert read_table(path, "horizons", ("task", "h"), "another")["h"].tolist() == [1]
    with pytest.raises(InputError, match=r"^horizons=.* has no columns 'h_low', 'h_high': give another\.$"):
        read_table(path, "horizons", ("h", "h_low", "h_high"), "another")
    with pytest.raises(InputError, match=r"cannot be read \(No such file or directory\): give another\.$"):
        read_table(tmp_path / "none.csv", "horizons", (), "another")
