"""Toys whose hardness is dialled, and wrappers that turn the same dials on anybody's environment."""
