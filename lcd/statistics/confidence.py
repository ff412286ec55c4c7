"""One confidence for everything: intervals, tests, looks, power."""

ALPHA = 0.05
"""How often a test may find what is not there."""
LEVEL = 1 - ALPHA
"""How often an interval is to hold the truth."""
