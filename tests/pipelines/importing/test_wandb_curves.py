"""Curves of anybody's W&B runs: the mapping, and offline files that W&B's client has written, or a stranger spoilt."""

import zlib

import pandas as pd
import pytest

from lcd.envs.errors import InputError, Unfinished
from lcd.pipelines.importing.import_curves import imported
from lcd.pipelines.importing.mapping import check_complete, mapping_from
from lcd.pipelines.importing.read_run import ReadRun, plain
from lcd.pipelines.importing.wandb_curves import OURS
from lcd.pipelines.importing.wandb_records import BLOCK, HEADER, read_offline_run, records
from lcd.pipelines.publish import wandb_client

wandb = pytest.importorskip("wandb", reason="wandb is not installed")
MAP = {
    "task": "config.env.id", "view": "pixels", "reward_p": 1, "agent": "config.algo", "seed": "config.seed",
    "step": "history.global_step", "return_mean": "history.charts/episodic_return",
}  # fmt: skip


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """What somebody else's script leaves: a config of its own, nested, and long enough for several blocks."""
    folder = tmp_path_factory.mktemp("theirs")
    config = {"env": {"id": "CartPole-v1"}, "algo": "ppo", "seed": 7}
    run = wandb_client.start(wandb_client.WandbSettings(project="theirs"), folder, "their1", group="g", config=config)
    for step in range(0, 1500, 10):
        run.log({"global_step": step, "charts/episodic_return": step / 10, "note": "x" * 300})
    wandb_client.finish(run, folder)
    return folder


def read_wandb(path, given):
    return imported(path, given).curves


def file_of(folder):
    (found,) = folder.rglob("*.wandb")
    return found


def test_offline_runs_of_anybody_become_curves(offline):
    curves = read_wandb(f"wandb:offline/{offline}", MAP)
    assert file_of(offline).stat().st_size > BLOCK
    assert curves.step.tolist() == list(range(0, 1500, 10))
    assert curves.return_mean.tolist() == [step / 10 for step in range(0, 1500, 10)]
    assert (curves.task.unique(), curves.seed.unique(), curves.agent.unique()) == (["CartPole-v1"], [7], ["ppo"])
    run = read_offline_run(file_of(offline))
    assert (run.id, run.group) == ("their1", "g")


def test_keys_that_name_seeds_are_read_for_each(offline, tmp_path):
    run = wandb_client.start(
        wandb_client.WandbSettings(), tmp_path, "ours1", config={"task": "toy/a", "view": "pixels"}
    )
    for step in (0, 100):
        run.log({"env_step": step} | {f"eval/return_mean/seed_{seed}": step + seed for seed in (3, 12)})
    wandb_client.finish(run, tmp_path)
    curves = read_wandb(f"wandb:offline/{tmp_path}", {**OURS, "reward_p": 1.0, "agent": "ppo"})
    found = curves[["seed", "step", "return_mean"]].sort_values(["seed", "step"]).to_numpy().tolist()
    assert found == [[3, 0, 3], [3, 100, 103], [12, 0, 12], [12, 100, 112]]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tsak": "config.env"}, "'tsak' is no column"),
        ({"task": "a"}, "says nothing of view, reward_p, seed, step, return_mean"),
        ({**MAP, "seed": "run.sed"}, "map.seed=run.sed is unknown"),
        ({**MAP, "view": ["x"]}, "must be a text or a number"),
        ({**MAP, "step": 1, "return_mean": 2}, "must come from the history"),
        ("/nowhere.yaml", "cannot be read"),
    ],
)
def test_wrong_mappings_are_mistakes(given, told):
    with pytest.raises(InputError, match=told):
        check_complete(mapping_from(given))


def test_a_map_that_fits_no_run_says_so(offline):
    with pytest.raises(Unfinished, match="None of the 1 runs"):
        read_wandb(f"wandb:offline/{offline}", {**MAP, "return_mean": "history.reward"})


@pytest.mark.parametrize("place", ["wandb:somebody", "wandb:a/b/c/d", "wandb:a//b"])
def test_places_that_are_none_are_mistakes(place):
    with pytest.raises(InputError, match="give wandb:entity/project"):
        read_wandb(place, MAP)


def test_a_folder_that_is_here_is_said_to_be_one(offline):
    with pytest.raises(InputError, match="is a folder here: give wandb:offline/"):
        read_wandb(f"wandb:{offline}", MAP)


def test_a_file_that_is_cut_off_anywhere_gives_what_is_whole(offline, tmp_path):
    content = file_of(offline).read_bytes()
    whole = list(records(content))
    for cut in range(0, len(content), 997):
        assert list(records(content[:cut])) == whole[: len(list(records(content[:cut])))]
    assert len(whole) > 150


def test_damage_ends_a_file_and_nothing_is_made_up(offline):
    content = bytearray(file_of(offline).read_bytes())
    whole = list(records(bytes(content)))
    for place in range(HEADER, len(content), 1009):
        spoilt = bytearray(content)
        spoilt[place] ^= 0xFF
        found = list(records(bytes(spoilt)))
        assert found == whole[: len(found)]


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.wandb"
    for content in (b"", b"PK\x03\x04 nothing of W&B's"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="does not begin as one"):
            read_offline_run(path)
    message = b"\xff" * 40
    part = zlib.crc32(message, zlib.crc32(b"\x01")).to_bytes(4, "little") + len(message).to_bytes(2, "little") + b"\x01"
    path.write_bytes(b":W&B\xe1\xbe\x00" + part + message)
    with pytest.raises(InputError, match="damaged"):
        read_offline_run(path)


def test_deep_and_odd_values_are_left_out():
    deep = value = {}
    for _ in range(500):
        value["a"] = {}
        value = value["a"]
    assert plain({"deep": deep, "list": [1], "none": None, "x": {"y": 2}}, "") == {"x.y": 2}
    assert ReadRun().history == []
    assert pd.DataFrame(ReadRun().history).empty
