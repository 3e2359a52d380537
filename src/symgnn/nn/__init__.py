"""Blocks as specifications of the inputs of their updates, and models built from them."""

from symgnn.nn import inputs
from symgnn.nn._element_energies import reference_energies
from symgnn.nn._engine.engine import Engine
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
from symgnn.nn.averaging import averages
from symgnn.nn.block import Block
from symgnn.nn.build import build
from symgnn.nn.conformal_field import ConformalField
from symgnn.nn.conv import AGNConv, CGNConv, CombinedConv, Conv, DGNConv, GNConv, SDGNConv
from symgnn.nn.coordinate_maps import CoordinateMap, Rigid, Scale, Shift
from symgnn.nn.egnn_map import EGNNMap
from symgnn.nn.exporting import export
from symgnn.nn.form import MLP, After, Form
from symgnn.nn.inputs import Applied, Input, Measure, Operator, initial, reduce
from symgnn.nn.isometric import Isometric
from symgnn.nn.linear_maps import LinearMap, Mirror
from symgnn.nn.model import Model
from symgnn.nn.named_networks import COORDINATE_MAPS
from symgnn.nn.neighbour_maps import EGCN, NeighbourSum
from symgnn.nn.part_maps import OTHER_MAPS, PartSum
from symgnn.nn.peers import FORMULAS, PEERS
from symgnn.nn.peers.weights import from_peer, to_peer
from symgnn.nn.potential import EnergyForces, Potential
from symgnn.nn.rungs import RUNGS, STGN, TGN, along, upright
from symgnn.nn.spec import Network, Spec
from symgnn.nn.standardising import Averages

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
    "FORMULAS",
    "GN",
    "MLP",
    "OTHER_MAPS",
    "PEERS",
    "RUNGS",
    "SDGN",
    "STGN",
    "TGN",
    "AGNConv",
    "After",
    "Applied",
    "Averages",
    "Block",
    "CGNConv",
    "CombinedConv",
    "ConformalField",
    "Conv",
    "CoordinateMap",
    "DGNConv",
    "EGNNMap",
    "EnergyForces",
    "Engine",
    "Form",
    "GNConv",
    "Input",
    "Isometric",
    "LinearMap",
    "Measure",
    "Mirror",
    "Model",
    "NeighbourSum",
    "Network",
    "Operator",
    "PartSum",
    "Potential",
    "Rigid",
    "SDGNConv",
    "Scale",
    "Shift",
    "Spec",
    "along",
    "averages",
    "build",
    "export",
    "from_peer",
    "initial",
    "inputs",
    "reduce",
    "reference_energies",
    "to_peer",
    "upright",
]
