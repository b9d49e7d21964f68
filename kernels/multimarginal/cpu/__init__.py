"""The solver on the CPU."""
