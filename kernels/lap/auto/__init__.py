"""Method `auto` on a GPU, one problem: an auction, then a forest of shortest paths."""
