"""Single-player puzzles whose reward is the change in the number of goals that hold."""
