"""Is a stranger's benchmark a function of its seed? If not, the same request gives other curves each time.

Two fresh processes make each environment twice with the same seed and take the same random actions. What it shows and
pays must be the same all four times: two in one process tell of generators that it never seeds, two processes of what
differs from start to start. LCD's own benchmarks are tested for this and not probed.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from lcd.config.schema_parts import DeadlinesConfig
from lcd.envs.benchmarks import BENCHMARKS
from lcd.envs.errors import InputError
from lcd.pipelines.kinds.kind import Job, trainings
from lcd.pipelines.launch.launchers import launch
from lcd.pipelines.launch.order import Call
from lcd.pipelines.study.configs import RunConfig
from lcd.pipelines.study.evaluated import stages_of

COPIES, STEPS = 2, 64
ENOUGH_S = 10.0
"""Seconds after which no further environment is probed; the first always is."""
SPLITS = ("train", "eval")
Case = dict[str, Any]
"""What an environment is made with: benchmark, task, view, split, seed, knobs."""


def refuse_chance(
    jobs: Iterable[Job], console: Console | None = None, deadlines: DeadlinesConfig | None = None
) -> None:
    """Refuse trainings in environments of a benchmark that does not do the same when it is made with the same seed.

    Args:
        jobs: what is to be done.
        console: where it is told what takes some seconds; None tells nobody.
        deadlines: how long an environment may go without a step; None: as long as usual.
    """
    cases = environments(config for config in trainings(jobs) if not BENCHMARKS.is_built_in(config["benchmark"]))
    if not cases:
        return
    (console or Console(quiet=True)).print(
        f"Checking that {cases[0]['benchmark']} does the same twice with the same seed …", highlight=False
    )
    for sentence in left_to_chance(cases, deadlines).values():
        raise InputError(sentence)


def left_to_chance(cases: Sequence[Case], deadlines: DeadlinesConfig | None = None) -> dict[str, str]:
    """Task → what it gives otherwise each time that it is made, in a sentence; the tasks that do not are left out.

    Raises:
        InputError: where one cannot be played.
    """
    with tempfile.TemporaryDirectory(prefix="lcd-probe-") as folder:
        files = [Path(folder) / name for name in ("one.json", "other.json")]
        calls = [Call((cases, str(file)), file.with_suffix(".txt")) for file in files]
        outcomes = launch("local", f"{__name__}:play_all", calls, workers=len(calls), deadlines=deadlines)
        if error := next((outcome.error for outcome in outcomes if outcome.error), None):
            raise InputError(f"benchmark={cases[0]['benchmark']} cannot be played ({error}): mend that first.")
        one, other = (json.loads(file.read_text()) for file in files)
    found: dict[str, str] = {}
    for case, *played in zip(cases, one, other, strict=False):
        first, *others = [each for pair in played for each in pair]
        if differing := [what for what in first if any(each[what] != first[what] for each in others)]:
            found.setdefault(
                case["task"],
                f"benchmark={case['benchmark']} is left to chance: {case['task']} (view={case['view']}, "
                f"split={case['split']}) has other {' and '.join(differing)} each time it is made with "
                f"seed={case['seed']} and gets the same actions: draw all that is random from generators seeded by "
                "make_vec's seed.",
            )
    return found


def environments(run_configs: Iterable[RunConfig]) -> list[Case]:
    """Each environment that runs need, once."""
    found: dict[str, Case] = {}
    for config in run_configs:
        for stage in stages_of(config):
            for split in SPLITS:
                knobs = dict(stage.knobs)
                if split == "train" and config["shaping"] != "none":
                    knobs["shaping"] = config["shaping"]
                case: Case = {"benchmark": config["benchmark"], "view": config["view"]}
                case |= {"task": stage.made, "knobs": knobs, "split": split, "seed": config["seeds"][0]}
                found.setdefault(repr(case), case)
    return list(found.values())


def play_all(cases: Sequence[Mapping[str, Any]], file: str) -> None:
    """What a probing process does: play each case twice, and write what it saw."""
    found = [[_play(cases[0]), _play(cases[0])]]
    # What the first one takes is mostly imports.
    end = time.perf_counter() + ENOUGH_S
    for case in cases[1:]:
        if time.perf_counter() >= end:
            break
        found.append([_play(case), _play(case)])
    Path(file).write_text(json.dumps(found))


def _play(case: Mapping[str, Any]) -> dict[str, str]:
    """The hashes of what an environment shows and pays under random actions, and of when its episodes end."""
    from lcd.agents.stepping import Stepper
    from lcd.envs.population import make_population

    options = {key: value for key, value in case.items() if key not in ("benchmark", "task", "seed", "knobs")}
    env = make_population(
        case["benchmark"], case["task"], seeds=[case["seed"]], copies=COPIES, **options, **case["knobs"]
    )
    try:
        stepper, actions = Stepper(env), env.action_space
        actions.seed(0)
        seen = {name: hashlib.sha256() for name in ("observations", "rewards", "ends")}
        _add(seen["observations"], stepper.reset())
        for _ in range(STEPS):
            step = stepper.step(actions.sample())
            for name, value in zip(seen, (step.observations, step.original, step.dones), strict=True):
                _add(seen[name], value)
    finally:
        env.close()
    return {name: digest.hexdigest() for name, digest in seen.items()}


def _add(digest: Any, value: Any) -> None:
    for part in value.values() if isinstance(value, Mapping) else [value]:
        digest.update(np.ascontiguousarray(part).tobytes())
