"""Proofs of small problems: every permutation, or branch and bound."""
