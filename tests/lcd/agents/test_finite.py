"""Numbers that are not finite: they are noticed where they come up, and blamed on the seed whose they are."""

import numpy as np
import pytest
import torch
from torch import nn

from lcd.agents.finite import Lost, require_finite, require_finite_agent
from lcd.envs.errors import Diverged

SEEDS = [3, 8, 5]


class Agent(nn.Module):
    """Weights and losses of three seeds."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([torch.ones(3, 2, 2), torch.ones(3)])
        self.losses = {"value": torch.ones(3), "grad_norm": torch.ones(3)}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_seed_whose_copy_it_is_is_named_alone(value):
    observations = np.ones((6, 4), np.float32)
    require_finite("an observation", observations, SEEDS, 40)
    observations[3, 2] = value
    with pytest.raises(Diverged, match=r"^an observation of seed 8 is not finite at step 40$"):
        require_finite("an observation", observations, SEEDS, 40)
    observations[4:] = value
    with pytest.raises(Diverged, match="of seeds 8 and 5 is"):
        require_finite("an observation", observations, SEEDS, 40)


def test_pictures_are_always_finite():
    require_finite("an observation", np.zeros((6, 4), np.uint8), SEEDS, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("place", "what"), [(0, "a weight"), (1, "a weight")])
def test_a_seeds_weight_is_that_seeds(value, place, what):
    agent = Agent()
    require_finite_agent(agent, SEEDS, 7)
    agent.weights[place].data[2].flatten()[:1] = value
    with pytest.raises(Diverged, match=f"^{what} of seed 5 is not finite at step 7$"):
        require_finite_agent(agent, SEEDS, 7)


def test_a_seeds_loss_is_that_seeds():
    agent = Agent()
    agent.losses["value"][0] = np.nan
    with pytest.raises(Diverged, match=r"^the loss 'value' of seed 3 is"):
        require_finite_agent(agent, SEEDS, 7)


def test_weights_that_cancel_or_add_up_to_more_than_a_float_are_told_apart():
    agent = Agent()
    agent.weights[0].data[:] = 3e38
    require_finite_agent(agent, SEEDS, 7)
    agent.weights[0].data[1, 0] = torch.tensor([np.inf, -np.inf])
    with pytest.raises(Diverged, match="of seed 8 is"):
        require_finite_agent(agent, SEEDS, 7)


def test_an_overflowing_gradient_is_ordinary_in_fp16_only():
    agent = Agent()
    agent.losses["grad_norm"][1] = np.inf
    with pytest.raises(Diverged, match="grad_norm"):
        require_finite_agent(agent, SEEDS, 7)
    agent.config = type("Config", (), {"precision": "16-mixed"})
    require_finite_agent(agent, SEEDS, 7)


# A run that goes on without points

POINTS = ["task", "task", "task@far", "task@far"]


def of_points():
    agent = Agent()
    agent.weights = nn.ParameterList([torch.ones(4, 2, 2), torch.ones(4)])
    agent.losses = {"value": torch.ones(4)}
    agent.lost = Lost([3, 8, 3, 8], POINTS)
    return agent


def test_a_point_is_lost_by_one_member_and_the_last_one_ends_the_run():
    lost = Lost([3, 8, 3, 8], POINTS)
    observations = np.ones((8, 2), np.float32)
    observations[7, 1] = np.nan
    seen = require_finite("an observation", observations, lost.seeds, 40, lost)
    assert lost.why == {"task@far": "an observation of seed 8 is not finite at step 40"}
    assert seen.tolist() == [[1, 1]] * 7 + [[1, 0]]
    # What is lost is lost for its first reason.
    require_finite("a reward", observations, lost.seeds, 48, lost)
    assert lost.why == {"task@far": "an observation of seed 8 is not finite at step 40"}
    observations[0] = np.inf
    with pytest.raises(Diverged, match="an observation of seed 3 is not finite at step 56"):
        require_finite("an observation", observations, lost.seeds, 56, lost)


def test_several_processes_do_not_go_on_without_a_point():
    lost = Lost([3, 8, 3, 8], POINTS, tolerant=False)
    with pytest.raises(Diverged, match="of 1 of 4 members, of seed 8"):
        lost.take("a reward", np.array([True, True, True, False]), 40)


def test_a_lost_members_weights_and_moments_are_zeros_and_nobody_elses_change():
    agent = of_points()
    optimizer = torch.optim.Adam(agent.weights.parameters())
    sum(weight.sum() for weight in agent.weights).backward()
    optimizer.step()
    before = [weight.detach().clone() for weight in agent.weights]
    agent.weights[0].data[2, 0, 1] = np.nan
    require_finite_agent(agent, agent.lost.seeds, 7, [optimizer])
    assert agent.lost.why == {"task@far": "a weight of seed 3 is not finite at step 7"}
    for weight, old in zip(agent.weights, before, strict=True):
        assert weight[2].count_nonzero() == 0
        assert torch.equal(weight[[0, 1, 3]], old[[0, 1, 3]])
        for moment in ("exp_avg", "exp_avg_sq"):
            numbers = optimizer.state[weight][moment]
            assert numbers[2].count_nonzero() == 0
            assert numbers[[0, 1, 3]].all()
    # Being zero it is no trouble any more; another one's is.
    require_finite_agent(agent, agent.lost.seeds, 8, [optimizer])
    agent.losses["value"][0] = np.nan
    with pytest.raises(Diverged, match="the loss 'value' of seed 3 is not finite at step 9"):
        require_finite_agent(agent, agent.lost.seeds, 9, [optimizer])
