"""Crafter: a world to survive in, whose own map is drawn as masks."""
