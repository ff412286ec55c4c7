"""The best and the random return of a tabular MDP, and where its best play leads, by backward induction."""

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


def near_the_end(mdp: TabularMDP, left: int) -> TabularMDP:
    """The same MDP from where the best play from its first state has so many steps left, and for as many.

    Its effective horizon is at most that where its optimum agrees: GORP plays all that is left. Where several actions
    are optimal the first of them is played.
    """
    states = mdp.num_states
    after = np.where(mdp.transitions == TERMINAL, states, mdp.transitions)
    values, best = np.zeros(states + 1), []
    for _ in range(mdp.horizon):
        worth = np.stack([mdp.rewards[:, a] + values[after[:, a]] for a in range(mdp.num_actions)])
        best.append(worth.argmax(axis=0).astype(np.uint16))
        values[:-1] = worth.max(axis=0)
    path = [mdp.start]
    for actions in reversed(best):
        path.append(int(after[path[-1], actions[path[-1]]]))
        if path[-1] == states:
            break
    # The last of the path is where nothing is left to do.
    return mdp.changed(start=path[max(len(path) - 1 - left, 0)], horizon=min(left, mdp.horizon))
