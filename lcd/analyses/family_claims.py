"""What Jayawardana et al. (2022) report of families of MDPs, as tests that were written before anything was trained.

docs/families.md#what-we-expect states each of them with its rule. A claim whose methods were not trained is not tested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence
from lcd.analyses.family_accuracy import mean_errors
from lcd.analyses.family_settings import FamilySettings
from lcd.analyses.family_suite import PAPER, PAPER_TASKS, is_papers, plain_name, suite_table
from lcd.envs.errors import InputError
from lcd.envs.families.family import SIMPLIFIED
from lcd.families.measured import Measured, measured_families
from lcd.families.prevalence import random_distributions
from lcd.families.weights import known_family
from lcd.statistics.intervals import BOOTSTRAP_SEED, mean_interval

OPTIMAL = 0.95
"""A point is optimally solved, and a reported performance is the best there is, from here on (the paper: 1.0)."""
SURE = 0.05
"""Ranks change if they do in more than this share of random distributions."""
NEAR, NEARER = 10.0, 5.0
"""Percentage points within which a share counts as the paper's: of a method, and of what no method solves."""
DRAWS = 10_000
BUDGETS = (0.125, 0.25, 0.5)
"""Shares of the points at which ways to choose them are compared."""
LEFT = 0.05
"""The normalised score from which on a task of time was done at all: with less nearly all of the time has run out."""
ALIKE, APART = 0.1, 0.3
"""Normalised scores are called alike if they differ by no more, and far apart if they differ by at least as much."""
TOLD = 0.005
"""Normalised scores that differ by less say nothing of an order."""

LACKS = "lacks"
"""How what is found begins of a claim whose methods were not trained."""

Verdict = tuple[str, bool]
"""What was found, and whether the claim holds."""


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Attributes:
        family: the task that it is about: a key of `TASKS`.
        says: the claim.
        paper: where the paper says it, or its figures.
        methods: without which it cannot be tested.
        test: what decides, given the family with these methods alone.
        scaled: whether it is about normalised scores; of returns whose range nobody knows it is then not asked.
    """

    family: str
    says: str
    paper: str
    methods: tuple[str, ...]
    test: Callable[[Measured], Verdict]
    scaled: bool = True


TASKS = {
    "cartpole": r"cart_?pole",
    **{name: told for name, told in PAPER_TASKS.items() if name != "mountain-car"},
    "quad": r"\bquad\b",
    "pendulum-five": r"pendulum_five",
    "swimmer": r"swimmer",
}
"""Family → what its task is called somewhere in its name, capitals and hyphens aside."""
CART, SWING = ("ppo", "trpo", "dqn", "ars"), ("ppo", "trpo", "sac", "td3")
TWO = ("ppo", "trpo")
FIVE = {"quad": (2, OPTIMAL), "pendulum-five": (1, LEFT), "swimmer": (1, LEFT)}
"""Families of table 3 → at how many points PPO fails with all seeds, and the normalised score that is no failure."""
EQUAL, UNEQUAL = "lower=6,upper=0", "lower=3,upper=0.5"
"""Points of the quadcopter that the paper's section 2 compares."""


def _reported_best(found: Measured) -> Verdict:
    reported = {method: scores.mean() for method, scores in found.reported.items()}
    return _listed(reported), min(reported.values()) >= OPTIMAL


def _overall_below(found: Measured) -> Verdict:
    told, holds = [], True
    for method, overall in found.overall.items():
        high = float(mean_interval(overall).high) if len(overall) > 1 else float(overall.mean())
        told.append(f"{method} {overall.mean():.3f}")
        holds &= high < found.reported[method].mean()
    return ", ".join(told), holds


def _order(*wanted: str) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        overall = {method: float(scores.mean()) for method, scores in found.overall.items()}
        order = sorted(overall, key=lambda method: -overall[method])
        return ", ".join(f"{method} {overall[method]:.3f}" for method in order), order == list(wanted)

    return test


def _unsolved(found: Measured) -> Verdict:
    share = float(100 * found.distribution @ (found.means < OPTIMAL).all(0))
    return f"{share:.1f} %", abs(share - 17) <= NEARER


def _solved_shares(found: Measured) -> Verdict:
    shares = dict(zip(found.methods, 100 * (found.means >= OPTIMAL) @ found.distribution, strict=True))
    first = sorted(shares, key=lambda method: -shares[method])[:2]
    near = abs(shares["ppo"] - 61) <= NEAR and abs(shares["trpo"] - 56) <= NEAR
    return ", ".join(f"{m} {share:.1f} %" for m, share in shares.items()), near and set(first) == {"ppo", "trpo"}


def _ranks_change(found: Measured) -> Verdict:
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = random_distributions(len(found.distribution), DRAWS, rng) @ found.means.T
    own = np.argsort(-(found.means @ found.distribution))
    share = float((np.argsort(-drawn, axis=1) != own).any(1).mean())
    return f"another order in {100 * share:.1f} % of distributions", share > SURE


def _kmeans_wins(found: Measured) -> Verdict:
    ways = ("with_replacement", "without_replacement", "kmeans")
    budgets = [max(1, round(share * len(found.distribution))) for share in BUDGETS]
    error = mean_errors(found, budgets, ways).groupby("how")["error"].mean()
    told = ", ".join(f"{name} {error[how]:.3g}" for name, how in zip(("M1", "M2", "M3"), ways, strict=True))
    return told, bool(error["kmeans"] < min(error[how] for how in ways[:2]))


def _reported_first(method: str) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        reported = {name: scores.mean() for name, scores in found.reported.items()}
        return _listed(reported), max(reported, key=lambda name: reported[name]) == method

    return test


def _overall_first(method: str) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        overall = {name: scores.mean() for name, scores in found.overall.items()}
        return _listed(overall), max(overall, key=lambda name: overall[name]) == method

    return test


def _swapped(found: Measured) -> Verdict:
    before = found.reported["ppo"].mean() - found.reported["td3"].mean()
    after = found.overall["ppo"].mean() - found.overall["td3"].mean()
    return f"ppo − td3: reported {before:+.5g}, overall {after:+.5g}", bool(before > 0 > after)


def _points_disagree(found: Measured) -> Verdict:
    gaps = found.means[0] - found.means[1]
    first, second = found.methods
    return f"{first} − {second}: {gaps.min():+.3f} to {gaps.max():+.3f}", bool(gaps.min() < -TOLD < TOLD < gaps.max())


def _simplified_best(found: Measured) -> Verdict:
    if SIMPLIFIED not in found.marks:
        raise InputError("the simplified point is not measured")
    means = found.means.mean(0)
    simplified = means[found.marks[SIMPLIFIED]]
    return f"{simplified:.3f}, the best of all points {means.max():.3f}", bool(simplified >= means.max())


def _never_done(count: int, done: float) -> Callable[[Measured], Verdict]:
    def test(found: Measured) -> Verdict:
        failed = int((found.scores["ppo"].max(1) < done).sum())
        return f"no seed at {failed} of {len(found.distribution)} points", failed == count

    return test


def _points_contradict(found: Measured) -> Verdict:
    gaps = dict(zip(found.contexts, (found.scores["ppo"] - found.scores["trpo"]).mean(1), strict=True))
    if lacking := {EQUAL, UNEQUAL} - set(gaps):
        raise InputError(f"the point {min(lacking)} is not measured")
    told = f"ppo − trpo: {gaps[EQUAL]:+.3f} and {gaps[UNEQUAL]:+.3f}"
    return told, bool(abs(gaps[EQUAL]) <= ALIKE and gaps[UNEQUAL] >= APART)


CLAIMS = (
    Claim("cartpole", "All methods report the best performance.", "figure 6a: 1.0", CART, _reported_best),
    Claim("cartpole", "Overall, each method is below what it reports.", "figure 6a", CART, _overall_below),
    Claim("cartpole", "Overall, the order is PPO, TRPO, DQN, ARS.", "D.2", CART, _order(*CART)),
    Claim("cartpole", "About 17 % of the points are solved by no method.", "D.2: 17 %", CART, _unsolved),
    Claim("cartpole", "PPO and TRPO solve the most points, 61 % and 56 %.", "D.2", CART, _solved_shares),
    Claim("cartpole", "Ranks change between distributions.", "figure 23", CART, _ranks_change),
    Claim("cartpole", "k-means is nearer than random sampling.", "figure 18", CART, _kmeans_wins),
    Claim("pendulum", "TRPO reports the best performance.", "figure 6b", SWING, _reported_first("trpo")),
    Claim("pendulum", "Overall, SAC is the best.", "figure 6b", SWING, _overall_first("sac")),
    Claim("pendulum", "Ranks change between distributions.", "figure 23", SWING, _ranks_change),
    Claim("pendulum", "k-means is nearer than random sampling.", "figure 17", SWING, _kmeans_wins),
    Claim("half-cheetah", "PPO is ahead of TD3 as reported, and behind overall.", "figure 6c", SWING, _swapped,
          scaled=False),
    Claim("half-cheetah", "k-means is nearer than random sampling.", "figure 19", SWING, _kmeans_wins, scaled=False),
    Claim("quad", "PPO and TRPO are alike at (0, 6), and PPO is far ahead at (0.5, 3).", "section 2: by 0.75", TWO,
          _points_contradict),
    *(Claim(five, "Points disagree on the order of PPO and TRPO.", "figure 2", TWO, _points_disagree) for five in FIVE),
    *(Claim(five, "The simplified point is the best one.", "figure 2", TWO, _simplified_best) for five in FIVE),
    *(Claim(five, f"PPO never gets there at {count} of the points.", "figure 3", ("ppo",), _never_done(count, done))
      for five, (count, done) in FIVE.items()),
)  # fmt: skip


def claims_about_families(evidence: Evidence) -> Analysis | None:
    """Do the paper's findings on families of MDPs hold here? Each claim, what was found, and whether it holds."""
    diagnosis = evidence.diagnosis
    if diagnosis.points.empty:
        return None
    rows = list(run_claims(measured_families(diagnosis.points, diagnosis.curves)))
    if not rows:
        return None
    tested = [row for row in rows if row["outcome"] != "not tested"]
    held = sum(row["outcome"] == "holds" for row in tested)
    note = (
        "The rules are in docs/families.md; they were written before anything was trained. A claim is about the "
        "paper's methods: without one of them it is not tested."
    )
    none = "None of them could be tested here: each needs the paper's methods, and what they report."
    says = [f"{held} of {len(tested)} claims that could be tested hold." if tested else none]
    return Analysis("family_claims", "The paper's claims about families", pd.DataFrame(_together(rows)), says, note)


def _together(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The claims, of which those that lack the same methods on a task share a row."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        alone = () if row["found"].startswith(LACKS) else (row["claim"],)
        found.setdefault((row["task"], row["found"], *alone), []).append(row)
    return [
        same[0] if len(same) == 1 else same[0] | {"claim": f"{len(same)} claims", "paper": ""}
        for same in found.values()
    ]


def run_claims(found: Sequence[Measured]) -> Iterator[dict[str, str]]:
    """A row for each claim about one of these families: what the paper says, what was found, whether it holds."""
    for each in found:
        named = by_paper(each)
        for claim in CLAIMS:
            known = each.scale == "normalised" or not claim.scaled
            if known and re.search(TASKS[claim.family], plain_name(each.task)):
                yield _row(claim, each, named)
    yield from _suite(found)


def _row(claim: Claim, found: Measured, named: Measured) -> dict[str, str]:
    row = {"task": found.task, "claim": claim.says, "paper": claim.paper}
    if lacking := _lacking(named, claim.methods):
        return row | {"found": f"{LACKS} {', '.join(lacking)}", "outcome": "not tested", "points": ""}
    try:
        told, holds = claim.test(_only(named, claim.methods))
    except InputError as why:
        return row | {"found": str(why), "outcome": "not tested", "points": ""}
    outcome = "holds" if holds else "fails"
    return row | {"found": told, "outcome": outcome, "points": _points(found)}


def _suite(found: Sequence[Measured]) -> Iterator[dict[str, str]]:
    """Table 6: over every choice of one point a task, who is ranked first most often."""
    named = [by_paper(each) for each in found]
    suite = [_only(each, SWING) for each in named if not _lacking(each, SWING)]
    by_task = {each.task: each for each in reversed(suite)}
    first = [
        by_task[task] for task in by_task if any(re.search(name, plain_name(task)) for name in PAPER_TASKS.values())
    ]
    if not is_papers([each.task for each in first], SWING):
        return
    table = suite_table(first, FamilySettings()).set_index("agent")
    best = [str(name) for name in table["rank 1 %"].sort_values(ascending=False, kind="stable").index]
    wanted = sorted(PAPER, key=lambda name: -PAPER[name][0])
    yield {
        "task": " × ".join(each.task for each in first),
        "claim": "Over choices of one point a task SAC is first most often, then TRPO, PPO, TD3.",
        "paper": "table 6: " + ", ".join(f"{name} {PAPER[name][0]:.2f} %" for name in wanted),
        "found": ", ".join(f"{name} {table.loc[name, 'rank 1 %']:.2f} %" for name in best),
        "outcome": "holds" if best == wanted else "fails",
        "points": " × ".join(_points(each) for each in first),
    }


def _points(found: Measured) -> str:
    """How many points are measured, and of how many where the family has more."""
    family = known_family(found.benchmark, found.task)
    count, whole = len(found.distribution), 0 if family is None else len(family.points)
    return f"{count} of {whole}" if whole > count else f"{count}"


def _lacking(found: Measured, methods: Sequence[str]) -> list[str]:
    """The methods without scores, or without what they report."""
    return [name for name in methods if name not in found.scores or not len(found.reported.get(name, ()))]


def _only(found: Measured, methods: Sequence[str]) -> Measured:
    """The family with these methods alone, in their order."""
    return replace(
        found,
        scores={name: found.scores[name] for name in methods},
        reported={name: found.reported[name] for name in methods},
    )


def by_paper(found: Measured) -> Measured:
    """The family with its methods called as in the paper: `sb3/ppo` is `ppo`, and comes before another `ppo`."""
    names: dict[str, str] = {}
    for method in sorted(found.methods, key=lambda name: not name.startswith("sb3/")):
        names.setdefault(plain_name(method).rpartition("/")[2].partition("[")[0], method)
    return replace(
        found,
        scores={name: found.scores[method] for name, method in names.items()},
        reported={name: found.reported[method] for name, method in names.items() if method in found.reported},
        seeds={name: found.seeds[method] for name, method in names.items()},
        turns={name: found.turns[method] for name, method in names.items() if method in found.turns},
    )


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())
