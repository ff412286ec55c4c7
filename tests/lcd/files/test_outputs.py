"""What is written into somebody's folder: whole or not at all, and never over what LCD did not write."""

import errno
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from lcd.envs.errors import InputError
from lcd.files import outputs

OLD = {"page.html": "old", "figures/a.svg": "old a", "figures/b.svg": "old b", "data.json": "old"}
NEW = {"page.html": "new", "figures/a.svg": "new a", "figures/c/d.svg": "new d", "data.json": "old"}


def write(folder, files, product="report", **more):
    with outputs.drafted(folder, product, **more) as draft:
        for name, text in files.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_text(text)


def held(folder):
    """Every file but the manifest, hidden ones included."""
    files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file() and path.name != outputs.MANIFEST)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_a_product_takes_the_place_of_its_like_and_of_nothing_else(tmp_path):
    mine = {"mine.txt": "mine", "figures/fig1.pdf": "mine", "wandb/run/x": "mine"}
    for name, text in mine.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    write(tmp_path, {"pairs.csv": "1"}, "pairs.csv")
    write(tmp_path, OLD)
    assert held(tmp_path) == mine | OLD | {"pairs.csv": "1"}
    write(tmp_path, NEW)
    assert held(tmp_path) == mine | NEW | {"pairs.csv": "1"}
    write(tmp_path, {"page.html": "last"})
    assert held(tmp_path) == mine | {"page.html": "last", "pairs.csv": "1"}
    assert not (tmp_path / "figures" / "c").exists()


def test_a_folder_that_was_empty_stays_when_what_it_held_goes(tmp_path):
    (tmp_path / "figures").mkdir()
    write(tmp_path, {"figures/a": "", "tables/b": ""})
    write(tmp_path, {"page.html": ""})
    assert (tmp_path / "figures").is_dir()
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize("name", ["page.html", "figures/a.svg", "figures"])
def test_what_lcd_did_not_write_is_refused_by_its_name(tmp_path, name):
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(InputError, match=str(path)):
        write(tmp_path / "out", OLD)
    assert held(tmp_path / "out") == {name: "mine"}


def test_what_was_changed_since_is_kept(tmp_path):
    write(tmp_path, OLD)
    (tmp_path / "page.html").write_text("with my notes")
    (tmp_path / "figures" / "b.svg").write_text("mine now")
    with pytest.raises(InputError, match="was not written by LCD, or was changed"):
        outputs.check(tmp_path, "report")
    with pytest.raises(InputError, match=r"page\.html was not written by LCD, or was changed"):
        write(tmp_path, NEW)
    assert held(tmp_path)["page.html"] == "with my notes"
    (tmp_path / "page.html").unlink()
    write(tmp_path, NEW)
    assert held(tmp_path) == NEW | {"figures/b.svg": "mine now"}


def test_links_are_refused_wherever_they_are(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.svg").write_text("mine")
    (tmp_path / "link").symlink_to(elsewhere)
    for inner, target in (("one/figures", elsewhere), ("two/page.html", elsewhere / "a.svg"), ("three/data.json", "x")):
        (tmp_path / inner).parent.mkdir()
        (tmp_path / inner).symlink_to(target)
    for folder in ("link", "one", "two", "three"):
        with pytest.raises(InputError, match=str(tmp_path / folder)):
            write(tmp_path / folder, OLD)
    assert held(elsewhere) == {"a.svg": "mine"}


def test_an_input_is_no_output_even_if_lcd_wrote_it(tmp_path):
    write(tmp_path, {"pairs.csv": "1"}, "pairs.csv")
    for name, product in (("pairs.csv", "pairs.csv"), ("other.csv", "pairs.csv")):
        with pytest.raises(InputError, match="is read"):
            write(tmp_path, {name: "2"}, product, inputs=[tmp_path / "pairs.csv"])
    with pytest.raises(InputError, match="is read"):
        outputs.check_file(tmp_path / "pairs.csv", [tmp_path / "pairs.csv"])
    assert held(tmp_path) == {"pairs.csv": "1"}


def test_a_strangers_manifest_leads_nowhere_else(tmp_path):
    write(tmp_path / "out", {"page.html": "old"})
    (tmp_path / "mine").write_text("old")
    manifest = tmp_path / "out" / outputs.MANIFEST
    content = json.loads(manifest.read_text())
    content["files"]["../mine"] = content["files"]["page.html"]
    for odd in (json.dumps(content), "[]", "{", '{"files": {"a": 3}, "folders": []}', "\x00"):
        manifest.write_text(odd)
        with pytest.raises(InputError, match="was not written by LCD"):
            write(tmp_path / "out", {"page.html": "new"})
        assert (tmp_path / "mine").exists()


def test_a_strangers_links_take_nothing_from_elsewhere(tmp_path):
    """A draft that waits to be put in place, and a manifest of what may be removed, may come with somebody's study."""
    for name, text in (("mine/kept/key.txt", "mine"), ("mine/empty.txt", "")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "mine" / "folder").mkdir()
    before = held(tmp_path / "mine")
    told = {name: {"product": "report", "sha256": sha256(text.encode()).hexdigest()} for name, text in
            (("link/kept/key.txt", "mine"), ("link/empty.txt", ""))}  # fmt: skip
    for place in ("drafted", f"removed/{outputs.DRAFT}x", "removed"):
        (tmp_path / "out" / place).mkdir(parents=True, exist_ok=True)
    draft = tmp_path / "out" / "drafted" / f"{outputs.DRAFT}x"
    draft.mkdir()
    (draft / "link").symlink_to(tmp_path / "mine")
    (draft / outputs.MANIFEST).write_text(json.dumps({"files": told, "folders": ["link", "link/kept"]}))
    (tmp_path / "out" / "removed" / "link").symlink_to(tmp_path / "mine")
    old = {"files": told, "folders": ["link/folder"]}
    (tmp_path / "out" / "removed" / outputs.MANIFEST).write_text(json.dumps(old))
    for folder in ("drafted", "removed"):
        write(tmp_path / "out" / folder, NEW)
        assert held(tmp_path / "mine") == before
        assert (tmp_path / "mine" / "folder").is_dir()
        assert (tmp_path / "out" / folder / "page.html").read_text() == "new"


def test_a_manifest_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / outputs.MANIFEST)
    write(tmp_path, NEW)
    assert held(tmp_path) == NEW


@pytest.mark.parametrize("folder", ["new/er", "there"])
def test_a_failure_leaves_no_trace(tmp_path, folder):
    (tmp_path / "there").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TypeError):
        write(tmp_path / folder, {"page.html": "half", "data.json": 3})
    assert sorted(tmp_path.rglob("*")) == before


def test_what_cannot_be_written_is_a_sentence_and_a_full_disk_is_one(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file: give a folder"):
        write(tmp_path / "file", OLD)
    with pytest.raises(InputError, match="cannot be written"):
        write(tmp_path / "file" / "below", OLD)
    with pytest.raises(OSError, match="No space"), outputs.drafted(tmp_path / "out", "report"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert held(tmp_path) == {"file": ""}


def die_at(call):
    """End this process, as a kill does, before it changes the disk for the so-manieth time."""
    left = [call]

    def dying(function):
        def counted(*arguments, **more):
            if left[0] == 0:
                os._exit(9)
            left[0] -= 1
            return function(*arguments, **more)

        return counted

    for name in ("replace", "rename", "unlink", "rmdir", "mkdir", "fsync"):
        setattr(os, name, dying(getattr(os, name)))


def test_after_a_kill_at_any_call_the_old_or_the_new_is_whole(tmp_path):
    """The next look at the folder ends what was begun; what is not LCD's is untouched by both."""
    ends, calls = set(), 0
    while True:
        folder = tmp_path / str(calls)
        folder.mkdir()
        (folder / "mine").write_text("mine")
        write(folder, OLD)
        if pid := os.fork():
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        else:
            die_at(calls)
            write(folder, NEW)
            os._exit(0)
        outputs.check(folder, "report")
        found = held(folder)
        assert found.pop("mine") == "mine"
        assert found in (OLD, NEW)
        ends.add(found == NEW)
        if code == 0:
            break
        calls += 1
    assert ends == {True, False}
    assert calls > 10


def test_two_at_once_both_end_well(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_outputs import write\n"
        "for turn in range(30): write(sys.argv[2], {f'{sys.argv[3]}-{turn}': '', 'page.html': sys.argv[3]})"
    )
    folder = tmp_path / "out"
    folder.mkdir()
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(folder)]
    both = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in "ab"]
    assert [process.communicate()[1] for process in both] == ["", ""]
    found = held(folder)
    assert len(found) == 2
    assert f"{found['page.html']}-29" in found
    assert {path.name for path in folder.iterdir()} == set(found) | {outputs.MANIFEST}
