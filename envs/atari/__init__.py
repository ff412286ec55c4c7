"""Atari games whose things are found by the console's memory, and so drawn as masks."""
