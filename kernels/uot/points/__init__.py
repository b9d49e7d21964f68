"""Point clouds on a GPU, whose costs are worked out in every sweep."""
