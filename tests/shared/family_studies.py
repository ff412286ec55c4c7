"""Studies of points of a family: the words that ask for them, and what they expand to."""

from point_worlds import TASK

from lcd.config.compose import compose
from lcd.pipelines.kinds.kind import trainings
from lcd.pipelines.study import runs

WORLD = "benchmark=point_worlds:WORLDS"
SMALL = [WORLD, f"study.tasks=[{TASK}]", "study.views=[semantic]", "study.reward_p=[1.0]", "study.seeds=2"]
QUICK = [
    "study.steps=64",
    *(f"study.evaluation.{key}" for key in ("every=64", "copies=2", "episodes=1")),
    "tracker=none",
    "device=cpu",
]
AGENT = ["agent.copies=2", "agent.rollout=16", "agent.minibatches=2", "agent.epochs=1"]
DEFAULT = "{delay: 0, transition_noise: 0.3}"


def asked(*words, command="diagnose"):
    return trainings(runs.expand(compose(command, words)))


def names(configs):
    return [list(config.get("points", ())) for config in configs]
