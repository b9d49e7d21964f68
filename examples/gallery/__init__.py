"""Worked examples, each a short program that solves and draws. `python -m examples.gallery` makes all pictures."""
