"""The benchmark `ehc`: its tables, ranges, views and knobs, and the hashes of what is quick to make."""

import math

import numpy as np
import pytest

from lcd.envs.benchmarks import get_benchmark, reward_range
from lcd.envs.ehc import returns
from lcd.envs.ehc.benchmark import RECIPES
from lcd.envs.ehc.known import rows
from lcd.envs.ehc.puzzles.recipes import CANDIDATES, LEFT_OUT
from lcd.envs.ehc.puzzles.recipes import RECIPES as PUZZLES
from lcd.envs.errors import InputError
from lcd.envs.population import make_population
from lcd.envs.protocols import KnownHorizons, Tabular, offers
from lcd.envs.tabular.files import digest
from lcd.horizon.analysis import Settings, analyse

EHC = get_benchmark("ehc")
QUICK = ("ehc/hanoi-4", "ehc/hanoi-5", "ehc/sokoban-2a", "ehc/sokoban-2b", "ehc/sokoban-3a", "ehc/sokoban-3b")
EXACT = Settings(timesteps=0)


def population(task, view="state", **knobs):
    return make_population("ehc", task, seeds=[0, 1], copies=3, view=view, split="train", **knobs)


def test_names_are_unique_and_fifteen_are_puzzles():
    names = [recipe.name for recipe in CANDIDATES]
    assert len(set(names)) == len(names)
    assert len(PUZZLES) == 15
    assert set(LEFT_OUT) < set(names)
    assert offers(EHC, Tabular)
    assert offers(EHC, KnownHorizons)
    assert list(EHC.tasks) == list(RECIPES)
    assert all(task == f"ehc/{recipe.name}" for task, recipe in RECIPES.items())
    assert {recipe.kind for recipe in RECIPES.values()} == {"puzzle", "game"}


def test_tables_are_those_whose_hashes_are_shipped():
    for task in (*QUICK, "ehc/slide-a", "ehc/cube-a", "ehc/go-3x4-d", "ehc/go-3x4-h", "ehc/chess-4x3-2"):
        assert digest(EHC.tabular(task)) == rows()[task].digest, task


def test_every_task_has_its_row_and_survives():
    assert set(rows()) == set(RECIPES)
    assert len(RECIPES) == 43
    assert all(row.low > 3 and row.optimal_return > row.random_return for row in rows().values())


def test_a_hash_sees_every_change_of_what_an_mdp_does():
    mdp = EHC.tabular("ehc/hanoi-4")
    paid = mdp.rewards.copy()
    paid[3, 3] += 1
    others = [mdp.changed(horizon=14), mdp.changed(start=1), mdp.changed(sticky=0.5), mdp.changed(rewards=paid)]
    assert len({digest(each) for each in [mdp, *others]}) == 5
    assert digest(mdp.changed(name="other")) == digest(mdp)


@pytest.mark.parametrize("task", QUICK)
def test_ranges_are_exact(task):
    found = analyse(EHC.tabular(task), EXACT)
    assert reward_range("ehc", task, 0) == pytest.approx((found.random_return, found.optimal_return))
    assert returns.reward_range(EHC.tabular(task)) == pytest.approx((found.random_return, found.optimal_return))


def test_candidates_are_left_out_for_the_reason_that_is_told():
    by_name = {recipe.name: recipe for recipe in CANDIDATES}
    small = analyse(by_name["hanoi-3"].make(), EXACT)
    assert small.random_timesteps < 1e7
    assert "random guessing" in LEFT_OUT["hanoi-3"]
    assert not analyse(by_name["hanoi-6"].make(), EXACT).discount_agrees
    assert "discount" in LEFT_OUT["hanoi-6"]
    for task in QUICK:
        kept = analyse(EHC.tabular(task), EXACT)
        assert kept.discount_agrees
        assert kept.random_timesteps >= 1e7


@pytest.mark.parametrize("task", ["ehc/hanoi-4", "ehc/sokoban-2a"])
def test_it_is_stepped_in_all_views(task):
    env = population(task)
    first, _ = env.reset()
    assert env.num_seeds == 2
    assert set(np.unique(first)) == {0.0, 1.0}
    actions = np.zeros(6, dtype=np.int64)
    for view in ("pixels", "figure_ground", "semantic"):
        shown = population(task, view)
        frames, _ = shown.reset()
        assert frames.dtype == np.uint8
        assert frames.shape[0] == 6
        assert np.array_equal(shown.step(actions)[1], population_step(task, actions))


def population_step(task, actions):
    env = population(task)
    env.reset()
    return env.step(actions)[1]


def test_a_board_is_one_hot_by_cell_and_dark_after_the_end():
    env = population("ehc/hanoi-4", left=1)
    shown, _ = env.reset()
    cells = shown.reshape(6, 4, 3)
    assert (cells.sum(axis=2) == 1).all()
    mdp = EHC.tabular("ehc/hanoi-4", left=1)
    (best,) = np.flatnonzero(mdp.rewards[mdp.start] == mdp.rewards[mdp.start].max())
    _, rewards, terminated, _, infos = env.step(np.full(6, best))
    assert terminated.all()
    assert (rewards > 0).all()
    assert not infos["final_obs"].any()


@pytest.mark.parametrize("left", [1, 4, 8])
@pytest.mark.parametrize("task", ["ehc/hanoi-4", "ehc/sokoban-3a"])
def test_with_few_steps_left_the_horizon_is_short_and_the_best_return_what_is_left_of_it(task, left):
    whole, late = EHC.tabular(task), EHC.tabular(task, left=left)
    found = analyse(late, EXACT)
    assert late.horizon == found.steps == left
    assert found.bound is None or found.bound.h <= left
    assert reward_range("ehc", task, 0, {"left": left}) == pytest.approx((found.random_return, found.optimal_return))
    held = reached_before(whole, late.start, whole.horizon - left)
    assert any(value + found.optimal_return == returns.reward_range(whole)[1] for value in held)


def reached_before(mdp, state, steps):
    """The returns with which a state can be reached in at most so many steps."""
    found, front = set(), {(mdp.start, 0.0)}
    for _ in range(steps + 1):
        found |= {paid for at, paid in front if at == state}
        front = {
            (int(after), paid + float(reward))
            for at, paid in front
            for after, reward in zip(mdp.transitions[at], mdp.rewards[at], strict=True)
            if after >= 0
        } - front
    return found


def test_knobs_that_are_wrong_are_refused_by_name():
    with pytest.raises(InputError, match=r"knobs\.left"):
        EHC.tabular("ehc/hanoi-4", left=16)
    with pytest.raises(InputError, match=r"knobs\.horizon is 99"):
        EHC.tabular("ehc/hanoi-4", horizon=99)
    with pytest.raises(InputError, match=r"knobs\.discs is no knob"):
        population("ehc/hanoi-4", discs=3)
    with pytest.raises(InputError, match=r"knobs\.discs is no knob"):
        EHC.tabular("ehc/hanoi-4", discs=3)


def test_sticky_actions_leave_no_range():
    assert all(map(math.isnan, reward_range("ehc", "ehc/hanoi-4", 0, {"sticky": 0.25})))
    assert EHC.tabular("ehc/hanoi-4", sticky=0.25).sticky == 0.25
