"""The auction on CPUs; `solver.py` is read first."""
