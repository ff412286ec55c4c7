"""Runs that train in a second, and a way to kill them at any moment."""

KILLING = """
import os, signal, sys, yaml
import torch
from lcd.agents.rollout import Rollouts
from lcd.pipelines.jobs import checkpoint, record
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.study.configs import Device

torch.set_num_threads(1)
record.CHECKPOINT_EVERY_S, record.CHECKPOINT_SHARE = 0, 1
config, folder, moment = yaml.safe_load(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def killing(method):
    def wrapped(self, *args, **kwargs):
        global moment
        moment -= 1
        if moment < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(self, *args, **kwargs)
    return wrapped

Rollouts.collect = killing(Rollouts.collect)
checkpoint.AtomicCheckpoints.save_checkpoint = killing(checkpoint.AtomicCheckpoints.save_checkpoint)
"""
"""The start of a script `CONFIG FOLDER MOMENT` that is killed when it has called `killing` methods MOMENT times."""


def train_in_a_folder(tmp_path_factory, config):
    """The folder of a run that is trained at once; for a fixture that many tests share."""
    from lcd.pipelines.jobs.train import train_run
    from lcd.pipelines.study.configs import Device

    folder = tmp_path_factory.mktemp("run")
    train_run(config, folder, {"name": "none"}, Device("cpu"))
    return folder


def toy_run(agent, **changes):
    """The config of a run on the toy, with two seeds."""
    return {
        "kind": "train",
        "benchmark": "toy",
        "task": "toy/easy-sight-easy-reward",
        "knobs": {},
        "view": "semantic",
        "frontend": {"name": "identity"},
        "reward_p": 0.5,
        "shaping": "none",
        "agent": agent,
        "seeds": [3, 8],
        **changes,
    }


def waiting_run(folder):
    """A run of a new study that nobody has begun."""
    from lcd.pipelines.kinds.kind import Job
    from lcd.pipelines.study import store

    config = toy_run({"name": "ppo", "copies": 1}, steps=100, evaluation={"every": 25, "copies": 1, "episodes": 1}) | {
        "view": "pixels",
        "reward_p": 1.0,
        "seeds": [0],
    }
    (made,) = store.Study(folder, create=True).ask({}, [Job(config)])
    return made
