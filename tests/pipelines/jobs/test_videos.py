"""Videos on disk: what was filmed comes back, a frame at a time, and nothing else."""

import hashlib
import json
import os
from functools import partial
from importlib.util import find_spec
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, VectorEnv

from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.pipelines.jobs import videos
from lcd.pipelines.jobs.players import RandomPolicy


class Counting(VectorEnv):
    """Frames that say which copy, episode and step they are of; episodes of copy c have 3 + c steps."""

    def __init__(self, num_envs=2, mode=AutoresetMode.SAME_STEP):
        self.num_envs, self.metadata = num_envs, {"autoreset_mode": mode}
        self.single_observation_space = gymnasium.spaces.Box(0, 255, (8, 9, 3), np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.action_space = gymnasium.spaces.MultiDiscrete([2] * num_envs)

    def reset(self, *, seed=None, options=None):
        self.episode, self.at = np.zeros((2, self.num_envs), int)
        self.over = np.zeros(self.num_envs, bool)
        return self._frames(), {}

    def step(self, actions):
        self.at += 1
        ended = self.at == 3 + np.arange(self.num_envs)
        if self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP:
            again, ended = self.over, ended & ~self.over
            self.over = ended.copy()
        else:
            again = ended
        self.at[again], self.episode[again] = 0, self.episode[again] + 1
        nothing = np.zeros(self.num_envs)
        return self._frames(), nothing, ended, np.zeros_like(ended), {}

    def _frames(self):
        frames = np.zeros((self.num_envs, 8, 9, 3), np.uint8)
        frames[..., 0] = np.arange(self.num_envs)[:, None, None]
        frames[..., 1], frames[..., 2] = self.episode[:, None, None], self.at[:, None, None]
        return frames


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_videos_are_consecutive_frames_of_one_episode(tmp_path, mode):
    env = Counting(mode=mode)
    file = videos.record(tmp_path / "x", env, RandomPolicy(env, 0), 12, 3, 2, lambda done: None)
    assert len(file) == 12
    for video, length in enumerate(file.index.lengths):
        frames = file.frames(video, 0, length)
        assert 2 <= length <= 3
        copy, episode, at = frames[:, 0, 0].T
        assert len(set(copy)) == len(set(episode)) == 1
        np.testing.assert_array_equal(np.diff(at.astype(int)), 1)
        np.testing.assert_array_equal(file.frames(video, 1, 1), frames[1:2])


def test_statistics_and_hash_are_those_of_the_frames(tmp_path):
    benchmark = get_benchmark("toy")
    task = next(task for task in benchmark.tasks)
    asked = {"view": "pixels", "knobs": {}, "seed": 3, "count": 5, "held_out": 2, "length": 6, "gap": 1, "copies": 2}
    random = lambda task, env: RandomPolicy(env, 3)  # noqa: E731
    seen = []
    found = videos.record_videos(tmp_path / "a", benchmark, [task], asked, random, lambda *told: seen.append(told))
    file = found["train"][task]
    assert seen[-1] == (f"{task} (eval)", 2, 2)
    frames = [file.frames(video, 0, length) for video, length in enumerate(file.index.lengths)]
    every = np.concatenate([each.reshape(-1, 3) for each in frames]) / 255
    mean, std = videos.statistics(found["train"])
    np.testing.assert_allclose(mean, every.mean(0))
    np.testing.assert_allclose(std, np.maximum(every.std(0), 0.01))
    assert file.index.sha256 == hashlib.sha256(b"".join(each.tobytes() for each in frames)).hexdigest()
    again = videos.record_videos(tmp_path / "b", benchmark, [task], asked, random, lambda *told: None)
    assert videos.data_hash(again["train"]) == videos.data_hash(found["train"])
    other = videos.record_videos(tmp_path / "c", benchmark, [task], asked | {"seed": 4}, random, lambda *told: None)
    assert videos.data_hash(other["train"]) != videos.data_hash(found["train"])
    assert videos.data_hash(found["eval"]) != videos.data_hash(found["train"])


def test_what_is_not_whole_is_told_or_recorded_anew(tmp_path):
    env = Counting()
    path = tmp_path / "x"
    videos.record(path, env, RandomPolicy(env, 0), 4, 3, 2, lambda done: None)
    whole = (tmp_path / "x.bin").read_bytes()
    (tmp_path / "x.bin").write_bytes(whole[:-1])
    with pytest.raises(InputError, match="cut off"):
        videos.open_videos(path)
    (tmp_path / "x.json").write_text(json.dumps({"frame": [8, 9, 3]}))
    with pytest.raises(InputError, match="not whole"):
        videos.open_videos(path)
    (tmp_path / "x.json").unlink()
    assert videos.open_videos(path) is None


def test_pairs_follow_from_seed_and_iteration_alone(tmp_path):
    env = Counting()
    file = videos.record(tmp_path / "x", env, RandomPolicy(env, 0), 9, 4, 3, lambda done: None)
    pairs = videos.Pairs({"a": file, "b": file}, batch=5, gap=2, total=4, seed=1)
    batches = list(pairs)
    assert [batch.shape for batch in batches] == [(2, 5, 8, 9, 3)] * 4
    for first, second in batches:
        assert ((second - first)[..., 2] == 2).all(), "two steps apart"
        assert (second == first)[..., :2].all(), "of one episode"
    later = videos.Pairs({"a": file, "b": file}, batch=5, gap=2, total=4, seed=1)
    later.load_state_dict({"iteration": 2})
    for batch, wanted in zip(later, batches[2:], strict=True):
        assert (batch == wanted).all()
    assert (videos.Pairs({"a": file}, 5, 2, 4, seed=2).draw(0) != batches[0]).any()


def test_threes_are_evenly_of_all_tasks_and_follow_from_seed_and_iteration(tmp_path):
    env = Counting()
    file = videos.record(tmp_path / "x", env, RandomPolicy(env, 0), 9, 4, 3, lambda done: None)
    make = partial(videos.Triples, {"a": file, "b": file, "c": file}, batch=4, gap=1, total=3)
    moments = list(make(seed=1))
    assert torch.cat([moment.tasks for moment in moments]).bincount().tolist() == [4, 4, 4]
    for frames, _, offsets, neighbour in moments:
        assert frames.shape == (3, 4, 8, 9, 3)
        for first, second in pairwise(frames):
            assert ((second - first)[..., 2] == 1).all(), "a step apart"
            assert (second == first)[..., :2].all(), "of one episode"
        assert len(offsets) == 8
        assert max(map(abs, neighbour)) <= videos.NEAR
    again, other = list(make(seed=1)), list(make(seed=2))
    assert all((one.frames == same.frames).all() for one, same in zip(moments, again, strict=True))
    assert [one[2:] for one in moments] == [same[2:] for same in again] != [one[2:] for one in other]


@pytest.mark.skipif(
    find_spec("procgen") is None and not os.environ.get("CI"), reason="Procgen is not installed: see the README"
)
def test_compression_is_worth_it(tmp_path):
    from lcd.envs.procgen.benchmark import PROCGEN

    env = PROCGEN.make_vec("procgen/bigfish", view="pixels", split="train", num_envs=4, seed=0)
    file = videos.record(tmp_path / "x", env, RandomPolicy(env, 0), 8, 20, 2, lambda done: None)
    env.close()
    raw = sum(file.index.lengths) * 64 * 64 * 3
    assert file.index.bytes < raw / 5
