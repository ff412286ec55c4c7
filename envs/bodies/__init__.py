"""Simulated bodies (MuJoCo's): what of a picture moves, by segmentation rendering, and so drawn as masks."""
