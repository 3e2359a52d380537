"""Fixtures of the tests of graphs."""

import pytest
import torch

from helpers import directed, generic_edges
from symgnn.graphs import Topology


@pytest.fixture
def topology():
    edges = directed(generic_edges())
    return Topology.build(torch.cat([edges, edges[:, :4]], 1), 9, pairs=True)
