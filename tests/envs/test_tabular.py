"""Tabular MDPs: their checks, their building by rules, and the vector environment against a plain loop."""

import numpy as np
import pytest

import lcd.envs  # noqa: F401  (registers the environments)
from lcd.envs.errors import InputError
from lcd.envs.native import IMAGE_VIEWS
from lcd.envs.tabular import closure
from lcd.envs.tabular.closure import build
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.pictures import BoardRenderer
from lcd.envs.tabular.vector import TabularVectorEnv

from .contract import EnvironmentContract


def random_mdp(seed: int = 0, states: int = 7, actions: int = 3, horizon: int = 6, **fields) -> TabularMDP:
    rng = np.random.default_rng(seed)
    transitions = rng.integers(-1, states, size=(states, actions))
    transitions[0] = rng.integers(0, states, size=actions)
    return TabularMDP(transitions, rng.integers(-2, 3, size=(states, actions)) / 2, horizon, **fields)


def board(texture: float) -> BoardRenderer:
    return BoardRenderer(
        lambda states: np.stack([states % 3, states // 3], 1)[:, None], ["a", "b"], (1, 2), 10, texture
    )


class TestStickyContract(EnvironmentContract):
    env_id = "lcd/tabular-v0"
    arguments = {"mdp": random_mdp(sticky=0.3)}
    longest_episode = 6


class TestTexturedContract(EnvironmentContract):
    env_id = "lcd/tabular-v0"
    arguments = {"mdp": random_mdp(renderer=board(0.5), sticky=0.2), "view": "pixels"}
    longest_episode = 6


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("observation", ["number", "features"])
def test_the_environment_equals_a_plain_loop(seed, observation):
    mdp = random_mdp(seed, horizon=5)
    env = TabularVectorEnv(16, mdp, observation=observation)
    env.reset()
    rng = np.random.default_rng(seed)
    states, steps = [0] * 16, [0] * 16
    for _ in range(60):
        actions = rng.integers(3, size=16)
        shown, rewards, terminated, truncated, infos = env.step(actions)
        for copy in range(16):
            after = int(mdp.transitions[states[copy], actions[copy]])
            assert rewards[copy] == mdp.rewards[states[copy], actions[copy]]
            steps[copy] += 1
            over, late = after == -1, after != -1 and steps[copy] == 5
            assert (terminated[copy], truncated[copy]) == (over, late)
            last = 7 if over else after
            if over or late:
                assert infos["_final_obs"][copy]
                assert number_of(infos["final_obs"][copy]) == last
                after, steps[copy] = 0, 0
            states[copy] = after
            assert number_of(shown[copy]) == after


def number_of(observation) -> int:
    """The state that an observation stands for; 7 is none."""
    if np.ndim(observation) == 0:
        return int(observation)
    return int(observation.argmax()) if observation.any() else 7


def test_sticky_actions_repeat_as_often_as_told_and_never_at_first():
    """States tell which action was executed last."""
    after = np.tile([1, 2], (3, 1))
    mdp = TabularMDP(after, np.zeros((3, 2)), 4, sticky=0.3)
    env = TabularVectorEnv(4000, mdp, observation="number", seed=3)
    env.reset()
    rng = np.random.default_rng(0)
    wanted = rng.integers(2, size=4000)
    before = env.step(wanted)[0]
    assert np.array_equal(before, wanted + 1)
    wanted = rng.integers(2, size=4000)
    now = env.step(wanted)[0]
    apart = wanted + 1 != before
    assert abs((now[apart] == before[apart]).mean() - 0.3) < 0.04
    assert np.array_equal(now[~apart], before[~apart])


def test_views_are_of_one_label_image():
    mdp = random_mdp(renderer=board(0.0))
    frames = {view: TabularVectorEnv(2, mdp, view=view).reset()[0] for view in IMAGE_VIEWS}
    env = TabularVectorEnv(1, mdp, view="semantic")
    for state in range(7):
        labels = mdp.renderer.draw(np.array([state]))
        assert set(np.unique(labels)) == {0, state % 3, state // 3}
        figures = mdp.renderer.paint(np.array([state]), "figure_ground")
        assert np.array_equal(figures[..., 0] > 0, labels > 0)
        assert np.array_equal(mdp.renderer.paint(np.array([state]), "semantic").any(axis=-1), labels > 0)
    assert frames["pixels"].shape == (2, 10, 20, 3) == (2, *env.single_observation_space.shape)
    textured = random_mdp(renderer=board(0.8))
    env = TabularVectorEnv(2, textured, view="pixels")
    first, again = env.reset()[0], env.reset()[0]
    assert not np.array_equal(first, again)
    assert not np.array_equal(first[0], first[1])


def test_a_view_without_pictures_is_refused():
    with pytest.raises(InputError, match="view is 'pixels', but the MDP 'mdp' has no such pictures"):
        TabularVectorEnv(1, random_mdp(), view="pixels")
    with pytest.raises(InputError, match="mdp is None"):
        TabularVectorEnv(1)


GOOD = {"transitions": np.zeros((2, 3), int), "rewards": np.zeros((2, 3)), "horizon": 4}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"transitions": np.zeros(3, int)}, "transitions has the shape (3,)"),
        ({"transitions": np.zeros((0, 3), int)}, "both at least 1"),
        ({"rewards": np.zeros((3, 2))}, "rewards has the shape (3, 2)"),
        ({"transitions": np.zeros((2, 3))}, "must hold whole numbers"),
        ({"transitions": np.full((2, 3), 2)}, "transitions[0, 0] is 2, but must be a state from 0 to 1"),
        ({"transitions": np.full((2, 3), -2)}, "transitions[0, 0] is -2"),
        ({"rewards": np.full((2, 3), np.nan)}, "rewards[0, 0] is nan"),
        ({"rewards": np.full((2, 3), 1e39)}, "must be a finite float32"),
        ({"rewards": np.full((2, 3), 1j)}, "must hold real numbers"),
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": 2.5}, "horizon is 2.5"),
        ({"start": 2}, "start is 2"),
        ({"sticky": 1.5}, "sticky is 1.5"),
        ({"actions": ("a", "b")}, "actions has 2 different names, but the MDP has 3 actions"),
        ({"actions": ("a", "b", "b")}, "actions has 2 different names"),
        ({"features": np.zeros((3, 1))}, "features has the shape (3, 1)"),
        ({"codes": np.zeros((2, 1))}, "codes has the shape (2, 1)"),
        ({"name": 7}, "name is 7, but must be a text"),
    ],
)
def test_what_is_no_mdp_is_refused_in_one_sentence(changes, sentence):
    with pytest.raises(InputError) as told:
        TabularMDP(**{**GOOD, **changes})
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)


def test_an_mdp_cannot_be_changed_and_leaves_the_callers_arrays_alone():
    own = np.zeros((2, 3), np.int32)
    mdp = TabularMDP(own, np.zeros((2, 3)), 4)
    with pytest.raises(ValueError, match="read-only"):
        mdp.transitions[0, 0] = 1
    own[0, 0] = 1
    assert own.flags.writeable


def walk_rules(codes):
    """Codes modulo 1000, two of them ends."""
    after = np.stack([codes * 3 + 1, codes * 7 + 5, codes + 11], 1) % 1000
    return after, after / 1000, (codes % 97 == 3)[:, None] | (after == 500)


def walked(start: int, most_depth: int | None = None):
    """A dictionary of all that can be reached, by a plain queue."""
    numbers, queue, rows, depth = {start: 0}, [(start, 0)], [], 0
    while queue:
        code, depth = queue.pop(0)
        row = []
        for after in ((code * 3 + 1) % 1000, (code * 7 + 5) % 1000, (code + 11) % 1000):
            if code % 97 == 3 or after == 500:
                row.append((-1, after / 1000))
                continue
            if after not in numbers and (most_depth is None or depth + 1 < most_depth):
                numbers[after] = len(numbers)
                queue.append((after, depth + 1))
            row.append((numbers.get(after, -1), after / 1000))
        rows.append(row)
    return np.array(rows), list(numbers)


@pytest.mark.parametrize("horizon", [None, 1, 4])
@pytest.mark.parametrize("rows_at_once", [3, 1 << 17])
def test_the_closure_equals_a_plain_queue(monkeypatch, horizon, rows_at_once):
    monkeypatch.setattr(closure, "ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(closure, "_FIRST_SLOTS", 8)
    mdp = build(walk_rules, 12, horizon or 50, within_horizon=horizon is not None)
    rows, codes = walked(12, horizon)
    assert mdp.codes.tolist() == codes
    assert np.array_equal(mdp.transitions, rows[..., 0])
    assert np.allclose(mdp.rewards, rows[..., 1])


def test_rules_are_checked():
    def with_shape(codes):
        return codes[:, None], np.zeros((len(codes), 2)), np.zeros((len(codes), 1), bool)

    with pytest.raises(
        InputError, match=r"rules gave arrays of the shapes \(1, 1\), \(1, 2\) and \(1, 1\) for 1 codes"
    ):
        build(with_shape, 0, 3)
    with pytest.raises(InputError, match="codes are at least 0"):
        build(lambda c: (c[:, None] - 1, np.zeros((len(c), 1)), np.zeros((len(c), 1), bool)), 0, 3)
    for paid, told in (
        (np.full((1, 1), 1e-60), r"rewards\[0, 0\] is 1e-60, which is 0 as a float32"),
        (np.full((1, 1), 1e60), r"rewards\[0, 0\] is 1e\+60, but must be a finite float32"),
        (np.full((1, 1), 1 + 5j), "must give whole numbers, real numbers and truth values"),
        (np.full((1, 1), "1.5"), "must give whole numbers, real numbers and truth values"),
    ):
        with pytest.raises(InputError, match=told):
            build(lambda c, paid=paid: (c[:, None], paid, np.zeros((1, 1), bool)), 0, 3)
    for wrong in (None, (1, 2), 5):
        with pytest.raises(InputError, match="rules must give three arrays"):
            build(lambda c, wrong=wrong: wrong, 0, 3)

    def more_and_more(codes):
        shape = len(codes), 1 + int(codes[0])
        return np.ones(shape, int), np.zeros(shape), np.zeros(shape, bool)

    with pytest.raises(InputError, match=r"rules gave \(2,\) actions, but for other codes \(1,\)"):
        build(more_and_more, 0, 3)

    def late(codes):
        return codes[:, None] + 1, np.where(codes == 2, np.inf, 0.0)[:, None], (codes == 2)[:, None]

    # A wrong reward is named by its state's number, not by its place among those that were asked about together.
    with pytest.raises(InputError, match=r"rewards\[2, 0\] is inf"):
        build(late, 0, 5)
    with pytest.raises(InputError, match="most_states is 100, but the rules reach more"):
        build(walk_rules, 12, 50, most_states=100)
