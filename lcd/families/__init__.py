"""Evaluation over families of MDPs: overall performance, ranks, profiles, and what a budget of points can tell."""
