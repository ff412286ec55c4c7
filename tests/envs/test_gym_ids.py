"""`benchmark=gym:ID`: Gymnasium's environments as a benchmark, and their views by masks of four kinds."""

import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from lcd.config.compose import compose
from lcd.config.own_code import names_code
from lcd.envs.benchmarks import BENCHMARKS, get_benchmark, make_copies, reward_range
from lcd.envs.errors import InputError
from lcd.envs.gym_names import canonical, code_in, with_masks
from lcd.envs.lockstep import compare_views
from lcd.envs.masks import ColourMasks, checked, drawn, greys, names_in, read_back, resized
from lcd.envs.protocols import Pairs, offers
from lcd.envs.registry import naming
from lcd.scores.masks_told import masks_told
from tests.envs.contract import BenchmarkContract

WORLDS = Path(__file__).parents[1] / "pipelines"
sys.path.insert(0, str(WORLDS))
LINE, IMAGES = "gym:coloured_worlds:Line-v0", "gym:coloured_worlds:LineImages-v0"
COLOURS = "colours(walker=ff0000,coin=00ff00)"
MASKS = ["info.segmentation", "coloured_worlds:labels", COLOURS]


class TestPlain(BenchmarkContract):
    benchmark = get_benchmark("gym:CartPole-v1+Acrobot-v1")


class TestWithMasks(BenchmarkContract):
    benchmark = get_benchmark(with_masks(LINE, COLOURS))


def test_what_is_observed_says_the_view():
    assert get_benchmark(LINE).views == ("state",)
    assert get_benchmark(IMAGES).views == ("pixels",)
    assert get_benchmark(f"{LINE}?masks=flow").views == ("pixels", "state")
    both = get_benchmark(f"{LINE}+coloured_worlds:LineImages-v0")
    assert both.tasks == ("gym/Line-v0", "gym/LineImages-v0")
    assert [tuple(both.views_of(task)) for task in both.tasks] == [("state",), ("pixels",)]
    assert not offers(both, Pairs)
    assert np.isnan(reward_range(both, "gym/Line-v0", 0)).all()


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("base", [LINE, IMAGES])
def test_all_kinds_of_masks_draw_the_same_views_of_one_task(base, masks):
    benchmark = get_benchmark(with_masks(base, masks))
    (task,) = benchmark.tasks
    assert tuple(benchmark.views)[:3] == ("pixels", "figure_ground", "semantic")
    assert compare_views(benchmark, task, views=benchmark.views).differences == ()
    env = benchmark.make_pairs(task, split="train", num_envs=2, seed=1, views=("pixels", "labels", "figure_ground"))
    observations, _ = env.reset()
    for _ in range(6):
        labels, shown = observations["labels"][..., 0], observations["pixels"]
        # The picture says itself what is where.
        assert np.array_equal(labels == 1, (shown == (255, 0, 0)).all(-1))
        assert np.array_equal(observations["figure_ground"][..., 0], np.where(labels, 255, 0))
        observations, *_ = env.step(env.action_space.sample())


def test_paired_views_are_those_that_are_seen_alone():
    benchmark = get_benchmark(with_masks(IMAGES, COLOURS))
    (task,) = benchmark.tasks
    together = benchmark.make_pairs(task, split="eval", num_envs=3, seed=5)
    alone = {v: make_copies(benchmark, task, view=v, split="eval", num_envs=3, seed=5) for v in benchmark.views}
    shown = together.reset()[0]
    own = {view: env.reset()[0] for view, env in alone.items()}
    for _ in range(20):
        assert all(np.array_equal(shown[view], own[view]) for view in alone)
        actions = together.action_space.sample()
        shown, rewards, *_ = together.step(actions)
        steps = {view: env.step(actions) for view, env in alone.items()}
        assert all(np.array_equal(rewards, step[1]) for step in steps.values())
        own = {view: step[0] for view, step in steps.items()}


def test_frames_and_size_are_knobs_and_the_rest_is_the_environments():
    benchmark = get_benchmark(with_masks(LINE, COLOURS))
    (task,) = benchmark.tasks
    how = {"split": "train", "num_envs": 1, "seed": 0}
    env = make_copies(benchmark, task, view="semantic", frames=3, size=12, length=3, **how)
    assert env.single_observation_space.shape == (12, 12, 9)
    first, _ = env.reset()
    assert np.array_equal(first[..., :3], first[..., 6:])
    second, *_ = env.step(np.array([1]))
    assert np.array_equal(second[..., 3:6], first[..., 6:])
    with pytest.raises(InputError, match="size is 0, but it must be a whole number of at least 1"):
        make_copies(benchmark, task, view="pixels", size=0, **how)
    with pytest.raises(InputError, match="'Line-v0' cannot be made here"):
        make_copies(benchmark, task, view="pixels", breadth=3, **how)


def test_labels_that_are_none_are_refused():
    benchmark = get_benchmark(with_masks(LINE, "coloured_worlds:wrong"))
    env = make_copies(benchmark, "gym/Line-v0", view="semantic", split="train", num_envs=1, seed=0)
    with pytest.raises(InputError, match="masks=coloured_worlds:wrong gives the label 7: labels go from 0"):
        env.reset()
    with pytest.raises(InputError, match="gives float64 of shape"):
        checked(np.zeros((3, 3)), (), (3, 3), "x")
    absent = get_benchmark(with_masks(LINE, "info.objects"))
    env = make_copies(absent, "gym/Line-v0", view="semantic", split="train", num_envs=1, seed=0)
    with pytest.raises(InputError, match=r"info has segmentation, and no 'objects'"):
        env.reset()


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (np.zeros((0, 0), int), r"of shape \(0, 0\)"),
        (np.zeros((0, 5), int), r"of shape \(0, 5\)"),
        ([[1], [1, 2]], "rows of different lengths"),
        (np.full((2, 2), -1), "gives the label -1"),
        (np.full((2, 2), 256), "gives the label 256: labels go from 0"),
        (np.full((2, 2), 2**63, np.uint64), "gives the label 9223372036854775808"),
    ],
)
def test_no_array_becomes_other_labels(labels, says):
    with pytest.raises(InputError, match=f"masks=mine:labels.*{says}"):
        checked(labels, (), (4, 4), "mine:labels")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([f"class {number}" for number in range(257)], "has 257 classes: no more than 256 have labels"),
        ((name for name in ("background", "coin")), "must be a list of printable names"),
        ("walker", "must be a list of printable names"),
        (5, "must be a list of printable names"),
        (("background", "a\x1b[2J"), "must be a list of printable names"),
    ],
)
def test_names_that_labels_cannot_have_are_refused_before_anything_is_made(monkeypatch, names, says):
    import coloured_worlds

    monkeypatch.setattr(coloured_worlds.labels, "names", names, raising=False)
    with pytest.raises(InputError, match=f"masks=coloured_worlds:labels.*{says}"):
        get_benchmark(with_masks(LINE, "coloured_worlds:labels"))
    many = {f"class {number}": f"{number:06x}" for number in range(256)}
    with pytest.raises(InputError, match="has 257 classes"):
        ColourMasks.of_table(many, "colours.yaml")


class Observing(gymnasium.Env):
    """Observes what it is told to, in a space of its own."""

    metadata = {"render_modes": ["rgb_array"]}
    action_space = spaces.Discrete(2)

    def __init__(self, space, shown, render_mode=None):
        self.observation_space, self.shown = space, shown

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.shown, {}


def images(*shape):
    return spaces.Box(0, 255, shape, np.uint8)


@pytest.mark.parametrize(
    ("space", "says"),
    [
        (images(3, 64, 64), r"observes images of shape \(3, 64, 64\), but a picture has .*its colours last"),
        (images(84, 84, 4), "stack frames by study.knobs.frames=4"),
        (images(16, 16, 2), "observes images of shape"),
        (spaces.Dict(mission=spaces.Text(5)), "observes a dictionary without numbers"),
        (spaces.Dict(), "observes a dictionary without numbers"),
    ],
)
def test_what_no_view_would_show_is_refused_and_not_cut(monkeypatch, space, says):
    monkeypatch.setitem(gymnasium.registry, "Odd-v0", gymnasium.envs.registration.EnvSpec("Odd-v0", Observing))
    gymnasium.registry["Odd-v0"].kwargs = {"space": space, "shown": None}
    with pytest.raises(InputError, match=says):
        get_benchmark("gym:Odd-v0")


def test_an_image_that_is_not_its_spaces_is_not_scaled_to_it(monkeypatch):
    monkeypatch.setitem(gymnasium.registry, "Odd-v0", gymnasium.envs.registration.EnvSpec("Odd-v0", Observing))
    gymnasium.registry["Odd-v0"].kwargs = {"space": images(16, 16, 3), "shown": np.zeros((8, 8, 3), np.uint8)}
    env = make_copies(get_benchmark("gym:Odd-v0"), "gym/Odd-v0", view="pixels", split="train", num_envs=1, seed=0)
    with pytest.raises(InputError, match=r"an image of shape \(8, 8, 3\), but its observation space has \(16, 16, 3\)"):
        env.reset()


def test_no_two_labels_have_one_grey():
    for names in ((), ("background", "a", "b", "c")):
        assert len(set(greys(names, "semantic"))) == len(names or range(256))
        assert set(greys(names, "figure_ground")) == {0, 255}
    labels = np.arange(4, dtype=np.uint8).reshape(2, 2)
    assert drawn(labels, ("background", "a", "b", "c"), "semantic")[..., 0].tolist() == [[0, 85], [170, 255]]
    assert resized(labels, (4, 4)).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]


def test_a_table_of_colours_becomes_part_of_the_name_and_is_read_back(tmp_path):
    file = tmp_path / "colours.yaml"
    file.write_text("walker: ['ff0000', [254, 0, 0]]\ncoin: '#00FF00'\n")
    config = compose("diagnose", [f"benchmark={LINE}", f"masks={file}"])
    assert config.benchmark.name == f"{LINE}?masks=colours(walker=ff0000|fe0000,coin=00ff00)"
    masks = config.benchmark.name.partition("?masks=")[2]
    assert str(read_back(masks)) == masks
    assert compose("view", [LINE, f"masks={file}"]).task.name == config.benchmark.name
    assert compose("diagnose", [f"benchmark={config.benchmark.name}"]).benchmark.name == config.benchmark.name


def test_a_class_may_have_a_grey_of_its_own_in_figure_ground(tmp_path):
    file = tmp_path / "colours.yaml"
    file.write_text("walker: ff0000\ncoin: {colour: ['00ff00', 00fe00], figure: 170}\n")
    name = compose("diagnose", [f"benchmark={LINE}", f"masks={file}"]).benchmark.name
    assert name == f"{LINE}?masks=colours(walker=ff0000,coin=00ff00|00fe00@170)"
    assert str(read_back(name.partition("?masks=")[2])) == name.partition("?masks=")[2]
    for each in (name, with_masks(LINE, "coloured_worlds:grey_labels")):
        benchmark = get_benchmark(each)
        env = benchmark.make_pairs("gym/Line-v0", split="train", num_envs=1, seed=0, views=("labels", "figure_ground"))
        shown, _ = env.reset()
        assert np.array_equal(shown["figure_ground"][..., 0], np.array([0, 255, 170])[shown["labels"][..., 0]])
        assert benchmark.intensities("gym/Line-v0", "figure_ground") == (0, 255, 170)
        assert benchmark.label_names("gym/Line-v0", "figure_ground")[1:] == ("figure", "coin")
        assert benchmark.intensities("gym/Line-v0", "semantic") == (0, 127, 255)
    assert names_in(("ground", "a", "b", "c"), "figure_ground", figure={"b": 9, "c": 9})[2:] == ("b or c", "b or c")
    with pytest.raises(InputError, match=r"figure has a grey for 'tree', which is no class: there are walker, coin"):
        get_benchmark(with_masks(LINE, "coloured_worlds:wrong_greys"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: {colour: 'ff0000', figure: 0}", "grey 0 for a: give a whole number from 1 to 255"),
        ("a: {colour: 'ff0000', gray: 9}", "a has the keys colour, gray: give colour"),
        ("a: {figure: 9}", "a has the keys figure: give colour"),
        ("[]", "must hold class: colour"),
        ("a: red", "a has the colour 'red': give 'rrggbb' in quotes"),
        ("a: [1, 2]", "give 'rrggbb' in quotes"),
        ("a: [1, 2, 300]", "give 'rrggbb' in quotes"),
        ("a: 'ff0000'\nb: [255, 0, 0]", "ff0000 is the colour of a and of b"),
        ("'a=b': 'ff0000'", "must be called by letters"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_wrong_table_is_one_sentence(tmp_path, content, says):
    file = tmp_path / "colours.yaml"
    file.write_text(content)
    with pytest.raises(InputError, match=says):
        compose("check", [f"benchmark={LINE}", f"masks={file}"])


def test_what_masks_and_ids_cannot_be():
    for words, says in (
        (["benchmark=toy", "masks=info.x"], "masks=info.x is for benchmark=gym:ID"),
        (["benchmark=gym:CartPole-v1", "masks=some"], "masks=some is not understood"),
        (["benchmark=gym:CartPole-v1", "masks=nowhere.yaml"], "masks=nowhere.yaml cannot be read"),
    ):
        with pytest.raises(InputError, match=says):
            compose("diagnose", words)
    with pytest.raises(InputError, match="for lcd diagnose"), naming(None):
        compose("view", ["gym:CartPole-v1", "masks=flow"]) and compose("measure", ["gym:CartPole-v1", "masks=flow"])
    for name, says in (
        ("gym:CartPol-v1", "no environment 'CartPol-v1'; did you mean 'CartPole-v1'"),
        ("gym:not_there:Cave-v0", "not_there cannot be imported"),
        ("gym:../x:Cave-v0", "names no module before its colon"),
        (f"{LINE}?masks=coloured_worlds:SIDE", "is no function"),
        (f"{LINE}?masks=not_there:labels", "The function of masks 'not_there:labels' cannot be imported"),
        (f"{LINE}?masks=odd", "masks=odd is not understood"),
        ("coloured_worlds:Line", "is an environment: register it with Gymnasium"),
    ):
        with pytest.raises(InputError, match=says):
            get_benchmark(name)


def test_gymnasiums_own_way_of_naming_a_module_is_understood():
    assert canonical("coloured_worlds:Line-v0") == LINE
    assert canonical("my_worlds:Worlds") == "my_worlds:Worlds"
    assert compose("check", ["coloured_worlds:Line-v0"]).benchmark.name == LINE
    assert get_benchmark("coloured_worlds:Line-v0").tasks == ("gym/Line-v0",)


def test_only_what_a_command_names_is_imported():
    assert code_in("gym:CartPole-v1") == ()
    assert code_in(f"{LINE}?masks={COLOURS}") == ("coloured_worlds:Line-v0",)
    assert code_in("gym:CartPole-v1?masks=a.b:c") == ("a.b:c",)
    with naming([]):
        assert get_benchmark("gym:CartPole-v1").tasks == ("gym/CartPole-v1",)
        assert not BENCHMARKS.may_resolve(LINE)
        for name in (LINE, "gym:CartPole-v1?masks=coloured_worlds:labels"):
            with pytest.raises(InputError, match="only a command names code"):
                get_benchmark(name)
    with naming([LINE]):
        assert get_benchmark(LINE)
    for words in ([LINE], ["gym:CartPole-v1", "masks=coloured_worlds:labels"]):
        assert names_code(compose("check", words))
    assert not names_code(compose("check", ["gym:CartPole-v1", "masks=info.x"]))


def test_the_source_of_masks_and_modules_is_part_of_a_run():
    from lcd.pipelines.study.sources import with_source

    config = {"kind": "train", "benchmark": f"{LINE}?masks=coloured_worlds:labels", "agent": {"name": "ppo"}}
    assert list(with_source(config)["source"]["benchmark"]) == ["coloured_worlds"]
    assert "source" not in with_source(config | {"benchmark": "gym:CartPole-v1?masks=info.x"})


def test_the_report_says_what_is_meant_by_masks():
    told = masks_told([LINE, f"{LINE}?masks=flow", *(with_masks(LINE, each) for each in MASKS), "toy", "of:nobody"])
    assert len(told) == 5
    assert [each for each in ("no φ", "frontend_gain", "under 'segmentation'", "labels that", "(walker, coin)")
            if not any(each in sentence for sentence in told)] == []  # fmt: skip
    assert masks_told([f"{LINE}?masks=colours(a=zz)"]) == []


def test_it_is_diagnosed_in_processes_of_its_own(tmp_path):
    """With masks by a function of the user's, from the folder of the command, by the command."""
    (tmp_path / "coloured_worlds.py").write_text((WORLDS / "coloured_worlds.py").read_text())
    words = ["benchmark=coloured_worlds:LineImages-v0", "masks=coloured_worlds:labels", "study.seeds=2", "device=cpu"]
    words += ["study.steps=256", "study.evaluation.every=256", "study.evaluation.copies=2", "tracker=none", "out=s"]
    words += ["study.views=[pixels,semantic]", "study.reward_p=[1]"]
    command = [sys.executable, "-c", "import sys; from lcd.cli import main; sys.exit(main())", "diagnose"]
    done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "masks are made of the labels that coloured_worlds:labels says" in done.stdout + "".join(
        path.read_text() for path in (tmp_path / "s" / "diagnosis").glob("diagnosis.json")
    )
