"""The effective horizon of a tabular MDP: how far one must look ahead of random play to act optimally."""
