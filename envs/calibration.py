"""The benchmarks `calibration` and `calibration-heldout`: toys whose two kinds of hardness are turned by known amounts.

Both are full grids: every level of perceptual hardness meets every level of RL hardness. Perceptual levels change what
`pixels` show; those of `calibration` leave the other two views untouched. RL levels change rewards alone, and with
them nothing that is seen. The grid `calibration-heldout` turns other knobs. It was fixed before any score was fitted
to the grid `calibration`, so that a score can be validated on it.

Every task draws its own toys: the same seed of two tasks is two different MDPs with different episodes, so that
equal levels give scores that agree no better than they would in unrelated tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gymnasium.vector import VectorEnv

from lcd.envs.benchmarks import NativeBenchmark
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.mdp import DiscreteMDP, HardnessKnobs, build_mdp
from lcd.envs.hardness.solve import exact_range
from lcd.envs.hardness.tabular import as_tabular
from lcd.envs.native import IMAGE_VIEWS
from lcd.envs.streams import seed_sequence
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.toy import COMMON


@dataclass(frozen=True)
class Truth:
    """How hard a task is: levels from 0 that it was made with, or measured numbers; the larger, the harder."""

    perception: float
    reward: float


@dataclass(frozen=True)
class Turned:
    """What is turned in a task: the knobs of its sight, those of its rewards, and how hard they make it."""

    sight: Mapping[str, Any]
    reward: Mapping[str, Any]
    truth: Truth


@dataclass(frozen=True)
class CalibrationBenchmark(NativeBenchmark):
    """Toys with the ground truth of each."""

    name: str
    turned: Mapping[str, Turned]
    """Task -> what makes it hard."""
    stream: int
    """Keeps this benchmark's toys apart from others'."""
    views: Sequence[str] = IMAGE_VIEWS

    @property
    def tasks(self) -> Sequence[str]:  # type: ignore[override]
        """The tasks, in order."""
        return tuple(self.turned)

    @property
    def truth(self) -> Mapping[str, Truth]:
        """Task -> how hard it is: what a diagnosis should recover."""
        return {task: each.truth for task, each in self.turned.items()}

    @property
    def about(self) -> Mapping[str, str]:
        """What is turned in each task."""
        return {task: f"sight: {_told(each.sight)}; reward: {_told(each.reward)}" for task, each in self.turned.items()}

    def knobs(self, task: str) -> dict[str, Any]:
        """A task's own knobs of the toy."""
        return {**COMMON, **self.turned[task].sight, **self.turned[task].reward}

    def toy_seed(self, task: str, seed: int) -> int:
        """The seed of the toy that a task plays for one seed of a run."""
        place = self.tasks.index(task)
        return int(seed_sequence(seed, "calibration", self.stream, place).generate_state(1)[0])

    def toy(self, task: str, seed: int, **knobs: Any) -> DiscreteMDP:
        """The tables of the toy that a task plays for one seed of a run."""
        return build_mdp(HardnessKnobs.from_dict({**self.knobs(task), **knobs}), self.toy_seed(task, seed))

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """The exact mean returns of a random and of an optimal agent."""
        return exact_range(HardnessKnobs.from_dict({**self.knobs(task), **knobs}), self.toy_seed(task, seed))

    def make_population(
        self, task: str, *, seeds: Sequence[int], copies: int, view: str, split: str, **knobs: Any
    ) -> VectorEnv:
        """Copies of a task for several seeds, in one environment."""
        own = [self.toy_seed(task, int(seed)) for seed in seeds]
        return HardnessDiscreteVectorEnv(
            len(seeds) * copies, view=view, split=split, seed=own, **{**self.knobs(task), **knobs}
        )

    def tabular(self, task: str, seed: int, start: int | None = None, **knobs: Any) -> TabularMDP:
        """A seed's toy as a tabular MDP that begins in the state `start`, where the knobs make it deterministic."""
        return as_tabular(self.toy(task, seed, **knobs), task, start)


def _told(knobs: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in knobs.items()) or "plain"


def grid(
    name: str, sights: Sequence[Mapping[str, Any]], rewards: Sequence[Mapping[str, Any]], stream: int
) -> CalibrationBenchmark:
    """Every perceptual level with every RL level, whose knobs are given with the easiest first."""
    turned = {
        f"{name}/perception-{seen}-reward-{paid}": Turned(sight, reward, Truth(seen, paid))
        for seen, sight in enumerate(sights)
        for paid, reward in enumerate(rewards)
    }
    return CalibrationBenchmark(name, turned, stream)


CALIBRATION = grid(
    name="calibration",
    sights=(
        {},
        {"texture": 0.6, "contrast": 0.5, "distractors": 2},
        {"texture": 1.0, "contrast": 0.35, "distractors": 3},
        {"texture": 1.0, "contrast": 0.15, "distractors": 4},
    ),
    rewards=(
        {},
        {"reward_every_n_steps": 2},
        {"reward_every_n_steps": 4},
        {"reward_every_n_steps": 10},
    ),
    stream=0,
)
"""Perception by texture, contrast and distractors; RL by how seldom the rewarding state pays."""

HELD_OUT = grid(
    name="calibration-heldout",
    sights=(
        {},
        {"image_transforms": "shift", "image_sh_quant": 3},
        {"image_transforms": "shift"},
        {"image_transforms": "shift,scale", "lookalikes": 1},
    ),
    rewards=(
        {},
        {"delay": 1},
        {"delay": 2},
        {"delay": 4},
    ),
    stream=1,
)
"""Perception by geometry and look-alike states, which figure-ground masks keep; RL by delay."""
