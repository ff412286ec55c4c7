"""A small world of somebody's, registered with Gymnasium, that is drawn in flat colours and tells its labels."""

import gymnasium
import numpy as np
from gymnasium import spaces

SIDE = 24
COLOURS = {"walker": (255, 0, 0), "coin": (0, 255, 0)}


class Line(gymnasium.Env):
    """Walk right to the coin; what is observed is a vector, what is rendered a picture."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}

    def __init__(self, render_mode=None, length=4, images=False):
        self.render_mode, self.length, self.images = render_mode, length, images
        self.action_space = spaces.Discrete(2)
        box = spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8) if images else spaces.Box(0, 9, (2,), np.float32)
        self.observation_space = box

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = int(self.np_random.integers(self.length)), 0
        return self.seen(), self.told()

    def step(self, action):
        self.place, self.steps = max(0, self.place + 2 * int(action) - 1), self.steps + 1
        done = self.place == self.length
        return self.seen(), float(done), done, not done and self.steps == 16, self.told()

    def seen(self):
        return self.render() if self.images else np.array([self.place, self.length], np.float32)

    def labels(self):
        labels = np.zeros((SIDE, SIDE), int)
        labels[:8, self.length * 4 : self.length * 4 + 4] = 2
        labels[8:16, self.place * 4 : self.place * 4 + 4] = 1
        return labels

    def told(self):
        return {"segmentation": self.labels()}

    def render(self):
        palette = np.array([(9, 9, 9), *COLOURS.values()], np.uint8)
        return palette[self.labels()]


def labels(moment):
    return moment.env.labels()


labels.names = ("ground", "walker", "coin")


def grey_labels(moment):
    return moment.env.labels()


grey_labels.names, grey_labels.figure = labels.names, {"coin": 170}


def wrong_greys(moment):
    return moment.env.labels()


wrong_greys.names, wrong_greys.figure = labels.names, {"tree": 170}


def wrong(moment):
    return np.full((SIDE, SIDE), 7)


wrong.names = labels.names

gymnasium.register("Line-v0", entry_point=Line)
gymnasium.register("LineImages-v0", entry_point=Line, kwargs={"images": True})
