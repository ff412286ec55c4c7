"""Challenge cards: every line is a number with its interval, or says what would measure it."""

import json
import math
import shlex
from dataclasses import replace

import pytest

from lcd.analyses import Evidence, analyse
from lcd.config.compose import compose
from lcd.report.challenge_cards import FILE, MEASURED, NOT_MEASURED, NOT_THERE, card_schema, cards_of, save_cards, told
from lcd.report.page import write_report
from lcd.scores.contrasts import DELAY_LOSS, HEADLINE
from lcd.scores.diagnosis import diagnose_curves
from tests.shared.curve_sets import TASKS, curve_rows, study

COST = {"runs": 2, "steps": 1_000_000, "core_hours": 10.0, "gpu_hours": 0.0}


def carded(curves, **how):
    diagnosis = diagnose_curves(curves, **how)
    return diagnosis, {card.task: {line.key: line for line in card.lines} for card in cards_of(diagnosis, [])}


def test_scores_stand_on_the_card_as_in_the_table():
    diagnosis, cards = carded(study(TASKS, seeds=4, noise=0.01))
    for _, row in diagnosis.table.iterrows():
        for key in ("phi", "psi"):
            line = cards[row["task"]][key]
            assert (line.state, line.value) == (MEASURED, row[f"{key}_raw"])
            assert (line.low, line.high) == (row[f"{key}_raw_low"], row[f"{key}_raw_high"])


def test_a_contrast_that_was_asked_is_measured_and_the_others_are_not():
    import pandas as pd

    curves = pd.concat(
        [
            study({"toy/easy-sight-easy-reward": TASKS["toy/easy"]}, seeds=2, benchmark="toy", agent="ppo"),
            pd.DataFrame(
                [
                    row
                    for delay in (2, 4)
                    for seed in (0, 1)
                    for row in curve_rows(
                        0.84 - 0.1 * delay, task=f"toy/easy-sight-easy-reward[delay={delay}]", condition="semantic",
                        seed=seed, benchmark="toy", agent="ppo",
                    )
                ]
            ),
        ]
    )  # fmt: skip
    _, cards = carded(curves, contrasts=(*HEADLINE, DELAY_LOSS))
    lines = cards["toy/easy-sight-easy-reward"]
    assert lines["delay_loss"].value == pytest.approx(0.3)  # 0.84 less the mean of 0.64 and 0.44
    assert lines["memory_gain"].state == lines["noise_loss"].state == NOT_MEASURED


def test_what_would_measure_is_a_command_that_is_understood():
    curves = study({"toy/easy-sight-easy-reward": TASKS["toy/easy"]}, seeds=2, benchmark="toy", agent="ppo")
    diagnosis = replace(diagnose_curves(curves), cost=COST)
    (card,) = cards_of(diagnosis, [])
    commands = {line.key: line for line in card.lines if line.state == NOT_MEASURED}
    assert {"delay_loss", "noise_loss", "sequence_loss", "memory_gain", "frontend_gain"} <= commands.keys()
    for key, line in commands.items():
        lcd, command, *words = shlex.split(line.command)
        config = compose(command, words)
        assert lcd == "lcd"
        if command != "horizon":
            assert config.study.tasks == ["toy/easy-sight-easy-reward"]
            assert config.study.seeds == 2
        if key in ("delay_loss", "noise_loss", "sequence_loss", "memory_gain"):
            assert config.study.contrasts == [key]
    # Two variants of 1,000 steps for two seeds, at ten hours a million steps.
    assert commands["delay_loss"].core_hours == pytest.approx(10 / 1e6 * 1000 * 2 * 2)
    assert "would, ≈ 2 min of a core" in told(commands["delay_loss"])


def test_of_strangers_tasks_no_command_is_made_up():
    _, cards = carded(study({"x'; rm -rf ~ #": TASKS["toy/easy"]}, seeds=2))
    for line in cards["x'; rm -rf ~ #"].values():
        assert line.command == ""
        assert line.state in (MEASURED, NOT_THERE) or line.why


def test_cards_keep_their_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    diagnosis = diagnose_curves(
        study(TASKS | {"floor": (0.0,) * 6, "half": (0.2, None, None, 0.1, None, 0.1)}, seeds=2)
    )
    analyses = analyse(Evidence(diagnosis))[0]
    save_cards(tmp_path / FILE, diagnosis, analyses)
    content = json.loads((tmp_path / FILE).read_text())
    jsonschema.validate(content, card_schema())
    assert content["version"] == 1
    kinds = {card["task"]: card["kind"] for card in content["cards"]}
    classes = next(each for each in analyses if each.key == "taxonomy").table.set_index("task")["class"]
    assert {task: kind for task, kind in kinds.items() if kind not in ("", "withheld")} == classes.to_dict()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content | {"version": 2}, card_schema())


def test_the_page_tells_what_would_measure_and_escapes_it(tmp_path):
    name = "toy/<img src=x>"
    diagnosis = diagnose_curves(study(TASKS | {name: TASKS["toy/easy"]}, seeds=2))
    page = write_report(tmp_path, diagnosis).read_text()
    assert "what remembering earlier observations adds" in page
    # One sentence for all that has the same reason.
    assert page.count("its environment is not known here") == len(diagnosis.table)
    assert "<img src=x>" not in page


def test_intervals_are_those_of_gains():
    import pandas as pd

    curves = pd.concat([study(TASKS, seeds=3, noise=0.02), study(TASKS, seeds=3, noise=0.02, frontend="flow")])
    diagnosis = diagnose_curves(curves)
    analyses = analyse(Evidence(diagnosis), ["frontend"])[0]
    cards = [card for card in cards_of(diagnosis, analyses) if card.frontend == "identity"]
    gains = {row["task"]: row for _, row in next(a for a in analyses if a.key == "frontend").table.iterrows()}
    for card in cards:
        line = next(each for each in card.lines if each.key == "frontend_gain:flow")
        row = gains[card.task]
        assert (line.value, line.low, line.high) == (row["gain"], row["gain_low"], row["gain_high"])
        assert math.isfinite(line.low)
