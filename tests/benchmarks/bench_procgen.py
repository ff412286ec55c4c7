"""Frames per second of every Procgen game and view, as a ratio to the stock library's pixels in the same run.

Run it as a script. The stock pixels are those of gym3's binding, stepped bare. All of a game's environments take turns
for many short spells, of which the fastest tenths are compared: other work on the machine only makes a spell slower.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from lcd.envs.procgen.mask_tables import GAMES

COPIES, STEPS, SPELLS = 64, 20, 30
LIMITS = {"pixels": 0.9, "figure_ground": 0.75, "semantic": 0.75}
BY_STATE = 0.25
STATEFUL = {("bossfight", "semantic"), ("starpilot", "semantic"), ("plunder", "semantic"), ("plunder", "figure_ground")}


def stock(game: str) -> Callable[[np.ndarray], object]:
    """One bare step of the stock library."""
    from gym3.libenv import CEnv

    from lcd.envs.procgen.knobs import ProcgenKnobs
    from lcd.envs.procgen.skins import wheel

    options = {**ProcgenKnobs(game).options(1), "resource_root": f"{wheel()}/assets/"}
    env = CEnv(COPIES, str(wheel() / "prebuilt"), options=options)

    def step(actions: np.ndarray) -> object:
        env.act({"action": actions})
        return env.observe()

    return step


def ours(game: str, view: str, **knobs: object) -> Callable[[np.ndarray], object]:
    """One step of our environment."""
    from lcd.envs.procgen.vector import ProcgenVectorEnv

    env = ProcgenVectorEnv(COPIES, game=game, view=view, **knobs)
    env.reset()
    return env.step


def rates(steppers: dict[str, Callable[[np.ndarray], object]]) -> dict[str, float]:
    """Frames per second of each in its faster spells, in turns."""
    chooser = np.random.default_rng(0)
    spells: dict[str, list[float]] = {name: [] for name in steppers}
    for spell in range(SPELLS + 2):
        actions = chooser.integers(0, 15, (STEPS, COPIES)).astype(np.int32)
        for name, step in steppers.items():
            started = time.perf_counter()
            for action in actions:
                step(action)
            if spell > 1:
                spells[name].append(COPIES * STEPS / (time.perf_counter() - started))
    return {name: float(np.quantile(times, 0.9)) for name, times in spells.items()}


def main(games: list[str]) -> int:
    """Print a row a game; 1 if a limit is missed."""
    missed = []
    print(f"{'game':<11}{'stock, frames/s':>16}" + "".join(f"{view:>16}" for view in LIMITS))
    for game in games or GAMES:
        found = rates({"stock": stock(game), **{view: ours(game, view) for view in LIMITS}})
        ratios = {view: found[view] / found["stock"] for view in LIMITS}
        print(f"{game:<11}{found['stock']:>16,.0f}" + "".join(f"{ratios[view]:>16.2f}" for view in LIMITS), flush=True)
        for view, ratio in ratios.items():
            limit = BY_STATE if (game, view) in STATEFUL else LIMITS[view]
            if ratio < limit:
                missed.append(f"{game} {view}: {ratio:.2f} < {limit}")
    for game in ("heist", "leaper", "maze"):
        if not games or game in games:
            plain, shaped = ours(game, "semantic"), ours(game, "semantic", shaping="subgoals")
            found = rates({"plain": plain, "shaped": shaped})
            print(f"{game} semantic with shaping: {found['shaped'] / found['plain']:.2f} of without")
    print("\n".join(missed) or "Every limit holds.")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
