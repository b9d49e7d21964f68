"""Every table and plot of docs/benchmarks, from the rows of benchmarks/results: `python -m benchmarks.report`.

A page marks the place of a table:

    <!-- rows: lap, overview -->
    <!-- end -->

and a module of this package makes it from rows. What is between the marks is written by no hand.
"""
