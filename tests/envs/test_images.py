"""The views show the same figure, states stay apart, and every perceptual knob does what it says."""

from __future__ import annotations

import numpy as np
import pytest

from lcd.envs.colours import label_colours
from lcd.envs.errors import InputError
from lcd.envs.hardness.figure_sprites import MOST_BYTES_SHOWN
from lcd.envs.hardness.image_knobs import ImageKnobs
from lcd.envs.hardness.images import Renderer
from lcd.envs.hardness.shapes import figure_masks, figure_radii, polygon_mask, turned_masks
from lcd.envs.streams import Streams, seed_sequence

ALL = "shift,scale,rotate,flip"
STATES = 8


def renderer(view, copies=64, seed=0, states=STATES, halves=1, **knobs):
    streams = Streams.spawn([seed_sequence(seed, "train", c) for c in range(copies)], 2)
    made = Renderer(ImageKnobs.from_dict(knobs), view, states, *streams, halves)
    made.begin()
    return made


def frames(view, copies=64, step=0, **knobs):
    return renderer(view, copies, **knobs).draw(np.arange(copies) % STATES, np.full(copies, step))


def test_without_perceptual_knobs_pixels_are_as_clean_as_figure_ground():
    for transforms in ("", ALL):
        assert np.array_equal(
            frames("pixels", image_transforms=transforms), frames("figure_ground", image_transforms=transforms)
        )


@pytest.mark.parametrize("knobs", [{}, {"image_transforms": ALL}, {"motion": 2.0}, {"lookalikes": 3}])
def test_views_share_shape_dtype_and_geometry(knobs):
    figure = frames("figure_ground", step=3, **knobs)
    semantic = frames("semantic", step=3, **knobs)
    pixels = frames("pixels", step=3, texture=0.3, **knobs)
    assert figure.shape == semantic.shape == pixels.shape == (64, 24, 24, 3)
    assert figure.dtype == semantic.dtype == pixels.dtype == np.uint8
    assert set(np.unique(figure)) == {0, 255}
    inside = figure[..., 0] == 255
    assert np.array_equal(inside, semantic.any(axis=-1))
    assert np.array_equal(inside, pixels.mean(axis=-1) > 127.5)


def test_semantic_colours_name_the_state():
    shown = frames("semantic", image_transforms=ALL)
    colours = label_colours(STATES)
    for number, frame in enumerate(shown):
        found = np.unique(frame.reshape(-1, 3), axis=0)
        assert {tuple(c) for c in found} == {(0, 0, 0), tuple(colours[number % STATES])}


@pytest.mark.parametrize("states", [2, 8, 9, 27, 100, 300])
def test_label_colours_are_distinct(states):
    colours = {tuple(c) for c in label_colours(states).tolist()}
    assert len(colours) == states
    assert (0, 0, 0) not in colours


@pytest.mark.parametrize("lookalikes", [0, 1, 2, 3])
@pytest.mark.parametrize(("size", "transforms"), [(20, "rotate,flip"), (24, "rotate,flip"), (36, ALL)])
def test_no_transform_makes_one_state_another(size, transforms, lookalikes):
    knobs = ImageKnobs(image_size=size, image_transforms=transforms)
    masks = figure_masks(STATES, size, lookalikes, knobs.scales, knobs.rotations, knobs.flips)
    kinds = [{m.tobytes() for m in of_state} for of_state in masks]
    assert all(not kinds[a] & kinds[b] for a in range(STATES) for b in range(a))


def test_lookalikes_are_more_alike_than_strangers():
    masks = figure_masks(8, 32, 1, (1.0,), (0.0,), 1)[:, 0] > 0

    def differ(a, b):
        return (masks[a] ^ masks[b]).sum()

    for group in range(4):
        first, second = 2 * group, 2 * group + 1
        assert differ(first, second) > 0
        others = [differ(first, other) for other in range(8) if other // 2 != group]
        assert group > 1 or differ(first, second) < min(others)


def test_polygons_have_the_area_of_polygons():
    for sides in range(3, 11):
        mask = polygon_mask(64, np.ones(sides), 20.0, rotation=17.0)
        assert (mask > 0).sum() == pytest.approx(sides / 2 * 400 * np.sin(2 * np.pi / sides), rel=0.02)


def test_shift_keeps_the_figure_whole_and_uses_its_quantum():
    centred = (frames("figure_ground", copies=STATES)[..., 0] > 0).sum(axis=(1, 2))
    for quantum in (1, 2, 3):
        shown = frames("figure_ground", copies=400, image_transforms="shift", image_sh_quant=quantum)[..., 0] > 0
        assert np.array_equal(shown.sum(axis=(1, 2)), centred[np.arange(400) % STATES])
        tops = shown[::STATES].any(axis=2).argmax(axis=1)
        assert len(set(tops)) == 2 * (4 // quantum) + 1
        assert set(np.diff(sorted(set(tops)))) == {quantum}


def test_scale_rotate_and_flip_change_the_figure():
    def kinds(**knobs):
        return len({f.tobytes() for f in frames("figure_ground", copies=800, **knobs)[::STATES]})

    assert kinds() == 1
    assert kinds(image_transforms="flip") == 2
    assert kinds(image_transforms="scale") == 5
    assert kinds(image_transforms="rotate", image_ro_quant=30) == 4
    assert kinds(image_transforms="rotate", image_ro_quant=40) == 9 // 3


AUTHORS = {"image_defaults": "mdp-playground"}


@pytest.mark.parametrize(
    ("scales", "transform", "values"),
    [([0.8, 1.25], "scale", 9), ([0.5, 2], "scale", 30), ([0.5, 1.5], "rotate", 360), ([0.5, 1.5], "flip", 3)],
)
def test_the_packages_defaults_have_as_many_values_as_the_package(scales, transform, values):
    knobs = ImageKnobs.from_dict({**AUTHORS, "image_transforms": transform, "image_scale_range": scales})
    assert len(knobs.scales) * len(knobs.rotations) * knobs.flips == values
    sizes = np.array(knobs.scales) * 20
    assert np.allclose(sizes, np.rint(sizes))


def test_radii_are_whole_parts_of_what_is_drawn_evenly_in_logarithms():
    """As the package draws them: a radius whose logarithm is uniform, cut off to whole pixels."""
    knobs = ImageKnobs.from_dict({**AUTHORS, "image_transforms": "scale,flip", "image_scale_range": [0.8, 1.25]})
    theirs = np.exp(np.random.default_rng(0).uniform(np.log(16), np.log(25), 200_000)).astype(int)
    expected = np.bincount(theirs, minlength=25)[16:] / len(theirs)
    chances = knobs.chances.reshape(9, 3)
    assert np.abs(chances.sum(axis=1) - expected).max() < 0.004
    assert np.allclose(chances.sum(axis=0), [0.5, 0.25, 0.25])
    made = Renderer(knobs, "figure_ground", STATES, *Streams.spawn([seed_sequence(0, n) for n in range(4000)], 2))
    drawn = np.bincount(made._draw_geometry(None, np.int64)[0] // 3, minlength=9) / 4000
    assert np.abs(drawn - expected).max() < 0.03


@pytest.mark.parametrize("view", ["pixels", "figure_ground", "semantic"])
def test_figures_drawn_when_they_are_shown_are_those_drawn_beforehand(view, monkeypatch):
    knobs = {"image_transforms": ALL, "image_sc_quant": 2, "image_ro_quant": 90, "image_double_flips": False}
    kept = frames(view, **knobs)
    monkeypatch.setattr("lcd.envs.hardness.images.MOST_BYTES", 0)
    monkeypatch.setattr("lcd.envs.hardness.figure_sprites.MOST_BYTES_SHOWN", 20_000)
    drawn = renderer(view, **knobs)
    assert np.array_equal(drawn.draw(np.arange(64) % STATES, np.zeros(64)), kept)
    assert 0 < drawn._figures.bytes <= 20_000


@pytest.mark.parametrize("channels", [1, 3])
def test_figures_drawn_when_they_are_shown_are_whole_wherever_they_are(channels, monkeypatch):
    """In all corners, too."""
    monkeypatch.setattr("lcd.envs.hardness.images.MOST_BYTES", 0)
    knobs = {"image_size": 90, "image_channels": channels, "image_transforms": ALL, "image_ro_quant": 30}
    made = renderer("figure_ground", copies=1, **knobs)
    masks = figure_masks(STATES, 90, 0, made.knobs.scales, made.knobs.rotations, made.knobs.flips)
    masks = masks.reshape(-1, 90, 90)
    rng = np.random.default_rng(0)
    numbers = rng.permutation(len(masks))
    reach = np.array(made.knobs.reaches)[numbers // 48 % 5][:, None]
    offset = rng.integers(-reach, reach + 1, (len(masks), 2))
    offset[:400] = rng.choice([-1, 1], (400, 2)) * reach[:400]
    shown = made._figures.at(numbers, offset)
    for image, number, (down, right) in zip(shown, numbers, offset, strict=True):
        expected = np.roll(masks[number], (down, right), axis=(0, 1))
        assert np.array_equal(image, np.repeat(expected, channels, axis=1))
    alone = made._figures.one(int(numbers[0]), *offset[0].tolist())
    assert np.array_equal(alone, shown[0])


def test_figures_that_look_the_same_are_kept_once(monkeypatch):
    """A regular polygon's flips are among its rotations."""
    monkeypatch.setattr("lcd.envs.hardness.images.MOST_BYTES", 0)
    kept = []
    for transforms, variants in (("rotate", 24), ("rotate,flip", 96)):
        figures = renderer("semantic", image_size=60, image_transforms=transforms)._figures
        figures.at(np.arange(STATES * variants), np.zeros((STATES * variants, 2), np.int64))
        kept.append(figures.bytes)
    assert kept[0] <= kept[1] < 1.5 * kept[0]


SHOWN = {
    "large": {"image_size": 100, "image_radius": 0.2, "image_transforms": ALL},
    "small": {"image_transforms": ALL},
    "still": {"image_size": 200},
    "dim": {"image_size": 100, "contrast": 0.5, "image_transforms": ALL},
    "textured": {"texture": 0.5, "distractors": 1, "image_transforms": ALL},
    "moving": {"image_size": 100, "image_radius": 0.2, "image_transforms": "scale", "motion": 2.0},
}


@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("name", SHOWN)
def test_images_drawn_again_are_new_where_they_shall_be_and_else_the_same(name, halves, monkeypatch):
    if name in ("large", "moving", "still"):
        monkeypatch.setattr("lcd.envs.hardness.images.MOST_BYTES", 0)
    one, other = (renderer("pixels", halves=halves, **SHOWN[name]) for _ in range(2))
    states = np.stack([np.arange(64) % STATES, np.arange(64) % 3])[:halves]
    some, steps = np.array([0, 3, 40, 63]), np.arange(64)
    for _ in range(3):
        shown, expected = one.draw(states, steps), other.draw(states, steps)
        before = shown.copy()
        for drawn in (one, other):
            drawn.begin(some)
        expected[some] = other.draw((states + 1)[:, some] % STATES, np.zeros(4), some)
        again = one.draw_again(shown, (states + 1)[:, some] % STATES, np.zeros(4), some)
        assert np.array_equal(again, expected)
        assert np.array_equal(shown, before)
        assert not np.shares_memory(again, shown)


def test_all_transforms_of_the_package_at_once_fit_into_memory():
    made = renderer("pixels", **AUTHORS | {"image_transforms": ALL, "image_scale_range": [0.5, 2]})
    assert made.draw(np.arange(64) % STATES, np.zeros(64)).shape == (64, 100, 100, 1)
    assert made._figures.bytes < MOST_BYTES_SHOWN


@pytest.mark.parametrize(("size", "radius"), [(24, 8.0), (24, 10.0), (40, 20.0), (25, 6.25), (33, 12.3)])
def test_masks_of_many_rotations_are_those_of_each(size, radius):
    """Radii in whole and quarter pixels put samples onto edges, which only rounding decides."""
    for state, lookalikes in [*((n, 0) for n in range(8)), (4, 2), (5, 2)]:
        radii, rotations = figure_radii(state, lookalikes), tuple(map(float, range(0, 360, 15)))
        for mask, rotation in zip(turned_masks(size, radii, radius, rotations), rotations, strict=True):
            assert np.array_equal(mask, polygon_mask(size, radii, radius, rotation)), (state, rotation)


def test_rotations_that_look_the_same_share_a_mask():
    masks = turned_masks(40, figure_radii(2, 0), 15.3, tuple(map(float, range(360))))
    assert len({id(mask) for mask in masks}) == 360 // 5
    masks = turned_masks(40, figure_radii(4, 0), 15.3, tuple(map(float, range(360))))
    assert len({id(mask) for mask in masks}) == 360


@pytest.mark.parametrize("most", [0, 2**24])
def test_grey_images_show_what_coloured_ones_do(most, monkeypatch):
    monkeypatch.setattr("lcd.envs.hardness.images.MOST_BYTES", most)
    knobs = {"image_transforms": ALL, "image_ro_quant": 90}
    for view in ("figure_ground", "pixels"):
        grey = frames(view, image_channels=1, **knobs)
        assert grey.shape == (64, 24, 24, 1)
        assert np.array_equal(np.repeat(grey, 3, axis=3), frames(view, **knobs))
    labels = frames("semantic", image_channels=1, **knobs)
    assert np.array_equal(labels > 0, frames("figure_ground", image_channels=1, **knobs) > 0)
    shades = [set(np.unique(labels[state::STATES])) - {0} for state in range(STATES)]
    assert all(len(of_state) == 1 for of_state in shades)
    assert len(set.union(*shades)) == STATES
    textured = frames("pixels", image_channels=1, texture=0.5, distractors=2, **knobs)
    assert textured.shape == (64, 24, 24, 1)
    assert len(np.unique(textured)) > 50


def test_more_labels_than_levels_of_grey_are_refused():
    with pytest.raises(InputError, match="image_channels is 1, but there are only 255 levels of grey to label 300"):
        renderer("semantic", states=300, image_channels=1)
    renderer("figure_ground", states=300, image_channels=1)
    for wrong in (2, True, 3.0, None):
        with pytest.raises(InputError, match="image_channels is"):
            ImageKnobs(image_channels=wrong)


def test_contrast_is_the_difference_in_brightness():
    for contrast in (0.2, 0.6, 1.0):
        shown = frames("pixels", contrast=contrast).astype(float)
        assert shown.max() - shown.min() == pytest.approx(255 * contrast, abs=1)
        textured = frames("pixels", copies=640, contrast=contrast, texture=0.3).astype(float)
        inside = frames("figure_ground", copies=640)[..., 0] > 0
        difference = textured[inside].mean() - textured[~inside].mean()
        assert difference == pytest.approx(255 * contrast, rel=0.2)


def test_texture_is_drawn_anew_every_frame_and_grows_with_its_knob():
    drawn = renderer("pixels", texture=0.5)
    states, steps = np.zeros(64, dtype=int), np.zeros(64)
    assert (drawn.draw(states, steps) != drawn.draw(states, steps)).any(axis=(1, 2, 3)).all()
    spread = [frames("pixels", texture=t, contrast=0.4).std() for t in (0.0, 0.3, 0.6, 1.0)]
    assert spread == sorted(spread)


def test_distractors_clutter_the_background_only():
    inside = frames("figure_ground")[..., 0] > 0
    bright = []
    for count in (0, 1, 4):
        shown = frames("pixels", distractors=count)[..., 0] > 127
        assert shown[inside].all()
        bright.append(shown[~inside].mean())
    assert bright[0] == 0
    assert 0 < bright[1] < bright[2]


@pytest.mark.parametrize("speed", [0.5, 1.5])
def test_motion_is_a_straight_drift_that_bounces(speed):
    drawn = renderer("figure_ground", motion=speed, image_size=32)
    rows, columns = np.mgrid[:32, :32]
    centres = []
    for step in range(40):
        inside = drawn.draw(np.full(64, 1), np.full(64, step))[..., 0] > 0
        area = inside.sum(axis=(1, 2))
        assert len(set(area)) == 1
        centres.append([(rows * inside).sum(axis=(1, 2)) / area, (columns * inside).sum(axis=(1, 2)) / area])
    moved = np.diff(np.array(centres), axis=0)
    length = np.hypot(moved[:, 0], moved[:, 1])
    assert length.max() <= speed + 1.5
    assert np.array(centres).std() > 1
    assert speed / 2 < np.median(np.hypot(*(np.array(centres)[4] - np.array(centres)[0]))) / 4 <= speed + 0.5


def test_motion_keeps_the_background_and_moves_the_texture_along():
    drawn = renderer("pixels", copies=16, motion=1.0, texture=0.6, distractors=2)
    plain = renderer("figure_ground", copies=16, motion=1.0)
    states = np.ones(16, dtype=int)
    first, later = (drawn.draw(states, np.full(16, step)) for step in (0, 2))
    inside = [plain.draw(states, np.full(16, step))[..., 0] > 0 for step in (0, 2)]
    outside = ~(inside[0] | inside[1])
    assert np.array_equal(first[outside], later[outside])
    for copy in range(16):
        assert np.array_equal(first[copy][inside[0][copy]], later[copy][inside[1][copy]])
    drawn.begin()
    assert not np.array_equal(first, drawn.draw(states, np.zeros(16)))


def test_copies_are_drawn_alike_alone_and_together():
    knobs = {"texture": 0.5, "distractors": 1, "image_transforms": ALL}
    states, steps, some = np.arange(64) % STATES, np.zeros(64), np.array([3, 40, 41])
    together, apart = renderer("pixels", **knobs), renderer("pixels", **knobs)
    assert np.array_equal(together.draw(states, steps)[some], apart.draw(states[some], steps[some], some))


def test_a_folder_of_ones_own_images(tmp_path):
    from PIL import Image

    for number in range(STATES):
        picture = np.zeros((10, 10, 4), np.uint8)
        picture[...] = (30 * number, 255, 9, 255)
        picture[:5, :, 3] = 0
        Image.fromarray(picture).save(tmp_path / f"{number}.png")
    knobs = {"image_folder": str(tmp_path), "image_transforms": "rotate", "image_ro_quant": 90, "image_radius": 0.3}
    shown, figure = frames("pixels", **knobs), frames("figure_ground", **knobs)
    inside = figure[..., 0] > 0
    for number in range(64):
        assert (shown[number][inside[number]] == (30 * (number % STATES), 255, 9)).all()
        assert (shown[number][~inside[number]] == 0).all()
    # Half of the square that the circle of radius 0.3 holds is not transparent.
    assert inside.mean() == pytest.approx((0.3 * np.sqrt(2)) ** 2 / 2, rel=0.2)
    assert len({mask.tobytes() for mask in inside[::STATES]}) == 4
