"""Transport that holds its marginals in other ways than by KL; `solver.py` is read first."""
