"""The agent against closed formulas, plain networks and seeds trained alone."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fitting import fit
from gymnasium.vector import AutoresetMode
from known_tasks import Corridor
from torch import nn

from lcd.agents import agents, validate
from lcd.agents.networks import ActorCritic
from lcd.agents.normalise import RewardNormaliser
from lcd.agents.population import Population
from lcd.agents.ppo import PPO, PPOConfig, advantages, standardise
from lcd.agents.rollout import Rollouts, uniforms
from lcd.agents.stepping import EpisodeLog, Stepper
from lcd.envs.errors import InputError


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_autoreset_mode_tells_the_same_story(mode):
    stepper, log = Stepper(Corridor(2, mode=mode)), EpisodeLog(1, 2)
    observations = stepper.reset()
    story = []
    for _ in range(20):
        step = stepper.step(np.array([1, 0]))
        log.add(step)
        if step.valid.all():
            end = step.final[:, 0].tolist() if step.dones.any() else None
            story.append((observations[:, 0].tolist(), step.rewards.tolist(), step.dones.tolist(), end))
        observations = step.observations
    lap = [([0.0, 0.0], None), ([11.0, 10.0], None), ([22.0, 20.0], [33.0, 30.0])]
    for t, (seen, rewards, dones, end) in enumerate(story):
        assert (seen, end) == lap[t % 3]
        assert rewards == [1.0, 0.0]
        assert dones == [t % 3 == 2] * 2
    (statistics,) = log.pop()
    assert statistics["return_mean"] == 1.5
    assert statistics["return_std"] == 1.5
    assert statistics["length_mean"] == 3
    assert statistics["episodes"] == 2 * (len(story) // 3)


def test_steps_that_only_reset_carry_no_weight():
    agent = make_agent([0], copies=2)
    env = Corridor(2, mode=AutoresetMode.NEXT_STEP)
    rollout = Rollouts(env, [0], agent, length=8, total=1, gamma=0.9, normalise=False).collect()
    assert rollout["weights"][0, :, 0].tolist() == [1, 1, 1, 0, 1, 1, 1, 0]


def test_advantages_equal_the_sum_of_discounted_surprises():
    rng = np.random.default_rng(0)
    time, gamma, lam = 7, 0.9, 0.8
    rewards, values = rng.normal(size=(2, 1, time, 1))
    dones = np.array([0, 0, 1, 0, 0, 0, 0], dtype=bool).reshape(1, time, 1)
    last = rng.normal()
    tensors = {"rewards": rewards, "values": values, "dones": dones, "last_value": np.full((1, 1), last)}
    result = advantages({k: torch.tensor(v) for k, v in tensors.items()}, gamma, lam)[0, :, 0]
    following = [*values[0, 1:, 0], last]
    for t in range(time):
        expected = 0.0
        for k in range(t, time):
            going = 0.0 if dones[0, k, 0] else 1.0
            surprise = rewards[0, k, 0] + gamma * going * following[k] - values[0, k, 0]
            expected += (gamma * lam) ** (k - t) * surprise
            if not going:
                break
        assert result[t].item() == pytest.approx(expected)


def test_a_cut_episode_is_worth_its_last_value_and_a_finished_one_nothing():
    agent = make_agent([0], copies=1)
    rollouts = Rollouts(Corridor(1), [0], agent, length=3, total=1, gamma=0.9, normalise=False)
    rollout = rollouts.collect()
    place = rollout["actions"].sum().item()
    end = agent.value(torch.tensor([[[10.0 * 3 + place]]])).item()
    paid = rollout["actions"][0, 2, 0].item()
    assert rollout["rewards"][0, 2, 0].item() == pytest.approx(paid + 0.9 * end, abs=1e-6)


def test_reward_normaliser_divides_by_the_deviation_of_discounted_sums():
    rng = np.random.default_rng(1)
    rewards = rng.normal(2, 3, size=(2, 60, 4))
    dones = rng.random((2, 60, 4)) < 0.1
    normaliser, parts = RewardNormaliser(2, 4, gamma=0.9, limit=1e9), []
    for start in range(0, 60, 20):
        parts.append(normaliser(rewards[:, start : start + 20], dones[:, start : start + 20]))
    sums, running = np.zeros_like(rewards), np.zeros((2, 4))
    for t in range(60):
        running = running * 0.9 + rewards[:, t]
        sums[:, t] = running
        running = running * ~dones[:, t]
    deviation = sums.reshape(2, -1).std(1)
    assert np.allclose(parts[-1], rewards[:, 40:] / deviation[:, None, None], rtol=1e-4)


@pytest.mark.parametrize("shape", [(5,), (3, 8, 8)])
@pytest.mark.parametrize("execution", ["vmap", "loop"])
def test_a_population_is_its_networks(shape, execution):
    seeds = [3, 1, 4]
    population = Population(lambda: ActorCritic(shape, 4), seeds, execution)
    batch = torch.randn(3, 6, *shape)
    logits, values = population(batch)
    for s, seed in enumerate(seeds):
        (alone,) = [Population(lambda: ActorCritic(shape, 4), [seed], "loop")]
        plain = ActorCritic(shape, 4)
        plain.load_state_dict(dict(zip(alone.names, [w[0] for w in alone.weights], strict=True)))
        expected_logits, expected_values = plain(batch[s])
        assert torch.allclose(logits[s], expected_logits, atol=1e-6)
        assert torch.allclose(values[s], expected_values, atol=1e-6)


def test_gradients_are_clipped_for_each_seed_on_its_own():
    population = Population(lambda: ActorCritic((2,), 3), [0, 1])
    for weight in population.weights:
        weight.grad = torch.ones_like(weight)
        weight.grad[0] *= 1e-6
    size = sum(weight[0].numel() for weight in population.weights)
    norms = population.clip_gradients(0.5)
    assert norms.tolist() == pytest.approx([1e-6 * math.sqrt(size), math.sqrt(size)], rel=1e-5)
    assert population.weights[0].grad[0].mean().item() == pytest.approx(1e-6)
    assert population.weights[0].grad[1].mean().item() == pytest.approx(0.5 / math.sqrt(size), rel=1e-4)


def test_actions_follow_the_policy():
    agent = make_agent([0], copies=1)
    features = torch.zeros(1, 20_000, 1)
    logits = torch.tensor([0.1, 0.9]).log()
    agent.networks.forward = lambda x: (logits.expand(1, x.shape[1], 2), torch.zeros(1, x.shape[1]))
    actions, log_probs, _ = agent.act(features, uniforms([7], "exploration", 0, shape=(20_000,)))
    share = actions.float().mean().item()
    assert abs(share - 0.9) < 4 * math.sqrt(0.9 * 0.1 / 20_000)
    assert torch.allclose(log_probs, logits[actions])


def test_the_loss_is_ppos():
    """One sample a case, against the formula written out."""
    config = PPOConfig(normalise_advantages="off", entropy=0.1, value_weight=0.5, clip=0.2, value_clip=0.2)
    agent = make_agent([0], copies=1, config=config)
    probabilities, value = torch.tensor([0.6, 0.4]), 1.0
    agent.networks.forward = lambda x: (probabilities.log()[None, None], torch.tensor([[value]]))
    entropy = -(0.6 * math.log(0.6) + 0.4 * math.log(0.4))
    for old, gain, ratio_term in [
        (0.4, 1.0, 1.2),
        (0.4, -1.0, -1.5),
        (0.9, 1.0, 0.6 / 0.9),
        (0.9, -1.0, -0.8),
    ]:
        batch = {
            "inputs": torch.zeros(1, 1, 1),
            "actions": torch.zeros(1, 1, dtype=torch.int64),
            "log_probs": torch.tensor([[math.log(old)]]),
            "advantages": torch.tensor([[gain]]),
            "values": torch.tensor([[0.5]]),
            "targets": torch.tensor([[2.0]]),
            "weights": torch.ones(1, 1),
        }
        losses = agent.loss(agent.prepare(batch))
        clipped_value = 0.5 * max((1.0 - 2.0) ** 2, (0.7 - 2.0) ** 2)
        assert losses["policy"].item() == pytest.approx(-ratio_term, rel=1e-5)
        ratio = 0.6 / old
        assert losses["kl"].item() == pytest.approx(ratio - 1 - math.log(ratio), rel=1e-4)
        assert losses["clip_fraction"].item() == (abs(ratio - 1) > 0.2)
        assert losses["value"].item() == pytest.approx(clipped_value, rel=1e-5)
        assert losses["total"].item() == pytest.approx(-ratio_term + 0.5 * clipped_value - 0.1 * entropy, rel=1e-5)


def test_weightless_samples_do_not_count():
    values = torch.tensor([[1.0, 2.0, 3.0, 1e6]])
    weights = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    assert torch.allclose(standardise(values, weights, (1,))[0, :3], torch.tensor([-1.0, 0.0, 1.0]))


def test_it_learns():
    _, rollouts = train([0, 1], iterations=30)
    rollouts.episodes.pop()
    rollouts.collect()
    assert all(seed["return_mean"] > 2.8 for seed in rollouts.episodes.pop())


@pytest.mark.parametrize("execution", ["vmap", "loop"])
def test_a_population_learns_what_each_of_its_seeds_learns_alone(execution):
    together, rollouts = train([5, 6, 7], iterations=4, execution=execution)
    for s, seed in enumerate([5, 6, 7]):
        alone, own = train([seed], iterations=4)
        for ours, theirs in zip(together.networks.weights, alone.networks.weights, strict=True):
            assert torch.allclose(ours[s], theirs[0], atol=2e-5)
        assert np.array_equal(rollouts.observations.reshape(3, -1)[s], own.observations.ravel())


def test_a_population_that_learns_in_shards_learns_the_same(monkeypatch):
    whole, rollouts = train([5, 6, 5, 8, 8], iterations=3)
    monkeypatch.setattr("lcd.agents.ppo.SHARED_OUT", 1)
    shards, own = train([5, 6, 5, 8, 8], iterations=3)
    for ours, theirs in zip(shards.networks.weights, whole.networks.weights, strict=True):
        assert torch.equal(ours, theirs)
    for name, losses in whole.losses.items():
        assert torch.equal(shards.losses[name], losses)
    assert np.array_equal(rollouts.observations, own.observations)


@pytest.mark.parametrize("execution", ["vmap", "loop"])
def test_acting_and_learning_agree_in_half_precision(execution):
    """The first minibatch of an iteration meets the policy that acted: every ratio is exactly 1."""
    ratios = []

    class Watched(PPO):
        def loss(self, batch):
            logits, _ = self.networks(batch["inputs"])
            log_probs = logits.float().log_softmax(-1).gather(-1, batch["actions"][..., None]).squeeze(-1)
            ratios.append((log_probs - batch["log_probs"]).abs().max().item())
            return super().loss(batch)

    config = PPOConfig(copies=4, rollout=16, minibatches=1, epochs=1, execution=execution)
    agent = Watched(config, (1,), 2, [0, 1], nn.Identity())
    fit(agent, Rollouts(Corridor(8), [0, 1], agent, 16, 3, 0.9, True), precision="bf16-mixed")
    assert ratios == pytest.approx([0.0] * 3, abs=1e-6)


def test_a_wrong_hyper_parameter_is_one_sentence():
    assert validate("ppo", {"learning_rate": 1}).learning_rate == 1.0
    for params, said in [
        ({"learning_rat": 1.0}, "learning_rate"),
        ({"gamma": 2.0}, "between 0 and 1"),
        ({"epochs": "many"}, "int"),
        ({"copies": 3, "rollout": 5, "minibatches": 4}, "divisor"),
        ({"encoder": "resnet"}, "mlp"),
    ]:
        with pytest.raises(InputError, match=said):
            validate("ppo", params)
    with pytest.raises(InputError, match="ppo"):
        validate("ppq", {})


def test_a_third_partys_hyper_parameters_may_be_optional_or_lists(monkeypatch):
    @dataclass(frozen=True)
    class Config:
        layers: list[int] | None = None
        temperature: float | None = 1.0
        names: tuple[str, ...] = ()

    monkeypatch.setitem(agents._built_in, "theirs", SimpleNamespace(Config=Config))
    assert validate("theirs", {"layers": [1, 2], "temperature": 2}) == Config([1, 2], 2.0)
    assert validate("theirs", {"layers": None, "temperature": None}) == Config(None, None)
    for wrong in ({"layers": 3}, {"temperature": "x"}, {"temperature": True}):
        with pytest.raises(InputError, match=r"should be of type (list or null|float or null)"):
            validate("theirs", wrong)


def make_agent(seeds, copies, config=None):
    return PPO(config or PPOConfig(copies=copies, rollout=8), (1,), 2, seeds, nn.Identity())


def train(seeds, iterations, execution="auto"):
    config = PPOConfig(copies=4, rollout=16, learning_rate=3e-3, execution=execution)
    agent = make_agent(seeds, copies=4, config=config)
    env = Corridor(4 * len(seeds))
    rollouts = Rollouts(env, seeds, agent, config.rollout, iterations, config.gamma, normalise=True)
    fit(agent, rollouts)
    return agent, rollouts
