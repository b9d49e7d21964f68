"""Assignment on CPUs: shortest augmenting paths over shortlists; `solver.py` is read first."""
