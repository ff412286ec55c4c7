"""Tabular Markov decision processes: as arrays, built from rules, in files, and stepped natively vectorised."""
