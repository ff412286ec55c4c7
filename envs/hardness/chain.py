"""The discrete toy as a Markov decision process that pays when it pays, and exact numbers of it.

Beside the state it remembers what the reward can depend on of the past, and what each of the last `delay` steps earned
and is still due. No agent sees that: what is told of a state is a mean over it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.hardness.knobs import power
from lcd.envs.hardness.mdp import DiscreteMDP
from lcd.envs.hardness.solve import past_of_sequences, straying

MOST_SITUATIONS = 100_000
"""The largest number of situations (a state with what is remembered) of which a chain is made."""
NEAR = 0.95
"""Share of what an optimal agent has over a random one, at which look-ahead is deep enough."""
ALIKE = 1e-9
"""Actions whose values differ by no more are equally good, and are taken equally often."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A toy whose situations hold all that its future depends on.

    Attributes:
        chances: (situations, actions, reached): how probably an action leads to a state of the next set.
        moves: at each step: the situations that this makes, and what is paid, each (situations, reached).
        ends: (situations, reached): does that end the episode?
        starts: (situations,): how probably an episode starts there.
        states: (situations,): the toy's state.
        noise: standard deviation of what is added to every step's reward.
        base: what every step is paid whatever happens.
    """

    chances: np.ndarray
    moves: tuple[tuple[np.ndarray, np.ndarray], ...]
    ends: np.ndarray
    starts: np.ndarray
    states: np.ndarray
    noise: float
    base: float

    @property
    def horizon(self) -> int:
        """Steps of the longest episode."""
        return len(self.moves)

    def values(self, step: int, later: np.ndarray) -> np.ndarray:
        """(situations, actions): what is paid at a step and `later` (situations,), in the mean."""
        after, paid = self.moves[step]
        return self._mean(paid + np.where(self.ends, 0.0, later[after]))

    def _mean(self, outcome: np.ndarray) -> np.ndarray:
        return np.einsum("xar,xr->xa", self.chances, outcome)

    @cached_property
    def random(self) -> float:
        """The expected return of random play."""
        return self._return_of([np.ones(self.chances.shape[:2])] * self.horizon)

    @cached_property
    def optimal(self) -> float:
        """The expected return of the best agent, which knows the situation."""
        later = np.zeros(len(self.states))
        for step in reversed(range(self.horizon)):
            later = self.values(step, later).max(1)
        return float(self.starts @ later)

    def _return_of(self, taken: list[np.ndarray]) -> float:
        """The expected return of taking each step's actions (situations, actions) with these odds."""
        later = np.zeros(len(self.states))
        for step in reversed(range(self.horizon)):
            later = (self.values(step, later) * taken[step]).sum(1) / taken[step].sum(1)
        return float(self.starts @ later)

    def look_ahead(self) -> Iterator[float]:
        """Returns of whoever looks 1, 2, … steps ahead, exactly, and takes what is best as if all ended there."""
        beyond = [np.zeros(len(self.states))] * (self.horizon + 1)
        for _ in range(self.horizon):
            values = [self.values(step, beyond[step + 1]) for step in range(self.horizon)]
            best = [each.max(1) for each in values]
            yield self._return_of([each >= top[:, None] - ALIKE for each, top in zip(values, best, strict=True)])
            beyond = [*best, beyond[-1]]

    @cached_property
    def depth(self) -> float:
        """Steps of look-ahead by which `NEAR` of the gap between random and optimal play is closed, linear in between.

        Who looks no step ahead plays at random. Nothing can be closed where there is no gap: then it is 0.
        """
        gap, before = self.optimal - self.random, 0.0
        if gap <= ALIKE:
            return 0.0
        for deep, reached in enumerate(self.look_ahead()):
            share = (reached - self.random) / gap
            if share >= NEAR:
                return deep + (NEAR - before) / (share - before)
            before = share
        return float(self.horizon)

    @cached_property
    def rewarded(self) -> float:
        """The probability that an episode of random play is ever paid more than nothing."""
        never = np.ones(len(self.states))
        for step in reversed(range(self.horizon)):
            after, paid = self.moves[step]
            going_on = np.where(self.ends, 1.0, never[after])
            never = self._mean(np.where(paid - self.base > 0, 0.0, going_on)).mean(1)
        return float(1 - self.starts @ never)

    @cached_property
    def noise_to_signal(self) -> float:
        """Variance of returns to go under random play within a state and action, over how much actions' means differ.

        A return's mean at its step is taken out of it, for that is not the action's doing. States count as often as
        they are met. Infinite where actions change nothing.
        """
        count = len(self.states)
        means, squares = [np.zeros(count)], [np.zeros(count)]
        by_action: list[tuple[np.ndarray, np.ndarray]] = []
        for step in reversed(range(self.horizon)):
            after, paid = self.moves[step]
            later = np.where(self.ends, 0.0, means[-1][after])
            square = paid**2 + 2 * paid * later + np.where(self.ends, 0.0, squares[-1][after]) + self.noise**2
            by_action.append((self._mean(paid + later), self._mean(square)))
            means.append(by_action[-1][0].mean(1))
            squares.append(by_action[-1][1].mean(1))
        shape = (int(self.states.max()) + 1, self.chances.shape[1])
        weight, total, square = np.zeros(shape[0]), np.zeros(shape), np.zeros(shape)
        for met, (mean, of_squares) in zip(self._met(), reversed(by_action), strict=True):
            usual = (met @ mean.mean(1)) / met.sum()
            np.add.at(weight, self.states, met)
            np.add.at(total, self.states, met[:, None] * (mean - usual))
            np.add.at(square, self.states, met[:, None] * (of_squares - 2 * usual * mean + usual**2))
        known = weight > 0
        weight, total, square = weight[known], total[known], square[known]
        averages = total / weight[:, None]
        within = (square - total * averages).sum() / (weight.sum() * shape[1])
        signal = float(weight @ averages.var(1, ddof=1) / weight.sum())
        return float(within / signal) if signal > ALIKE**2 else np.inf

    def _met(self) -> list[np.ndarray]:
        """(situations,) at each step: how probably random play is there."""
        usual, met = self.chances.mean(1), [self.starts]
        for after, _ in self.moves[:-1]:
            flow = np.where(self.ends, 0.0, met[-1][:, None] * usual)
            met.append(np.bincount(after.ravel(), flow.ravel(), minlength=len(self.states)))
        return met


def chain_of(mdp: DiscreteMDP) -> Chain:
    """A toy as it is paid; refused where its rewards or noise are functions, or where too much may be due."""
    knobs = mdp.knobs
    if mdp.window or callable(knobs.reward_noise) or callable(knobs.transition_noise):
        raise InputError("A chain is made of toys whose rewards and noise are numbers, not functions or tables.")
    past = past_of_sequences(mdp)
    earned = [each[:, 0] for each in past.earned]
    values = np.unique(np.concatenate([np.zeros(1), *(each.ravel() for each in earned)]))
    base, forms = len(values), power(len(values), knobs.delay)
    if past.count * forms > MOST_SITUATIONS:
        raise InputError(f"delay is {knobs.delay}, but then there are more than {MOST_SITUATIONS} situations.")
    due = np.tile(np.arange(forms), past.count)
    before = np.repeat(np.arange(past.count), forms)
    states = past.state[before]
    reached = ((states // knobs.set_size + 1) % knobs.sets * knobs.set_size)[:, None] + np.arange(knobs.set_size)
    ends = mdp.terminal[reached]
    extra = knobs.reward_shift + ends * (knobs.term_state_reward * knobs.reward_scale)

    def move(step: int, gate: bool) -> tuple[np.ndarray, np.ndarray]:
        now = earned[step][before] * (gate or knobs.make_denser)
        after = past.after[before, 0] * forms + due[:, None] * base % forms
        if knobs.delay == 0:
            return after, now * knobs.reward_scale + extra
        paid = values[due // base ** (knobs.delay - 1)][:, None] * knobs.reward_scale + extra
        return after + np.searchsorted(values, now), paid

    kinds = [(min(step, len(earned)) - 1, bool(mdp.gate[step])) for step in range(1, knobs.horizon + 1)]
    made = {kind: move(*kind) for kind in dict.fromkeys(kinds)}
    starts = np.zeros(len(states))
    weights = np.array(knobs.init_state_dist)[mdp.starts] if knobs.init_state_dist is not None else 1.0
    starts[past.start[mdp.starts] * forms] = weights
    return Chain(
        step_chances(mdp)[states],
        tuple(made[kind] for kind in kinds),
        ends,
        starts / starts.sum(),
        states,
        knobs.reward_noise * knobs.reward_scale,
        knobs.reward_shift,
    )


def step_chances(mdp: DiscreteMDP) -> np.ndarray:
    """(states, actions, states of a set): how probably an action leads to each state of the next set."""
    size = mdp.knobs.set_size
    stray = straying(mdp)[:, :, None]
    true = np.eye(size)[mdp.true_local()]
    return (1 - stray) * true + stray * (1 - true) / max(size - 1, 1)


def relaxation_time(mdp: DiscreteMDP) -> float:
    """1/(1 − |λ|) with λ the second largest eigenvalue of random play's states, in steps; ends lead to a new start.

    Infinite where play goes round in circles (sets) for ever.
    """
    knobs = mdp.knobs
    count, size = knobs.state_space_size, knobs.set_size
    chances = np.zeros((count, count))
    following = (np.arange(count) // size + 1) % knobs.sets * size
    np.put_along_axis(chances, following[:, None] + np.arange(size), step_chances(mdp).mean(1), axis=1)
    starts = np.zeros(count)
    starts[mdp.starts] = 1.0 if knobs.init_state_dist is None else np.array(knobs.init_state_dist)[mdp.starts]
    ended = chances[:, mdp.terminal].sum(1)
    chances = chances * ~mdp.terminal + ended[:, None] * starts / starts.sum()
    kept = chances[np.ix_(~mdp.terminal, ~mdp.terminal)]
    second = np.sort(np.abs(np.linalg.eigvals(kept)))[-2] if len(kept) > 1 else 0.0
    return float(1 / (1 - second)) if second < 1 - ALIKE else np.inf
