"""GORP on simulators against GORP on the tables of the same MDPs, and which simulators are refused."""

import json
import math
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

sys.path.insert(0, str(Path(__file__).parent))
from horizon_worlds import both

from lcd import cli
from lcd.envs.errors import InputError
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.vector import TabularVectorEnv
from lcd.horizon.analysis import analyse
from lcd.horizon.exact import solve
from lcd.horizon.gorp import Gorp
from lcd.horizon.layers import Layers
from lcd.horizon.simulated import Simulator, estimate
from lcd.horizon.ties import Ties


def simulator(mdp: TabularMDP, copies: int = 8, seed: int = 0) -> Simulator:
    env = TabularVectorEnv(copies, mdp, observation="number")
    return Simulator(env, mdp.name, mdp.horizon, 0.99, np.random.default_rng(seed))


def noisy() -> TabularMDP:
    """A reward at the end of five right steps of two, and a smaller one for the first wrong step."""
    transitions = np.full((6, 2), 5)
    transitions[np.arange(5), 0] = np.arange(1, 6)
    rewards = np.zeros((6, 2))
    rewards[4, 0], rewards[0, 1] = 1.0, 0.07
    return TabularMDP(transitions, rewards, 5)


@pytest.mark.parametrize(("k", "m"), [(1, 2), (2, 3), (3, 1)])
def test_success_is_as_frequent_as_on_the_tables(k, m):
    mdp = noisy()
    layers, ties = Layers(mdp), Ties.of(mdp)
    gorp = Gorp(layers, solve(layers, ties, 0.99), ties, np.random.default_rng(1))
    expected = gorp.successes(k, m, 4000) / 4000
    on_simulator = simulator(mdp, copies=5)
    won = sum(on_simulator.run(k, m) == 1.0 for _ in range(200)) / 200
    assert 0.02 < expected < 0.98
    assert abs(won - expected) < 4 * math.sqrt(expected * (1 - expected) / 200)


def test_the_effective_horizon_is_that_of_the_tables():
    for mdp in (*both(), noisy()):
        exact = analyse(mdp).horizon
        found = estimate(simulator(mdp), 40_000)
        assert found.best_return == analyse(mdp).optimal_return
        assert found.low <= exact.high + 1e-9
        assert found.high is None or found.high >= exact.low - 1e-9
        assert found.simulated >= 20_000


def test_episodes_that_end_early_earn_nothing_after_it():
    """The environment begins anew within the step; what the next episode earns is not the ended one's."""
    mdp = TabularMDP(np.array([[-1, 1], [-1, -1]]), np.array([[1.0, 0.0], [0.5, 0.25]]), 6)
    on_simulator = simulator(mdp)
    assert on_simulator.run(1, 8) == 1.0
    assert (on_simulator.best_return, on_simulator.worst_return) == (1.0, 0.25)


def test_equal_returns_say_nothing():
    found = estimate(simulator(TabularMDP(np.zeros((1, 2), int), np.ones((1, 2)), 4)), 500)
    assert (found.h, found.low, found.high, found.tries) == (None, 1.0, None, [])


def test_what_is_left_to_chance_is_refused():
    with pytest.raises(InputError, match="is not deterministic: its copies do not all earn the same"):
        simulator(TabularMDP(np.array([[0, 1], [1, 0]]), np.eye(2), 20, sticky=0.5))


def test_what_cannot_be_restored_is_refused():
    env = SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(InputError, match="can neither be tabulated nor save and restore its state"):
        Simulator(env, "cart", 10, 0.99, np.random.default_rng(0))


def test_actions_are_counted_from_the_first_there_is():
    mdp = noisy()
    env = TabularVectorEnv(8, mdp, observation="number")
    space, played = gymnasium.spaces.Discrete(2, start=5), env.step
    env.single_action_space, env.step = space, lambda actions: played(actions - 5)
    shifted = Simulator(env, "shifted", mdp.horizon, 0.99, np.random.default_rng(0))
    assert shifted.run(5, 1) == simulator(mdp).run(5, 1) == 1.0


def test_an_atari_game_is_played_from_its_emulators_state(capsys):
    """Its rewards are those of the environment that agents train in, and of itself once it is put back."""
    pytest.importorskip("ale_py")
    from lcd.envs.engines import atari
    from lcd.envs.hardness.atari_states import AtariStates

    usual = atari("Freeway")
    usual.reset(seed=0)
    expected = [usual.step(1)[1] for _ in range(100)]
    games = AtariStates("Freeway", 2, 0)
    games.reset()
    up = np.ones(2, dtype=int)
    assert [games.step(up)[1].tolist() for _ in range(40)] == [[paid] * 2 for paid in expected[:40]]
    there = games.get_state()
    for _ in range(2):
        games.set_state(there)
        assert [games.step(up)[1].tolist() for _ in range(60)] == [[paid] * 2 for paid in expected[40:]]
    assert sum(expected) > 0
    games.close()
    assert cli.main(["horizon", "hardness/atari/Freeway", "horizon=2", "copies=4", "simulated=900"]) == 0
    assert "hardness/atari/Freeway: 3 actions, T = 2" in capsys.readouterr().out
    assert cli.main(["horizon", "hardness/atari/Freeway:delay=1", "horizon=2"]) == 2
    assert "delay is 1, but only the game itself can be put back" in capsys.readouterr().err
    assert cli.main(["horizon", "hardness/gym/CartPole-v1", "horizon=2"]) == 2
    assert "can neither be tabulated nor save and restore its state" in capsys.readouterr().err


def test_the_command_plays_a_simulator(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    out = tmp_path / "found.json"
    words = ["horizon", "horizon_worlds:simulator", "horizon=4", "simulated=20000", f"out={out}"]
    assert cli.main(words) == 0
    assert "for the best return that was seen, 1" in capsys.readouterr().out
    found = json.loads(out.read_text())["simulated"]
    assert (found["best_return"], found["steps"], found["actions"]) == (1.0, 4, 2)
    assert cli.main(words[:2]) == 2
    assert "horizon is missing" in capsys.readouterr().err
    assert cli.main([*words[:3], "sticky=0.5"]) == 2
    assert "is played as it is" in capsys.readouterr().err
