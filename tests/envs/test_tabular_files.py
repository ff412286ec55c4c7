"""Files of tabular MDPs: what is written comes back, BRIDGE's layout is read, and hostile files end in one sentence."""

import io
import zipfile

import numpy as np
import pytest

from lcd.envs.errors import InputError
from lcd.envs.tabular import files
from lcd.envs.tabular.files import load, save
from lcd.envs.tabular.mdp import TabularMDP

GOOD = {"transitions": np.array([[1, -1], [0, 1]]), "rewards": np.array([[0, 1], [0.5, 0]])}


def written(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_a_saved_mdp_comes_back(tmp_path):
    mdp = TabularMDP(**GOOD, horizon=7, start=1, actions=("left", "right"), sticky=0.25, codes=np.array([5, 9]))
    save(mdp, tmp_path / "mdp.npz")
    back = load(tmp_path / "mdp.npz")
    assert (back.horizon, back.start, back.actions, back.sticky) == (7, 0, ("left", "right"), 0.25)
    # The first state is number 0 in files, so the two states have changed places.
    assert back.transitions.tolist() == [[1, 0], [0, -1]]
    assert back.rewards.tolist() == [[0.5, 0], [0, 1]]
    assert back.codes.tolist() == [9, 5]


def test_bridges_layout_is_read(tmp_path):
    """Julia writes in Fortran's order, with 64-bit transitions, and says no horizon."""
    screens = np.arange(3 * 2 * 2 * 3, dtype=np.uint8).reshape(3, 2, 2, 3)
    (tmp_path / "pong_5").mkdir()
    path = written(
        tmp_path / "pong_5" / "consolidated.npz", transitions=np.asfortranarray(GOOD["transitions"]),
        rewards=np.asfortranarray(GOOD["rewards"].astype(np.float32)), screens=screens, screen_mapping=np.array([2, 1]),
        states=np.zeros((2, 9), np.uint8), state_lengths=np.array([9, 8], np.uint64),
    )  # fmt: skip
    with pytest.raises(InputError, match=r"horizon is missing: .* give horizon="):
        load(path)
    mdp = load(path, horizon=5)
    assert (mdp.name, mdp.horizon, mdp.num_states) == ("pong_5", 5, 2)
    assert np.array_equal(mdp.transitions, GOOD["transitions"])
    assert np.array_equal(mdp.renderer.paint(np.array([0, 1]), "pixels"), screens[[2, 1]])


HOSTILE = {
    "no array 'rewards'": {"transitions": GOOD["transitions"]},
    "'transitions' has the type object": {**GOOD, "transitions": np.array([[{}]], dtype=object)},
    "'transitions' has the shape (4,)": {**GOOD, "transitions": np.zeros(4, int)},
    "transitions[0, 0] is 9": {**GOOD, "horizon": 3, "transitions": np.full((2, 2), 9)},
    "rewards[0, 0] is inf": {**GOOD, "horizon": 3, "rewards": np.full((2, 2), np.inf)},
    "horizon is 0": {**GOOD, "horizon": 0},
    "'horizon' has the type <U1": {**GOOD, "horizon": "9"},
    "sticky is nan": {**GOOD, "horizon": 3, "sticky": np.nan},
    "actions has 1 different names": {**GOOD, "horizon": 3, "actions": np.array(["a"])},
    "screen_mapping must hold": {
        **GOOD, "horizon": 3, "screens": np.zeros((1, 2, 2, 3), np.uint8), "screen_mapping": np.array([0, 1]),
    },
}  # fmt: skip


@pytest.mark.parametrize("sentence", HOSTILE)
def test_hostile_arrays_end_in_one_sentence(tmp_path, sentence):
    path = tmp_path / "bad.npz"
    np.savez(path, allow_pickle=True, **HOSTILE[sentence])
    with pytest.raises(InputError) as told:
        load(path)
    assert sentence in str(told.value)
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)


def npy(shape: tuple, kind: str = "<i8", data: bytes = b"") -> bytes:
    """An npy file that says it has this shape, whatever follows."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + data


TABLES = {
    "transitions.npy": npy((2, 2), data=GOOD["transitions"].astype("<i8").tobytes()),
    "rewards.npy": npy((2, 2), "<f8", GOOD["rewards"].tobytes()),
}


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"transitions.npy": npy((10**9, 10**9))}, "is more than"),
        ({"transitions.npy": npy((-1, 2))}, "none of them below 0"),
        ({"transitions.npy": npy((1000, 2), data=b"12"), "rewards.npy": npy((1000, 2))}, "its header tells of 16,"),
        ({**TABLES, "codes.npy": npy((2,), data=b"0" * 24)}, "'codes' has 152 bytes, but its header tells of 144"),
        ({**TABLES, "codes.npy": npy((3,), data=b"0" * 24)}, "codes has the shape (3,)"),
        ({"transitions.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 2**20}, "got 65524"),
        ({**TABLES, "actions.npy": npy((10**9,), "<U0")}, "'actions' has 1,000,000,000 names"),
        ({**TABLES, "actions.npy": npy((2,), "<U100000")}, "'actions' has 2 names of up to 100,000 characters"),
        ({**TABLES, "actions.npy": npy((2,), "<U1", b"\xff" * 8)}, "a name that is no text"),
        ({**TABLES, "actions.npy": npy((2,), "<U1", b"\0\xd8\0\0a\0\0\0")}, "a name that is no text"),
        ({**TABLES, "features.npy": npy((2, 0), "<f8")}, "features has the shape (2, 0)"),
        ({**TABLES, "features.npy": npy((2, 1), "<f8", np.array([0, np.nan]).tobytes())}, "features[1, 0] is nan"),
        ({**TABLES, "rewards.npy": npy((2, 2), "<f8", np.full(4, 1e-60).tobytes())}, "which is 0 as a float32"),
        ({"transitions.npy": b"\x93NUMPY\x07\x00"}, "npy version (7, 0)"),
        ({"transitions.npy": b"hello"}, "no .npz file that can be read"),
        ({"transitions.npy": b""}, "no .npz file that can be read"),
        ({"transitions.npy": npy((2, 2), kind="|O")}, "type object"),
    ],
)
def test_hostile_members_end_in_one_sentence_before_memory_is_taken(tmp_path, members, sentence):
    path = tmp_path / "bad.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(InputError) as told:
        load(path, horizon=3)
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_would_be_unpacked_at_once_is_not_unpacked(tmp_path, method):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in TABLES.items():
            archive.writestr(name, content)
    with pytest.raises(InputError, match="'transitions' is packed by another method than numpy's"):
        load(path, horizon=3)


def test_what_is_no_archive_ends_in_one_sentence(tmp_path):
    text = tmp_path / "text.npz"
    text.write_text("hello")
    cut = written(tmp_path / "cut.npz", **GOOD)
    cut.write_bytes(cut.read_bytes()[:-30])
    spoiled = tmp_path / "spoiled.npz"
    np.savez_compressed(spoiled, transitions=np.zeros((500, 4), int), rewards=np.zeros((500, 4)))
    content = bytearray(spoiled.read_bytes())
    content[60:80] = bytes(20)
    spoiled.write_bytes(content)
    for path in (text, cut, spoiled, tmp_path, tmp_path / "nowhere.npz"):
        with pytest.raises(InputError) as told:
            load(path, horizon=3)
        assert "\n" not in str(told.value)


def test_limits_hold_for_whatever_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 64)
    path = written(tmp_path / "large.npz", transitions=np.zeros((9, 9), int), rewards=np.zeros((9, 9)))
    with pytest.raises(InputError, match=r"'transitions' has the shape \(9, 9\), which is more than"):
        load(path, horizon=3)
