"""Calls that wait for others: who starts when, who falls with whom, and launchers that know nothing of it."""

from pathlib import Path

import pytest

from lcd.envs.errors import InputError
from lcd.pipelines.launch import cards, local
from lcd.pipelines.launch.cards import Shelf
from lcd.pipelines.launch.launchers import launch, launchers
from lcd.pipelines.launch.order import Call, Needs, Order, Outcome

HERE = str(Path(__file__).parents[1])
FOREST = {"a": (), "b": ("a",), "c": ("a", "b"), "d": (), "e": ("d",), "f": ("e",)}


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(HERE)


def forest(fail=()):
    return [Call((name, name in fail), name=name, label=name.upper(), after=after) for name, after in FOREST.items()]


class Plain:
    """A launcher from outside that takes plain calls and keeps the turns in which it got them."""

    def __init__(self):
        self.turns = []

    def __call__(self, function, calls, *, watch, **knobs):
        assert all(call.after == () for call in calls)
        self.turns.append("".join(call.name for call in calls))
        return [Outcome(call, "it broke" if call.arguments[1] else None) for call in calls]


def test_a_launcher_of_plain_calls_gets_them_in_turns(monkeypatch):
    plain = Plain()
    monkeypatch.setitem(launchers._built_in, "plain", plain)
    outcomes = launch("plain", "nothing:at_all", forest())
    assert plain.turns == ["ad", "be", "cf"]
    assert [outcome.call.name for outcome in outcomes] == list("abcdef")
    assert all(outcome.well for outcome in outcomes)


def test_a_call_that_fails_fails_those_that_wait_for_it_and_the_rest_goes_on(monkeypatch):
    plain = Plain()
    monkeypatch.setitem(launchers._built_in, "plain", plain)
    errors = {outcome.call.name: outcome.error for outcome in launch("plain", "nothing:at_all", forest(fail="d"))}
    assert plain.turns == ["ad", "b", "c"]
    in_vain = "it waits for d (D), which failed: it broke"
    assert errors == {"a": None, "b": None, "c": None, "d": "it broke", "e": in_vain, "f": in_vain}


def test_calls_that_wait_for_a_stopped_one_may_be_continued():
    order = Order(forest())
    order.end(0, Outcome(order.calls[0], stopped=True))
    assert {order.calls[index].name: outcome.stopped for index, outcome in order.outcomes.items()} == dict.fromkeys(
        "abc", True
    )
    assert [order.calls[index].name for index in order.ready()] == ["d"]


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({"a": ("b",), "b": ("a",), "c": ()}, "a, b wait for one another in a circle"),
        ({"a": ("a",)}, "a wait for one another in a circle"),
        ({"a": ("nobody",)}, "a waits for nobody, which is none of the calls"),
    ],
)
def test_circles_and_strangers_are_refused_before_anything_starts(after, told):
    with pytest.raises(InputError, match=told):
        launch("local", "launched:act", [Call((), name=name, after=names) for name, names in after.items()])


def test_the_local_launcher_starts_a_call_when_what_it_waits_for_is_done(tmp_path):
    def call(name, *after):
        return Call((name, str(tmp_path)), name=name, after=after)

    calls = [call("fine-last", "beating-first"), call("fine-lost", "raise"), call("raise"), call("beating-first")]
    outcomes = {outcome.call.name: outcome for outcome in launch("local", "launched:act", calls, workers=3)}
    assert outcomes["fine-last"].well
    begun = {path.name: path.stat().st_mtime for path in tmp_path.iterdir()}
    # What beats does so for three seconds.
    assert begun["fine-last"] - begun["beating-first"] > 2
    assert outcomes["fine-lost"].error == "it waits for raise, which failed: ValueError: told to"
    assert "fine-lost" not in begun


def test_a_call_waits_until_there_is_room_for_what_it_needs(monkeypatch):
    monkeypatch.setattr(local, "machine_memory", lambda: 100)
    monkeypatch.setattr(local, "usable_cores", lambda: 4)
    small, large, wide = Needs(memory=40), Needs(memory=70), Needs(cores=3)
    room = local.Room("auto", threads=1)
    assert room.fits(small, [small])
    assert not room.fits(large, [small])
    assert room.fits(large, []), "one alone always may, whatever it needs"
    assert room.fits(wide, [small])
    assert not room.fits(wide, [small, small])
    assert not local.Room("auto", threads=2).fits(small, [Needs(), Needs()])
    assert local.Room(3, threads=1).fits(Needs(cores=9), [Needs(cores=9)] * 2), "who says how many means it"
    assert not local.Room(3, threads=1).fits(Needs(), [Needs()] * 3)
    assert room.at_once([small, small, small]) == 2


def test_the_order_is_the_callers_where_nothing_else_decides():
    order = Order(forest())
    started = []
    while (found := order.start(lambda needs: True)) is not None:
        started.append(found[1].name)
        order.end(found[0], Outcome(found[1]))
    assert started == list("abcdef")
    assert order.over


def test_a_call_gets_the_least_busy_gpus_that_it_fits_on():
    shelf = Shelf({"0": 100, "1": 100, "2": 0})
    large, small = Needs(gpus=1, gpu_memory=70), Needs(gpus=1, gpu_memory=30)
    assert shelf.place(large, []) == ("0",)
    assert shelf.place(large, [(large, ("0",))]) == ("1",)
    assert shelf.place(small, [(large, ("0",)), (large, ("1",)), (large, ("2",))]) == ("0",)
    assert shelf.place(large, [(large, ("0",)), (large, ("1",)), (large, ("2",))]) == ("2",), "of it nobody knows"
    assert shelf.place(Needs(gpus=2), [(large, ("1",))]) == ("0", "2")
    assert shelf.place(Needs(), []) == ()
    two = Shelf({"0": 100, "1": 100})
    assert two.place(large, [(large, ("0",)), (large, ("1",))]) is None
    assert two.place(Needs(gpus=1, gpu_memory=900), []) == ("0",), "one alone always may, whatever it needs"
    assert Shelf({"0": 100}, most=1).place(small, [(small, ("0",))]) is None
    assert Shelf().place(large, []) == (), "no GPUs, no matter"


def test_each_worker_sees_its_own_gpus_of_those_that_the_command_may_use(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "cards_here", lambda: {"4": 100, "7": 100})
    needs = Needs(gpus=1, gpu_memory=60)
    calls = [Call((f"card-{number}", str(tmp_path)), needs=needs) for number in range(4)]
    outcomes = launch("local", "launched:act", calls, workers=4)
    assert all(outcome.well for outcome in outcomes)
    seen = [(tmp_path / f"card-{number}.gpus").read_text() for number in range(4)]
    assert sorted(seen) == ["4", "4", "7", "7"]


@pytest.mark.parametrize(
    ("chosen", "names"), [(None, ["0", "1", "2"]), ("2,0", ["2", "0"]), ("GPU-aa, GPU-bb", ["GPU-aa", "GPU-bb"])]
)
def test_what_the_user_lets_the_command_see_is_all_that_it_gives_away(monkeypatch, chosen, names):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(names))
    monkeypatch.setattr(cards, "_memory", lambda: {"0": 10, "2": 30, "GPU-aa": 50})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert list(cards.cards_here()) == names
    assert cards.cards_here()[names[0]] in (10, 30, 50)
