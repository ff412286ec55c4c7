"""Training speed of PPO and PPG at the papers' sizes, against CleanRL; what Lightning and seeds cost; CartPole; memory.

    make bench ONLY=ppo ARGS="--cleanrl DIR --cleanrl-python PY"

DIR holds `ppo_procgen.py` and `ppg_procgen.py` of github.com/vwxyzjn/cleanrl (folder `cleanrl`, measured at fe8d8a0).
PY is the interpreter of an environment of its own, for they need the unmaintained `gym`:

    python3.11 -m venv peer && peer/bin/pip install torch==2.15.* numpy==1.26.4 gym==0.23.1 tyro tensorboard
    peer/bin/pip install cffi imageio && peer/bin/pip install --no-deps procgen-mirror gym3

Without them our own figures are printed alone. All is run on the same cores in the same run, in turns: CleanRL as
shipped; tuned, which is the same script with glibc told to keep large blocks; and ours. Use an idle machine: two rounds
of everything take half an hour on two cores. `--parts` and `--cases` choose. On a
machine that is not idle, `--cpu-time` compares processor time on one thread; `--rollout 64` is a quick look.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}
COPIES, ROLLOUT, PHASE, AUXILIARY_EPOCHS = 64, 256, 32, 6
AUXILIARY_BATCH = 4 * ROLLOUT
CASES = ("shipped", "tuned", "tuned bf16", "ours", "ours bf16")
GOALS = {
    "ppo": {
        ("ours", "shipped"): 1.6,
        ("ours", "tuned"): 1.0,
        ("ours bf16", "shipped"): 2.7,
        ("ours bf16", "tuned"): 1.65,
    },
    "ppg": {("ours bf16", "shipped"): 1.8, ("ours bf16", "tuned"): 1.5},
}


def ours(agent: str, case: str, **knobs: Any) -> dict[str, Any]:
    """Run our side in a process of its own."""
    precision = "bf16-mixed" if case.endswith("bf16") else "32-true"
    asked = json.dumps({"agent": agent, "precision": precision, **knobs})
    command = [sys.executable, "-W", "ignore", str(HERE / "ppo_cases.py"), asked]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def theirs(args: argparse.Namespace, agent: str, case: str) -> dict[str, Any]:
    """Run CleanRL's side in a process of its own: two iterations, for PPG each with one auxiliary epoch."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        script = Path(args.cleanrl).resolve() / f"{agent}_procgen.py"
        own = ["--no-cuda", "--num-steps", str(args.rollout), "--total-timesteps", str(2 * COPIES * args.rollout)]
        if agent == "ppg":
            rollouts = str(AUXILIARY_BATCH // args.rollout)
            own += ["--n-iteration", "1", "--e-auxiliary", "1", "--num-aux-rollouts", rollouts]
        bf16 = ["--bf16"] if case.endswith("bf16") else []
        bf16 += ["--cpu-time"] if args.cpu_time else []
        command = [args.cleanrl_python, "-W", "ignore", str(HERE / "cleanrl.py"), str(script), str(file), *bf16, "--"]
        own += ["--num-minibatches", str(args.minibatches)]
        env = os.environ | (TUNED if case.startswith("tuned") else {})
        subprocess.run([*command, *own], check=True, env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        return spans(json.loads(file.read_text()), args.rollout)


def spans(found: dict[str, Any], rollout: int) -> dict[str, Any]:
    """The second iteration's seconds, and those of the auxiliary phase's parts, from when CleanRL stepped and spoke."""
    start, end = found["steps"][rollout], found["end"]
    said = [when for when, words in found["said"] if words == "SPS:"]
    epochs = [when for when, words in found["said"] if words.startswith("aux epoch")]
    if not epochs:
        return {"iterations": [end - start]}
    return {"iterations": [end - start], "auxiliary": end - said[-1], "cloning": epochs[-1] - said[-1]}


def seconds_for(agent: str, found: dict[str, Any]) -> float:
    """Seconds of one iteration of PPO, or of a whole phase of PPG by its parts."""
    last = found["iterations"][-1]
    if agent == "ppo":
        return last
    auxiliary, cloning = found["auxiliary"], found["cloning"]
    return PHASE * (last - auxiliary + cloning + AUXILIARY_EPOCHS * (auxiliary - cloning))


def compare(args: argparse.Namespace, agent: str) -> None:
    """Steps a second of every case, and ours as ratios to CleanRL's."""
    peer = bool(args.cleanrl and args.cleanrl_python)
    cases = [case for case in args.cases if peer or case.startswith("ours")]
    rates: dict[str, list[float]] = {case: [] for case in cases}
    steps = COPIES * args.rollout * (PHASE if agent == "ppg" else 1)
    knobs = {"rollout": args.rollout, "minibatches": args.minibatches, "cpu_time": args.cpu_time}
    knobs |= {"auxiliary_rollouts": AUXILIARY_BATCH // args.rollout} if agent == "ppg" else {}
    print(f"== {agent.upper()} on starpilot easy, {COPIES} x {args.rollout}, IMPALA, environment steps/s", flush=True)
    if agent == "ppg":
        print(f"   1 of {PHASE} rollouts, 1 of {AUXILIARY_EPOCHS} auxiliary epochs measured and scaled; one network")
    for number in range(args.rounds):
        # Every other round in the other order, so that no case always comes first.
        for case in cases if number % 2 == 0 else reversed(cases):
            found = ours(agent, case, **knobs) if case.startswith("ours") else theirs(args, agent, case)
            rates[case].append(steps / seconds_for(agent, found))
            parts = {name: round(found[name], 1) for name in ("auxiliary", "cloning") if name in found}
            print(f"   {case:<11}{rates[case][-1]:8.0f}  {found['iterations'][-1]:.1f} s {parts or ''}", flush=True)
    means = {case: float(np.mean(found)) for case, found in rates.items()}
    for mine in (case for case in cases if case.startswith("ours")):
        for other in (case for case in cases if not case.startswith("ours")):
            goal = GOALS[agent].get((mine, other))
            wanted = f" (goal {goal})" if goal else ""
            print(f"   {mine} / CleanRL {other}: {means[mine] / means[other]:.2f}{wanted}", flush=True)


def memory(args: argparse.Namespace) -> None:
    """Peak memory of one process at the papers' size: one iteration, and for PPG what it stores beside."""
    from lcd.agents.phase_store import StoreSize

    for agent in ("ppo", "ppg"):
        own = {"variant": "dual"} if agent == "ppg" else {}
        found = ours(agent, "ours", iterations=1, copies=256, epochs=1, **own)
        print(f"== {agent.upper()}, 256 x {ROLLOUT}, IMPALA, one epoch: at most {found['peak'] / 1e9:.2f} GB of memory")
    size = StoreSize(PHASE, ROLLOUT, 256, 1, (3, 64, 64), outputs=15)
    print(
        f"   PPG, of which one rollout is stored; a phase of {PHASE}: {size.bytes / 1e9:.1f} GB, in files if too much"
    )


def small(args: argparse.Namespace) -> None:
    """Lightning's overhead, seeds, CartPole."""
    import small_cases

    small_cases.main()


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "ppo": lambda args: compare(args, "ppo"),
    "ppg": lambda args: compare(args, "ppg"),
    "small": small,
    "memory": memory,
}


def main() -> None:
    """Measure the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cleanrl", help="folder with CleanRL's Procgen scripts")
    parser.add_argument("--cleanrl-python", help="an interpreter that runs them")
    parser.add_argument("--rollout", type=int, default=ROLLOUT)
    parser.add_argument("--minibatches", type=int, default=8)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    args = parser.parse_args()
    if args.cpu_time:
        os.environ["OMP_NUM_THREADS"] = "1"
    for part in args.parts:
        PARTS[part](args)


if __name__ == "__main__":
    main()
