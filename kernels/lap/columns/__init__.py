"""Assignments by columns that are generated, of costs that somebody else reads: points in a tree, or a large matrix."""
