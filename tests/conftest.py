"""Lets the tests of all rooms import what they share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "shared"))
