"""Front-ends in policy learning: frozen, applied once, kept or made anew."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from gymnasium.vector import SyncVectorEnv
from torch import nn

from lcd.agents import agents, validate
from lcd.agents.feature_file import FeatureFile
from lcd.agents.frozen import GIB, FrozenFrontend, Kept, freeze
from lcd.agents.rollout import Rollouts
from lcd.envs.errors import InputError
from lcd.envs.population import make_population

SPACE = Box(0, 255, (20, 20, 3), np.uint8)


class Edges(nn.Module):
    """A third party's: a convolution, batch norm and dropout, which would change in training mode."""

    features, half_is_safe = None, True

    def __init__(self, channels=5):
        super().__init__()
        torch.manual_seed(1)
        self.channels = channels
        convolution = nn.Conv2d(3, channels, 3, stride=2)
        self.layers = nn.Sequential(convolution, nn.BatchNorm2d(channels), nn.Dropout(0.5), nn.Sigmoid())
        self.seen = 0

    def forward(self, observations):
        self.seen += len(observations)
        return self.layers(observations.permute(0, 3, 1, 2).float() / 255)


def images(number, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (number, 20, 20, 3), dtype=np.uint8))


def test_it_neither_learns_nor_is_saved_nor_leaves_eval_mode():
    frozen = FrozenFrontend(Edges())
    whole = nn.ModuleList([frozen, nn.Linear(2, 2)])
    assert not [name for name in whole.state_dict() if name.startswith("0")]
    assert not list(frozen.parameters())
    whole.train()
    assert not frozen.frontend.training
    assert torch.equal(frozen(images(3)), frozen(images(3)))
    assert not frozen(images(3)).requires_grad
    whole.to(torch.float64)
    assert frozen.frontend.layers[0].weight.dtype == torch.float64


@pytest.mark.parametrize("precision", ["auto", "full"])
def test_what_is_kept_gives_the_features_back(precision):
    seen = images(12)
    features = FrozenFrontend(Edges(), precision)(seen)
    for keep in ("features", "file", "observations"):
        frozen = FrozenFrontend(Edges(), precision, keep, batch=12)
        kept = frozen.kept(seen, frozen(seen))
        features_type = torch.float16 if precision == "auto" else torch.float32
        assert kept.dtype == (torch.uint8 if keep == "observations" else features_type)
        assert torch.equal(frozen.features_of(kept.unflatten(0, (2, 6))), features.unflatten(0, (2, 6)))
        # Other batches, a part of one, and two leading axes more, as of an agent with a memory.
        again = frozen.features_of(kept[[7, 3, 3, 0, 1, 11, 5]].unflatten(0, (1, 1, 7)))
        torch.testing.assert_close(again, features[[7, 3, 3, 0, 1, 11, 5]][None, None], rtol=0, atol=1e-3)


def test_half_precision_is_for_front_ends_that_say_so_and_stays_finite():
    class Large(nn.Module):
        def forward(self, observations):
            return observations.flatten(1).float() * 1e6

    assert FrozenFrontend(Large())(images(1)).max() == 255e6
    assert FrozenFrontend(Large(), "half")(images(1)).max() == torch.finfo(torch.float16).max


@pytest.mark.parametrize(
    ("keep", "features", "memory_gb", "kept"),
    [
        ("auto", 1000, 1.0, "features"),  # smaller than the observations
        ("auto", 5000, 5000 * 4096 / GIB, "features"),  # fits exactly
        ("auto", 5000, 4999 * 4096 / GIB, "observations"),
        ("features", 5000, 0.0, "features"),
        ("observations", 1000, 1.0, "observations"),
    ],
)
def test_features_are_kept_where_they_fit(keep, features, memory_gb, kept):
    assert Kept(keep, features, 1200, 4096, memory_gb).choice == kept


@pytest.mark.parametrize(
    ("keep", "disk_gb", "kept", "words"),
    [
        ("auto", 28.5, "file", "take 30.6 GB at a time, in a file"),
        ("features", 28.5, "file", "in a file"),
        ("auto", 28.4, "observations", "more than frontend.memory_gb=2 and frontend.disk_gb=28.4 allow"),
        ("auto", 0.0, "observations", "frontend.disk_gb=29 would keep them"),
        ("features", 0.0, "features", None),
        ("observations", 99.0, "observations", None),
    ],
)
def test_a_disk_takes_what_memory_cannot_and_who_gives_none_is_told(keep, disk_gb, kept, words):
    """The flow front-end's 19 maps of 64 x 64 at the papers' size, 256 copies and 256 steps of three seeds."""
    size = 19 * 64 * 64 * 2
    sizes = Kept(keep, size, 64 * 64 * 3, 3 * 256 * 256, memory_gb=2.0, disk_gb=disk_gb)
    assert sizes.choice == kept
    assert (sizes.sentence is None) == (words is None)
    assert words is None or words in sizes.sentence


def learn(agent_name, keep, rollouts=2, room=None, **params):
    """The networks of two seeds after some rollouts, and how many observations the front-end has seen.

    Args:
        room: GiB of memory and of a disk that features may take.
    """
    memory_gb, disk_gb = room or (1.0, 0.0)
    config = validate(agent_name, {"copies": 4, "rollout": 6, "epochs": 3, "minibatches": 2, **params})
    frozen, shape = freeze(
        Edges(16 if room else 5),
        SPACE,
        keep=keep,
        memory_gb=memory_gb,
        precision="auto",
        copies=8,
        steps=8 * config.rollout,
        disk_gb=disk_gb,
    )
    env = make_population("toy", "toy/easy-sight-easy-reward", seeds=[0, 1], copies=4, view="pixels", split="train")
    agent = agents.resolve(agent_name)(config, shape, env.single_action_space.n, [0, 1], frozen)
    data = Rollouts(env, [0, 1], agent, config.rollout, rollouts, 0.9, normalise=True)
    optimizer = agent.configure_optimizers()
    agent.optimizers = lambda: optimizer
    agent.manual_backward = lambda loss: loss.backward()
    frozen.frontend.seen = 0
    for index, rollout in enumerate(data):
        agent.training_step(rollout, index)
    env.close()
    return torch.cat([weight.detach().flatten() for weight in agent.networks.weights]), frozen.frontend.seen


def test_each_observation_passes_once_unless_features_are_made_anew():
    # Two rollouts of 6 steps of 8 copies: 12 observations a copy, and the one after the last step.
    assert learn("ppo", "features")[1] == 8 * 13
    assert learn("ppo", "observations")[1] == 8 * (13 + 3 * 12)


@pytest.mark.parametrize("agent", ["ppo", "recurrent_ppo"])
def test_learning_is_the_same_whatever_is_kept(agent):
    kept, anew = learn(agent, "features")[0], learn(agent, "observations")[0]
    torch.testing.assert_close(kept, anew, rtol=0, atol=1e-4)
    other = learn(agent, "features", learning_rate=1e-2)[0]
    assert (kept - other).abs().max() > 1e-2


ROOM = 8 * 6 * 16 * 9 * 9 * 2 / GIB
"""What the features of a rollout take: of 8 copies and 6 steps, 16 channels of 9 x 9 in half precision."""


@pytest.mark.parametrize("agent", ["ppo", "recurrent_ppo", "ppg"])
def test_features_in_a_file_are_those_in_memory(agent):
    params = {"phase": 2, "auxiliary_rollouts": 2} if agent == "ppg" else {}
    kept, seen = learn(agent, "auto", room=(ROOM, 0), **params)
    filed, also = learn(agent, "auto", room=(0, ROOM), **params)
    assert torch.equal(kept, filed)
    assert also == seen
    # A byte less, and they are made anew.
    assert learn(agent, "auto", room=(0, ROOM - 1 / GIB), **params)[1] > seen


def test_a_file_of_features_takes_its_budget_and_leaves_nothing_behind(tmp_path):
    written = torch.rand(7, 2, 4, 5, 9, 9).half()
    file = FeatureFile(tmp_path / "run", 7)
    for _ in range(2):
        file.begin()
        for step in written:
            file.append(step)
        assert torch.equal(file.stacked(), written.transpose(0, 1))
        written = 1 - written
    assert file.size == written.nbytes
    assert not list((tmp_path / "run").iterdir())


def test_a_disk_without_room_for_features_is_told_before_a_step(tmp_path, monkeypatch):
    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(InputError, match=r"features of a rollout need 2.27 kB .* make room, .*keep=observations"):
        FeatureFile(tmp_path, 7).append(torch.zeros(1, 2, 81).half())


def test_a_rollout_goes_to_the_device_without_what_lies_in_a_file():
    agent = agents.resolve("ppo")(validate("ppo", {}), (5, 9, 9), 2, [0], FrozenFrontend(Edges(), keep="file"))
    rollout = {"inputs": torch.zeros(2), "values": torch.zeros(2)}
    moved = agent.transfer_batch_to_device(rollout, torch.device("meta"), 0)
    assert [moved[name].device.type for name in rollout] == ["cpu", "meta"]


def test_what_ends_an_episode_is_encoded_once_where_environments_reset_a_step_later():
    """A cut episode's last observation is asked for its value, and is what the next step sees."""

    class Seen(nn.Module):
        seen = 0

        def forward(self, observations):
            self.seen += len(observations)
            return observations

    env = SyncVectorEnv([lambda: gymnasium.make("CartPole-v1", max_episode_steps=4)] * 4)
    frozen = FrozenFrontend(Seen())
    agent = agents.resolve("ppo")(validate("ppo", {"copies": 4, "rollout": 12}), (4,), 2, [0], frozen)
    rollout = next(iter(Rollouts(env, [0], agent, 12, 1, 0.9, normalise=False)))
    assert frozen.frontend.seen == 4 * (12 + 1)
    paid, values = rollout["rewards"][0], rollout["values"][0]
    assert rollout["weights"][0, 4].tolist() == [0, 0, 0, 0]
    torch.testing.assert_close(paid[3], 1 + 0.9 * values[4])
    env.close()
