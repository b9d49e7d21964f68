"""Many small problems on a GPU: a block each."""
