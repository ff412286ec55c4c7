"""The cache of skins: built once and whole, by however many processes, rebuilt when damaged, and told where to be."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from procgen_support import needs_procgen

from lcd.envs.errors import InputError
from lcd.envs.procgen import skins as cache
from lcd.envs.procgen.paint import skin_of
from lcd.envs.procgen.skins import LIBRARY, cache_folder, png, silhouette, skin_folder, wheel

pytestmark = needs_procgen
MAZE = skin_of("maze", "semantic")
START = """
import sys, time, numpy as np
while time.time() < float(sys.argv[2]): pass
from lcd.envs.procgen.vector import ProcgenVectorEnv
env = ProcgenVectorEnv(2, game="maze", view="semantic", cache=sys.argv[1], num_threads=0)
print(int(env.reset(seed=1)[0].sum()))
"""


def test_it_is_where_one_says(monkeypatch, tmp_path):
    monkeypatch.delenv("LCD_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "lcd" / "procgen"
    monkeypatch.setenv("LCD_CACHE", str(tmp_path / "variable"))
    assert cache_folder() == tmp_path / "variable" / "procgen"
    assert cache_folder(str(tmp_path / "knob")) == tmp_path / "knob" / "procgen"


def test_a_skin_is_complete_and_built_once(tmp_path):
    place = skin_folder(MAZE, str(tmp_path))
    names = {path.relative_to(place / "assets") for path in (place / "assets").rglob("*.png")}
    assert names == {path.relative_to(wheel() / "assets") for path in (wheel() / "assets").rglob("*.png")}
    assert (place / LIBRARY).read_bytes() == (wheel() / "prebuilt" / LIBRARY).read_bytes()
    built = (place / "seal").stat().st_mtime_ns
    assert skin_folder(MAZE, str(tmp_path)) == place
    assert (place / "seal").stat().st_mtime_ns == built
    assert {path.name for path in place.parent.iterdir()} == {place.name, f"{place.name}.lock"}


def test_a_sprite_keeps_its_size_and_outline():
    from imageio.v3 import imread

    path = wheel() / "assets" / "misc_assets" / "cheese.png"
    original = imread(path, mode="RGBA")
    painted = imread(png(silhouette(path, (1, 2, 3))), mode="RGBA")
    assert painted.shape == original.shape
    assert np.array_equal(painted[..., 3] == 255, original[..., 3] >= 128)
    assert set(map(tuple, painted.reshape(-1, 4))) == {(0, 0, 0, 0), (1, 2, 3, 255)}


@pytest.mark.parametrize("damage", ["truncate", "delete", "seal"])
def test_a_damaged_skin_is_built_anew(tmp_path, damage):
    place = skin_folder(MAZE, str(tmp_path))
    victim = place / ("seal" if damage == "seal" else "assets/misc_assets/cheese.png")
    whole = victim.read_bytes()
    if damage == "delete":
        victim.unlink()
    else:
        victim.write_bytes(whole[: len(whole) // 2])
    assert skin_folder(MAZE, str(tmp_path)) == place
    assert victim.read_bytes() == whole


def test_another_wheel_is_another_skin(monkeypatch, tmp_path):
    one = cache._key(wheel(), tuple(sorted(MAZE.items())))
    copy = tmp_path / "data"
    for name in ("prebuilt/libenv.so", *(f"assets/{sprite}" for sprite in MAZE)):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((wheel() / name).read_bytes())
    assert cache._key(copy, tuple(sorted(MAZE.items()))) == one
    cache._key.cache_clear()
    with (copy / "prebuilt" / LIBRARY).open("ab") as library:
        library.write(b"newer")
    assert cache._key(copy, tuple(sorted(MAZE.items()))) != one


def test_many_processes_may_start_at_once(tmp_path):
    """All find the cache empty (but for what a killed process left behind), and all see the same picture."""
    import time

    (tmp_path / "procgen" / "leftover.x").mkdir(parents=True)
    arguments = [sys.executable, "-c", START, str(tmp_path), str(time.time() + 3)]
    started = [subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(5)]
    told = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0] * 5, told
    assert len({out for out, _ in told}) == 1


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match=r"cannot be written .*cache=… or the environment variable LCD_CACHE"):
        skin_folder(MAZE, str(blocked))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_home_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        skin_folder(MAZE, str(tmp_path / "cache"))
