"""What `precision: auto` becomes, and that a run says what it was."""

import pytest
import torch

from lcd.agents.precision import precision_on
from lcd.config.compose import compose


@pytest.mark.parametrize(
    ("device", "has_it", "asked", "found"),
    [
        ("cuda", True, "auto", "bf16-mixed"),
        ("cuda", False, "auto", "32-true"),  # a card that only imitates it is slower with it
        ("cpu", True, "auto", "32-true"),
        ("mps", True, "auto", "32-true"),
        ("cuda", True, "32-true", "32-true"),
        ("cpu", False, "bf16-mixed", "bf16-mixed"),
    ],
)
def test_auto_is_bf16_on_gpus_that_have_it_alone(device, has_it, asked, found, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: has_it or including_emulation)
    assert precision_on(device, asked) == found


@pytest.mark.parametrize("agent", ["ppo_procgen", "ppg_procgen"])
def test_it_is_the_default_where_the_papers_train_and_nowhere_on_a_cpu(agent):
    assert compose("train", ["task=procgen/coinrun", f"agent={agent}"]).agent["precision"] == "auto"
    assert compose("train", ["task=procgen/coinrun", "agent=ppo_cpu"]).agent["precision"] == "32-true"
