"""A memory of frames gives back the stacks that it was shown, as one that keeps them whole."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.agents import agents, validate
from lcd.agents.frame_replay import FrameReplay
from lcd.agents.replay import Replay
from lcd.agents.stepping import Stepper
from lcd.envs.errors import InputError
from lcd.envs.hardness.benchmark import HARDNESS
from lcd.envs.spaces import stacked_frames

SIDE, STACKED = 12, 3


class Frames(VectorEnv):
    """Noise in stacks of three frames; an episode ends now and then, and is cut off now and then."""

    def __init__(self, copies, mode=AutoresetMode.SAME_STEP, told=STACKED):
        self.metadata = {"autoreset_mode": mode, "stacked_frames": told}
        self.num_envs, self.mode, self.rng = copies, mode, np.random.default_rng(5)
        self.single_observation_space = spaces.Box(0, 255, (SIDE, SIDE, STACKED), np.uint8)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, copies)
        self.action_space = batch_space(self.single_action_space, copies)

    def reset(self, *, seed=None, options=None):
        self.seen, self.ended = self.first(), np.zeros(self.num_envs, bool)
        return self.seen.copy(), {}

    def first(self):
        return np.repeat(self.rng.integers(256, size=(self.num_envs, SIDE, SIDE, 1), dtype=np.uint8), STACKED, -1)

    def step(self, actions):
        new = self.rng.integers(256, size=(self.num_envs, SIDE, SIDE, 1), dtype=np.uint8)
        final = np.concatenate([self.seen[..., 1:], new], -1)
        ended, cut = self.rng.random((2, self.num_envs)) < 0.2
        starts = ended | cut
        if self.mode is AutoresetMode.NEXT_STEP:
            starts, ended, cut = self.ended, ended & ~self.ended, cut & ~self.ended
        self.seen = np.where(starts[:, None, None, None], self.first(), final)
        self.ended = ended | cut
        told = {"final_obs": final} if self.mode is AutoresetMode.SAME_STEP else {}
        return self.seen.copy(), self.rng.normal(size=self.num_envs), ended, cut, told


def both(env, members, size, steps, copies):
    """The same steps in a memory of frames and in one of whole stacks, of what their agents are given."""
    kind, seeds = agents.resolve("dqn"), list(range(members))
    config = validate("dqn", {"copies": copies, "buffer": size, "encoder": "cnn", "width": 4, "layers": 1})
    agent = kind(config, env, seeds)
    frames, inputs = agent.memory, agent.inputs
    assert isinstance(frames, FrameReplay)
    agent.memory = whole = Replay(members, size, inputs, np.uint8)
    stepper = Stepper(env)
    observations = stepper.reset()
    env.action_space.seed(0)
    for _ in range(steps):
        actions = env.action_space.sample()
        outcome = stepper.step(actions)
        for agent.memory in (frames, whole):
            agent._remember(observations, actions, outcome)
        observations = outcome.observations
    return frames, whole


def same(frames, whole):
    for members in (slice(None), slice(1, 2)):
        places = np.tile(np.arange(whole.filled), (len(whole.records[members]), 1))
        found, kept = frames.at(members, places), whole.at(members, places)
        assert found.dtype == kept.dtype
        counted = kept["valid"] > 0
        for name in found.dtype.names:
            assert np.array_equal(found[name][counted], kept[name][counted]), name
        assert 0.05 < kept["ended"].mean() < 0.6


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
@pytest.mark.parametrize("steps", [7, 20, 33])
def test_what_was_put_in_comes_out_however_often_the_memory_was_filled(mode, steps):
    frames, whole = both(Frames(4, mode), 2, 20, steps, copies=2)
    assert (frames.filled, frames.next) == (whole.filled, whole.next)
    same(frames, whole)


def test_rainbow_learns_from_frames_what_it_learns_from_stacks_to_the_last_bit():
    settings = {"copies": 2, "buffer": 40, "start": 8, "batch": 8, "n_step": 3, "width": 8, "layers": 1}
    config = validate("rainbow", {**settings, "encoder": "cnn", "target_every": 16})
    learned = []
    for told in (STACKED, 1):
        agent = agents.resolve("rainbow")(config, Frames(4, told=told), [0, 1])
        assert isinstance(agent.memory, FrameReplay) == (told > 1)
        agent.learn(120, 120, lambda step: None)
        learned.append(agent.network.numbers.detach())
    assert learned[0].equal(learned[1])


def test_an_atari_games_stacks_are_made_of_its_frames_again():
    pytest.importorskip("ale_py")
    env = HARDNESS.make_population(
        "hardness/atari/Breakout", seeds=[0, 1], copies=1, view="pixels", split="train", delay=2, transition_noise=0.1
    )
    assert stacked_frames(env) == 4
    frames, whole = both(env, 2, 240, 260, copies=1)
    places = np.tile(np.arange(240), (2, 1))
    found, kept = frames.at(slice(None), places), whole.at(slice(None), places)
    assert all(np.array_equal(found[name], kept[name]) for name in found.dtype.names)
    assert kept["ended"].any(1).all()
    # Frames once where they were seen and once where they were reached, of eight in two stacks.
    assert frames.nbytes < 0.27 * whole.nbytes


def test_a_memory_that_no_machine_has_is_refused_before_it_is_made():
    with pytest.raises(InputError, match=r"agent\.buffer=1000000000 of 5 members in a run would take at least 7"):
        FrameReplay(5, 10**9, 84 * 84 * 4, 4, 1)
    with pytest.raises(InputError, match=r"agent\.buffer=1000000000 of 1 member in a run would take"):
        Replay(1, 10**9, 84 * 84 * 4, np.uint8)
