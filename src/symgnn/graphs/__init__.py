"""Edges, neighbours and angles: computed once, outside the model, in pure PyTorch."""

from symgnn.graphs.angle_grid import Grid
from symgnn.graphs.cuts import Cut, EdgeCut, EdgePart, Part
from symgnn.graphs.movement import AngleRays, EdgeEnds, Movement, RayEnds
from symgnn.graphs.neighbours import KNNGraph, RadiusGraph, knn_graph, radius_graph
from symgnn.graphs.periodic import PeriodicGraph, periodic_graph
from symgnn.graphs.topology import Topology
from symgnn.graphs.transform import AddTopology

__all__ = [
    "AddTopology",
    "AngleRays",
    "Cut",
    "EdgeCut",
    "EdgeEnds",
    "EdgePart",
    "Grid",
    "KNNGraph",
    "Movement",
    "Part",
    "PeriodicGraph",
    "RadiusGraph",
    "RayEnds",
    "Topology",
    "knn_graph",
    "periodic_graph",
    "radius_graph",
]
