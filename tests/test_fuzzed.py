"""The short form of the fuzzers in tests/soak: no stack trace, no hang, nothing changed by a refused command."""

import importlib
import sys
from pathlib import Path

import pytest

SEED = 20
CASES = {"fuzz_configs": 100, "fuzz_files": 36}


@pytest.mark.parametrize("name", CASES)
def test_hostile_input_ends_in_a_sentence(name, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "soak"))
    harness, fuzzer = importlib.import_module("fuzz_harness"), importlib.import_module(name)
    outcomes = harness.run_cases(fuzzer.run, fuzzer.fill, SEED, range(CASES[name]))
    assert [(each.kind, each.line, each.told) for each in outcomes if each.kind in harness.FAULTS] == []
    kinds = {each.kind for each in outcomes}
    assert harness.REFUSED in kinds
    assert kinds & {harness.FINE, harness.STARTED}
    assert sys.argv[0] != "lcd"
