"""`lcd import`: logs as the libraries themselves write them, hostile ones, bins, and curves of different lengths."""

import json

import numpy as np
import pandas as pd
import pytest

import lcd
from lcd.cli import main
from lcd.curves.table import read_curves
from lcd.envs.errors import InputError, Unfinished
from lcd.pipelines.importing.binning import binned, cut_to_shared
from lcd.pipelines.importing.import_curves import imported
from lcd.pipelines.importing.mapping import read_by
from lcd.pipelines.importing.read_run import ReadRun
from tests.shared.curve_sets import study

FOLDERS = "{task}/{view}/p{reward_p}/seed_{seed}"


def evaluations(folder, steps=(0, 100, 200), seed=0, **more):
    folder.mkdir(parents=True, exist_ok=True)
    results = np.random.default_rng(seed).normal(5, 1, (len(steps), 4))
    np.savez(folder / "evaluations.npz", timesteps=np.array(steps), results=results, **more)
    return results


def rows(seed, steps, returns, **more):
    known = {"task": "a", "view": "pixels", "reward_p": 1.0, "seed": seed, "step": steps, "return_mean": returns}
    return pd.DataFrame(known | more)


# What libraries write -------------------------------------------------------------------------------------------------


def test_stable_baselines_evaluations_and_monitor(tmp_path):
    sb3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    import gymnasium
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.monitor import Monitor

    folder = tmp_path / "logs" / "CartPole-v1" / "pixels" / "p0.5" / "seed_3"
    envs = [Monitor(gymnasium.make("CartPole-v1"), str(folder / name)) for name in ("0", "held-out/0")]
    told = EvalCallback(envs[1], n_eval_episodes=3, eval_freq=64, log_path=str(folder), verbose=0)
    model = sb3.A2C("MlpPolicy", lcd.wrap_rewards(envs[0], 0.5, seed=3), seed=3, device="cpu")
    model.learn(256, callback=told)
    for env in envs:
        env.close()

    curves = imported(tmp_path / "logs", folders=FOLDERS).curves
    kept = np.load(folder / "evaluations.npz")
    assert curves["step"].tolist() == kept["timesteps"].tolist() == [64, 128, 192, 256]
    assert curves["return_mean"].to_numpy() == pytest.approx(kept["results"].mean(axis=1))
    assert curves["length_mean"].to_numpy() == pytest.approx(kept["ep_lengths"].mean(axis=1))
    assert set(curves["task"]) == {"CartPole-v1"}
    assert curves[["reward_p", "seed"]].drop_duplicates().to_numpy().tolist() == [[0.5, 3]]

    # Monitor is inside: CartPole pays 1 a step, whatever p is.
    episodes = imported(
        folder / "0.monitor.csv", {"task": "CartPole", "view": "state", "reward_p": 0.5, "seed": 3}, grid=0
    )
    assert (episodes.curves["return_mean"] == episodes.curves["length_mean"]).all()
    assert episodes.curves["step"].tolist() == episodes.curves["length_mean"].cumsum().tolist()
    assert any("episodes of training" in note for note in episodes.notes)


def test_stable_baselines_loggers_progress_and_tensorboard_tell_the_same(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    logger = pytest.importorskip("stable_baselines3.common.logger").configure(str(tmp_path), ["csv", "tensorboard"])
    for step in range(0, 500, 100):
        logger.record("rollout/ep_rew_mean", step / 7)
        logger.record("time/total_timesteps", step)
        logger.dump(step)
    logger.close()
    given = {"task": "a", "view": "pixels", "reward_p": 1, "seed": 0}
    csv = imported(tmp_path, given, kind="progress").curves
    board = imported(tmp_path, given, kind="tensorboard").curves
    assert csv["step"].tolist() == board["step"].tolist() == [0, 100, 200, 300, 400]
    assert csv["return_mean"].to_numpy() == pytest.approx(board["return_mean"].to_numpy(), rel=1e-4)


class Trial:
    """What Ray's loggers ask of a trial."""


def test_rllibs_progress_and_params(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed")
    from ray.tune.logger.csv import CSVLoggerCallback
    from ray.tune.logger.json import JsonLoggerCallback

    for seed in (0, 1):
        folder = tmp_path / f"PPO_{seed}"
        folder.mkdir()
        trial = Trial()
        trial.config = {"env": "CartPole-v1", "seed": seed, "lr": float("inf") if seed else 0.1}
        trial.checkpoint = None
        trial.local_path, trial.init_local_path, trial.trial_id = str(folder), lambda: None, str(seed)
        csv, settings = CSVLoggerCallback(), JsonLoggerCallback()
        settings.update_config(trial, trial.config)
        for callback in (csv, settings):
            callback.log_trial_start(trial)
        for step in (0, 4000, 8000):
            told = {"num_env_steps_sampled_lifetime": step, "env_runners": {"episode_return_mean": step / 100 + seed}}
            for callback in (csv, settings):
                callback.log_trial_result(1, trial, told)
        for callback in (csv, settings):
            callback.log_trial_end(trial)
    # What is no JSON (an infinite learning rate) is no setting: the seed is told by the folder.
    curves = imported(tmp_path, {"view": "pixels", "reward_p": 1, "task": "CartPole-v1"}, folders="PPO_{seed}").curves
    found = curves.sort_values(["seed", "step"])[["seed", "step", "return_mean"]].to_numpy().tolist()
    assert found == [[0, 0, 0], [0, 4000, 40], [0, 8000, 80], [1, 0, 1], [1, 4000, 41], [1, 8000, 81]]


def test_cleanrls_layout_needs_view_and_p_alone(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from torch.utils.tensorboard import SummaryWriter

    for seed in (1, 2):
        writer = SummaryWriter(str(tmp_path / f"CartPole-v1__dqn__{seed}__9"))
        table = f"|param|value|\n|-|-|\n|exp_name|dqn|\n|env_id|CartPole-v1|\n|seed|{seed}|"
        writer.add_text("hyperparameters", table)
        for step in range(10, 2000, 10 * seed):
            writer.add_scalar("charts/episodic_return", step, step)
        writer.close()
    with pytest.raises(InputError, match=r"map says nothing of view, reward_p.*a config exp_name, env_id, seed"):
        imported(tmp_path)
    curves = imported(tmp_path, {"view": "pixels", "reward_p": 1}, grid=200).curves
    assert set(curves["agent"]) == {"dqn"}
    assert sorted(set(curves["seed"])) == [1, 2]
    # Of a straight line, the middle of a bin is where its mean lies; the outer ones are not full.
    inner = curves[(curves["step"] > 200) & (curves["seed"] == 1) & (curves["step"] < 1800)]
    assert inner["return_mean"].to_numpy() == pytest.approx(inner["step"].to_numpy() + 5)


def test_rliables_dictionary(tmp_path):
    scores = {"ppo": np.arange(24.0).reshape(2, 3, 4), "dqn": np.zeros((2, 3, 4))}
    np.savez(tmp_path / "scores.npz", frames=np.array([0, 10, 20, 30]), **scores)
    given = {"view": "pixels", "reward_p": 1, "r_min": 0, "r_max": 100}
    names = {"task": {"0": "Breakout", "1": "Pong", "2": "Qbert"}}
    curves = imported(tmp_path / "scores.npz", given, names=names).curves
    pong = curves[(curves["agent"] == "ppo") & (curves["task"] == "Pong") & (curves["seed"] == 1)]
    assert pong["return_mean"].tolist() == scores["ppo"][1, 1].tolist()
    assert pong["step"].tolist() == [0, 10, 20, 30]
    assert set(curves["r_max"]) == {100}


def test_any_csv_by_a_map(tmp_path):
    table = pd.DataFrame(
        {"env": ["NA", "NA"], "obs": ["raw"] * 2, "t": [0, 5], "score": [1.5, 2.5], "extra": ["x", "y"]}
    )
    table.to_csv(tmp_path / "mine.csv", index=False)
    mapping = {"task": "history.env", "view": "history.obs", "step": "history.t", "return_mean": "history.score"}
    curves = imported(
        tmp_path / "mine.csv", {**mapping, "seed": 0, "reward_p": 1}, names={"view": {"raw": "pixels"}}
    ).curves
    assert curves[["task", "view", "step", "return_mean"]].to_numpy().tolist() == [
        ["NA", "pixels", 0, 1.5],
        ["NA", "pixels", 5, 2.5],
    ]


def test_a_constant_that_is_a_columns_name_is_refused_for_its_source_was_forgotten(tmp_path):
    table = pd.DataFrame({"env": ["cave", "maze"], "t": [0, 0], "score": [1.5, 2.5]})
    table.to_csv(tmp_path / "mine.csv", index=False)
    mapping = {"step": "history.t", "return_mean": "history.score", "seed": 0, "reward_p": 1, "view": "pixels"}
    with pytest.raises(InputError, match=r"a column of that name: give map\.task=history\.env"):
        imported(tmp_path / "mine.csv", {**mapping, "task": "env"})
    assert set(imported(tmp_path / "mine.csv", {**mapping, "task": "history.env"}).curves["task"]) == {"cave", "maze"}


# The command ----------------------------------------------------------------------------------------------------------


def test_the_command_ends_with_curves_that_lcd_report_diagnoses(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    views = [("pixels", 1.0), ("figure_ground", 1.0), *(("semantic", p) for p in (1.0, 0.75, 0.5, 0.25))]
    for task in ("cave", "maze"):
        for place, (view, p) in enumerate(views):
            for seed in range(2):
                last = 190 if (task, view, seed) == ("maze", "pixels", 1) else 200
                evaluations(tmp_path / f"logs/{task}/{view}/p{p}/seed_{seed}", (0, 100, last), seed=place)
    assert main(["import", "logs", f"folders={FOLDERS}", "map.r_min=0", "map.r_max=10"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "2 tasks, 12 conditions (figure_ground, pixels, semantic; p = 1, 0.75, 0.5, 0.25), seeds: 2." in told
    assert "maze (unknown): curves end between step 190 and 200; all are cut to the first 190" in told
    assert main(["report", "logs-curves.csv", "out=report"]) == 0
    assert json.loads((tmp_path / "report/diagnosis.json").read_text())["tasks"][0]["seeds"] == 2


def test_what_is_the_users_is_not_replaced(tmp_path, capsys):
    evaluations(tmp_path / "a/pixels/p1/seed_0")
    (tmp_path / "curves.csv").write_text("mine\n")
    assert main(["import", str(tmp_path), f"folders={FOLDERS}", f"out={tmp_path / 'curves.csv'}"]) == 2
    assert (tmp_path / "curves.csv").read_text() == "mine\n"
    assert "curves.csv" in capsys.readouterr().err


# Bins, and lengths ----------------------------------------------------------------------------------------------------


def test_bins_keep_the_area_under_a_straight_line():
    steps = np.arange(1, 1001)
    found = binned(rows(0, steps, 3.0 * steps), 50, of_episodes=True).curves
    assert found["step"].tolist() == list(range(25, 1025, 50))
    assert found["return_mean"].to_numpy()[1:-1] == pytest.approx(3 * (found["step"].to_numpy()[1:-1] + 0.5))
    assert found["episodes"].sum() == 1000


def test_averages_weigh_by_episodes():
    twice = rows(0, [10, 10], [1.0, 4.0], episodes=[1.0, 2.0])
    found = binned(twice, None, of_episodes=False)
    assert found.curves[["return_mean", "episodes"]].to_numpy().tolist() == [[3.0, 3.0]]
    assert "averaged" in found.notes[0]


@pytest.mark.parametrize(("last", "chosen"), [(100_000, 2000), (500, 10), (30, 1)])
def test_auto_chooses_round_bins(last, chosen):
    steps = np.arange(1, last + 1, max(last // 700, 1))
    found = binned(rows(0, np.append(steps, last), 1.0), None, of_episodes=True).curves
    assert np.unique(np.diff(np.sort(found["step"]))).tolist() == [chosen]


def test_curves_are_cut_to_what_they_share_and_areas_stay():
    from lcd.curves.spans import area
    from lcd.curves.table import check_curves

    long = rows(0, [0, 40, 80, 120], [0.0, 4.0, 2.0, 9.0])
    short = rows(1, [0, 50, 100], [1.0, 2.0, 3.0])
    found = cut_to_shared(check_curves(pd.concat([long, short])), 0.5)
    mine = found.curves[found.curves["seed"] == 0]
    assert mine["step"].tolist() == [0, 40, 80, 100]
    arrays = [frame[["step", "return_mean"]].to_numpy(float).T for frame in (long, mine)]
    assert area(*arrays[0], 0, 100) == pytest.approx(area(*arrays[1], 0, 100))
    assert found.notes == (
        "a (unknown): curves end between step 100 and 120; all are cut to the first 100, which is where seed 1 of "
        "pixels, p = 1 ends.",
    )


def test_a_run_that_died_early_does_not_cut_the_others():
    curves = pd.concat([rows(seed, [0, 100, 200], 1.0) for seed in range(3)] + [rows(9, [0, 20], 1.0)])
    from lcd.curves.table import check_curves

    found = cut_to_shared(check_curves(curves), 0.5)
    assert sorted(set(found.curves["seed"])) == [0, 1, 2]
    assert found.curves["step"].max() == 200
    assert "seed 9" in found.notes[0]


def test_whole_curves_stay_as_they_are():
    from lcd.curves.table import check_curves

    curves = check_curves(study({"a": [0.2, 0.4, 0.5, 0.4, 0.3, 0.2]}, seeds=2))
    found = cut_to_shared(curves, 0.5)
    assert found.notes == ()
    pd.testing.assert_frame_equal(found.curves, curves)


# Strangers' files -----------------------------------------------------------------------------------------------------


def test_nothing_is_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "went off"), "w"))

    for name in ("evaluations.npz", "scores.npz"):
        np.savez(tmp_path / name, timesteps=np.array([0, 1]), results=np.array([Bomb()], object))
        with pytest.raises(InputError, match="must hold numbers"):
            imported(tmp_path / name, {"task": "a", "view": "pixels", "reward_p": 1, "seed": 0})
    assert not (tmp_path / "went off").exists()


def test_an_array_that_would_not_fit_is_refused_by_its_header(tmp_path):
    import io
    import zipfile

    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**3)})
    with zipfile.ZipFile(tmp_path / "evaluations.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for key in ("timesteps", "results"):
            archive.writestr(f"{key}.npy", head.getvalue() + b"\0" * 10**6)
    with pytest.raises(InputError, match=r"must have 1 dimensions|more than the 2 GB"):
        imported(tmp_path / "evaluations.npz", {})


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("monitor.csv", b"#{not json\nr,l,t\n1,2,3\n", "it is not JSON"),
        ("monitor.csv", b'#{"t_start": 0}\nr,l\n1,2\n', "no monitor's file"),
        ("monitor.csv", b'#{"t_start": 0}\nr,l,t\n1,2,3\n1,inf,4\n', "an episode's length, l, is below 0 or infinite"),
        ("monitor.csv", b'#{"t_start": 0}\nr,l,t\n1,-2,3\n', "an episode's length, l, is below 0 or infinite"),
        ("progress.csv", b"x,y\n1,2,3\n2,3,4\n", "more cells than"),
        ("progress.csv", b"x,y,x\n1,2,3\n2,3,4\n", "it has the column 'x' twice"),
        ("progress.csv", b"x,y\n-5,2\n", "map.step leads to -5: steps are finite numbers of at least 0"),
        ("progress.csv", b"x,y\ninf,2\n", "map.step leads to inf: steps are finite numbers of at least 0"),
        ("monitor.csv", b"r,l,t\n1,2,3\n", "its first line is no # and JSON"),
        ("evaluations.npz", b"PK\x03\x04nothing", "no .npz file that can be read"),
        ("progress.csv", b"\xff\xfe\x00", "not readable as CSV"),
        ("run.wandb", b"PK", "does not begin as one"),
    ],
)
def test_files_that_are_none_are_told_of_in_a_sentence(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=told) as error:
        imported(
            tmp_path / name,
            {"task": "a", "view": "pixels", "reward_p": 1, "seed": 0, "step": "history.x"}
            | {"return_mean": "history.y"},
        )
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"given": {"tsak": "a"}}, "'tsak' is no column"),
        ({"kind": "monitr"}, "did you mean 'monitor'"),
        ({"kind": "monitor"}, "no log of the format 'monitor'"),
        ({"folders": "run"}, "names nothing"),
        ({"folders": "{seed}/{seed}"}, "has {seed} twice"),
        ({"folders": "{1a}/{view}"}, "folders={1a}/{view} has {1a}"),
        ({"folders": 1}, "folders=1 must be a text"),
        ({"given": 1}, "map=1 must be a YAML file"),
        ({"given": {"reward_p": float("nan")}}, "map.reward_p=nan must be a finite number"),
        ({"given": {"seed": 10**400}}, "must be a finite number"),
        ({"names": [1]}, "names=\\[1\\] must say"),
        ({"kind": ["csv"]}, "is unknown"),
        ({"folders": "other_{seed}"}, "fits none of the 1 runs"),
        ({"grid": -1}, "grid=-1 must be auto"),
        ({"names": {"veiw": {}}}, "'veiw' is no column"),
        ({"names": {"view": "pixels"}}, "must say what is called how"),
    ],
)
def test_mistakes_are_sentences(tmp_path, said, told):
    evaluations(tmp_path / "a/pixels/p1/seed_0")
    with pytest.raises(InputError, match=told):
        imported(tmp_path, **{"folders": FOLDERS, **said})


def test_numbers_of_any_length_in_strangers_settings(tmp_path):
    """TensorBoard's and W&B's texts may hold whole numbers that are no float."""
    run = ReadRun(config={"seed": 10**400}, history=[{"x": 1, "y": 10**400}, {"x": 2, "y": 3}])
    mapping = {"task": "a", "view": "b", "reward_p": 1, "seed": "config.seed", "step": "history.x"}
    table = read_by(run, mapping | {"return_mean": "history.y"})
    assert table["step"].tolist() == [2]


def test_lengths_of_other_episodes_are_refused(tmp_path):
    evaluations(tmp_path / "a/pixels/p1/seed_0", ep_lengths=np.zeros((3, 0)))
    with pytest.raises(InputError, match=r"'ep_lengths' has the shape \(3, 0\), but 'results' \(3, 4\)"):
        imported(tmp_path, folders=FOLDERS)


def test_nothing_there_is_said(tmp_path):
    with pytest.raises(InputError, match="There is nothing at"):
        imported(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no log of a known format"):
        imported(tmp_path)
    pd.DataFrame({"a": [1]}).to_csv(tmp_path / "x.csv", index=False)
    given = {
        "task": "cave",
        "view": "pixels",
        "reward_p": 1,
        "seed": 0,
        "step": "history.a",
        "return_mean": "history.b",
    }
    with pytest.raises(Unfinished, match="their histories have a"):
        imported(tmp_path, given)


def test_links_are_not_followed(tmp_path):
    evaluations(tmp_path / "outside/pixels/p1/seed_0")
    evaluations(tmp_path / "logs/a/pixels/p1/seed_0")
    (tmp_path / "logs/b").symlink_to(tmp_path / "outside")
    assert set(imported(tmp_path / "logs", folders=FOLDERS).curves["task"]) == {"a"}


def test_names_cannot_become_formulas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evaluations(tmp_path / "logs/=cmd()/pixels/p1/seed_0")
    assert main(["import", "logs", f"folders={FOLDERS}"]) == 0
    assert "'=cmd()" in (tmp_path / "logs-curves.csv").read_text()
    assert len(read_curves(tmp_path / "logs-curves.csv")) == 3
