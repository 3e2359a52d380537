"""Blocks as specifications of what they read, and models made of them."""

from symgnn.nn import sources
from symgnn.nn.architectures import (
    AGN,
    AGN_DISTANCES,
    AGN_EDGES,
    AGN_RAW,
    AGN_TO_EDGES,
    ARCHITECTURES,
    CGN,
    COMBINED,
    DGN,
    GN,
    SDGN,
)
from symgnn.nn.block import Block
from symgnn.nn.build import COORDINATE_MAPS, build
from symgnn.nn.conv import AGNConv, CGNConv, CombinedConv, Conv, DGNConv, GNConv, SDGNConv
from symgnn.nn.coordinate_maps import EGCN, CoordinateMap, NeighbourSum, Rigid, Scale, Shift
from symgnn.nn.model import Model
from symgnn.nn.sources import Measure, Source, reduce
from symgnn.nn.spec import Spec

__all__ = [
    "AGN",
    "AGN_DISTANCES",
    "AGN_EDGES",
    "AGN_RAW",
    "AGN_TO_EDGES",
    "ARCHITECTURES",
    "CGN",
    "COMBINED",
    "COORDINATE_MAPS",
    "DGN",
    "EGCN",
    "GN",
    "SDGN",
    "AGNConv",
    "Block",
    "CGNConv",
    "CombinedConv",
    "Conv",
    "CoordinateMap",
    "DGNConv",
    "GNConv",
    "Measure",
    "Model",
    "NeighbourSum",
    "Rigid",
    "SDGNConv",
    "Scale",
    "Shift",
    "Source",
    "Spec",
    "build",
    "reduce",
    "sources",
]
