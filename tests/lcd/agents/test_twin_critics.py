"""SAC and TD3: what Stable-Baselines3's learn of the same, a known optimum, and that members are on their own."""

import numpy as np
import pytest
import torch
from known_tasks import Bandit, Home

from lcd.agents import agents, validate
from lcd.agents.batched import LANES, Rows, initial
from lcd.agents.evaluate import Evaluator
from lcd.envs.errors import InputError
from lcd.envs.families.benchmark import FAMILIES

KINDS = ("sac", "td3")
UPDATES, BATCH = 4, 32
SMALL = {"width": 32, "batch": BATCH, "updates": UPDATES, "start": 40, "train_every": 20, "buffer": 400, "copies": 2}


def make(kind, env, seeds, **settings):
    return agents.resolve(kind)(validate(kind, settings), env, seeds)


def pendulums(kind, points, seeds, steps):
    env = FAMILIES.make_points("families/pendulum", points=points, seeds=seeds, copies=2, view="state", split="train")
    agent = make(kind, env, seeds * len(points), **SMALL)
    agent.learn(steps, steps, lambda step: None)
    return agent


@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_reached(kind):
    seeds = [0, 1]
    settings = {"width": 32, "copies": 4, "train_every": 16, "updates": 16, "buffer": 4000, "learning_rate": 3e-3}
    agent = make(kind, Home(4 * len(seeds), seed=1), seeds, **settings)
    evaluator, found = Evaluator(Home(64 * len(seeds), seed=2), seeds, episodes=1, greedy=True), []
    agent.learn(2000, 2000, lambda step: found.append([row["return_mean"] for row in evaluator(agent, step)]))
    assert (np.array(found[0]) < Home.best - 0.3).all()
    assert (np.array(found[-1]) > Home.best - 0.06).all(), found[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_learns_bit_for_bit_what_it_learns_with_fewer_others(kind):
    points = [FAMILIES.family("families/pendulum").points[place] for place in (0, 77, 140)]
    whole, few = pendulums(kind, points, [3, 5], 160), pendulums(kind, points[1:2], [3, 5], 160)
    assert torch.equal(whole.actor.numbers[2:4], few.actor.numbers)
    assert torch.equal(whole.critics.numbers[4:8], few.critics.numbers)
    assert torch.equal(whole.last_bout["critic_loss"][2:4], few.last_bout["critic_loss"])
    assert not torch.allclose(whole.actor.numbers[0], whole.actor.numbers[2])
    assert not torch.allclose(whole.critics.numbers[0], whole.critics.numbers[1])


def theirs(kind, agent, batch, monkeypatch):
    """Stable-Baselines3's networks with our first member's weights, after its own updates on the same batch."""
    sb3 = pytest.importorskip("stable_baselines3")
    import gymnasium as gym
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    config = agent.config
    known = {key: getattr(config, key) for key in ("learning_rate", "gamma", "tau")}
    model = getattr(sb3, kind.upper())(
        "MlpPolicy", gym.make("Pendulum-v1"), device="cpu", policy_kwargs={"net_arch": [config.width] * 2}, **known
    )
    model.set_logger(Logger(folder=None, output_formats=[]))
    _copy(agent.actor, 0, _linear(model.actor))
    for number, critic in enumerate(model.critic.q_networks):
        _copy(agent.critics, number, _linear(critic))
    model.critic_target.load_state_dict(model.critic.state_dict())
    if kind == "td3":
        model.actor_target.load_state_dict(model.actor.state_dict())
    names = ("seen", "actions", "reached", "going_on", "rewards")
    seen, actions, reached, going_on, rewards = (batch[name][0] for name in names)
    sampled = ReplayBufferSamples(seen, actions, reached, 1 - going_on[:, None], rewards[:, None], None)
    monkeypatch.setattr(model.replay_buffer, "sample", lambda *given, **more: sampled)
    drawn = [batch["noise"][0], batch["noise_then"][0]] if kind == "sac" else [batch["noise_then"][0]]
    queue = drawn * UPDATES
    monkeypatch.setattr(torch.distributions.Normal, "rsample", lambda self, *_: self.loc + self.scale * queue.pop(0))
    monkeypatch.setattr(torch.Tensor, "normal_", lambda self, mean, std: self.copy_(mean + std * queue.pop(0)))
    model.train(gradient_steps=UPDATES, batch_size=BATCH)
    assert not queue
    return model


def _linear(network):
    return [module for module in network.modules() if isinstance(module, torch.nn.Linear)]


def _parts(rows, number, modules):
    """Our layers of one network, beside theirs; SAC's actor has two modules as its last layer."""
    layers = [layer[number].detach() for layer in rows.layers]
    weights, biases = layers[::2], layers[1::2]
    for place, module in enumerate(modules):
        column = slice(None) if len(modules) == len(weights) or place < 2 else slice(place - 2, place - 1)
        layer = min(place, len(weights) - 1)
        yield weights[layer][:, column].T, biases[layer][0, column], module


@torch.no_grad()
def _copy(rows, number, modules):
    for weight, bias, module in _parts(rows, number, modules):
        module.weight.copy_(weight)
        module.bias.copy_(bias)


@pytest.mark.parametrize("kind", KINDS)
def test_updates_are_those_of_stable_baselines3(kind, monkeypatch):
    played = pendulums(kind, [FAMILIES.family("families/pendulum").default], [3, 5], 40)
    agent = make(kind, played.env, played.seeds, **SMALL)
    agent.memory = played.memory
    agent.memory.records["going_on"][:, ::5] = 0.0
    batch = agent.batch(slice(0, 2), np.stack([np.arange(BATCH)] * 2))
    model = theirs(kind, agent, batch, monkeypatch)
    for _ in range(UPDATES):
        agent.shards[0].update(batch)
    pairs = [(agent.actor, 0, model.actor)]
    for number in range(2):
        pairs.append((agent.critics, number, model.critic.q_networks[number]))
        pairs.append((agent.target, number, model.critic_target.q_networks[number]))
    if kind == "td3":
        pairs.append((agent.target_actor, 0, model.actor_target))
    for rows, number, network in pairs:
        for weight, bias, module in _parts(rows, number, _linear(network)):
            assert torch.allclose(weight, module.weight, atol=1e-5)
            assert torch.allclose(bias, module.bias, atol=1e-5)
    if kind == "sac":
        assert float(agent.log_weight[0, 0]) == pytest.approx(float(model.log_ent_coef.detach()), abs=1e-6)
        assert float(agent.log_weight[0, 0]) != 0


def test_rows_share_their_memory_with_their_layers_and_give_the_gradient():
    rows = Rows.of(initial([(3, 4), (4, 2)], [1, 2]))
    assert rows.numbers.shape == (2, LANES)
    losses = torch.stack([(layer.flatten(1) ** 2).sum(1) for layer in rows.layers]).sum(0)
    assert torch.allclose(rows.gradient(losses), 2 * rows.numbers)
    rows[1:2].numbers.zero_()
    assert not rows.layers[0][1].any()
    assert rows.layers[0][0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_is_refused(kind):
    with pytest.raises(
        InputError, match=rf"agent={kind} needs continuous actions, a box with finite bounds, not Discr"
    ):
        make(kind, Bandit(2), [0, 1])
    with pytest.raises(InputError, match="between 0 and 1"):
        validate(kind, {"tau": 2.0})
    with pytest.raises(InputError, match=r"multiple of agent\.copies=2"):
        validate(kind, {"copies": 2, "buffer": 11})
