"""Evaluations leave out copies that have finished, and find what they found when none was left out."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from lcd.agents import agents, validate
from lcd.agents import evaluate as evaluating
from lcd.agents.evaluate import Evaluator
from lcd.agents.frozen import FrozenFrontend
from lcd.agents.seats import LEAST, TRIALS, Seats, Widths
from lcd.envs.engines import SeededCopies
from lcd.envs.hardness.wrappers import HardnessVectorWrapper
from lcd.envs.population import SeedStack

SEEDS, COPIES = [3, 5], 32


class Walk(gymnasium.Env):
    """Episodes of very different lengths; what is paid depends on what is seen and done."""

    def __init__(self, log, shape, actions):
        self.log, self.action_space = log, actions
        image = len(shape) == 3
        self.observation_space = spaces.Box(0, 255 if image else 1, shape, np.uint8 if image else np.float32)
        self.log.append(0)
        self.number = len(log) - 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.geometric(0.08))
        return self._see(), {}

    def _see(self):
        drawn = self.np_random.random(self.observation_space.shape)
        return (drawn * self.observation_space.high).astype(self.observation_space.dtype)

    def step(self, action):
        self.log[self.number] += 1
        self.left -= 1
        paid = float(np.sum(action) * self.np_random.random())
        return self._see(), paid, self.left == 0, False, {}


class Counting(nn.Module):
    """A front-end that counts what it is shown."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def forward(self, observations):
        self.seen += len(observations)
        return observations.movedim(-1, 1) if observations.ndim == 4 else observations


def playground(shape=(6,), actions=None, log=None):
    log = [] if log is None else log
    actions = actions or spaces.Discrete(4)

    def stack():
        return SeededCopies([lambda: Walk(log, shape, actions)] * COPIES, list(range(COPIES)))

    return SeedStack([stack() for _ in SEEDS])


def make_agent(name, shape, actions=4, **params):
    config = validate(name, {"copies": 2, "rollout": 8, "minibatches": 1, "width": 32, **params})
    torch.manual_seed(0)
    shape = (shape[2], *shape[:2]) if len(shape) == 3 else shape
    return agents.resolve(name)(config, shape, actions, SEEDS, FrozenFrontend(Counting()))


def evaluate(agent, env, monkeypatch, whole=False, **how):
    """Two evaluations; `whole` leaves nobody out."""
    with monkeypatch.context() as patched:
        if whole:
            patched.setattr(Seats, "settle", lambda *given: None)
            patched.setattr(evaluating, "rest", lambda *given: None)
        evaluator = Evaluator(env, SEEDS, **{"episodes": 1, **how})
        return [evaluator(agent, step) for step in (0, 512)]


BOX = spaces.Box(-1, 1, (2,), np.float32)
CASES = {
    "vectors": ("ppo", (6,), None, {}),
    "images": ("ppo", (12, 12, 3), None, {"encoder": "cnn"}),
    "impala": ("ppo", (12, 12, 3), None, {"encoder": "impala"}),
    "continuous": ("ppo", (6,), BOX, {}),
    "apart": ("ppg", (6,), None, {"phase": 2, "auxiliary_rollouts": 2}),
    "memory": ("recurrent_ppo", (6,), None, {"memory": 8}),
}


@pytest.mark.parametrize("episodes", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_who_is_left_out_changes_no_bit(case, episodes, monkeypatch):
    name, shape, actions, params = CASES[case]
    agent = make_agent(name, shape, actions or 4, **params)
    how = {"episodes": episodes, "greedy": case == "images"}
    whole = evaluate(agent, playground(shape, actions), monkeypatch, whole=True, **how)
    assert evaluate(agent, playground(shape, actions), monkeypatch, **how) == whole


class Exact:
    """Acts by the draws alone, which no processor rounds, and counts the frames that it is shown."""

    device, seeds, acts_for_fewer = torch.device("cpu"), SEEDS, True
    seen = 0

    def encode(self, observations):
        self.seen += len(observations)
        return torch.from_numpy(observations).unflatten(0, (len(SEEDS), -1))

    def act(self, features, draws):
        return (4 * draws).long(), draws, features.amax(-1)


def test_each_frame_is_encoded_once_and_each_copy_stepped_to_its_end():
    log: list[int] = []
    env, agent = playground(log=log), Exact()
    evaluator = Evaluator(env, SEEDS, episodes=1)
    for step in (0, 512, 1024):
        log[:] = [0] * len(log)
        agent.seen = 0
        rows = evaluator(agent, step)
        lengths = np.array(log).reshape(len(SEEDS), COPIES)
        # Every copy takes the steps of its one episode and none beyond.
        assert [row["length_mean"] for row in rows] == lengths.mean(1).tolist()
    # Once sizes are tried, a step takes the smallest half of halves with room for the seed that has most left.
    left = (lengths > np.arange(lengths.max())[:, None, None]).sum(-1).max(1)
    widths = [next(size for size in (LEAST, 16, 32) if size >= each) for each in left]
    assert agent.seen == len(SEEDS) * sum(widths)
    assert sum(widths) < 0.6 * COPIES * len(left)


def test_a_batch_that_rounds_otherwise_is_not_used(monkeypatch):
    class Rounding(Counting):
        def forward(self, observations):
            return super().forward(observations) + 1e-3 * (len(observations) < 2 * COPIES)

    agent = make_agent("ppo", (6,))
    whole = evaluate(agent, playground(), monkeypatch, whole=True)
    agent.frontend._frontend[0] = Rounding()
    assert evaluate(agent, playground(), monkeypatch) == whole


def test_a_gpu_takes_smaller_batches_at_once():
    agent = SimpleNamespace(acts_for_fewer=True, device=torch.device("meta"))
    seats = Seats(agent, 1, Widths(64))
    playing = np.zeros((1, 64), bool)
    playing[0, [60, 2]] = True
    seats.settle(playing)
    assert seats._taken.shape == (1, LEAST)
    assert {2, 60} <= set(seats._taken[0])


def test_widths_are_halves_of_halves_that_were_tried():
    widths = Widths(48)
    assert [widths.least(needed) for needed in (48, 25, 24, 13, 12, 1)] == [48, 48, 24, 24, 12, 12]
    for _ in range(TRIALS):
        assert not widths.trusted(12)
        widths.tell(12, alike=True)
    assert widths.trusted(12)
    widths.tell(24, alike=False)
    assert [widths.least(needed) for needed in (24, 12)] == [48, 12]
    assert Widths(7).least(1) == 7


def test_who_rests_under_a_wrapper_is_not_stepped_before_the_next_reset():
    log: list[int] = []
    made = SeededCopies([lambda: Walk(log, (6,), spaces.Discrete(4))] * 4, [0, 1, 2, 3])
    env = HardnessVectorWrapper(made, [0, 1, 2, 3])
    first, _ = env.reset(seed=[1, 2, 3, 4])
    evaluating.rest(env, np.array([True, False, False, True]))
    observations, rewards, ended, _, _ = env.step(np.ones(4, int))
    assert log == [0, 1, 1, 0]
    assert np.array_equal(observations[[0, 3]], first[[0, 3]])
    assert not rewards[[0, 3]].any()
    assert not ended[[0, 3]].any()
    env.reset(seed=[1, 2, 3, 4])
    env.step(np.ones(4, int))
    assert log == [1, 2, 2, 1]
    env.close()
