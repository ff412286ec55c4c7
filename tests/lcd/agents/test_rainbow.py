"""Rainbow part by part: each against a closed formula or a slow twin, all of it on a task whose values are known."""

import numpy as np
import pytest
import torch
from scipy import stats

from lcd.agents import validate
from lcd.agents.batched import initial, outputs_of
from lcd.agents.dqn import DQN
from lcd.agents.evaluate import Evaluator
from lcd.agents.priorities import Priorities
from lcd.agents.rainbow import Rainbow, disturbed, followed, projected
from lcd.agents.replay import Replay
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from tests.lcd.agents.test_dqn import BEST, CHAIN, SETTINGS, Chain

PARTS = ("double", "dueling", "prioritised", "distributional", "noisy")
OFF = {**dict.fromkeys(PARTS, False), "n_step": 1}
ALL = {"lowest": -1.0, "highest": 2.0, "atoms": 31, "n_step": 3}


def made(seeds, env=Chain, **settings):
    config = validate("rainbow", SETTINGS | {"width": 32} | settings)
    return Rainbow(config, env(len(seeds) * config.copies), seeds)


def trained(seeds, steps, env=Chain, **settings):
    agent = made(seeds, env, **settings)
    agent.learn(steps, steps, lambda step: None)
    return agent


def values(agent):
    with torch.no_grad():
        return agent.worth(agent.values(agent.network, torch.eye(CHAIN).expand(len(agent.seeds), -1, -1))).numpy()


def toys(copies):
    return HardnessDiscreteVectorEnv(copies, view="state", seed=list(range(copies // 2)))


@pytest.mark.parametrize("env", [Chain, toys])
def test_without_any_part_it_is_dqn_to_the_last_bit(env):
    settings = SETTINGS | {"width": 32, "activation": "tanh"}
    plain = DQN(validate("dqn", settings), env(4), [0, 1])
    plain.learn(300, 300, lambda step: None)
    agent = trained([0, 1], 300, env, **OFF, activation="tanh")
    assert torch.equal(agent.network.numbers, plain.network.numbers)
    assert not torch.equal(plain.network.numbers, agent.target.numbers)


@pytest.mark.parametrize("part", [*PARTS, "n_step"])
def test_with_one_part_alone_it_learns_what_actions_are_worth(part):
    own = {**OFF, **ALL, "n_step": 1, part: 2 if part == "n_step" else True}
    atol = 0.25 if part in ("distributional", "noisy", "n_step") else 0.1
    agent = trained([0, 1], 1500, learning_rate=0.005, epsilon=0.5, **own)
    assert np.allclose(values(agent)[:, 1:, 1], BEST[1:, 1], atol=atol)
    assert (values(agent).argmax(-1) == BEST.argmax(-1)).all()


def test_all_parts_together_solve_the_toy():
    # The best policy is paid in each of 100 steps.
    seeds = [0, 1, 2]
    train, held_out = (
        HardnessDiscreteVectorEnv(copies, view="state", seed=seeds, split=split)
        for copies, split in ((3, "train"), (6, "eval"))
    )
    own = {"copies": 1, "width": 32, "gamma": 0.9, "learning_rate": 0.002, "start": 200, "train_every": 4, "updates": 1}
    own |= {"epsilon": 0.01, "exploration": 0.5, "target_every": 100, "lowest": 0.0, "atoms": 31, "buffer": 3000}
    agent, returns = Rainbow(validate("rainbow", own), train, seeds), []
    evaluator = Evaluator(held_out, seeds, 1)
    agent.learn(3000, 3000, lambda step: returns.append([row["return_mean"] for row in evaluator(agent, step)]))
    assert max(returns[0]) < 60
    assert min(returns[-1]) > 95


def test_projection_is_that_of_a_slow_twin():
    rng = np.random.default_rng(0)
    atoms = np.linspace(-2, 3, 11)
    chances = rng.dirichlet(np.ones(11), size=(2, 4))
    rewards, discounts = rng.normal(0, 2, (2, 4)), rng.uniform(0, 1, (2, 4)) * rng.integers(0, 2, (2, 4))
    slow = np.zeros_like(chances)
    for place in np.ndindex(2, 4):
        for chance, atom in zip(chances[place], atoms, strict=True):
            where = (np.clip(rewards[place] + discounts[place] * atom, -2, 3) + 2) / 0.5
            below, above = int(np.floor(where)), int(np.ceil(where))
            slow[place][below] += chance * (1.0 if below == above else above - where)
            slow[place][above] += chance * (where - below)
    given = (torch.from_numpy(each) for each in (chances, rewards, discounts, atoms))
    assert np.allclose(projected(*given).numpy(), slow, atol=1e-9)
    assert np.allclose(slow.sum(-1), 1)


def test_priorities_are_drawn_in_proportion():
    rng = np.random.default_rng(1)
    priorities, own = Priorities(3, 10), rng.uniform(0, 1, (3, 10)) * (rng.uniform(size=(3, 10)) > 0.3)
    own[:, 0] = 0.4
    for place in rng.permutation(10):
        priorities.set(slice(0, 3), np.full((3, 1), place), own[:, [place]])
    assert np.allclose(priorities.sums[:, 1], own.sum(1))
    shares = (np.arange(20_000) + 0.5) / 20_000
    places, likely = priorities.find(slice(1, 3), np.broadcast_to(shares, (2, len(shares))))
    for member, found in enumerate(places, 1):
        sought = np.searchsorted(np.cumsum(own[member]), shares * own[member].sum(), side="right")
        assert (found == sought).all()
        assert np.allclose(np.bincount(found, minlength=10) / len(found), own[member] / own[member].sum(), atol=1e-4)
        assert np.allclose(likely[member - 1], own[member][found] / own[member].sum())


def test_the_highest_share_never_leads_to_an_empty_place():
    priorities = Priorities(1, 5)
    priorities.set(slice(0, 1), np.array([[0, 1]]), np.array([[0.1, 0.2]]))
    assert priorities.find(slice(0, 1), np.array([[0.0, 0.34, 1.0]]))[0].tolist() == [[0, 1, 1]]


def test_what_is_drawn_often_weighs_less_and_errors_become_priorities():
    agent = trained([0, 1], 60, **{**OFF, "prioritised": True, "alpha": 0.5, "beta": 1.0})
    members = slice(0, 2)
    total = agent.priorities.sums[:, 1].copy()
    before = agent.priorities.sums[:, agent.priorities.first :].copy()
    (batch,) = [batch | {"errors": torch.zeros(2, 32)} for batch in _first(agent, members)]
    likely = before / total[:, None]
    with np.errstate(divide="ignore"):
        expected = [(agent.memory.filled * likely[m]) ** -1.0 for m in range(2)]
    for member in range(2):
        weights = batch["weights"][member].numpy()
        possible = expected[member][likely[member] > 0]
        shares = weights / weights.min() * possible.min()
        # Each weight is one of those that the formula gives, and the largest of a batch is 1.
        assert weights.max() == 1.0
        assert np.abs(shares[:, None] / shares.min() - possible / possible.min()).min() < 1e-5


def _first(agent, members):
    for batch in agent.batches(members, np.zeros((2, 0), int)):
        batch["errors"] = torch.full((2, 32), 0.25)
        yield batch
        return


def test_a_batchs_errors_are_its_priorities_afterwards():
    agent = trained([0, 1], 60, **{**OFF, "prioritised": True, "alpha": 0.5, "updates": 1})
    agent.priorities.set(slice(0, 2), np.broadcast_to(np.arange(60), (2, 60)), np.full((2, 60), 9.0))
    for batch in agent.batches(slice(0, 2), np.zeros((2, 0), int)):
        batch["errors"] = torch.full((2, 32), 0.25)
    leaves = agent.priorities.sums[:, agent.priorities.first :][:, :60]
    assert set(np.round(leaves, 4).ravel()) == {9.0, 0.5}
    assert agent.priorities.sums[:, 1] == pytest.approx(leaves.sum(1))


@pytest.mark.parametrize("filled", [7, 23])
def test_several_steps_are_those_of_a_slow_twin(filled):
    rng, copies, size, gamma, most = np.random.default_rng(2), 2, 12, 0.8, 3
    memory, told = Replay(2, size, 1, np.float32), []
    for step in range(filled):
        ended = rng.uniform(size=4) < 0.3
        going_on = ~(ended & (rng.uniform(size=4) < 0.5))
        new = (np.full((4, 1), step), np.zeros(4), rng.normal(size=4), np.full((4, 1), step + 1))
        memory.add(*new, going_on, np.ones(4), ended)
        told.append((new[2].astype(np.float32), going_on, ended))
    kept = range(max(0, filled - size // copies), filled)
    for first in kept:
        place = (first * copies) % size
        places = np.array([[place, place + 1]] * 2)
        found, discounts = followed(memory, slice(0, 2), places, copies, most, gamma)
        for member in range(2):
            for copy in range(copies):
                total, step = 0.0, first
                while True:
                    rewards, going_on, ended = (each[member * copies + copy] for each in told[step])
                    total += gamma ** (step - first) * rewards
                    step += 1
                    if ended or step - first == most or step == filled:
                        break
                assert found["rewards"][member, copy] == pytest.approx(total, rel=1e-5)
                assert found["reached"][member, copy, 0] == step
                assert bool(found["going_on"][member, copy]) == going_on
                assert found["seen"][member, copy, 0] == first
                assert discounts[member, copy] == pytest.approx(gamma ** (step - first))


def test_noise_on_weights_is_factorised():
    agent = made([3, 4], noisy=True, dueling=False, distributional=False)
    noise = [agent.noise(slice(0, 2)) for _ in range(3000)]
    ((given, made_of),) = ([torch.stack([each[0][side] for each in noise]) for side in range(2)],)
    # The factors are sign(x) √|x| of a normal x: mean 0, variance E|x| = √(2/π), and no two have to do with each other.
    for factor in (given, made_of):
        signed_squares = (factor * factor.abs())[:, 0].numpy()
        assert stats.kstest(signed_squares.ravel()[:5000], "norm").pvalue > 0.001
        assert float((factor**2).mean()) == pytest.approx((2 / np.pi) ** 0.5, rel=0.03)
    across = (given[:, 0, 0] * made_of[:, 0, 0]).numpy()
    assert abs(across.mean()) < 4 * across.std() / len(across) ** 0.5
    assert not torch.equal(given[:, 0], given[:, 1])
    mean, deviation = ([torch.full((2, 32, 2), each), torch.full((2, 1, 2), each)] for each in (1.0, 0.5))
    weight, bias = disturbed(mean, deviation, noise[0])
    (f_in, f_out) = noise[0][0]
    assert float(weight[1, 5, 1]) == pytest.approx(1 + 0.5 * float(f_in[1, 5] * f_out[1, 1]))
    assert float(bias[1, 0, 1]) == pytest.approx(1 + 0.5 * float(f_out[1, 1]))
    start = agent.network.layers[-2]
    assert torch.allclose(start, torch.full_like(start, 0.5 / 32**0.5))


def test_evaluation_is_without_noise_and_play_with_it():
    agent = made([0, 1], noisy=True, dueling=True)
    looked = torch.eye(CHAIN).expand(2, -1, -1)
    quiet = agent.values(agent.network, looked)
    assert torch.equal(agent.act(looked, None)[0], agent.worth(quiet).argmax(-1))
    loud = agent.shards[0].said_of(agent.network, looked)
    assert not torch.allclose(quiet, loud)


def test_the_double_target_is_the_targets_value_of_the_learned_choice():
    errors = {}
    for double in (False, True):
        agent = made([0, 1], **{**OFF, "double": double})
        with torch.no_grad():
            agent.target.numbers.copy_(torch.roll(agent.network.numbers, 1, 0))
        agent.target.numbers.mul_(3)
        looked = torch.eye(CHAIN).expand(2, -1, -1)
        batch = {"seen": looked, "reached": looked.roll(1, 1), "actions": torch.tensor([[0, 1, 0]] * 2)}
        batch |= {"rewards": torch.tensor([[0.1, 0.2, 0.3]] * 2), "valid": torch.ones(2, 3)}
        batch |= {"going_on": torch.tensor([[1.0, 1, 0]] * 2), "discounts": torch.full((2, 3), 0.5)}
        agent.shards[0].losses(batch)
        mine, theirs = (outputs_of(n.fixed, looked).numpy() for n in (agent.network, agent.target))
        for member in range(2):
            for row in range(3):
                reached = (row - 1) % 3
                chosen = (mine if double else theirs)[member, reached].argmax()
                goal = (
                    batch["rewards"][member, row]
                    + 0.5 * batch["going_on"][member, row] * theirs[member, reached, chosen]
                )
                error = abs(float(goal) - mine[member, row, [0, 1, 0][row]])
                assert float(batch["errors"][member, row]) == pytest.approx(error, rel=1e-4)
        errors[double] = batch["errors"]
    assert not torch.equal(errors[False], errors[True])


def test_actions_add_nothing_to_a_states_worth_on_average():
    agent = made([5, 6], **{**OFF, "dueling": True, "head": 16})
    looked = torch.eye(CHAIN).expand(2, -1, -1)
    said = agent.values(agent.network, looked).detach()
    layers = agent.network.fixed
    below = torch.relu(outputs_of(layers[:4], looked))
    value, advantage = outputs_of(layers[8:], below), outputs_of(layers[4:8], below)
    assert torch.allclose(said.mean(-1), value[..., 0], atol=1e-6)
    assert torch.allclose(said - said[..., :1], advantage - advantage[..., :1], atol=1e-6)


def test_a_member_learns_what_it_learns_alone():
    together, alone = trained([4, 7, 9], 150), trained([7], 150)
    assert torch.allclose(together.layers[0][1], alone.layers[0][0], atol=1e-4)
    assert not torch.allclose(together.layers[0][0], together.layers[0][1])


def test_layers_of_dqn_may_be_as_many_and_as_bent_as_asked():
    config = validate("dqn", SETTINGS | {"width": 8, "layers": 3, "activation": "tanh"})
    agent = DQN(config, Chain(4), [1, 2])
    by_hand = initial([(CHAIN, 8), (8, 8), (8, 8), (8, 2)], [1, 2])
    inputs = torch.eye(CHAIN).expand(2, -1, -1)
    for place in range(0, 8, 2):
        inputs = torch.tanh(inputs) if place else inputs
        inputs = inputs @ by_hand[place] + by_hand[place + 1]
    assert torch.allclose(agent.values(agent.network, torch.eye(CHAIN).expand(2, -1, -1)), inputs, atol=1e-6)


@pytest.mark.parametrize("wrong", [{"atoms": 1}, {"n_step": 0}, {"lowest": 3.0, "highest": 2.0}, {"alpha": 1.5}])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(InputError, match=f"agent.{next(iter(wrong))}="):
        validate("rainbow", wrong)
