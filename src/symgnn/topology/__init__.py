"""Edges, neighbours and angles: computed once, outside the model, in pure PyTorch."""

from symgnn.topology.grid import Grid
from symgnn.topology.movement import Ends, Movement
from symgnn.topology.neighbours import KNNGraph, RadiusGraph, knn_graph, radius_graph
from symgnn.topology.topology import Cut, EdgeCut, EdgePart, Part, Topology
from symgnn.topology.transform import AddTopology

__all__ = [
    "AddTopology",
    "Cut",
    "EdgeCut",
    "EdgePart",
    "Ends",
    "Grid",
    "KNNGraph",
    "Movement",
    "Part",
    "RadiusGraph",
    "Topology",
    "knn_graph",
    "radius_graph",
]
