"""The toys written down once more, slowly: one copy at a time, in words and loops. Imports nothing of ours.

Randomness is not drawn but read from a recording, so that states, rewards and ends can be compared exactly.
"""

from __future__ import annotations

import math
from collections import deque


class Recording:
    """The numbers that one copy drew, in order: ("uniform" | "integers" | "normal", value)."""

    def __init__(self):
        self.draws = deque()

    def take(self, kind):
        found, value = self.draws.popleft()
        assert found == kind, f"drew {found} where the reference expects {kind}"
        return value


class Rewarding:
    """Delay, noise, scale, shift and the reward of an end."""

    def __init__(self, knobs):
        self.knobs = knobs
        self.queue = [0.0] * knobs.get("delay", 0)

    def pay(self, earned, noise, terminal):
        self.queue.append(earned)
        reward = self.queue.pop(0)
        reward += noise
        reward *= self.knobs.get("reward_scale", 1.0)
        reward += self.knobs.get("reward_shift", 0.0)
        if terminal:
            reward += self.knobs.get("term_state_reward", 0.0) * self.knobs.get("reward_scale", 1.0)
        return reward


class DiscreteReference:
    """One copy of the discrete toy.

    Attributes:
        transitions, irrelevant: tables of successors.
        rewarded: {sequence: worth}.
        terminal, starts: lists of states.
    """

    def __init__(self, knobs, transitions, rewarded, terminal, starts, irrelevant=None):
        self.knobs, self.transitions, self.rewarded = knobs, transitions, rewarded
        self.terminal, self.starts, self.irrelevant = set(terminal), starts, irrelevant
        self.recording = Recording()
        self.size = len(transitions) // knobs.get("diameter", 1)
        self.length = knobs.get("sequence_length", 1)
        self.every = knobs.get("reward_every_n_steps") or self.length

    def reset(self):
        if self.knobs.get("init_state_dist") is None:
            self.state = self.starts[self.recording.take("integers")]
        else:
            left = self.recording.take("uniform")
            for state in self.starts:
                self.state = state
                left -= self.knobs["init_state_dist"][state]
                if left < 0:
                    break
        if self.irrelevant is not None:
            self.other = self.recording.take("integers")
        self.visited, self.taken = [self.state], []
        self.rewarding = Rewarding(self.knobs)

    def strayed(self, true, size, chance):
        """The true successor, or another state of its set."""
        if not callable(self.knobs.get("transition_noise", 0)) and chance == 0:
            return true
        if self.recording.take("uniform") >= chance:
            return true
        first = true // size * size
        others = [state for state in range(first, first + size) if state != true]
        return others[self.recording.take("integers")]

    def step(self, action, other_action=None):
        before = self.state
        chance = self.knobs.get("transition_noise", 0)
        if callable(chance):
            chance = chance(before, action, None)
        self.state = self.strayed(self.transitions[before][action], self.size, chance)
        if self.irrelevant is not None:
            size = len(self.irrelevant) // self.knobs.get("diameter", 1)
            self.other = self.strayed(self.irrelevant[self.other][other_action], size, chance)
        self.visited.append(self.state)
        self.taken.append(action)
        noise = self.knobs.get("reward_noise", 0)
        if callable(noise):
            noise = noise(before, action, None)
        elif noise > 0:
            noise *= self.recording.take("normal")
        terminal = self.state in self.terminal
        reward = self.rewarding.pay(self.earned(), noise, terminal)
        truncated = len(self.taken) == self.knobs.get("horizon", 100) and not terminal
        return reward, terminal, truncated

    def earned(self):
        step, reached = len(self.taken), self.visited[1:]
        if self.knobs.get("make_denser"):
            total = 0.0
            for sequence, worth in self.rewarded.items():
                for i in range(1, self.length + 1):
                    if tuple(reached[-i:]) == sequence[:i]:
                        total += worth * i / self.length
            return total
        if step < self.length or step % self.every:
            return 0.0
        function = self.knobs.get("reward_function")
        if callable(function):
            return function(tuple(self.visited[-self.length - 1 :]), tuple(self.taken[-self.length :]))
        if function is not None:
            return function[self.visited[-2]][self.taken[-1]]
        return self.rewarded.get(tuple(reached[-self.length :]), 0.0)


class ContinuousReference:
    """One copy of the continuous toy; the start and the noise are read from a recording."""

    def __init__(self, knobs):
        self.knobs = knobs
        self.dim = knobs.get("state_space_dim", 2)
        self.order = knobs.get("transition_dynamics_order", 1)
        self.relevant = knobs.get("relevant_indices") or list(range(self.dim))
        self.target = knobs.get("target_point") or [0.0] * len(self.relevant)
        self.length = knobs.get("sequence_length", 1)
        self.recording = Recording()

    def distance(self, position):
        return math.sqrt(sum((position[i] - t) ** 2 for i, t in zip(self.relevant, self.target, strict=True)))

    def in_terminal_region(self, position):
        half = self.knobs.get("term_state_edge", 1.0) / 2
        return any(
            all(abs(position[i] - c) <= half for i, c in zip(self.relevant, centre, strict=True))
            for centre in self.knobs.get("terminal_states") or []
        )

    def at_target(self, position):
        if self.knobs.get("reward_function", "move_to_a_point") != "move_to_a_point":
            return False
        return self.distance(position) < self.knobs.get("target_radius", 0.05)

    def reset(self):
        most = self.knobs.get("state_space_max", 10.0)
        while True:
            start = [most * (2 * self.recording.take("uniform") - 1) for _ in range(self.dim)]
            if not self.in_terminal_region(start) and not self.at_target(start):
                break
        # derivatives[i] is the i-th derivative of the position.
        self.derivatives = [start] + [[0.0] * self.dim for _ in range(self.order - 1)]
        self.positions = [start]
        self.rewarding = Rewarding(self.knobs)

    def step(self, action):
        time, most = self.knobs.get("time_unit", 1.0), self.knobs.get("state_space_max", 10.0)
        limit = self.knobs.get("action_space_max", 1.0)
        action = [max(-limit, min(limit, a)) for a in action]
        inertia = self.knobs.get("inertia", 1.0)
        inertia = inertia if isinstance(inertia, list) else [inertia] * self.dim
        old = [*self.derivatives, [a / m for a, m in zip(action, inertia, strict=True)]]
        new = [
            [
                sum(old[i + j][d] * time**j / math.factorial(j) for j in range(self.order - i + 1))
                for d in range(self.dim)
            ]
            for i in range(self.order)
        ]
        before = self.positions[-1]
        noise = self.knobs.get("transition_noise", 0.0)
        if callable(noise):
            new[0] = [x + n for x, n in zip(new[0], noise(before, action, None), strict=True)]
        elif noise > 0:
            new[0] = [x + noise * self.recording.take("normal") for x in new[0]]
        if max(map(abs, new[0])) > most:
            new = [[max(-most, min(most, x)) for x in new[0]], *[[0.0] * self.dim for _ in range(self.order - 1)]]
        self.derivatives = new
        self.positions.append(new[0])
        terminal = self.at_target(new[0]) or self.in_terminal_region(new[0])
        noise = self.knobs.get("reward_noise", 0.0)
        if callable(noise):
            noise = noise(before, action, None)
        elif noise > 0:
            noise *= self.recording.take("normal")
        penalty = self.knobs.get("action_loss_weight", 0.0) * math.sqrt(sum(a * a for a in action))
        reward = self.rewarding.pay(self.earned(), noise - penalty, terminal)
        truncated = len(self.positions) - 1 == self.knobs.get("horizon", 100) and not terminal
        return reward, terminal, truncated

    def earned(self):
        step = len(self.positions) - 1
        if step < self.length or step % self.knobs.get("reward_every_n_steps", 1):
            return 0.0
        if self.knobs.get("reward_function", "move_to_a_point") == "move_along_a_line":
            return -self.deviation(self.positions[-self.length - 1 :])
        if self.knobs.get("make_denser", True):
            return self.distance(self.positions[-2]) - self.distance(self.positions[-1])
        return 1.0 if self.at_target(self.positions[-1]) else 0.0

    def deviation(self, points):
        """Mean distance of the points from the line through their middle that is nearest to them (two dimensions)."""
        xs, ys = ([p[i] for p in points] for i in self.relevant)
        mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
        xx, yy = sum((x - mx) ** 2 for x in xs), sum((y - my) ** 2 for y in ys)
        xy = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
        angle = math.atan2(2 * xy, xx - yy) / 2
        return sum(
            abs((y - my) * math.cos(angle) - (x - mx) * math.sin(angle)) for x, y in zip(xs, ys, strict=True)
        ) / len(xs)
