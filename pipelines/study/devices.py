"""Which devices and how many processes a run may be trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lcd.envs.errors import InputError
from lcd.envs.protocols import offers
from lcd.pipelines.study.configs import Device


def check_share(name: str, params: Mapping[str, Any], device: Device) -> None:
    """Refuse what several processes cannot train together, each with its share of the agent's copies.

    Args:
        name, params: the agent and its hyper-parameters.
        device: says how many processes.
    """
    from lcd import agents
    from lcd.agents.protocols import TrainedByRanks

    world = device.processes
    if world == 1:
        return
    how = f"devices={device.devices}" + (f" num_nodes={device.num_nodes}" if device.num_nodes > 1 else "")
    if not offers(agents.agents.resolve(name), TrainedByRanks):
        raise InputError(f"{how}: agent={name} cannot be trained by several processes: give devices=1.")
    if device.accelerator == "mps":
        raise InputError(f"{how}: device=mps is a single one: give devices=1, or device=cpu.")
    copies = agents.validate(name, params).copies
    if copies % world:
        raise InputError(
            f"agent.copies={copies} must be divisible by the {world} processes of {how}, among which they are shared."
        )
    try:
        agents.validate(name, {**params, "copies": copies // world})
    except InputError as error:
        raise InputError(f"{how} gives each process {copies // world} of agent.copies={copies}: {error}") from None


def check_device(device: Device) -> None:
    """Refuse a device that this machine does not have, and more GPUs than it has.

    Several processes on a CPU are fine.
    """
    name, many = device.accelerator, device.devices
    if name == "cpu":
        return
    import torch

    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    there = [kind for kind, present in has.items() if present] + ["cpu"]
    if not has.get(name, True):
        raise InputError(
            f"device={name}, but torch finds no such device on this machine (it has: {', '.join(there)}): "
            "give device=auto, or one that is there."
        )
    if name in ("auto", "cuda") and has["cuda"] and many > torch.cuda.device_count():
        raise InputError(
            f"devices={many}, but this machine has {torch.cuda.device_count()} GPUs: give as many, or device=cpu."
        )
