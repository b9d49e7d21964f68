"""Costs of points, worked out on a GPU."""
