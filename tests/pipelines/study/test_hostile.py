"""Studies that a stranger made to do harm: nothing outside of them is touched, and a sentence says what is wrong."""

import json
import os
import shutil
import socket

import pytest
from small_runs import waiting_run

from lcd.envs.errors import InputError
from lcd.pipelines.study import cancelling, hands, store
from lcd.pipelines.study.hands import DISK, acquire
from lcd.pipelines.study.lease import AT_WORK, LEASES, last_entry


@pytest.fixture
def run(tmp_path):
    return waiting_run(tmp_path / "study")


@pytest.fixture
def outside(tmp_path):
    """What is not the study's: its folders are called as those of hands are."""
    folder = tmp_path / "outside"
    (folder / "1" / "precious").mkdir(parents=True)
    (folder / "1" / "precious" / "curve.csv").write_text("mine")
    (folder / "last.ckpt").write_text("mine")
    return folder


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [LEASES, AT_WORK, f"{AT_WORK}/3", "log.txt"])
def test_nobody_works_through_a_link(run, outside, name):
    before = content(outside)
    shutil.rmtree(run.path / AT_WORK, ignore_errors=True)
    (run.path / name).parent.mkdir(exist_ok=True)
    (run.path / name).symlink_to(outside)
    with pytest.raises(InputError, match=f"{name} is no .*, or a link"):
        acquire(run.path)
    assert content(outside) == before


@pytest.mark.parametrize("odd", ["socket", "link to itself", "large"])
def test_an_entry_that_nobody_can_read_is_one_of_nobody_known(run, tmp_path, monkeypatch, odd):
    (run.path / LEASES).mkdir()
    entry = run.path / LEASES / "000009"
    if odd == "socket":
        monkeypatch.chdir(entry.parent)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(entry.name)
    elif odd == "large":
        entry.touch()
        os.truncate(entry, 3 << 40)
    else:
        entry.symlink_to(entry.name)
    found = last_entry(DISK, run.path)
    assert (found.number, found.what, found.by) == (9, "taken", None)
    assert hands.is_at_work(run.path) is None


@pytest.mark.parametrize("linked", ["the run", "all runs"])
@pytest.mark.parametrize("touch", [acquire, cancelling.cancel, cancelling.let_go_on])
def test_nobody_works_on_a_run_that_is_elsewhere(run, tmp_path, linked, touch):
    place = run.path if linked == "the run" else run.path.parent
    (run.path / cancelling.MARK).touch()
    shutil.move(place, tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    before = content(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=f"{place} is no folder, or a link: nothing is written there; remove it"):
        touch(run.path)
    assert content(tmp_path / "elsewhere") == before


@pytest.mark.parametrize("name", [LEASES, AT_WORK])
def test_nobody_works_where_a_folder_should_be_and_is_none(run, name):
    (run.path / name).write_text("nonsense")
    with pytest.raises(InputError, match=f"{name} is no folder"):
        acquire(run.path)


def test_a_log_that_would_never_open_is_refused(run):
    os.mkfifo(run.path / "log.txt")
    with pytest.raises(InputError, match="is no file"):
        acquire(run.path)


def test_what_a_hand_begins_with_holds_no_links(run, outside):
    before = content(outside)
    (run.path / "checkpoints").symlink_to(outside)
    (run.path / "curve.csv").symlink_to(outside / "last.ckpt")
    lease, still = acquire(run.path)
    assert lease.prepare(still=still)
    assert sorted(path.name for path in lease.folder.iterdir()) == ["config.yaml", "status.json"]
    assert content(outside) == before


def test_a_study_does_not_remember_through_a_link(run, outside):
    study = run.path.parents[1]
    shutil.rmtree(study / ".revisions")
    (study / ".revisions").symlink_to(outside)
    with pytest.raises(InputError, match="nothing outside of a study is written to"):
        store.Study(study)


@pytest.mark.parametrize(
    "said",
    [
        b"[" * 200_000,
        b"\xff",
        json.dumps({"what": "taken", "lease": 3, "since": 0, "by": {"pid": 4, "machine": [{}]}}).encode(),
        b'{"what": "done", "lease": ' + b"9" * 5000 + b"}",
        b'{"what": "done", "lease": NaN, "since": true}',
    ],
)
def test_of_a_nonsense_entry_nobody_knows_who_wrote_it(run, monkeypatch, said):
    (run.path / LEASES).mkdir()
    (run.path / LEASES / "000003").write_bytes(said)
    entry = last_entry(DISK, run.path)
    assert (entry.number, entry.what) == (3, "taken")
    assert hands.is_here(entry) is None
    # It is taken over when it was silent for as long as anybody's.
    monkeypatch.setenv(hands.LEASE_VARIABLE, "0.2")
    lease, _ = acquire(run.path)
    assert lease.number == 4
    assert lease.prepare()
