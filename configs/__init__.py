"""Hydra's groups: a folder a group, a file a choice."""
