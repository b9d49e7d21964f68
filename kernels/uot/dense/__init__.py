"""A cost matrix on one GPU or several."""
