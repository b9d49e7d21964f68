"""Bounds of an answer, summed where the answer is: on the GPU."""
