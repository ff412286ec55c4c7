"""The best and the random return of a tabular MDP, exactly: backward induction over all of its states."""

from __future__ import annotations

import numpy as np

from lcd.envs.tabular.mdp import TERMINAL, TabularMDP


def reward_range(mdp: TabularMDP) -> tuple[float, float]:
    """The mean undiscounted return of random actions, and the greatest return; of an MDP without sticky actions."""
    after = np.where(mdp.transitions == TERMINAL, mdp.num_states, mdp.transitions)
    random, best = np.zeros(mdp.num_states + 1), np.zeros(mdp.num_states + 1)
    for _ in range(mdp.horizon):
        random[:-1] = sum(mdp.rewards[:, a] + random[after[:, a]] for a in range(mdp.num_actions)) / mdp.num_actions
        best[:-1] = np.max([mdp.rewards[:, a] + best[after[:, a]] for a in range(mdp.num_actions)], axis=0)
    return float(random[mdp.start]), float(best[mdp.start])
