"""Films of evaluations: they are there when a tracker wants them, and change nothing else."""

import numpy as np
import pandas as pd
from PIL import Image
from small_runs import toy_run, train_in_a_folder

from lcd.pipelines.jobs.films import save_gif
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.publish.track import Tracker
from lcd.pipelines.study.configs import Device


def test_curves_and_updates_are_the_same_with_films(tmp_path_factory, tmp_path, monkeypatch):
    agent = {"name": "ppo", "copies": 2, "rollout": 20, "epochs": 1, "minibatches": 1, "encoder": "cnn"}
    config = toy_run(agent, view="pixels", steps=160, evaluation={"every": 40, "copies": 2, "episodes": 1})
    without = train_in_a_folder(tmp_path_factory, config)
    sent = []
    monkeypatch.setattr(Tracker, "videos", 2)
    monkeypatch.setattr(Tracker, "log_video", lambda self, step, path: sent.append((step, path)))
    train_run(config, tmp_path, {"name": "none"}, Device("cpu"))
    for name, timed in (("curve.csv", ["wall_s"]), ("train.csv", ["wall_s", "steps_per_s", "memory_mb"])):
        found, expected = (pd.read_csv(folder / name).drop(columns=timed) for folder in (tmp_path, without))
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert [step for step, _ in sent] == [0, 80, 160]
    assert not (without / "films").exists()
    with Image.open(sent[0][1]) as film:
        # An episode of the toy has 20 steps; frames that do not change may be joined.
        assert 1 < film.n_frames <= 20


def test_a_film_shows_what_was_seen(tmp_path):
    frames = [np.full((8, 8, 3), shade, np.uint8) for shade in (0, 120, 255)]
    save_gif(frames, tmp_path / "x.gif")
    with Image.open(tmp_path / "x.gif") as film:
        assert (film.size, film.n_frames) == ((128, 128), 3)
        shown = []
        for number in range(3):
            film.seek(number)
            shown.append(int(np.asarray(film.convert("RGB"))[64, 64, 0]))
    np.testing.assert_allclose(shown, [0, 120, 255], atol=3)
