"""What runs would take of a GPU, against what training does when it is counted."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lcd.agents.frozen import FrozenFrontend
from lcd.config.compose import compose
from lcd.pipelines.jobs.build import build_agent, build_environments, build_rollouts
from lcd.pipelines.study import gpu_needs as counting
from lcd.pipelines.study.gpu_needs import gpu_needs, gpu_sentence
from lcd.pipelines.study.runs import run_config_from

TASK = ["task=toy/easy-sight-easy-reward", "seeds=2"]
SMALL = ["agent.copies=4", "agent.rollout=32", "agent.minibatches=2", "agent.epochs=3", "steps=256"]
STATES = ["task=hardness/discrete", "view=state"]
PHASES = ["agent=ppg", "agent.phase=2", "agent.auxiliary_rollouts=4", "agent.auxiliary_epochs=2"]


def asked(*words: str):
    return run_config_from(compose("train", [*TASK, *SMALL, *words]))


LEARNER = compose("train", [*STATES, "agent=tabular/q_learning", "steps=256"])


def counted(config) -> int:
    """Operations of a training without its evaluations."""
    (env,), _ = build_environments(config, config["agent"]["copies"], evaluates=False)
    agent = build_agent(config, env)
    optimizers = agent.configure_optimizers()
    agent.optimizers = lambda: optimizers
    agent.manual_backward = lambda loss: loss.backward()
    with FlopCounterMode(display=False) as count:
        for index, rollout in enumerate(build_rollouts(config, [env], agent)):
            agent.training_step(rollout, index)
    env.close()
    return count.get_total_flops()


@pytest.mark.parametrize(
    "words", [STATES, ["view=pixels"], ["view=pixels", *PHASES], ["view=pixels", *PHASES, "agent.epochs=1"]]
)
def test_operations_are_those_of_a_training(words):
    config = asked(*words)
    # The last look of a rollout asks for a value, too.
    assert gpu_needs(config).operations == pytest.approx(counted(config), rel=0.02)


def test_memory_is_a_minibatch_of_all_seeds_beside_the_rollout():
    few, many = (gpu_needs(asked("view=pixels", f"agent.minibatches={parts}")) for parts in (4, 1))
    assert many.activations == 4 * few.activations
    one = gpu_needs(asked("view=pixels", "seeds=1"))
    assert gpu_needs(asked("view=pixels")).memory == 2 * one.memory
    half = gpu_needs(asked("view=pixels", "agent.precision=bf16-mixed"))
    assert 2 * half.activations == gpu_needs(asked("view=pixels")).activations
    assert few.at_once == 0


def test_what_takes_a_gpu_next_to_nothing_is_not_told(monkeypatch):
    runs = [asked("view=pixels"), asked("view=pixels", "steps=512"), run_config_from(LEARNER)]
    assert gpu_sentence(runs) is None
    # A GPU so slow that the first run takes it an hour, with a card for a sixteenth of its activations.
    needs = gpu_needs(runs[0])
    monkeypatch.setattr(counting, "SUSTAINED", needs.operations / 3600)
    assert gpu_sentence(runs).startswith("about 3.0 h of one that sustains")
    assert "micro-batches" not in gpu_sentence(runs)
    monkeypatch.setattr(counting, "CARD_GB", (needs.held + needs.activations / 16) / 1e9)
    assert gpu_needs(runs[0]).at_once == int(64 / 16 * 0.75)


def test_an_agent_that_trains_itself_is_not_counted():
    assert gpu_needs(run_config_from(LEARNER)) is None


def test_attention_is_counted_as_what_it_is_made_of():
    """PyTorch fuses it into one operation of which nothing is counted."""
    tokens, width = 5, 8

    class Attending(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.MultiheadAttention(width, 2, batch_first=True)

        def forward(self, seen):
            return self.layer(seen, seen, seen, need_weights=False)[0]

    _, operations = counting._encoded(FrozenFrontend(Attending()), torch.randn(1, tokens, width))
    assert operations == 2 * tokens * width * (4 * width + 2 * tokens)
    assert torch.backends.mha.get_fastpath_enabled()
