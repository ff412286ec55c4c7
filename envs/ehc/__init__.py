"""The Effective Horizon Challenge: puzzles, and games whose opponent is fixed, as tabular MDPs."""
