"""Looking for H beyond the timesteps of a run: `up_to` and `most_steps`."""

import numpy as np

from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon.analysis import Settings, analyse

LENGTH = 7


def decoy():
    """The right way costs nothing and pays 2 at its end; going back pays .125 at once, and the way is over."""
    after = np.stack([np.full(LENGTH, -1), np.arange(1, LENGTH + 1)], axis=1)
    after[-1, 1] = -1
    rewards = np.zeros((LENGTH, 2))
    rewards[:, 0] = 0.125
    rewards[-1, 1] = 2
    return TabularMDP(after, rewards, LENGTH)


def horizon(**settings):
    return analyse(decoy(), Settings(discount=1.0, **settings)).horizon


def test_it_finds_what_more_timesteps_find():
    # Rollouts end at the decoy half the time at every step, so that it takes a look ahead.
    far = horizon(timesteps=1e7)
    near = horizon(timesteps=200)
    assert near.h is None
    assert near.low <= far.h
    further = horizon(timesteps=200, up_to=LENGTH)
    assert further.low <= far.h <= LENGTH
    assert abs(further.h - far.h) < 0.5


def test_it_goes_no_further_than_it_is_told():
    far = horizon(timesteps=1e7)
    assert far.h > 3.1
    short = horizon(timesteps=200, up_to=3.0)
    assert short.h is None
    assert 2.9 < short.low <= far.h
    assert horizon(timesteps=200, up_to=LENGTH, most_steps=1).h is None


def test_without_it_nothing_changes():
    one, other = horizon(timesteps=1e5), horizon(timesteps=1e5, up_to=2.0)
    assert (one.h, one.low, one.high, one.simulated) == (other.h, other.low, other.high, other.simulated)
