"""An encoder of groups, and the loss that teaches it."""

import numpy as np
import pytest
import torch

from lcd.envs.errors import InputError
from lcd.frontends.flow.config import GROUPS, FlowConfig
from lcd.frontends.flow.grouping import KEPT, Grouping, mutual_information, rolled
from lcd.frontends.flow.groups import GroupEncoder
from lcd.frontends.flow.own_motion import Motion
from lcd.pipelines.jobs.pretraining_modules import GroupPretraining
from lcd.pipelines.jobs.videos import Moments

CONFIG = FlowConfig(width=4, pyramid=6, maps=10, encoder_kind=GROUPS)
SIDE = 12


def still(count=2, own=None):
    """Frames in which nothing moves, but by itself where it is said (and then on the spot)."""
    nothing = torch.zeros(count, SIDE, SIDE, dtype=torch.bool)
    return Motion(nothing if own is None else own, torch.zeros(count, SIDE, SIDE, 2, dtype=torch.int64), ~nothing)


def test_maps_of_a_group_add_up_to_one_at_every_pixel():
    maps = GroupEncoder(CONFIG).eval()(torch.randn(2, 3, 17, 21))
    assert maps.shape == (2, 10, 17, 21)
    for half in maps.split(5, 1):
        torch.testing.assert_close(half.sum(1), torch.ones(2, 17, 21))


def test_looks_see_three_pixels_far_and_things_farther():
    encoder = GroupEncoder(CONFIG).eval()
    frames = torch.randn(1, 3, 33, 33)
    changed = frames.clone()
    changed[0, :, 16, 16] += 1
    with torch.no_grad():
        pairs = zip(encoder.logits(frames), encoder.logits(changed), strict=True)
        differ = [(one - other).abs().amax((0, 1)) > 0 for one, other in pairs]
    assert differ[0].nonzero().min() == 13
    assert differ[0].nonzero().max() == 19
    assert differ[1].nonzero().min() < 10


def test_mutual_information_against_its_definition():
    tables = np.random.default_rng(0).random((3, 4, 4))
    tables /= tables.sum((1, 2), keepdims=True)
    for table, found in zip(tables, mutual_information(torch.from_numpy(tables)).tolist(), strict=True):
        rows, columns = table.sum(1), table.sum(0)
        wanted = sum(table[i, j] * np.log(table[i, j] / (rows[i] * columns[j])) for i in range(4) for j in range(4))
        assert found == pytest.approx(wanted, abs=1e-6)
    assert mutual_information(torch.eye(4) / 4).item() == pytest.approx(np.log(4), abs=1e-6)
    assert mutual_information(torch.ones(4, 4) / 16).item() == pytest.approx(0, abs=1e-6)


def test_the_tables_become_what_is_given_again_and_again():
    """Logits that are sure: a table is then how many pixels were given each pair of maps."""
    given = torch.arange(SIDE * SIDE).view(1, SIDE, SIDE).expand(2, -1, -1) % 5
    logits = 50.0 * torch.nn.functional.one_hot(given, 5).permute(0, 3, 1, 2).float()
    grouping = Grouping(tasks=2, looks=5, things=5)
    for _ in range(120):
        lesson = grouping((logits, logits), (logits, logits), still(), torch.tensor([0, 0]), (0, 0))
    counts = torch.bincount(given[0].flatten(), minlength=5) / SIDE**2
    torch.testing.assert_close(grouping.looks[0], torch.diag(counts), atol=1e-4, rtol=0)
    assert (grouping.looks[1] == 1 / 25).all(), "no frame was of the other task"
    assert (grouping.things == 1 / 16).all(), "nothing moved by itself"
    entropy = -(counts * counts.log()).sum() / 2
    assert lesson.looks.item() == pytest.approx(entropy.item(), abs=1e-3)


def test_a_settled_table_passes_the_gradient_of_its_batch():
    torch.manual_seed(0)
    logits = torch.randn(1, 5, SIDE, SIDE, requires_grad=True)
    later = torch.randn(1, 5, SIDE, SIDE)
    things = torch.zeros(1, 5, SIDE, SIDE)
    first, second = (x.softmax(1).flatten(2) for x in (logits, later))
    table = torch.bmm(first, second.transpose(1, 2)) / SIDE**2
    table = (table + table.transpose(1, 2)) / 2
    grouping = Grouping(tasks=1, looks=5, things=5)
    grouping.looks = table.detach()
    (wanted,) = torch.autograd.grad(-mutual_information(table).sum(), logits, retain_graph=True)
    lesson = grouping((logits, things), (later, things), still(1), torch.tensor([0]), (0, 0))
    (found,) = torch.autograd.grad(lesson.loss, logits)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-3)
    assert KEPT < 1


def test_what_moves_is_to_stand_out():
    own = torch.zeros(2, SIDE, SIDE, dtype=torch.bool)
    own[:, 4:8, 4:8] = True
    looks = torch.zeros(2, 5, SIDE, SIDE)
    right = torch.zeros(2, 5, SIDE, SIDE)
    right[:, 0] = torch.where(own, -8.0, 8.0)
    grouping = Grouping(tasks=1, looks=5, things=5).eval()
    lessons = [
        grouping((looks, things), (looks, things), still(2, own), torch.zeros(2, dtype=torch.int64), (0, 0))
        for things in (right, -right)
    ]
    assert lessons[0].stands_out < 0.01 < lessons[0].blind < lessons[1].stands_out
    assert lessons[0].blind.item() == pytest.approx(-0.3 * np.log(0.3) - 0.7 * np.log(0.7), rel=1e-5)


def test_whether_something_moves_does_not_teach_which_thing_it_is():
    """Else all things learn the same: what moves is rare, and telling that much pushes every map alike."""
    own = torch.zeros(2, SIDE, SIDE, dtype=torch.bool)
    own[:, 4:8, 4:8] = True
    things = torch.randn(2, 5, SIDE, SIDE, requires_grad=True)
    looks, tasks = torch.zeros(2, 5, SIDE, SIDE), torch.zeros(2, dtype=torch.int64)
    lesson = Grouping(tasks=1, looks=5, things=5)((looks, things), (looks, things), still(2, own), tasks, (0, 0))
    (gradient,) = torch.autograd.grad(lesson.stands_out, things)
    assert (gradient[:, 0] != 0).all()
    assert not gradient[:, 1:].any()


def test_neighbours_that_move_alike_are_one():
    """Two halves of a thing are given two maps: told again by the pixel itself, and muddled by its neighbour."""
    own = torch.zeros(1, SIDE, SIDE, dtype=torch.bool)
    own[:, 4:8, 4:8] = True
    things = torch.zeros(1, 5, SIDE, SIDE)
    things[:, 1, :, :6], things[:, 2, :, 6:] = 50.0, 50.0
    looks, tasks = torch.zeros(1, 5, SIDE, SIDE), torch.tensor([0])
    found = {}
    for right in (0, 2):
        grouping = Grouping(tasks=1, looks=5, things=5)
        for _ in range(80):
            lesson = grouping((looks, things), (looks, things), still(1, own), tasks, (0, right))
        found[right] = lesson.things.item()
    assert found[0] == pytest.approx(np.log(2), abs=0.01)
    assert found[2] < 0.8 * found[0]


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
def test_in_half_precision_the_tables_stay_whole(precision):
    torch.manual_seed(0)
    looks, things = torch.randn(2, 2, 5, SIDE, SIDE).to(precision)
    own = torch.rand(2, SIDE, SIDE) < 0.3
    asked = (still(2, own), torch.tensor([0, 1]), (0, 1))
    half, full = (Grouping(tasks=2, looks=5, things=5) for _ in range(2))
    with torch.autocast("cpu", dtype=precision):
        lesson = half((looks, things), (looks, things), *asked)
    wanted = full((looks.float(), things.float()), (looks.float(), things.float()), *asked)
    assert lesson.loss == wanted.loss
    assert half.looks.dtype == torch.float32
    assert torch.equal(half.looks, full.looks)
    assert torch.equal(half.things, full.things)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (21, 17), (36, 36), (8, 33)])
@pytest.mark.parametrize("moving", [True, False])
def test_frames_of_any_shape_teach_the_tasks_that_they_are_of(height, width, moving):
    torch.manual_seed(0)
    frames = torch.randint(0, 255, (3, 2, height, width, 3), dtype=torch.uint8)
    if not moving:
        frames = frames[:1].expand(3, -1, -1, -1, -1).contiguous()
    module = GroupPretraining(CONFIG, 3, 1e-3, [0.5] * 3, [0.2] * 3, 0).train()
    before = module.grouping.looks.clone()
    loss = module.training_step(Moments(frames, torch.tensor([2, 0]), [(1, 2)] * 4, (2, -2)), 0)
    loss.backward()
    assert all(weights.grad.isfinite().all() for weights in module.objects.parameters())
    assert (module.grouping.looks != before).flatten(1).any(1).tolist() == [True, False, True]
    told = module.eval().measure(frames)
    assert all(np.isfinite(list(told.values())))
    assert (told["speed"] > 0) == moving


def test_rolled_there_and_back_is_as_before():
    frames = torch.randn(3, 2, 7, 9)
    offsets = [(1, 2), (0, -4), (6, 8)]
    back = [(-row, -column) for row, column in offsets]
    assert torch.equal(rolled(rolled(frames, offsets), back), frames)
    assert torch.equal(rolled(frames, offsets)[0, :, 1, 2], frames[0, :, 0, 0])


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({"maps": 7}, "must be even"),
        ({"maps": 4}, "at least 6"),
        ({"stem": 1}, "frontend.stem=1 is for the paper's networks"),
        ({"decoder_kind": "fpn"}, "pretraining.decoder=fpn is for the paper's networks"),
        ({"encoder_kind": "slots"}, "one of recurrent, groups"),
    ],
)
def test_sizes_that_groups_do_not_have_are_refused(sizes, told):
    with pytest.raises(InputError, match=told):
        FlowConfig(**{"encoder_kind": GROUPS, **sizes})
