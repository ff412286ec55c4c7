"""The hyper-parameters of our agents, and which values they may have.

They are apart from the agents, so that a mistake in one is found before PyTorch is imported.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lcd.envs.errors import InputError

ENCODERS = ("mlp", "cnn", "impala")
INITIALISATIONS = ("orthogonal", "glorot", "normed", "torch")
EXECUTIONS = ("auto", "vmap", "loop")
PRECISIONS = ("auto", "32-true", "bf16-mixed", "16-mixed")
LATER = {"later": True}
"""Of a setting that came later: a run's config leaves it out where it is as before, so that runs keep their ids."""
VARIANTS = ("dual", "shared", "detached")
"""Of PPG's networks."""


def check(key: str, value: object, right: str, holds: bool) -> None:
    """Refuse a hyper-parameter with a sentence unless it `holds`."""
    if not holds:
        raise InputError(f"agent.{key}={value} should be {right}.")


@dataclass(frozen=True)
class PPOConfig:
    """Hyper-parameters of PPO.

    Attributes:
        copies: environment copies of each seed.
        rollout: steps of each copy between two updates.
        epochs: passes over a rollout.
        minibatches: parts of a rollout in each pass; copies x rollout must be divisible by it.
        learning_rate: Adam's step size.
        adam_eps: Adam's ε.
        gamma: discount.
        gae_lambda: λ of the generalised advantage estimate.
        clip: range of the policy's ratio, 1 ± clip.
        value_clip: range of the value's change in one update; 0 turns it off.
        entropy: weight of the entropy bonus.
        value_weight: weight of the value loss.
        max_grad_norm: each seed's gradient is scaled to at most this norm; 0 turns it off.
        normalise_rewards: divide rewards by the standard deviation of their discounted sums.
        normalise_advantages: over each `minibatch`, over the whole `rollout`, or `off`.
        encoder: of images: `auto` (which is `cnn`), `cnn`, `impala` or `mlp`; vectors go through the MLP.
        width: units of the encoder's hidden layers.
        networks: policy and value have a `shared` encoder or `separate` ones (PPG: `variant`).
        initialisation: how layers start: `orthogonal`, `glorot` (Cobbe et al. 2020), `normed` (Cobbe et al. 2021) or
            `torch` (PyTorch's own).
        precision: Lightning's: `32-true`, `bf16-mixed` where the device is faster with it, or `16-mixed` on a GPU;
            `auto` is `bf16-mixed` on a GPU that has it, else `32-true`.
        execution: how the seed axis runs: `auto`, `vmap` or `loop`.
        micro_batch: samples of each seed whose gradients are computed at once, then added up over the minibatch; 0 is
            on a GPU as many as its memory has room for, on a CPU what was measured to be best: 256 with IMPALA, else
            the whole minibatch.
        compile: act by networks that torch.compile has made faster; it needs a C++ compiler, and a minute at the start.
    """

    copies: int = 8
    rollout: int = 128
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 1e-3
    adam_eps: float = 1e-5
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    value_clip: float = 0.2
    entropy: float = 0.01
    value_weight: float = 0.5
    max_grad_norm: float = 0.5
    normalise_rewards: bool = True
    normalise_advantages: str = "minibatch"
    encoder: str = "auto"
    width: int = 64
    networks: str = field(default="shared", metadata=LATER)
    initialisation: str = "orthogonal"
    precision: str = "32-true"
    execution: str = "auto"
    micro_batch: int = 0
    compile: bool = False

    def __post_init__(self) -> None:
        for key in ("copies", "rollout", "epochs", "minibatches", "width"):
            check(key, getattr(self, key), "at least 1", getattr(self, key) >= 1)
        for key in ("gamma", "gae_lambda"):
            check(key, getattr(self, key), "between 0 and 1", 0 <= getattr(self, key) <= 1)
        for key in ("learning_rate", "adam_eps", "clip"):
            check(key, getattr(self, key), "above 0", getattr(self, key) > 0)
        for key in ("value_clip", "entropy", "value_weight", "max_grad_norm", "micro_batch"):
            check(key, getattr(self, key), "0 or more", getattr(self, key) >= 0)
        samples = self.copies * self.rollout
        fits = f"a divisor of copies x rollout ({samples})"
        check("minibatches", self.minibatches, fits, samples % self.minibatches == 0)
        for key, options in {
            "normalise_advantages": ("minibatch", "rollout", "off"),
            "encoder": ("auto", *ENCODERS),
            "networks": ("shared", "separate"),
            "initialisation": INITIALISATIONS,
            "precision": PRECISIONS,
            "execution": EXECUTIONS,
        }.items():
            value = getattr(self, key)
            check(key, value, f"one of {', '.join(options)}", value in options)


@dataclass(frozen=True)
class A2CConfig(PPOConfig):
    """Hyper-parameters of A2C: those of PPO that mean something where a rollout is learned from once, and one more.

    Attributes:
        epochs, minibatches: 1 each, so that the policy's ratio is 1 and nothing is clipped.
        layers: hidden layers of the MLP.
    """

    copies: int = 8
    rollout: int = 8
    epochs: int = 1
    minibatches: int = 1
    value_clip: float = 0.0
    normalise_advantages: str = "off"
    layers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("epochs", "minibatches"):
            check(key, getattr(self, key), "1: A2C learns once from each rollout (agent=ppo does so often)",
                  getattr(self, key) == 1)  # fmt: skip
        check("layers", self.layers, "at least 1", self.layers >= 1)


@dataclass(frozen=True)
class PPGConfig(PPOConfig):
    """Hyper-parameters of PPG: those of PPO, with the authors' values where they differ, and more.

    Attributes:
        variant: `dual`: policy and value have a network each, and the policy's has an auxiliary value head; `shared`:
            one network; `detached`: one network, on whose trunk values have no effect but in the auxiliary phase.
        phase: iterations of a policy phase, N_pi.
        epochs: passes over a rollout for the policy, E_pi.
        value_epochs: passes over a rollout for the values, E_V; where they are not `epochs`, they are made first.
        auxiliary_epochs: passes over the phase's rollouts in the auxiliary phase, E_aux.
        auxiliary_rollouts: how many copies' rollouts make an auxiliary minibatch: a divisor of copies x phase.
        auxiliary_learning_rate: Adam's step size in the auxiliary phase.
        clone_weight: weight of the divergence from the policy as it was before the auxiliary phase, β_clone.
    """

    epochs: int = 1
    adam_eps: float = 1e-8
    value_clip: float = 0.0
    value_weight: float = 1.0
    max_grad_norm: float = 0.0
    normalise_advantages: str = "rollout"
    initialisation: str = "normed"
    variant: str = "dual"
    phase: int = 32
    value_epochs: int = 1
    auxiliary_epochs: int = 6
    auxiliary_rollouts: int = 4
    auxiliary_learning_rate: float = 5e-4
    clone_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("phase", "value_epochs", "auxiliary_epochs", "auxiliary_rollouts"):
            check(key, getattr(self, key), "at least 1", getattr(self, key) >= 1)
        check("auxiliary_learning_rate", self.auxiliary_learning_rate, "above 0", self.auxiliary_learning_rate > 0)
        check("clone_weight", self.clone_weight, "0 or more", self.clone_weight >= 0)
        check("variant", self.variant, f"one of {', '.join(VARIANTS)}", self.variant in VARIANTS)
        check("networks", self.networks, "shared: PPG's are told by agent.variant", self.networks == "shared")
        rollouts = self.copies * self.phase
        fits = f"a divisor of copies x phase ({rollouts})"
        check("auxiliary_rollouts", self.auxiliary_rollouts, fits, rollouts % self.auxiliary_rollouts == 0)


@dataclass(frozen=True)
class RecurrentPPOConfig(PPOConfig):
    """Hyper-parameters of recurrent PPO: those of PPO, where minibatches divide the copies, and one more.

    Attributes:
        memory: units of the memory.
    """

    memory: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        check("memory", self.memory, "at least 1", self.memory >= 1)
        check("networks", self.networks, "shared: policy and value see the same memory", self.networks == "shared")
        fits = f"a divisor of copies ({self.copies}): minibatches of RecurrentPPO are made of copies"
        check("minibatches", self.minibatches, fits, self.copies % self.minibatches == 0)


@dataclass(frozen=True)
class Sb3Config:
    """Hyper-parameters of an agent of Stable-Baselines3.

    Attributes:
        copies: environment copies of each seed.
        params: the agent's own arguments (learning_rate, buffer_size, policy_kwargs, …). `action_noise` is the
            deviation of normal noise on actions, which are from -1 to 1 there, or `{sigma: …, theta: …}`: noise that
            goes back to zero by the share theta in every step, and on by a normal number of deviation sigma.
    """

    copies: int = 1
    params: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        check("copies", self.copies, "at least 1", self.copies >= 1)
        noise = self.params.get("action_noise")
        right = "a number of at least 0, or {sigma: a number of at least 0, theta: one above 0 and at most 1}"
        check("params.action_noise", noise, right, noise is None or _is_action_noise(noise))


def _is_action_noise(given: object) -> bool:
    numbers: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {"sigma": given, "theta": 1.0}
    if set(numbers) != {"sigma", "theta"}:
        return False
    for number in numbers.values():
        if not isinstance(number, int | float) or isinstance(number, bool) or not math.isfinite(number):
            return False
    return numbers["sigma"] >= 0 and 0 < numbers["theta"] <= 1


@dataclass(frozen=True)
class TRPOConfig:
    """Hyper-parameters of TRPO.

    Attributes:
        copies: environment copies of each seed.
        rollout: steps of each copy between two updates.
        max_divergence: how far a step may take the policy, as a Kullback-Leibler divergence.
        conjugate_steps: steps of the conjugate gradients.
        damping: what is added to the Fisher matrix's diagonal.
        backtracks: steps of the line search.
        shrink: how much shorter each of them is.
        epochs: passes over a rollout for the values.
        minibatches: parts of a rollout in each pass; copies x rollout must be divisible by it.
        learning_rate: Adam's step size, for the values.
        adam_eps: Adam's ε.
        gamma: discount.
        gae_lambda: λ of the generalised advantage estimate.
        normalise_rewards: divide rewards by the standard deviation of their discounted sums.
        encoder, width, initialisation, execution: as PPO's.
    """

    copies: int = 8
    rollout: int = 128
    max_divergence: float = 0.01
    conjugate_steps: int = 15
    damping: float = 0.1
    backtracks: int = 10
    shrink: float = 0.8
    epochs: int = 10
    minibatches: int = 8
    learning_rate: float = 1e-3
    adam_eps: float = 1e-5
    gamma: float = 0.99
    gae_lambda: float = 0.95
    normalise_rewards: bool = True
    encoder: str = "auto"
    width: int = 64
    initialisation: str = "orthogonal"
    execution: str = "auto"

    # What PPO's code asks of its settings, and TRPO leaves no choice of.
    normalise_advantages: ClassVar[str] = "rollout"
    max_grad_norm: ClassVar[float] = 0.0
    micro_batch: ClassVar[int] = 0
    precision: ClassVar[str] = "32-true"
    compile: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for key in ("copies", "rollout", "conjugate_steps", "backtracks", "epochs", "minibatches", "width"):
            check(key, getattr(self, key), "at least 1", getattr(self, key) >= 1)
        for key in ("gamma", "gae_lambda"):
            check(key, getattr(self, key), "between 0 and 1", 0 <= getattr(self, key) <= 1)
        for key in ("max_divergence", "learning_rate", "adam_eps"):
            check(key, getattr(self, key), "above 0", getattr(self, key) > 0)
        check("damping", self.damping, "0 or more", self.damping >= 0)
        check("shrink", self.shrink, "above 0 and below 1", 0 < self.shrink < 1)
        samples = self.copies * self.rollout
        fits = f"a divisor of copies x rollout ({samples})"
        check("minibatches", self.minibatches, fits, samples % self.minibatches == 0)
        for key, options in {
            "encoder": ("auto", *ENCODERS),
            "initialisation": INITIALISATIONS,
            "execution": EXECUTIONS,
        }.items():
            value = getattr(self, key)
            check(key, value, f"one of {', '.join(options)}", value in options)


@dataclass(frozen=True)
class ARSConfig:
    """Hyper-parameters of augmented random search.

    Attributes:
        copies: environment copies of each seed; with more than one, some idle while the last candidates play.
        directions: random directions of an iteration, N; each is played twice, an episode each time.
        top: how many of them the policy moves along, b.
        learning_rate: step size, α.
        deviation: how far candidates are from the policy, ν.
        normalise: see observations with mean 0 and deviation 1, as they were up to the last iteration.
    """

    copies: int = 1
    directions: int = 8
    top: int = 8
    learning_rate: float = 0.02
    deviation: float = 0.05
    normalise: bool = True

    def __post_init__(self) -> None:
        for key in ("copies", "directions"):
            check(key, getattr(self, key), "at least 1", getattr(self, key) >= 1)
        check("top", self.top, f"from 1 to agent.directions={self.directions}", 1 <= self.top <= self.directions)
        for key in ("learning_rate", "deviation"):
            check(key, getattr(self, key), "above 0", getattr(self, key) > 0)


@dataclass(frozen=True)
class TabularConfig:
    """Hyper-parameters of the tabular agents.

    Attributes:
        copies: environment copies of each seed; all of a seed's copies write into its one table.
        learning_rate: share of the temporal-difference error that is learned.
        gamma: discount.
        epsilon: probability of a random action while training; held-out episodes are played greedily.
        initial: the tables' first values.
    """

    copies: int = 1
    learning_rate: float = 0.1
    gamma: float = 0.95
    epsilon: float = 0.1
    initial: float = 0.0

    def __post_init__(self) -> None:
        check("copies", self.copies, "at least 1", self.copies >= 1)
        check("learning_rate", self.learning_rate, "above 0 and at most 1", 0 < self.learning_rate <= 1)
        for key in ("gamma", "epsilon"):
            check(key, getattr(self, key), "between 0 and 1", 0 <= getattr(self, key) <= 1)
        check("initial", self.initial, "a finite number", math.isfinite(self.initial))


@dataclass(frozen=True)
class TrafficConfig:
    """Settings of the controllers of traffic signals.

    Attributes:
        copies: environment copies of each seed, on all of which a plan is tried at once.
    """

    copies: int = 4

    def __post_init__(self) -> None:
        check("copies", self.copies, "at least 1", self.copies >= 1)
