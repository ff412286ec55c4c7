"""A small disk of its own, which is full or read-only for a while; root mounts it."""

import contextlib
import os
import subprocess


def mount(*words):
    """Mount something; whether that was possible."""
    return not subprocess.run(["mount", *map(str, words)], check=False, stderr=subprocess.DEVNULL).returncode


@contextlib.contextmanager
def small_disk(place):
    """A disk of two megabytes at a place, which is made; None where nothing may be mounted."""
    place.mkdir()
    if os.geteuid() or not mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", place):
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextlib.contextmanager
def full(disk):
    """While this lasts nothing fits on a disk."""
    handle = os.open(disk / "fill", os.O_WRONLY | os.O_CREAT)
    try:
        with contextlib.suppress(OSError):
            while True:
                os.write(handle, bytes(1024))
        yield
    finally:
        os.close(handle)
        (disk / "fill").unlink()


@contextlib.contextmanager
def read_only(disk):
    """While this lasts no file is opened on a disk to be written; those that are open stay so."""
    assert mount("--bind", disk, disk)
    try:
        assert mount("-o", "remount,ro,bind", disk)
        yield
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
