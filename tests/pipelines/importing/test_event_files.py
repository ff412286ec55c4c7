"""TensorBoard's files: those that its own writer leaves, and those that a stranger spoilt."""

import struct

import numpy as np
import pytest

from lcd.pipelines.importing.event_files import _checksums, masked, read_event_files, records, values_in

tensorboard = pytest.importorskip("tensorboard", reason="tensorboard is not installed")


def framed(message):
    length = struct.pack("<Q", len(message))
    return b"".join(
        part + struct.pack("<I", masked(checksum))
        for part, checksum in zip((length, message), (*_checksums([length]), *_checksums([message])), strict=True)
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What CleanRL's scripts do: settings as a text, an episode now and then, losses at steps of their own."""
    from torch.utils.tensorboard import SummaryWriter

    folder = tmp_path_factory.mktemp("runs") / "CartPole-v1__ppo__3__17"
    writer = SummaryWriter(str(folder))
    settings = {"exp_name": "ppo", "env_id": "CartPole-v1", "seed": 3, "learning_rate": 2.5e-4, "track": False}
    writer.add_text("hyperparameters", "|param|value|\n|-|-|\n" + "\n".join(f"|{k}|{v}|" for k, v in settings.items()))
    for step in range(0, 1000, 40):
        writer.add_scalar("charts/episodic_return", step / 8, step)
        writer.add_scalar("charts/episodic_length", step / 4, step)
    for step in range(0, 1000, 100):
        writer.add_scalar("losses/value", 1 / (1 + step), step)
    writer.add_scalar("charts/episodic_return", 7.0, 960)  # two copies end at one step
    writer.add_histogram("weights", np.arange(50_000.0), 0)
    writer.close()
    return folder


def test_what_the_writer_writes_is_read_as_its_own_reader_reads_it(written):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    theirs = EventAccumulator(str(written), size_guidance={"scalars": 0}).Reload()
    run = read_event_files(sorted(written.iterdir()), "run")
    for tag in theirs.Tags()["scalars"]:
        mine = run.table[["step", tag]].dropna()
        assert mine.to_numpy().tolist() == [[event.step, event.value] for event in theirs.Scalars(tag)]
    assert run.config == {
        "exp_name": "ppo", "env_id": "CartPole-v1", "seed": 3, "learning_rate": 2.5e-4, "track": "False"
    }  # fmt: skip
    assert run.usual["return_mean"] == "history.charts/episodic_return"
    assert run.of_episodes


def test_lengths_stand_in_the_row_of_their_returns(written):
    table = read_event_files(sorted(written.iterdir()), "run").table
    both = table.dropna(subset=["charts/episodic_return", "charts/episodic_length"])
    assert len(both) == 25
    assert (both["charts/episodic_length"] == 2 * both["charts/episodic_return"]).all()


def test_checksums_are_those_of_the_standard():
    assert _checksums([b"123456789", b"", b"\x00" * 32]) == [0xE3069283, 0, 0x8A9136AA]  # RFC 3720, B.4


def test_a_file_that_is_cut_off_anywhere_gives_what_is_whole(written):
    content = next(written.iterdir()).read_bytes()
    whole = records(content)
    for cut in range(0, len(content), 997):
        found = records(content[:cut])
        assert found == whole[: len(found)]
    assert len(whole) > 50


def test_damage_ends_a_file_and_nothing_is_made_up(written):
    content = bytearray(next(written.iterdir()).read_bytes())
    whole = records(bytes(content))
    for place in range(0, len(content), 1009):
        spoilt = bytearray(content)
        spoilt[place] ^= 0x5A
        found = records(bytes(spoilt))
        assert found == whole[: len(found)]


def test_messages_that_are_none_are_passed_over():
    rng = np.random.default_rng(0)
    strangers = b"".join(framed(rng.bytes(int(n))) for n in rng.integers(1, 200, 300))
    assert all(isinstance(each.tag, str) for each in values_in(strangers))
    assert list(values_in(framed(b"\x2a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))) == []  # a length of 2^64
    assert list(values_in(struct.pack("<Q", 2**63) + b"\0" * 8)) == []


def test_a_restart_takes_the_place_of_what_it_tells_again(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    for begun, (first, add) in enumerate(((0, 0.0), (50, 1000.0))):
        writer = SummaryWriter(str(tmp_path / str(begun)))
        for step in range(first, 100, 10):
            writer.add_scalar("eval/mean_reward", step + add, step)
        writer.close()
    files = [next((tmp_path / str(begun)).iterdir()) for begun in range(2)]
    table = read_event_files(files, "run").table
    assert table["eval/mean_reward"].tolist() == [0, 10, 20, 30, 40, 1050, 1060, 1070, 1080, 1090]
