"""Evaluations that do not end: a deadline, and a process that is told to stop while it evaluates."""

import signal
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from lcd.agents.evaluate import Evaluator
from lcd.agents.ranks import ALONE
from lcd.config.compose import compose
from lcd.config.schema_parts import DeadlinesConfig
from lcd.envs.errors import InputError
from lcd.pipelines.jobs.record import CurveFile, Recorder
from lcd.pipelines.study.configs import run_id
from lcd.pipelines.study.runs import run_config_from
from lcd.process import deadlines, signals

LENGTH = 50


class Corridor(VectorEnv):
    """Episodes of LENGTH steps, or without an end; `at` a step something happens."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, endless=False, at=None, happens=lambda: None):
        self.num_envs, self.endless, self.at, self.happens = 2, endless, at, happens
        self.single_observation_space = spaces.Box(0, 1, (1,), np.float32)
        self.single_action_space = spaces.Discrete(2)
        self.total = 0

    def reset(self, *, seed=None, options=None):
        self.steps, self.rng = 0, np.random.default_rng(seed)
        return np.zeros((2, 1), np.float32), {}

    def step(self, actions):
        self.steps, self.total = self.steps + 1, self.total + 1
        if self.total == self.at:
            self.happens()
        ended = np.full(2, not self.endless and self.steps % LENGTH == 0)
        rewards = self.rng.random(2) + actions
        return np.zeros((2, 1), np.float32), rewards, ended, np.zeros(2, bool), {}


class Chance:
    """Acts by the draws alone."""

    device = torch.device("cpu")

    def parameters(self):
        return iter(())

    def encode(self, observations):
        return torch.from_numpy(observations)

    def act(self, features, draws):
        return (draws > 0.5).long(), None, None


@pytest.fixture(autouse=True)
def usual_deadlines():
    yield
    deadlines.set_deadlines(DeadlinesConfig())


def test_an_evaluation_without_an_end_fails_with_the_key():
    deadlines.set_deadlines(DeadlinesConfig(episode=1))
    with pytest.raises(InputError, match=r"deadlines\.episode=1 has passed in the evaluation at step 7.*TimeLimit"):
        Evaluator(Corridor(endless=True), [0], 1)(Chance(), 7)
    assert Evaluator(Corridor(), [0], 3)(Chance(), 7)[0]["episodes"] == 6


def test_a_process_that_slept_has_not_lost_patience(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(deadlines.time, "monotonic", lambda: clock.now)
    patience = deadlines.Countdown(100)
    clock.now += 1e6
    assert not patience.is_over()
    for _ in range(11):
        clock.now += 10
        over = patience.is_over()
    assert over
    patience.renew()
    assert not patience.is_over()


def test_deadlines_are_no_part_of_what_a_run_is():
    asked = ["task=toy/easy-sight-easy-reward", "agent=tabular/q_learning"]
    ids = {run_id(run_config_from(compose("train", [*asked, *more]))) for more in ([], ["deadlines.episode=5"])}
    assert len(ids) == 1
    with pytest.raises(InputError, match=r"deadlines\.start=0 must be a whole number of at least 1"):
        compose("train", [*asked, "deadlines.start=0"])


class Rollouts(SimpleNamespace):
    """As much of training as a recorder sees: every iteration is ten steps."""

    steps_each, stage_ended, stage, task, ranks, seeds, agent, steps = 10, False, "", None, ALONE, (0,), None, 40

    @property
    def step(self):
        return self.iteration * 10


def recording(folder, env, iteration=0, state=None):
    """A recorder that evaluates every ten steps, up to 40, and the states of the checkpoints that it keeps."""
    rollouts = Rollouts(
        iteration=iteration, total=4, episodes=SimpleNamespace(pop=lambda ranks: [None], look=lambda ranks: [])
    )
    kept = []
    trainer = SimpleNamespace(
        precision="32-true",
        save_checkpoint=lambda path, weights_only: kept.append(dict(recorder.state_dict())),
        optimizers=[],
    )
    curve = CurveFile(folder / "curve.csv", COLUMNS)
    evaluators = {"eval": Evaluator(env, [0], 2)}
    shared = {split: [{"trained_on": "x", "seed": 0}] for split in ("eval", "train")}
    recorder = Recorder(
        rollouts, evaluators, 10, shared, curve, folder / "last.ckpt", lambda **_: None, lambda rows, told: None
    )
    if state is not None:
        recorder.load_state_dict(state)
    recorder.on_fit_start(None, None)
    return recorder, rollouts, trainer, kept


STATISTICS = ("return_mean", "return_std", "length_mean")
COLUMNS = ("trained_on", "seed", "split", "step", "wall_s", "episodes", *STATISTICS, "stage")


def train(recorder, rollouts, trainer):
    with signals.deferring_stops():
        recorder.on_train_start(trainer, Chance())
        while rollouts.iteration < rollouts.total:
            rollouts.iteration += 1
            recorder.on_train_batch_end(trainer, Chance())


def rows(folder):
    lines = (folder / "curve.csv").read_text().splitlines()
    return [[cell for place, cell in enumerate(line.split(",")) if place != 4] for line in lines]


@pytest.mark.parametrize("killed_after_making_up", [False, True])
def test_a_signal_stops_an_evaluation_between_steps_and_it_is_made_up_for(tmp_path, killed_after_making_up):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for folder in (whole, stopped):
        folder.mkdir()
        CurveFile(folder / "curve.csv", COLUMNS).cut(-1)
    train(*recording(whole, Corridor())[:3])
    signals.handle_stop_signals()
    try:
        # In the middle of the evaluation at step 20, the third one.
        env = Corridor(at=230, happens=lambda: signal.raise_signal(signal.SIGTERM))
        recorder, rollouts, trainer, kept = recording(stopped, env)
        with pytest.raises(signals.Stopped):
            train(recorder, rollouts, trainer)
    finally:
        for number in signals.SIGNALS:
            signal.signal(number, signal.SIG_DFL)
    assert env.total == 230
    assert kept[-1]["owed"]
    assert [row[3] for row in rows(stopped)[1:]] == ["0", "10"]
    if killed_after_making_up:
        recorder, _, trainer, _ = recording(stopped, Corridor(), iteration=2, state=kept[-1])
        recorder.on_train_start(trainer, Chance())
    train(*recording(stopped, Corridor(), iteration=2, state=kept[-1])[:3])
    assert rows(stopped) == rows(whole)
    assert len(rows(whole)) == 6
