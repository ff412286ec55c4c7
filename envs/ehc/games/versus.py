"""A game against a fixed opponent as an MDP: the first player acts, and the reply is part of the step.

States are the positions in which the agent, who is the first player, has to move; where the game says so, all images of
a position are one state, shown as one of them, and the opponent treats them alike. A win pays 1, a loss -1, a draw 0,
always at the end of the game; an episode that is cut off at the horizon has paid nothing for a result. With shaping a
step also pays how much the potential grew, in 128ths, and never as much as half a win in a whole episode.
"""

from __future__ import annotations

import numpy as np

from lcd.envs.ehc.games.boards import GameBoard
from lcd.envs.ehc.games.game import Game, Moves
from lcd.envs.ehc.games.opponents import Opponent
from lcd.envs.ehc.games.solution import POTENTIAL_PARTS, Solution
from lcd.envs.tabular.closure import build
from lcd.envs.tabular.mdp import MOST_STATES, TERMINAL, TabularMDP


class _Rules:
    """The rules that `closure.build` takes: the agent's move and the opponent's reply."""

    def __init__(self, solution: Solution, opponent: Opponent, actions: int) -> None:
        self.solution, self.opponent, self.actions = solution, opponent, actions
        self.game: Game = solution.positions.game

    def __call__(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        moves = self.game.moves(codes)
        after, ended, result = _taken(moves, self.game.played(moves.legal, self.actions))
        after = self._state(after)
        while True:
            theirs = ~ended & self.game.second_moves(after.ravel()).reshape(after.shape)
            if not theirs.any():
                break
            reached, back = np.unique(after[theirs], return_inverse=True)
            after[theirs], ended[theirs], result[theirs] = (part[back] for part in self.reply(reached))
            after = self._state(after)
        paid = result.astype(np.float64)
        if self.solution.shaped:
            final, back = np.unique(after.ravel(), return_inverse=True)
            ahead = self.game.potential(final)[back].reshape(after.shape)
            paid += (ahead - self.game.potential(codes)[:, None]) / POTENTIAL_PARTS
        return after, paid, ended

    def _state(self, codes: np.ndarray) -> np.ndarray:
        """The codes by which positions are told apart: their own, or one for all images of each other."""
        return self.game.canonical(codes.ravel()).reshape(codes.shape) if self.game.merged else codes

    def reply(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the opponent's move leads to in each of these positions: code, does it end the game, result."""
        moves = self.game.moves(codes)
        chosen = self.opponent.choose(codes, -self.solution.of(moves), moves.legal)
        after, ended, result = _taken(moves, chosen[:, None])
        return after[:, 0], ended[:, 0], result[:, 0]


def _taken(moves: Moves, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The moves of these columns."""
    after, ended, result = (
        np.take_along_axis(part, columns, axis=1) for part in (moves.after, moves.ended, moves.result)
    )
    return after, ended, result


def against(
    solution: Solution, opponent: Opponent, name: str, turns: int | None = None, most_states: int = MOST_STATES
) -> TabularMDP:
    """The MDP of a game against one opponent.

    Args:
        solution: of the game, with the opponent's noise, and with shaping if the MDP is to be shaped.
        opponent: who replies.
        name: the MDP's.
        turns: the horizon; by default the game's most turns.
        most_states: refuse to build more.
    """
    game = solution.positions.game
    actions = game.actions or tuple(f"move {rank + 1}" for rank in range(solution.positions.most_moves))
    rules = _Rules(solution, opponent, len(actions))
    mdp = build(
        rules, game.start, turns or game.turns, most_states=most_states, within_horizon=True, actions=actions, name=name
    )
    return mdp.changed(renderer=GameBoard(game, np.asarray(mdp.codes)))


def beatable(mdp: TabularMDP) -> bool:
    """Can the agent win within the horizon?

    Shaping pays less than half of a win in all, so that a return above 1/2 is a win. Where the best return is not, the
    opponent cannot be beaten, and the MDP is left out.
    """
    return best_return(mdp) > 0.5


def best_return(mdp: TabularMDP) -> float:
    """The undiscounted return of the best policy."""
    ends = mdp.transitions == TERMINAL
    after = np.where(ends, mdp.num_states, mdp.transitions)
    values = np.zeros(mdp.num_states + 1)
    for _ in range(mdp.horizon):
        best = np.full(mdp.num_states, -np.inf)
        for action in range(mdp.num_actions):
            np.maximum(best, mdp.rewards[:, action] + values.take(after[:, action]), out=best)
        same = np.array_equal(best, values[:-1])
        values[:-1] = best
        if same:
            break
    return float(values[mdp.start])
