"""The auction with a launch per step, many rounds in a CUDA graph."""
