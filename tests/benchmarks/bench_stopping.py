"""What `stopping=auto` saves, and how often its intervals and classes are wrong: with known truth, and on real seeds.

Trials decide by the functions that a study decides by (`lcd.scores.enough_seeds`). "model" is a group of sixteen tasks
whose areas fall with how long learning takes, where a seed's conditions are alike. Of a study, the seeds that it has
are taken for the population: trials draw from them with replacement, all tasks the same, and the truth is the score of
all of them together.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from lcd.curves.table import read_curves
from lcd.scores.challenge_table import KEYS
from lcd.scores.contrasts import DEFINITIONS, HEADLINE, all_conditions
from lcd.scores.diagnosis import normalised_curves, samples_by_task
from lcd.scores.enough_seeds import Enough, margins, next_conditions, open_scores
from lcd.scores.hard import FROM_HALF
from lcd.scores.scoring import TaskSamples, score_columns
from lcd.statistics.sequential import looks, nominal_levels

NAMES = tuple(all_conditions(HEADLINE, "semantic"))
SCORES = ("phi", "psi")
LEAST, RESAMPLES = 0.01, 300
TASKS, WIDTH, CLASS, FULL = "whole tasks, width", "width", "class", "all seeds"
Draw = Callable[[np.random.Generator, int], np.ndarray]
Row = tuple[str, ...]


def model(rng: np.random.Generator, count: int) -> np.ndarray:
    """Areas (tasks, seeds, conditions) of four perceptual by four reward levels."""
    slow = np.array([0.17, 0.25, 0.45, 0.8])[:, None, None]
    seen = np.array([1.0, 1.6, 3.0, 7.0])[:, None, None, None]
    stretch = np.array([1.5, 1.5, 1, 1 / 0.75, 2, 4])
    own = np.array([0.25, 0.2, 0.1, 0.12, 0.15, 0.3])
    alike = rng.normal(0, 0.2, (4, 4, count, 1))
    time = slow * stretch * np.exp(alike + own * rng.normal(size=(4, 4, count, 6)))
    time[..., :1] *= seen
    return (1 / (1 + time)).reshape(16, count, 6)


def of_study(folder: str) -> np.ndarray:
    """Areas (tasks, seeds, conditions) of those tasks of which all runs are done."""
    runs = [each.parent for each in Path(folder).glob("runs/*/status.json")]
    done = [run for run in runs if json.loads((run / "status.json").read_text())["state"] == "done"]
    curves = pd.concat([read_curves(run / "curve.csv") for run in done], ignore_index=True)
    every = samples_by_task(normalised_curves(curves)[0]).values()
    return np.array([np.stack(samples.areas, axis=1) for samples in every if samples.names == NAMES])


def column(score: str, definition: str) -> int:
    return score_columns().index(f"{score}_{definition}")


def table_at(samples: Mapping[Row, TaskSamples], definition: str, level: float) -> pd.DataFrame:
    """Of a diagnosis' table what is decided by."""
    rows = []
    for key, mine in samples.items():
        estimate, (low, high) = mine.intervals(LEAST, dict.fromkeys(SCORES, level), RESAMPLES)
        row = dict(zip(KEYS, key, strict=True))
        for score in SCORES:
            place = len(NAMES) + column(score, definition)
            row |= {f"{score}_raw": estimate[place], f"{score}_raw_low": low[place], f"{score}_raw_high": high[place]}
            row[f"{score}_status"] = "ok"
        rows.append(row)
    return pd.DataFrame(rows)


def samples_of(areas: np.ndarray, counts: Mapping[Row, np.ndarray]) -> dict[Row, TaskSamples]:
    return {
        key: TaskSamples(
            NAMES,
            tuple(areas[place, :count, each] for each, count in enumerate(counts[key])),
            tuple(tuple(range(count)) for count in counts[key]),
            "semantic",
        )
        for place, key in enumerate(counts)
    }


def trial(areas: np.ndarray, definition: str, rule: argparse.Namespace, way: str) -> tuple[np.ndarray, pd.DataFrame]:
    """Seeds (tasks, conditions) at the end, and the table with the intervals of each score's look.

    Its columns `<score>_sure` say whether the class is then told as decided.
    """
    steps = [rule.most] if way == FULL else looks(rule.first, rule.every, rule.most)
    levels = nominal_levels(steps, rule.most, rule.alpha, rule.spending)
    classes = FROM_HALF if way == CLASS else None
    enough = Enough({score: getattr(rule, score) for score in SCORES}, classes)
    keys = [("b", "a", "f", "s", f"t{place:02}") for place in range(len(areas))]
    counts = {key: np.full(len(NAMES), steps[0]) for key in keys}
    ended: dict[tuple[Row, str], float] = {}
    for place, (_, level) in enumerate(zip(steps, levels, strict=True)):
        samples = samples_of(areas, counts)
        table = table_at(samples, definition, level)
        last = place + 1 == len(steps)
        still = set() if last else open_scores(table, enough) - ended.keys()
        if way == TASKS:
            still = {(key, score) for key in {key for key, _ in still} for score in SCORES}
        ended = {(key, score): level for key in keys for score in SCORES if (key, score) not in still} | ended
        if not still:
            break
        room, wanted = margins(table, enough), {key: set() for key in keys}
        for key, score in still:
            following = steps[place + 1], levels[place + 1]
            most = room[key, score][1]
            names = next_conditions(samples[key], f"{score}_{definition}", most, *following, LEAST)
            wanted[key] |= set(NAMES if way == TASKS else names)
        for key in keys:
            counts[key][[name in wanted[key] for name in NAMES]] = steps[place + 1]
    return np.array(list(counts.values())), told_at(samples_of(areas, counts), definition, ended)


def told_at(
    samples: Mapping[Row, TaskSamples], definition: str, ended: Mapping[tuple[Row, str], float]
) -> pd.DataFrame:
    """What the report tells: each score's interval at the level of the look that ended it."""
    by_level = {level: table_at(samples, definition, level) for level in {*ended.values()}}
    table = next(iter(by_level.values())).copy()
    for score in SCORES:
        for place, key in enumerate(samples):
            source = by_level[ended[key, score]]
            for end in ("_low", "_high"):
                table.loc[place, f"{score}_raw{end}"] = source.loc[place, f"{score}_raw{end}"]
    sure = margins(table, Enough(dict.fromkeys(SCORES, 0.0), FROM_HALF))
    for score in SCORES:
        table[f"{score}_sure"] = [sure[key, score][0] <= sure[key, score][1] for key in samples]
    return table


def hard(raw: np.ndarray) -> np.ndarray:
    return raw >= (raw.min() + raw.max()) / 2


def measure(draw: Draw, truth: np.ndarray, definition: str, rule: argparse.Namespace) -> list[dict]:
    """A row a way of stopping; `truth` are the tasks' scores (tasks, scores)."""
    found = []
    for way in (TASKS, WIDTH, CLASS, FULL):
        rng, told = np.random.default_rng(5), []
        for _ in range(rule.trials):
            used, table = trial(draw(rng, rule.most), definition, rule, way)
            row = {"seeds": used.mean(), "saved": 1 - used.mean() / rule.most}
            for place, score in enumerate(SCORES):
                low, high = (table[f"{score}_raw{end}"].to_numpy() for end in ("_low", "_high"))
                row[f"{score}_missed"] = ((truth[:, place] < low) | (high < truth[:, place])).mean()
                wrong = hard(table[f"{score}_raw"].to_numpy()) != hard(truth[:, place])
                sure = table[f"{score}_sure"].to_numpy()
                row |= {f"{score}_wrong": wrong.mean(), f"{score}_sure": sure.mean()}
                row[f"{score}_sure_wrong"] = (wrong & sure).mean()
            told.append(row)
        found.append({"way": way, **pd.DataFrame(told).mean().to_dict()})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", help="a study's folder; tasks that are not finished are left out")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--definitions", nargs="+", default=list(DEFINITIONS))
    for name, value in (("first", 4), ("every", 2), ("most", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in (("phi", 0.2), ("psi", 0.1), ("alpha", 0.05)):
        parser.add_argument(f"--{name}", type=float, default=value)
    parser.add_argument("--spending", default="pocock")
    parser.add_argument("--out", help="a CSV file")
    rule = parser.parse_args()
    places: dict[str, tuple[Draw, np.ndarray]] = {"model": (model, model(np.random.default_rng(0), 100_000).mean(1))}
    if rule.study:
        areas = of_study(rule.study)
        places["study"] = (lambda rng, count: areas[:, rng.integers(areas.shape[1], size=count)], areas.mean(1))
    rows = []
    for definition in rule.definitions:
        for name, (draw, means) in places.items():
            every = TaskSamples(NAMES, (np.zeros(1),) * 6, ((0,),) * 6, "semantic").scores(means, LEAST)
            truth = every[:, [column(score, definition) for score in SCORES]]
            found = measure(draw, truth, definition, rule)
            rows += [{"definition": definition, "of": f"{name}, {len(means)} tasks", **row} for row in found]
    table = pd.DataFrame(rows)
    print(table.set_index(["definition", "of", "way"]).round(3).T.to_string())
    if rule.out:
        table.to_csv(rule.out, index=False)


if __name__ == "__main__":
    main()
