"""Many small problems on a GPU: a warp or a block each."""
