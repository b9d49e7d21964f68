"""Systems of published papers, kept to compare with; none is the fastest method of its solver.

A solver finds them here by the method that asks for one, and loads a module when it is first used.
"""

SYSTEMS = {
    ("hungarian", "gpu"): "kernels.papers.hungarian.gpu",
    ("tree", "gpu"): "kernels.papers.tree.gpu",
    ("map-uot", "gpu"): "kernels.papers.map_uot.gpu",
    ("map-uot", "cpu"): "kernels.papers.map_uot.cpu",
    ("graph", "gpu"): "kernels.papers.auction_graph.gpu",
}
"""Dotted module by method (of lap and uot) or launch (of auction), and device."""
