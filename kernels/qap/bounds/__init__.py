"""Lower bounds, each with the evidence that its certificate checks."""
