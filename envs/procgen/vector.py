"""Procgen as native vector environments (`lcd/<game>-v0`), seen as pixels or as masks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.envs.checks import require_whole_number
from lcd.envs.errors import InputError
from lcd.envs.procgen.decode import Decoder, make_decoder
from lcd.envs.procgen.engine import ACTIONS, RESET, SIDE, Engine
from lcd.envs.procgen.knobs import LABELS, ProcgenKnobs
from lcd.envs.procgen.mask_tables import TABLES
from lcd.envs.procgen.paint import skin_of
from lcd.envs.procgen.shaping import Subgoals
from lcd.envs.procgen.skins import skin_folder
from lcd.envs.procgen.snapshot import Snapshot
from lcd.envs.single import SingleCopy
from lcd.envs.state import State
from lcd.envs.streams import group_seeds, seed_sequence


class ProcgenVectorEnv(VectorEnv):
    """Copies of one game.

    An episode's end and the next level's first frame come with the same step (SAME_STEP), and Procgen never gives the
    ended episode's last frame: there is no `final_obs`. It does not tell a time-out from an end either: every end is a
    termination.

    `infos` of `reset` and `step` hold `level_seed` (of the level that is shown), and those of `step` also
    `prev_level_seed` and `level_complete` (of the level that the step was made in), `original_reward` (without shaping)
    and `original_return` (its sum since the episode began, this step's included).
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int = 1, seed: int | Sequence[int] = 0, **knobs: Any) -> None:
        """Make the copies of one game.

        Args:
            num_envs: copies.
            seed: which levels the copies are given, and all else that is random, follows from it and the split.
            knobs: see `ProcgenKnobs`; `game` is needed.
        """
        require_whole_number("num_envs", num_envs, 1)
        self.knobs = ProcgenKnobs.from_dict(knobs)
        (self._seed,) = group_seeds(seed, 1)
        require_whole_number("seed", self._seed, 0)
        self.num_envs = num_envs
        self.render_mode = self.knobs.render_mode
        channels = 1 if self.knobs.view == LABELS else 3
        self.single_observation_space = gymnasium.spaces.Box(0, 255, (SIDE, SIDE, channels), np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._engine: Any = None
        self._skin: Path | None = None
        self._decoder: Decoder | None = None
        self._subgoals: Subgoals | None = None
        if (mask := self.knobs.mask) is not None:
            self._skin = skin_folder(skin_of(self.knobs.game, mask), self.knobs.cache)
            self._label_of = np.zeros(256, dtype=np.uint8)
            self._label_of[list(TABLES[self.knobs.game].intensities(mask))] = range(len(self.label_names))
        self._shown: np.ndarray | None = None

    @property
    def num_seeds(self) -> int:
        """A vector is of one seed; `lcd.envs.population` stacks those of several."""
        return 1

    @property
    def label_names(self) -> tuple[str, ...]:
        """What the masks' labels stand for, 0 being the background; empty for pixels."""
        mask = self.knobs.mask
        return () if mask is None else TABLES[self.knobs.game].names(mask)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin episodes: with a seed all anew, without one on further levels."""
        if seed is not None:
            (self._seed,) = group_seeds(seed, 1)
            require_whole_number("seed", self._seed, 0)
            self._stop()
        if self._engine is None:
            self._launch()
        elif not self._fresh.all():
            self._engine.start(np.full(self.num_envs, RESET, dtype=np.int32))
            self._finish()
        self._return[:] = 0
        return self._observe(), {"level_seed": self._engine.levels["level_seed"].copy()}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of every copy."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: np.ndarray) -> None:
        """Begin a step; `step_wait` ends it."""
        if self._engine is None:
            raise ResetNeeded("Call reset() before step(): no episode is running.")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.min() < 0 or actions.max() >= ACTIONS:
            raise InputError(f"actions must be {self.num_envs} whole numbers from 0 to {ACTIONS - 1}, not {actions!r}.")
        self._engine.start(actions)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """What the step gave."""
        started = self._finish()
        engine, levels = self._engine, self._engine.levels
        rewards, ended = engine.rewards.astype(np.float64), engine.first.copy()
        self._return += rewards
        infos = {
            "level_seed": levels["level_seed"].copy(),
            "prev_level_seed": levels["prev_level_seed"].copy(),
            "level_complete": levels["prev_level_complete"].astype(bool),
            "original_reward": rewards,
            "original_return": self._return.copy(),
        }
        self._return[ended] = 0
        if self._subgoals is not None:
            infos["event_reward"] = rewards
            rewards = rewards + self._subgoals.step(engine, started)
        return self._observe(), rewards, ended, np.zeros_like(ended), infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """The frames that were shown last, one a copy (labels as greys)."""
        if self.render_mode is None or self._engine is None:
            return None
        return tuple(self._frames())

    def close_extras(self, **kwargs: Any) -> None:
        """Free the engine."""
        self._stop()

    def get_state(self) -> State:
        """Where every copy is, with Procgen's own bytes; the same for every view."""
        if self._engine is None:
            raise ResetNeeded("Call reset() before get_state(): no episode is running.")
        self._refuse_generated()
        states = [self._read(copy) for copy in range(self.num_envs)]
        reached = [sorted(of_copy) for of_copy in self._subgoals.get()] if self._subgoals else []
        return {
            "seed": np.array(self._seed),
            "lengths": np.array([len(state) for state in states]),
            "bytes": np.frombuffer(b"".join(states), dtype=np.uint8).copy(),
            "return": self._return.copy(),
            "fresh": self._fresh.copy(),
            "reached": np.frombuffer(json.dumps(reached).encode(), dtype=np.uint8).copy(),
        }

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called, under any view of the game and mode."""
        self._refuse_generated()
        self._seed = int(state["seed"])
        if self._engine is None:
            self._launch()
        ends = np.cumsum(state["lengths"])
        if len(ends) != self.num_envs:
            raise InputError(f"The state is of {len(ends)} copies, but the environment has {self.num_envs}.")
        data = np.asarray(state["bytes"], dtype=np.uint8).tobytes()
        for copy, (end, length) in enumerate(zip(ends, state["lengths"], strict=True)):
            self._write(copy, data[end - length : end])
        self._engine.finish()
        self._return, self._fresh = state["return"].copy(), state["fresh"].copy()
        if self._subgoals is not None:
            reached = json.loads(np.asarray(state["reached"], dtype=np.uint8).tobytes() or b"[]")
            self._subgoals.set([{(what, n) for what, n in of_copy} for of_copy in reached] or self._subgoals.get())

    def _launch(self) -> None:
        knobs, copies = self.knobs, self.num_envs
        word = seed_sequence(self._seed, knobs.split).generate_state(1)[0]
        self._engine = Engine(copies, knobs.options(int(word) % (2**31 - 1)), self._skin)
        self._return = np.zeros(copies)
        self._fresh = np.ones(copies, dtype=bool)
        if knobs.mask is not None:
            self._decoder = make_decoder(knobs.game, knobs.mask, copies)
            self._note_level_starts(self._fresh)
        if knobs.shaping != "none" and knobs.split == "train":
            self._subgoals = Subgoals(knobs, copies)
            self._subgoals.restart(self._engine, np.arange(copies))

    def _stop(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._engine = None

    def _finish(self) -> np.ndarray:
        """End the engine's step; which copies have begun a level with it?"""
        self._engine.finish()
        # With sequential levels a level's end is not an episode's.
        started = self._engine.first | self._engine.levels["prev_level_complete"].astype(bool)
        self._fresh = self._engine.first.copy()
        self._note_level_starts(started)
        return started

    def _note_level_starts(self, started: np.ndarray) -> None:
        if self._decoder is not None and self._decoder.reads_levels:
            for copy in np.flatnonzero(started):
                self._decoder.level_started(self._engine, int(copy))

    def _frames(self) -> np.ndarray:
        frames = self._engine.frames
        return frames.copy() if self._decoder is None else self._decoder(frames, self._engine)

    def _observe(self) -> np.ndarray:
        frames = self._frames()
        return self._label_of[frames[..., :1]] if self.knobs.view == LABELS else frames

    def _read(self, copy: int) -> bytes:
        """A copy's state as the stock game has it under these knobs."""
        state = Snapshot(self._engine.get_state(copy))
        if self._decoder is not None:
            self._decoder.undisguise(state, copy)
        self._draw(state, masked=False)
        return bytes(state)

    def _write(self, copy: int, data: bytes) -> None:
        state = Snapshot(data)
        if state.game != self.knobs.game:
            raise InputError(f"The state is of {state.game}, but the environment's game is {self.knobs.game}.")
        if self._decoder is not None:
            self._decoder.disguise(state, copy)
        self._draw(state, masked=self._decoder is not None)
        self._engine.set_state(copy, bytes(state))

    def _draw(self, state: Snapshot, masked: bool) -> None:
        """The options that only drawing depends on are the environment's, not the state's."""
        knobs = self.knobs
        for name, wanted in (
            ("use_backgrounds", knobs.use_backgrounds),
            ("paint_vel_info", knobs.paint_vel_info),
            ("monochrome", knobs.use_monochrome_assets),
        ):
            state.options[name] = int(wanted and not masked)

    def _refuse_generated(self) -> None:
        if self.knobs.use_generated_assets:
            raise InputError("use_generated_assets is True, with which Procgen can neither give nor take a state.")


class ProcgenEnv(SingleCopy):
    """One copy of a game. The observation that comes with an episode's end is the next level's first: see above."""

    vector_class = ProcgenVectorEnv
    metadata = ProcgenVectorEnv.metadata

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One step; after the end of an episode `reset` has to come first."""
        if not self._running:
            raise ResetNeeded("Call reset() before step(): no episode is running.")
        observations, rewards, terminations, truncations, infos = self.envs.step(np.asarray(action)[None])
        self._running = not (terminations[0] or truncations[0])
        first = {key: value[0] for key, value in infos.items()}
        return observations[0], float(rewards[0]), bool(terminations[0]), bool(truncations[0]), first
