"""Assignments between two clouds of points, by columns that are generated: no matrix is ever written down."""
