"""MPLight and its network: who competes with whom, what symmetries change nothing, and what is learned."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from lcd.agents import agents, validate
from lcd.agents.batched import initial
from lcd.agents.evaluate import Evaluator
from lcd.agents.frap import LINKS, PAIRS, PARTLY, movements_of, phase_values, sizes
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.traffic.controllers import pressures
from lcd.envs.traffic.green_phases import PHASES
from lcd.envs.traffic.sensing import Seen, read, rows
from lcd.envs.traffic.signal_vector import IntersectionVectorEnv

KNOBS = {"horizon": 200, "inflow": 300.0, "length": 100.0, "lanes": 2.0, "left_lanes": 0.0}
NAMES = ("mplight", "mplight_star")


def make(name, seeds, copies=2, **settings):
    env = IntersectionVectorEnv(len(seeds) * copies, seed=seeds, **KNOBS)
    config = validate(f"traffic/{name}", {"copies": copies, **settings})
    return agents.resolve(f"traffic/{name}")(config, env, seeds)


def seen(rng, count, served=(True, True, True, True)):
    return Seen(
        rng.integers(0, 9, (count, 4, 3)).astype(float),
        rng.integers(0, 9, (count, 4, 3)).astype(float),
        rng.integers(0, 9, (count, 4)).astype(float),
        rng.choice(np.flatnonzero(served), count),
        rng.integers(0, 50, count).astype(float),
        np.tile(np.array(served), (count, 1)),
    )


def turned(before, approaches, phases):
    """The same traffic at an intersection whose approach i is what `approaches[i]` was, and phases likewise."""
    phase = np.argsort(phases)[before.phase]
    return Seen(
        before.queues[:, approaches], before.moving[:, approaches], before.leaving[:, approaches],
        phase, before.age, before.served[:, phases],
    )  # fmt: skip


def worth(agent, looks):
    return agent.values(agent.network, agent.encode(rows(looks))).detach().numpy()


def test_each_phase_competes_with_each_other_one_and_partly_with_that_of_its_own_road():
    assert len(PAIRS) == len(set(PAIRS)) == len(PHASES) * (len(PHASES) - 1) == 12
    roads = [phase // 2 for phase in range(len(PHASES))]
    assert PARTLY.tolist() == [roads[one] == roads[other] for one, other in PAIRS]


@pytest.mark.parametrize("name", NAMES)
def test_phases_are_worth_the_same_whichever_way_an_intersection_is_turned(name):
    agent, looks = make(name, [1, 2]), seen(np.random.default_rng(0), 6)
    as_is = worth(agent, looks)
    assert len(np.unique(np.round(as_is, 6))) == as_is.size  # worth something, each another thing
    for approaches, phases in (
        ([1, 2, 3, 0], [2, 3, 0, 1]),  # a quarter of a turn
        ([2, 3, 0, 1], [0, 1, 2, 3]),  # half of one
    ):
        found = worth(agent, turned(looks, approaches, phases))
        assert np.allclose(found, as_is[..., phases], atol=1e-5)


def test_what_stands_against_each_other_may_be_swapped_and_what_turns_may_not():
    # Without anybody behind: mirrored, through traffic and its turns leave by other roads.
    agent, looks = make("mplight", [1, 2]), seen(np.random.default_rng(1), 6)
    looks.leaving[:] = 0
    as_is = worth(agent, looks)
    for approaches in ([2, 1, 0, 3], [0, 3, 2, 1]):
        assert np.allclose(worth(agent, turned(looks, approaches, [0, 1, 2, 3])), as_is, atol=1e-5)
    mirrored = Seen(looks.queues[..., ::-1], looks.moving[..., ::-1], *[getattr(looks, n) for n in
                    ("leaving", "phase", "age", "served")])  # fmt: skip
    assert not np.allclose(worth(agent, mirrored), as_is, atol=1e-3)


def test_a_network_by_hand_is_max_pressure():
    # A pair's score is the first one's demand less the second's; ReLUs let it through because a constant is added.
    copies, width = 40, 2
    looks = seen(np.random.default_rng(2), copies, served=(True, True, True, False))
    layers = initial(sizes(1, width), [0])
    for layer in layers:
        layer.zero_()
    movement, demand, pair, relation, both, last = layers[::2]
    movement[0, 0] = torch.tensor([1.0, -1.0])
    demand[0] = torch.eye(2)
    pair[0, :, 0] = torch.tensor([1.0, -1, -1, 1])
    layers[5][0, 0, 0] = 1000.0
    relation[0, :, 0] = 1.0
    both[0, 0, 0] = 1.0
    last[0, 0, 0] = 1.0
    weights = looks.queues + looks.moving
    weights -= looks.leaving[:, [[(a - 1 - m) % 4 for m in range(3)] for a in range(4)]] / 3
    features = torch.from_numpy(weights.reshape(1, copies, 12, 1)).float()
    served = torch.from_numpy(looks.served)[None]
    found = phase_values(layers, features, served)[0].numpy()
    wanted = pressures(looks)
    assert np.isinf(found[:, 3]).all()
    others = np.stack([3 * wanted[:, p] - wanted[:, :3].sum(1) for p in range(3)], 1)
    assert np.allclose(found[:, :3] - 2000, others, atol=1e-2)


def test_left_turns_count_once_and_where_they_have_their_own_phase_there():
    for served in itertools.product([True], [False, True], [True], [False, True]):
        whose = movements_of(torch.tensor(served)).numpy()[np.flatnonzero(served)]
        assert (whose.sum(0) == 1).all()
        for place, phase in enumerate(np.flatnonzero(served)):
            for (approach, movement), mine in zip(LINKS, whose[place], strict=True):
                own_road = approach % 2 == phase // 2
                alone = movement == 2 and served[2 * (approach % 2) + 1]
                assert mine == (own_road and alone == bool(phase % 2))


@pytest.mark.parametrize("name", NAMES)
def test_only_phases_that_an_intersection_has_are_chosen(name):
    agent = make(name, [1])
    looks = seen(np.random.default_rng(3), 500, served=(True, False, True, True))
    numbers = np.random.default_rng(4).integers(2**32, size=500, dtype=np.uint64)
    stray = agent.at_random(numbers, rows(looks))
    counts = np.bincount(stray, minlength=4)
    assert counts[1] == 0
    assert (counts[[0, 2, 3]] > 130).all()
    greedy = agent.act(agent.encode(rows(looks)), None)[0]
    assert set(greedy.flatten().tolist()) <= {0, 2, 3}


def test_the_reward_is_minus_the_pressure_of_the_whole_intersection():
    looks = seen(np.random.default_rng(5), 7)
    found = make("mplight", [1]).rewards(None, rows(looks))
    inside = looks.queues.sum((1, 2)) + looks.moving.sum((1, 2))
    assert np.allclose(found, -np.abs(inside - looks.leaving.sum(1)) / 10)
    assert read(rows(looks)).age.tolist() == looks.age.tolist()


def test_it_learns_to_beat_the_untuned_plan():
    seeds, steps = [1, 2], 2400
    agent = make("mplight", seeds, copies=4, start=160, train_every=80, target_every=80, updates=30)
    held_out = IntersectionVectorEnv(8, split="eval", seed=seeds, **KNOBS)
    evaluator = Evaluator(held_out, seeds, 1, greedy=True)
    agent.learn(steps, steps, lambda step: None)
    untuned = agents.resolve("traffic/fixed_time")(validate("traffic/fixed_time", {}), held_out, seeds)
    learned, plan = ([row["return_mean"] for row in evaluator(each, 0)] for each in (agent, untuned))
    assert (np.array(learned) > 0.7 * np.array(plan)).all()
    agent.env.close()
    held_out.close()


def test_other_environments_are_refused():
    toy = HardnessDiscreteVectorEnv(2, seed=[1, 2])
    with pytest.raises(InputError, match="control the intersections of benchmark=traffic"):
        agents.resolve("traffic/mplight")(validate("traffic/mplight", {"copies": 1}), toy, [1, 2])
