"""Under the paper's definition all 16 games have a class, as in its figure 1d; ours leaves out what cannot be told."""

import math

import pytest

from lcd.analyses.published import CLASSES, by_game
from lcd.analyses.taxonomy import taxonomy
from lcd.scores.diagnosis import diagnose_curves
from lcd.scores.hard import HardFrom

GAMES = by_game(CLASSES)
SEEN = {True: (0.2, 0.5, 0.6), False: (0.55, 0.58, 0.6)}
"""AUC on pixels, figure-ground and semantic, of games that are hard to see and of others."""
THINNED = {True: (0.45, 0.3, 0.15), False: (0.6, 0.58, 0.56)}
"""AUC at p = .75, .5, .25, of games that are hard to learn from reward and of others."""


def study_of(make_study, changed=()):
    """Curves with areas that the paper's classes would come of, but for some games."""
    areas = {
        f"procgen/{game}": SEEN[kind in ("perception", "both")] + THINNED[kind in ("reward", "both")]
        for game, kind in GAMES.items()
    }
    return make_study(areas | dict(changed), 3, noise=0.002, benchmark="procgen")


def test_the_published_classes_come_of_areas_that_have_them(make_study):
    found = taxonomy(diagnose_curves(study_of(make_study), definition="paper")).table.set_index("task")["class"]
    assert {task.removeprefix("procgen/"): kind for task, kind in found.items()} == GAMES
    assert sum(kind in ("perception", "both") for kind in found) == 8
    assert sum(kind in ("reward", "both") for kind in found) == 3


def test_a_game_whose_pixels_teach_next_to_nothing_is_one_of_the_sixteen(make_study):
    """Climber's 3364.6 % of table A.7 is a ratio to such an area."""
    curves = study_of(make_study, {"procgen/climber": (0.005, 0.3, 0.4, *THINNED[False])})
    paper = diagnose_curves(curves, definition="paper")
    found = taxonomy(paper, HardFrom("median", 0.5)).table.set_index("task")["class"]
    assert {task.removeprefix("procgen/"): kind for task, kind in found.items()} == GAMES
    row = paper.table.set_index("task").loc["procgen/climber"]
    assert (row["phi_raw"], row["phi"], row["phi_rank"]) == (pytest.approx((0.35 - 0.005) / 0.01), 1, 1)
    assert [found.key for found in paper.findings] == ["nothing_learned_from_pixels"]
    others = paper.table[paper.table["task"] != "procgen/climber"]
    assert others["phi"].between(0, 1).all()
    assert others["phi"].max() == 1


def test_a_game_at_the_floor_is_scored_by_the_paper_and_not_by_us(make_study):
    curves = study_of(make_study, {"procgen/plunder": (0.01, 0.02, 0.03, 0.02, 0.02, 0.01)})
    paper = diagnose_curves(curves, definition="paper")
    assert paper.table[["phi_raw", "phi_raw_low", "psi_raw", "psi_raw_low", "phi", "psi"]].notna().all(axis=None)
    assert [found.key for found in paper.findings] == ["nothing_learned"]
    own = diagnose_curves(curves).table.set_index("task")["phi_raw"]
    assert math.isnan(own["procgen/plunder"])
    assert own.notna().sum() == 15
