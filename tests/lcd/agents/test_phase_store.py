"""The store of PPG's rollouts: exact, in memory as in files, and never half of one."""

import errno
import os

import numpy as np
import pytest
import torch

from lcd.agents import phase_store
from lcd.agents.phase_store import RolloutStore, Stored, StoreSize, is_mask
from lcd.envs.errors import InputError


def rollout(kind, seed=0):
    """Inputs, targets and weights of 2 seeds, 5 steps, 3 copies."""
    rng = np.random.default_rng(seed)
    shape = (2, 5, 3)
    inputs = {
        "mask": lambda: torch.from_numpy(rng.integers(256, size=(*shape, 1, 4, 4), dtype=np.uint8)).expand(
            *shape, 3, 4, 4
        ),
        "last": lambda: torch.from_numpy(rng.integers(256, size=(*shape, 4, 4, 1), dtype=np.uint8)).expand(
            *shape, 4, 4, 3
        ),
        "pixels": lambda: torch.from_numpy(rng.integers(256, size=(*shape, 3, 4, 4), dtype=np.uint8)),
        "vector": lambda: torch.from_numpy(rng.normal(size=(*shape, 3)).astype(np.float32)),
        "half": lambda: torch.from_numpy(rng.normal(size=(*shape, 7))).bfloat16(),
    }[kind]()
    targets = torch.from_numpy(rng.normal(size=shape).astype(np.float32))
    return inputs, targets, torch.from_numpy(rng.integers(2, size=shape).astype(np.float32))


KINDS = ("mask", "last", "pixels", "vector", "half")
PLACES = ("memory", "kept", "spilled")


def make_store(place, folder):
    return RolloutStore(None if place == "memory" else folder / "rollouts", spilled=place == "spilled")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kinds", [(kind, kind) for kind in KINDS] + [("mask", "pixels")])
def test_what_is_taken_is_what_was_added(tmp_path, kinds, place):
    store = make_store(place, tmp_path)
    added = [rollout(kind, seed) for seed, kind in enumerate(kinds)]
    for iteration, parts in enumerate(added):
        store.add(iteration, *parts)
    chosen = np.array([[4, 0, 3], [1, 5, 5]])
    taken = store.take(chosen, torch.device("cpu"))
    for name, index in (("inputs", 0), ("targets", 1), ("weights", 2)):
        for seed in range(2):
            expected = torch.cat([added[number // 3][index][seed, :, number % 3] for number in chosen[seed]])
            assert taken[name].dtype == added[0][index].dtype
            assert torch.equal(taken[name][seed], expected), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_takes_a_third(tmp_path, kind):
    store = make_store("spilled", tmp_path)
    inputs, targets, weights = rollout(kind)
    assert (is_mask(inputs) is not None) == (kind in ("mask", "last"))
    store.add(0, inputs, targets, weights)
    (kept,) = store.rollouts.values()
    share = 3 if kind in ("mask", "last") else 1
    assert kept.parts["inputs"].nbytes == inputs.numel() * inputs.element_size() / share


def test_the_size_is_that_of_the_tensors():
    """Of a paper-scale worker: 64 copies x 256 steps x 32 rollouts of RGB are 6.4 GB; a mask is a third of it."""
    size = StoreSize(32, 256, 64, 1, (3, 64, 64), outputs=15)
    assert size.bytes - 32 * 256 * 64 * (5 + 4 * 15) == 64 * 256 * 32 * 3 * 64 * 64 == 6_442_450_944
    small = StoreSize(1, 5, 3, 2, (3, 4, 4), mask=True, outputs=6)
    parts = Stored.of(*rollout("mask")).parts
    cloned = 2 * 3 * 5 * 6 * 4
    assert small.bytes == sum(part.nbytes for part in parts.values()) + cloned
    assert "masks as one channel" in small.sentence()


def test_it_spills_by_what_is_free_and_by_how_many_share_it(monkeypatch):
    monkeypatch.setattr(phase_store, "free_memory", lambda: 100_000)
    size = StoreSize(1, 10, 10, 1, (100,), outputs=1)
    assert size.bytes == 10_900
    assert not size.spilled
    assert StoreSize(1, 10, 10, 1, (100,), outputs=1, runs=3).spilled
    assert "in files of the run's folder" in StoreSize(1, 10, 10, 1, (100,), outputs=1, runs=3).sentence()
    assert "in memory" in size.sentence()


@pytest.mark.parametrize("place", PLACES)
def test_a_checkpoint_brings_back_the_phase(tmp_path, place):
    store = make_store(place, tmp_path)
    for iteration in (8, 9):
        store.add(iteration, *rollout("mask", iteration))
    torch.save(store.state(), tmp_path / "checkpoint")
    # What comes after the checkpoint, in a process that is then killed, is collected again.
    store.add(10, *rollout("pixels", 10))
    again = make_store(place, tmp_path)
    again.restore(torch.load(tmp_path / "checkpoint", weights_only=True))
    again.add(10, *rollout("mask", 10))
    whole = make_store("memory", tmp_path)
    for iteration in (8, 9, 10):
        whole.add(iteration, *rollout("mask", iteration))
    chosen = np.array([[0, 4, 8], [8, 1, 5]])
    ours, theirs = (each.take(chosen, torch.device("cpu")) for each in (again, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_each_rollout_is_written_once(tmp_path, monkeypatch):
    written = []
    write = Stored.write
    monkeypatch.setattr(Stored, "write", lambda self, path, i: (written.append(i), write(self, path, i)))
    store = make_store("kept", tmp_path)
    for iteration in range(4):
        store.add(iteration, *rollout("mask", iteration))
        store.state()
        store.state()
    assert written == [0, 1, 2, 3]


@pytest.mark.parametrize("place", ["kept", "spilled"])
def test_files_stay_while_the_last_good_checkpoint_needs_them(tmp_path, place):
    """A kill between a checkpoint's preparation and its writing leaves the one before, with all that it needs."""
    store = make_store(place, tmp_path)
    store.add(0, *rollout("mask", 0))
    first = store.state()
    store.clear()
    store.add(1, *rollout("mask", 1))
    store.state()  # and now the process is killed, before this state is written
    again = make_store(place, tmp_path)
    again.restore(first)
    assert len(again) == 1
    # One checkpoint later nothing can ask for the first phase any more.
    store.state()
    assert sorted(path.name for path in (tmp_path / "rollouts").iterdir()) == ["rollout-00000001.bin"]


@pytest.mark.parametrize("harm", ["cut", "flip", "swap", "lose"])
def test_a_damaged_file_is_noticed(tmp_path, harm):
    store = make_store("spilled", tmp_path)
    for iteration in range(2):
        store.add(iteration, *rollout("pixels", iteration))
    state = store.state()
    store.clear()
    one, other = sorted((tmp_path / "rollouts").iterdir())
    if harm == "cut":
        one.write_bytes(one.read_bytes()[:-100])
    elif harm == "flip":
        content = bytearray(one.read_bytes())
        content[phase_store.PAGE + 7] ^= 1
        one.write_bytes(content)
    elif harm == "swap":
        os.replace(other, one)
    else:
        one.unlink()
    for place in ("kept", "spilled"):
        with pytest.raises(InputError, match="missing or damaged"):
            make_store(place, tmp_path).restore(state)


@pytest.mark.parametrize("place", ["kept", "spilled"])
def test_a_full_disk_is_a_sentence_and_leaves_what_was_whole(tmp_path, monkeypatch, place):
    store = make_store(place, tmp_path)
    store.add(0, *rollout("mask", 0))
    state = store.state()

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(phase_store.os, "fsync", full)
    with pytest.raises(InputError, match="make room"):
        store.add(1, *rollout("mask", 1)) or store.state()
    assert [path.name for path in (tmp_path / "rollouts").iterdir()] == ["rollout-00000000.bin"]
    again = make_store(place, tmp_path)
    again.restore(state)
    assert len(again) == 1


def test_a_store_that_cannot_fit_is_refused_before_it_begins(tmp_path):
    with pytest.raises(InputError, match=r"need 1,000,000,000\.0 GB"):
        phase_store.require_room(tmp_path / "not" / "yet" / "made", 10**18)
    phase_store.require_room(tmp_path / "not" / "yet" / "made", 1)
