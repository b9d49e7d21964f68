"""Entropic transport on the stored entries of a sparse cost matrix."""
