"""Independent searches on a GPU, and those of large problems, bred on the host."""
