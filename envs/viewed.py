"""Anybody's single environment under a view of ours, or under several at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from PIL import Image

from lcd.envs.errors import InputError
from lcd.envs.masks import LABELS, PIXELS, Masks, Moment, checked, drawn
from lcd.envs.spaces import is_image

STATE = "state"
SIDE = 64
"""Height and width of pictures where nobody says."""


class Viewed(gymnasium.Wrapper):
    """An environment that shows one view: an array; or several: a dictionary of arrays.

    Its picture is what it observes, where that is an image, else what it renders.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        views: Sequence[str],
        masks: Masks | None,
        *,
        size: int = SIDE,
        frames: int = 1,
        grey: bool = False,
        together: bool = False,
    ) -> None:
        """Look at an environment.

        Args:
            env: a single one; one that observes no images needs render_mode="rgb_array" for pictures.
            views: `pixels`, `figure_ground`, `semantic`, `labels`, or `state`: its own observation.
            masks: where labels come from; None: views without them.
            size: height and width of what is shown.
            frames: how many pictures are shown, the oldest first, as channels: one does not show what moves.
            grey: whether a picture has one channel, in place of three.
            together: whether observations are a dictionary of the views, even of one.
        """
        super().__init__(env)
        self.views, self.masks, self.size, self.frames = tuple(views), masks, size, frames
        self.grey = grey
        self.together = together or len(views) > 1
        self._seen: dict[str, deque[np.ndarray]] = {view: deque(maxlen=frames) for view in views}
        of_views = {view: self._space(view) for view in views}
        self.observation_space = spaces.Dict(of_views) if self.together else next(iter(of_views.values()))

    def _space(self, view: str) -> spaces.Space:
        if view == STATE:
            return self.env.observation_space
        channels = self.frames if view == LABELS or self.grey else 3 * self.frames
        return spaces.Box(0, 255, (self.size, self.size, channels), np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, whose pictures are all its first one."""
        observation, info = self.env.reset(seed=seed, options=options)
        for seen in self._seen.values():
            seen.clear()
        return self._shown(observation, info), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._shown(observation, info), float(reward), terminated, truncated, info

    def _shown(self, observation: Any, info: dict[str, Any]) -> Any:
        found: dict[str, Any] = {}
        drawn_views = [view for view in self.views if view != STATE]
        if drawn_views:
            moment = Moment(partial(self._picture, observation), observation, info, self.env.unwrapped)
            labels = self._labels(moment, drawn_views)
            for view in drawn_views:
                self._seen[view].append(self._drawn(view, moment, labels))
                seen = self._seen[view]
                many = [seen[0]] * (self.frames - len(seen)) + list(seen)
                found[view] = many[0] if self.frames == 1 else np.concatenate(many, -1)
        if STATE in self.views:
            found[STATE] = observation
        return {view: found[view] for view in self.views} if self.together else found[self.views[0]]

    def _picture(self, observation: Any) -> np.ndarray:
        observed = is_image(self.env.observation_space)
        picture = np.asarray(observation if observed else self.env.render())
        name = self.env.unwrapped.spec and self.env.unwrapped.spec.id
        if observed and picture.shape != self.env.observation_space.shape:
            raise InputError(
                f"{name} observes an image of shape {picture.shape}, but its observation space has "
                f"{self.env.observation_space.shape}: make them agree."
            )
        # A rendered picture's fourth channel is how opaque it is.
        flat = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[-1] in (1, 3, 4))
        if not flat or not picture.size or picture.dtype != np.uint8:
            raise InputError(
                f"{name} {'observes' if observed else 'renders'} {picture.dtype} of shape {picture.shape}, and no "
                f"picture: it has no view but '{STATE}'."
            )
        return np.repeat(np.atleast_3d(picture), 3 if picture.ndim == 2 or picture.shape[-1] == 1 else 1, -1)[..., :3]

    def _labels(self, moment: Moment, views: Sequence[str]) -> np.ndarray | None:
        if set(views) == {PIXELS}:
            return None
        if self.masks is None:
            raise InputError(f"view={views[-1]} needs masks, and there are none.")
        return checked(self.masks(moment), self.masks.names, (self.size, self.size), str(self.masks))

    def _drawn(self, view: str, moment: Moment, labels: np.ndarray | None) -> np.ndarray:
        if view == PIXELS:
            picture = moment.picture
            if self.grey:
                small = Image.fromarray(picture).convert("L").resize((self.size, self.size), Image.Resampling.BOX)
                return np.asarray(small)[..., None]
            if picture.shape[:2] == (self.size, self.size):
                return picture.copy()
            return np.asarray(Image.fromarray(picture).resize((self.size, self.size), Image.Resampling.BOX))
        assert labels is not None
        assert self.masks is not None
        masks = self.masks
        shown = labels[..., None] if view == LABELS else drawn(labels, masks.names, view, masks.ground, masks.figure)
        return shown[..., :1] if self.grey else shown
