"""A lower bound from the semidefinite relaxation of quadratic assignment.

`lifted.py` holds the matrices of order n^2, `cone.py` the projections onto positive semidefinite matrices, `ascent.py`
the iteration, `leaders.py` the assignments that make a bound of an iterate, and `floor.py` runs it beside a search.
The design, with its bytes and operations, is docs/decisions/semidefinite-bounds.md.
"""
