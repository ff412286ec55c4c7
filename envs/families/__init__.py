"""Families of MDPs: tasks that are specified up to a context, and what their point MDPs are."""
