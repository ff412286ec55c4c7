"""The Effective Horizon Challenge: planning puzzles, and games against opponents of which every move is fixed, as tabular MDPs."""
