"""A benchmark with a family: the toy, whose delay and noise are features of a context."""

from lcd.envs.families.family import Family, grid_family
from lcd.envs.toy import ToyBenchmark

TASK = "toy/easy-sight-easy-reward"
OTHER = "toy/easy-sight-hard-reward"


class PointToys(ToyBenchmark):
    """The toy; one of its tasks is a point of a family of six."""

    def family(self, task: str) -> Family | None:
        """The family over delays and noises, weighted; the others are on their own."""
        if task != TASK:
            return None
        features = {"delay": [0, 2, 4], "transition_noise": [0.0, 0.3]}
        weights = [1, 1, 1, 1, 2, 0]
        return grid_family(features, {"delay": 0, "transition_noise": 0.3}, weights)


WORLDS = PointToys()
