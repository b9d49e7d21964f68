"""The persistent iteration on a GPU, whatever a term is: its geometry, its launches, its steps."""
