"""Searches on CPUs: tabu searches on threads, bred as a population; `solver.py` is read first."""
