"""Edges, neighbours and angles: computed once, outside the model, in pure PyTorch."""

from symgnn.topology.neighbours import KNNGraph, RadiusGraph, knn_graph, radius_graph
from symgnn.topology.topology import Chunk, Topology
from symgnn.topology.transform import AddTopology

__all__ = [
    "AddTopology",
    "Chunk",
    "KNNGraph",
    "RadiusGraph",
    "Topology",
    "knn_graph",
    "radius_graph",
]
