"""Transport on CPUs: sweeps on threads, and the network simplex; `solver.py` is read first."""
