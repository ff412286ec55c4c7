"""The registry behind every kind of name: who registers is found here, and `lcd list` and the config read it.

Those of benchmarks, front-ends, agents and contrasts stand beside what they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from lcd.envs.registry import Registry

launchers = Registry("launcher", "lcd.launchers")
launchers.add("local", "lcd.pipelines.launch.local:launch")
launchers.add("slurm", "lcd.pipelines.launch.slurm:launch")
launchers.add("ray", "lcd.pipelines.launch.ray:launch")

kinds = Registry("kind of job", "lcd.jobs")
kinds.add("train", "lcd.pipelines.kinds.train:TRAINING")
kinds.add("pretrain", "lcd.pipelines.kinds.pretrain:PRETRAINING")

trackers = Registry("tracker", "lcd.trackers")
trackers.add("none", "lcd.pipelines.publish.track:Tracker")
trackers.add("wandb", "lcd.pipelines.publish.wandb_tracker:WandbTracker")

analyses = Registry("analysis", "lcd.analyses")
for _name, _function in {
    "taxonomy": "taxonomy:classes",
    "calibration": "known_hardness:recovery",
    "samples": "samples:in_samples",
    "grid": "grids:places_of_the_grid",
    "playground_claims": "playground_claims:claims_about_dials",
    "agreement": "agreement:agreements",
    "synergy": "synergy:synergies",
    "frontend": "gains:frontend_gains",
    "shaping": "gains:shaping_gains",
    "adaptive": "adaptive:by_recommendation",
    "final": "levels:performance_at_the_end",
    "generalisation": "levels:gaps",
    "outcomes": "outcomes:beyond_training",
    "families": "families:families",
    "family_scores": "family_scores:challenges_over_families",
    "family_claims": "family_claims:claims_about_families",
    "returns": "raw_returns:without_range",
    "horizon": "look_ahead:against_horizon",
    "solved": "solved:solved",
    "ranges": "other_ranges:under_other_ranges",
    "published": "published:beside_the_paper",
    "artefacts": "paper_artefacts:paper_artefacts",
}.items():
    analyses.add(_name, f"lcd.analyses.{_function}")

sections = Registry("section", "lcd.sections")
for _name in ("validity", "leading", "families", "scores", "comparisons", "training", "curricula", "run", "methods"):
    sections.add(_name, f"lcd.report.sections:{_name}")

_HOMES = {
    "benchmark": "lcd.envs.benchmarks:BENCHMARKS",
    "frontend": "lcd.frontends:frontends",
    "agent": "lcd.agents:agents",
    "contrast": "lcd.scores.contrasts:contrasts",
    "job": f"{__name__}:kinds",
    "launcher": f"{__name__}:launchers",
    "tracker": f"{__name__}:trackers",
    "analysis": f"{__name__}:analyses",
    "section": f"{__name__}:sections",
}
KINDS = tuple(_HOMES)
ALL = "all"
"""Among the analyses or sections that a command names: those that are registered and that it does not name."""


def chosen(known: Registry, names: Sequence[str] | None) -> list[str]:
    """The analyses or sections that are meant, in their order, each once.

    Args:
        known: where they are registered.
        names: those asked for; None: all that are registered.
    """
    asked = (ALL,) if names is None else names
    usual = [name for name in known.names() if name not in asked]
    found = (part for name in asked for part in (usual if name == ALL else (name,)))
    return list(dict.fromkeys(found))


def registry(kind: str) -> Registry:
    """The registry of a kind of thing, one of `KINDS`; its module is imported now."""
    module, _, name = _HOMES[kind].partition(":")
    return getattr(import_module(module), name)
