"""The hyper-parameters of our agents that learn from a memory, and which values they may have.

They are apart from the agents, as `lcd.agents.settings`, so that a mistake in one is found before PyTorch is imported.
"""

import math
from dataclasses import dataclass, field

from lcd.agents.settings import LATER, check


@dataclass(frozen=True)
class DQNConfig:
    """Hyper-parameters of DQN; steps are environment steps of a seed.

    Attributes:
        copies: environment copies of each seed.
        buffer: transitions that each seed remembers.
        start: steps before the first update.
        train_every: steps between two bouts of updates.
        updates: updates of a bout.
        batch: transitions of an update.
        target_every: steps after which the next bout begins with a new target network.
        learning_rate: Adam's step size.
        gamma: discount.
        epsilon: probability of a random action at the end of exploration; it falls from 1 in a straight line.
        exploration: the share of training in which it falls.
        max_grad_norm: each seed's gradient is scaled to at most this norm.
        width: units of each hidden layer.
        precision: of the products of an update: `32-true`, or `bf16-mixed`, faster where a CPU has it.
        layers: hidden layers.
        activation: what hidden layers end with, `relu` or `tanh`.
        adam_eps: Adam's ε.
        encoder: below the layers: `mlp`, none, or `cnn`, two convolutions of images.
        head: units of one more hidden layer above these; 0: none.
    """

    copies: int = 8
    buffer: int = 10_000
    start: int = 1000
    train_every: int = 256
    updates: int = 64
    batch: int = 64
    target_every: int = 10
    learning_rate: float = 0.001
    gamma: float = 0.99
    epsilon: float = 0.04
    exploration: float = 0.16
    max_grad_norm: float = 10.0
    width: int = 256
    precision: str = field(default="32-true", metadata=LATER)
    layers: int = field(default=2, metadata=LATER)
    activation: str = field(default="relu", metadata=LATER)
    adam_eps: float = field(default=1e-8, metadata=LATER)
    encoder: str = field(default="mlp", metadata=LATER)
    head: int = field(default=0, metadata=LATER)

    def __post_init__(self) -> None:
        for key in ("copies", "start", "train_every", "updates", "batch", "target_every", "width", "layers"):
            check(key, getattr(self, key), "at least 1", getattr(self, key) >= 1)
        check("head", self.head, "0 or more", self.head >= 0)
        multiple = f"a multiple of agent.copies={self.copies}"
        check("buffer", self.buffer, multiple, self.buffer > 0 and self.buffer % self.copies == 0)
        for key in ("gamma", "epsilon"):
            check(key, getattr(self, key), "between 0 and 1", 0 <= getattr(self, key) <= 1)
        for key in ("learning_rate", "max_grad_norm", "exploration", "adam_eps"):
            check(key, getattr(self, key), "above 0", getattr(self, key) > 0)
        named = {"precision": ("32-true", "bf16-mixed"), "activation": ("relu", "tanh"), "encoder": ("mlp", "cnn")}
        for key, options in named.items():
            value = getattr(self, key)
            check(key, value, f"one of {', '.join(options)}", value in options)


@dataclass(frozen=True)
class RainbowConfig(DQNConfig):
    """Hyper-parameters of Rainbow: those of DQN, and of its six parts; without any of them it is DQN.

    Attributes:
        double: the learned network chooses the action that follows, the target network says what it is worth.
        dueling: what a state is worth, and what each action adds to that, have a head each.
        prioritised: transitions are drawn by their errors.
        alpha: how much: the power of the errors; 0 draws all alike.
        beta: how much of that is made up for by weights at first; it rises to 1, all of it.
        n_step: steps over which rewards are added up; 1 turns it off.
        distributional: learn how probable returns are, not what they are on average.
        atoms: how many returns.
        lowest, highest: the first and the last of them.
        noisy: explore by noise on the weights of the heads, which is learned.
        head: units of a hidden layer of each head; 0: none.
    """

    double: bool = True
    dueling: bool = True
    prioritised: bool = True
    alpha: float = 0.5
    beta: float = 0.4
    n_step: int = 3
    distributional: bool = True
    atoms: int = 51
    lowest: float = -10.0
    highest: float = 10.0
    noisy: bool = True
    head: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check("n_step", self.n_step, "at least 1", self.n_step >= 1)
        check("atoms", self.atoms, "at least 2 (agent.distributional=false turns them off)", self.atoms >= 2)
        for key in ("alpha", "beta"):
            check(key, getattr(self, key), "between 0 and 1", 0 <= getattr(self, key) <= 1)
        ordered = math.isfinite(self.lowest) and math.isfinite(self.highest) and self.lowest < self.highest
        check("lowest", self.lowest, f"a number below agent.highest={self.highest}", ordered)


@dataclass(frozen=True)
class TwinCriticsConfig:
    """Hyper-parameters that SAC and TD3 share; steps are environment steps of a seed.

    Attributes:
        copies: environment copies of each seed.
        buffer: transitions that each seed remembers.
        start: steps before the first update, in which actions are random.
        train_every: steps between two bouts of updates.
        updates: updates of a bout.
        batch: transitions of an update.
        learning_rate: Adam's step size.
        gamma: discount.
        tau: share of the way that target networks go towards the learned ones in an update.
        width: units of the two hidden layers of each network.
    """

    copies: int = 1
    buffer: int = 20_000
    start: int = 256
    train_every: int = 64
    updates: int = 32
    batch: int = 64
    learning_rate: float = 1e-3
    gamma: float = 0.99
    tau: float = 0.005
    width: int = 64

    def __post_init__(self) -> None:
        for key in ("copies", "start", "train_every", "updates", "batch", "width"):
            check(key, getattr(self, key), "at least 1", getattr(self, key) >= 1)
        multiple = f"a multiple of agent.copies={self.copies}"
        check("buffer", self.buffer, multiple, self.buffer > 0 and self.buffer % self.copies == 0)
        for key in ("gamma", "tau"):
            check(key, getattr(self, key), "between 0 and 1", 0 <= getattr(self, key) <= 1)
        check("learning_rate", self.learning_rate, "above 0", self.learning_rate > 0)


@dataclass(frozen=True)
class SACConfig(TwinCriticsConfig):
    """Hyper-parameters of SAC: those of `TwinCriticsConfig`. It aims at an entropy of -1 for each number."""


@dataclass(frozen=True)
class TD3Config(TwinCriticsConfig):
    """Hyper-parameters of TD3: those of `TwinCriticsConfig`, and more.

    Attributes:
        noise: deviation of what is added to actions in training, which are from -1 to 1.
        policy_delay: updates of the critics for each of the actor and of the target networks.
        target_noise: deviation of what is added to the actions that follow.
        target_clip: the most that is added.
    """

    updates: int = 64
    gamma: float = 0.98
    noise: float = 0.1
    policy_delay: int = 2
    target_noise: float = 0.2
    target_clip: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check("policy_delay", self.policy_delay, "at least 1", self.policy_delay >= 1)
        for key in ("noise", "target_noise", "target_clip"):
            check(key, getattr(self, key), "0 or more", getattr(self, key) >= 0)


@dataclass(frozen=True)
class MPLightConfig(DQNConfig):
    """Hyper-parameters of MPLight and MPLight*: those of DQN, where `width` is the units of FRAP's layers."""

    copies: int = 4
    start: int = 480
    train_every: int = 240
    target_every: int = 240
    gamma: float = 0.95
    epsilon: float = 0.05
    exploration: float = 0.3
    width: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        own = (self.layers, self.activation, self.encoder, self.head) == (2, "relu", "mlp", 0)
        right = "2, agent.activation=relu, agent.encoder=mlp and agent.head=0: FRAP's layers are its own"
        check("layers", self.layers, right, own)
