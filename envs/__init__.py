"""Environments, views, reward wrappers and benchmark definitions."""


def register() -> None:
    """Register every environment of ours with Gymnasium."""
