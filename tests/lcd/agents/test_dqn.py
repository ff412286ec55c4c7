"""Deep Q-networks: their loss and update by hand, what they learn, and that members are on their own."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.agents import validate
from lcd.agents.batched import Rows, clip, initial, outputs_of
from lcd.agents.dqn import DQN, loss
from lcd.agents.evaluate import Evaluator
from lcd.agents.every_state import EveryState
from lcd.agents.replay import Replay
from lcd.envs.errors import InputError
from lcd.envs.families.benchmark import FAMILIES
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv

CHAIN = 3
GAMMA = 0.5


class Chain(VectorEnv):
    """Three places in a row: 1 goes on, and ends the episode with a reward of 1; 0 pays 0.4 and begins anew.

    Where it begins anew the episode is cut off.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int):
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(0, 1, (CHAIN,), np.float32)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.place = np.zeros(num_envs, int)

    def reset(self, *, seed=None, options=None):
        self.place[:] = 0
        return np.eye(CHAIN, dtype=np.float32)[self.place], {}

    def step(self, actions):
        onward = actions == 1
        terminated = onward & (self.place == CHAIN - 1)
        rewards = np.where(onward, 1.0 * terminated, 0.4)
        self.place = np.where(onward & ~terminated, self.place + 1, 0)
        first = np.eye(CHAIN, dtype=np.float32)
        return first[self.place], rewards, terminated, ~onward, {"final_obs": first[self.place]}


# Of being at place i, by hand: what 0 pays and what follows it at the first place; what 1 leads to.
BEST = np.zeros((CHAIN, 2))
for _ in range(60):
    BEST = np.array(
        [[0.4 + GAMMA * BEST[0].max(), GAMMA * BEST[i + 1].max() if i < CHAIN - 1 else 1.0] for i in range(3)]
    )
SETTINGS = {"copies": 2, "buffer": 200, "start": 50, "train_every": 10, "updates": 10, "batch": 32, "gamma": GAMMA}


def trained(seeds, steps, **settings):
    config = validate("dqn", SETTINGS | {"width": 32} | settings)
    agent = DQN(config, Chain(len(seeds) * config.copies), seeds)
    agent.learn(steps, steps, lambda step: None)
    return agent


def test_the_loss_is_hubers_of_the_temporal_difference():
    rng = np.random.default_rng(3)
    layers, target = (initial([(4, 6), (6, 6), (6, 3)], seeds) for seeds in ([1, 2], [3, 4]))
    batch = {name: torch.from_numpy(rng.normal(size=(2, 5, 4)).astype(np.float32)) for name in ("seen", "reached")}
    batch["actions"] = torch.from_numpy(rng.integers(3, size=(2, 5)))
    batch["rewards"] = torch.tensor([[0.2, -3.0, 0.1, 0.4, 2.0]] * 2)
    batch["going_on"], batch["valid"] = torch.tensor([[1.0, 0, 1, 1, 0]] * 2), torch.tensor([[1.0, 1, 1, 0, 1]] * 2)
    found = loss(outputs_of(layers, batch["seen"]), outputs_of(target, batch["reached"]), batch, 0.9)

    def plain(layers, member, inputs):
        for place in (0, 2, 4):
            inputs = inputs @ layers[place][member].numpy() + layers[place + 1][member].numpy()
            inputs = inputs if place == 4 else np.maximum(inputs, 0)
        return inputs

    for member in range(2):
        own = {name: value[member].numpy() for name, value in batch.items()}
        goals = own["rewards"] + 0.9 * own["going_on"] * plain(target, member, own["reached"]).max(1)
        off = np.abs(goals - plain(layers, member, own["seen"])[np.arange(5), own["actions"]])
        assert off.min() < 1 < off.max()
        huber = np.where(off < 1, off**2 / 2, off - 0.5)
        assert float(found[member]) == pytest.approx(huber[own["valid"] > 0].mean(), rel=1e-5)


def test_each_members_gradient_is_clipped_on_its_own():
    gradient = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    assert clip(gradient, 1.0).tolist() == pytest.approx([5, 0.5])
    assert torch.allclose(gradient, torch.tensor([[0.6, 0.8], [0.3, 0.4]]), atol=1e-5)


def test_the_memory_keeps_the_last_transitions_of_each_member():
    memory = Replay(2, 6, 1, np.float32)
    for step in range(5):
        number = np.array([10.0, 11, 20, 21]) + 100 * step
        memory.add(number[:, None], np.arange(4), number, number[:, None] + 1, np.ones(4, bool), np.ones(4, bool))
    assert memory.filled == 6
    assert sorted(memory.records["rewards"][0]) == [210, 211, 310, 311, 410, 411]
    found = memory.sample(slice(1, 2), np.array([[memory.next, memory.next + 1]]))
    assert found["rewards"].tolist() == [[220, 221]]
    assert found["reached"].flatten().tolist() == [221, 222]
    assert found["actions"].tolist() == [[2, 3]]


def test_a_head_is_one_more_layer_of_a_width_of_its_own():
    agent = trained([0, 1], 100, layers=1, head=8)
    weights = agent.layers[::2]
    assert [tuple(weight.shape[1:]) for weight in weights] == [(CHAIN, 32), (32, 8), (8, 2)]
    before = DQN(agent.config, agent.env, [0, 1]).layers[::2]
    assert not any(torch.equal(*pair) for pair in zip(weights, before, strict=True))
    with pytest.raises(InputError, match=r"agent\.head=-1 should be 0 or more"):
        validate("dqn", {"head": -1})
    with pytest.raises(InputError, match=r"agent\.head=0: FRAP's layers are its own"):
        validate("traffic/mplight", {"head": 8})


def test_it_learns_what_actions_are_worth():
    agent = trained([0, 1], 2000, learning_rate=0.005, epsilon=0.5)
    with torch.no_grad():
        learned = outputs_of(agent.layers, torch.eye(CHAIN).expand(2, -1, -1)).numpy()
    assert np.allclose(learned, BEST, atol=0.1)


def test_a_member_learns_what_it_learns_alone():
    together = trained([4, 7, 4], 200)
    for place, seed in enumerate([4, 7, 4]):
        alone = trained([seed], 200)
        assert torch.allclose(together.layers[0][place], alone.layers[0][0], atol=1e-4)
    assert torch.equal(together.layers[0][0], together.layers[0][2])
    assert not torch.allclose(together.layers[0][0], together.layers[0][1])


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_two_members_learn_among_many_what_they_learn_alone_to_the_last_bit(precision):
    # With two actions the last layer of so many members is no multiple of what a CPU computes at once.
    together = trained([4, 7] * 11, 400, precision=precision)
    alone = trained([4, 7], 400, precision=precision)
    for layer, own in zip(together.layers, alone.layers, strict=True):
        assert torch.equal(layer.unflatten(0, (11, 2)), own.expand(11, *own.shape))


def test_half_as_long_numbers_learn_nearly_the_same():
    whole, half = (trained([0, 1], 600, precision=precision) for precision in ("32-true", "bf16-mixed"))
    with torch.no_grad():
        learned, rounded = (outputs_of(agent.layers, torch.eye(CHAIN).expand(2, -1, -1)) for agent in (whole, half))
    assert not torch.equal(learned, rounded)
    assert torch.allclose(learned, rounded, atol=0.05)


def test_it_balances_a_pole_within_50000_steps():
    # RL Baselines3 Zoo publishes 500 ± 0 after as many. Gymnasium calls CartPole-v1 solved at 475.
    seeds, steps = [0, 1], 50_000
    point = FAMILIES.family("families/cartpole").default
    train, held_out = (
        FAMILIES.make_points("families/cartpole", points=[point], seeds=seeds, copies=8, view="state", split=split)
        for split in ("train", "eval")
    )
    agent, reached = DQN(validate("dqn", {}), train, seeds), []
    evaluator = Evaluator(held_out, seeds, 1)
    agent.learn(steps, 5000, lambda step: reached.append([row["return_mean"] for row in evaluator(agent, step)]))
    assert max(reached[0]) < 50
    assert (np.max(reached[-3:], axis=0) >= 475).all()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"buffer": 1001}, "multiple of agent.copies=8"),
        ({"epsilon": 2.0}, "between 0 and 1"),
        ({"updates": 0}, "at least 1"),
        ({"precision": "16"}, "one of 32-true, bf16-mixed"),
    ],
)
def test_what_cannot_be_is_refused(wrong, told):
    with pytest.raises(InputError, match=told):
        validate("dqn", wrong)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_gradient_in_a_row_is_that_of_the_layers_to_the_last_bit(activation):
    torch.manual_seed(0)
    rows = Rows.of(initial([(5, 24), (24, 24), (24, 3)], [1, 2, 3]))
    inputs, towards = torch.randn(3, 7, 5), torch.randn(3, 7, 3)
    losses = [(said * towards).sum((1, 2)) for said in _both(rows, inputs, activation)]
    assert torch.equal(*losses)
    in_a_row, of_layers = (rows.gradient(each).clone() for each in losses)
    assert torch.equal(in_a_row, of_layers)
    assert of_layers.any(1).all()


def _both(rows, inputs, activation):
    return rows.outputs(inputs, activation), outputs_of(rows.layers, inputs, activation)


def test_what_is_asked_once_about_each_state_is_learned_as_from_each_transition():
    learned = []
    for once in (True, False):
        config = validate("dqn", SETTINGS | {"width": 32, "activation": "tanh"})
        agent = DQN(config, HardnessDiscreteVectorEnv(4, view="state", seed=[3, 5]), [3, 5])
        assert agent.states is not None
        if not once:
            agent.states = None
            agent.shards = [agent.shard(shard.members) for shard in agent.shards]
        agent.learn(200, 200, lambda step: None)
        learned.append(agent.network.numbers.detach().clone())
    assert torch.allclose(*learned, atol=1e-4)
    assert not torch.allclose(learned[0], initial_numbers(agent), atol=1e-2)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_networks_that_are_asked_about_every_state_say_and_learn_what_others_do(activation, layers):
    sizes = list(pairwise((5, *[24] * layers, 3)))
    rows, said = Rows.of(initial(sizes, [1, 2, 3])), np.empty((3, 5, 3), np.float32)
    asked, inputs, slope = EveryState(rows, activation, said), torch.eye(5).expand(3, -1, -1), torch.randn(3, 5, 3)
    asked.ask()
    expected = outputs_of(rows.layers, inputs, activation)
    assert np.allclose(said, expected.detach(), atol=1e-6)
    gradient = rows.gradient((expected * slope).sum((1, 2)))
    assert torch.allclose(asked.towards(slope.numpy()), gradient, atol=1e-5)


@pytest.mark.parametrize("updates", [1, 10])
def test_members_on_states_learn_among_many_what_they_learn_alone_to_the_last_bit(updates):
    learned = []
    for seeds in ([5, 3] * 5, [3]):
        config = validate("dqn", SETTINGS | {"width": 32, "activation": "tanh", "updates": updates, "copies": 1})
        agent = DQN(config, HardnessDiscreteVectorEnv(len(seeds), view="state", seed=seeds), seeds)
        agent.learn(100, 100, lambda step: None)
        learned.append(agent.network.numbers)
    assert agent.state_by_state
    assert torch.equal(learned[0][1::2], learned[1].expand(5, -1))
    assert not torch.equal(learned[0][0], learned[0][1])


def initial_numbers(agent):
    return Rows.of(agent.first_layers()).numbers


def test_one_hot_observations_are_kept_as_numbers():
    memory = Replay(2, 4, 8, np.float32, one_hot=True)
    seen = np.eye(8, dtype=np.float32)[[3, 7]]
    memory.add(seen, np.zeros(2), np.zeros(2), seen[::-1], np.ones(2), np.ones(2))
    found = memory.sample(slice(0, 2), np.zeros((2, 1), int))
    assert memory.records["seen"][:, 0].tolist() == [3, 7]
    assert np.array_equal(found["seen"].squeeze(1).numpy(), seen)
    assert np.array_equal(found["reached"].squeeze(1).numpy(), seen[::-1])
