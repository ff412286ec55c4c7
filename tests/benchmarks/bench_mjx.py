"""Half-cheetahs a second: our threads beside MJX and mujoco-warp on the same processor.

Neither is one of the project's dependencies: `pip install --target elsewhere --no-deps jax jaxlib ml_dtypes opt_einsum
mujoco-mjx mujoco-warp warp-lang etils`, and run this script with that folder in PYTHONPATH. What is not there is left
out with a sentence. A step is an environment's, five of the simulator's.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from timing import rate

from lcd.envs.families.benchmark import FAMILIES

COPIES = (64, 512)
SIMULATED = 5
"""Steps of the simulator in one of the environment."""
ROBOT = Path(gymnasium.__file__).parent / "envs/mujoco/assets/half_cheetah.xml"


def ours(copies: int, threads: int) -> float:
    """Environment steps a second, observations and rewards included."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    env = FAMILIES.make_vec("families/half-cheetah", view="state", split="train", num_envs=copies, seed=0)
    env.action_space.seed(0)
    env.reset()
    actions = [env.action_space.sample() for _ in range(4)]
    found = rate(lambda number: env.step(actions[number % 4]), copies)
    env.close()
    return found


def mjx(copies: int) -> tuple[float, float]:
    """Environment steps a second of MJX, the physics alone, and the seconds that it compiles."""
    import jax
    from mujoco import mjx as simulator

    model = mujoco.MjModel.from_xml_path(str(ROBOT))
    there = simulator.put_model(model)

    def step(data, action):
        data = data.replace(ctrl=action)
        return jax.lax.fori_loop(0, SIMULATED, lambda _, each: simulator.step(there, each), data)

    starts = model.qpos0 + 0.01 * np.random.default_rng(0).normal(size=(copies, model.nq))
    data = jax.vmap(lambda qpos: simulator.make_data(there).replace(qpos=qpos))(starts)
    actions = np.random.default_rng(1).uniform(-1, 1, size=(copies, model.nu))
    together = jax.jit(jax.vmap(step))
    return _rate_of_steps(lambda data: jax.block_until_ready(together(data, actions)), data, copies)


def warp(copies: int) -> tuple[float, float]:
    """The same of mujoco-warp, on warp's processor device."""
    import mujoco_warp
    import warp as runtime

    model = mujoco.MjModel.from_xml_path(str(ROBOT))
    start = mujoco.MjData(model)
    mujoco.mj_forward(model, start)
    with runtime.ScopedDevice("cpu"):
        there, data = mujoco_warp.put_model(model), mujoco_warp.put_data(model, start, nworld=copies)

        def step(data):
            for _ in range(SIMULATED):
                mujoco_warp.step(there, data)
            data.qpos.numpy()
            return data

        return _rate_of_steps(step, data, copies)


def _rate_of_steps(step: Callable, data: object, copies: int) -> tuple[float, float]:
    start = time.perf_counter()
    data = step(step(data))  # the second has what the first gave, for which it may be compiled once more
    ready = time.perf_counter()
    count = 0
    while time.perf_counter() - ready < 5 or count < 2:
        data, count = step(data), count + 1
    return copies * count / (time.perf_counter() - ready), ready - start


def main() -> None:
    """Print all rates, of 64 and of 512 copies unless numbers are given."""
    for copies in [int(word) for word in sys.argv[1:]] or COPIES:
        told = ", ".join(f"{ours(copies, threads):,.0f} with {threads} threads" for threads in (1, 2))
        print(f"{copies} half-cheetahs: ours {told} steps/s", flush=True)
        for name, peer in (("MJX", mjx), ("mujoco-warp", warp)):
            try:
                found, compiled = peer(copies)
            except ImportError as missing:
                print(f"  {name} is left out: {missing}. The first lines of this script say how to install it.")
                continue
            print(f"  {name}: {found:,.0f} steps/s, after {compiled:.0f} s of compiling", flush=True)


if __name__ == "__main__":
    main()
