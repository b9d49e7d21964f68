"""A population that evolves on a GPU."""
