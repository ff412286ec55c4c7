"""Procgen's 16 games, seen as pixels, as figure and ground, and as labelled objects. Imports without Procgen."""
