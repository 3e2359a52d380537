"""What is no potential, and graphs and settings that a potential does not take."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ase.build import bulk
from torch_geometric.data import Batch, Data

import symgnn
from nn.potential_cases import graph, potential
from symgnn.nn import Potential, build


@pytest.mark.parametrize(
    ("block", "options", "message"),
    [
        ("gn", {"dimension": 3}, "GN is not invariant to translations and rotations"),
        ("dgn", {"outputs": 2}, "gives 2 numbers"),
        ("dgn", {"task": "graph"}, "task='graph'; an energy is a sum over atoms"),
        ("dgn", {"graph_state": True}, "graph_state: is True"),
    ],
)
def test_refuses_networks_that_are_no_potentials(block: str, options: dict, message: str) -> None:
    settings = {"task": "node", "graph_state": False, **options}
    with pytest.raises(ValueError, match=message):
        Potential(build(block, **settings))


@pytest.mark.parametrize(
    ("block", "options", "message"),
    [
        ("cgn", {}, "envelope: CGN reads kappa, which depends on all neighbours"),
        ("sdgn", {}, "scales each graph by its longest edge"),
        ("dgn", {"aggregation": "mean"}, "aggregation: is 'mean' for e->v, which is discontinuous"),
        ("dgn", {"coordinate_map": "egcn"}, "coordinate_map: is 'egcn'"),
        ("dgn", {"cutoff": None}, "cutoff: is missing, but envelope is True"),
        ("schnet", {}, "envelope: is for the blocks of symgnn"),
    ],
)
def test_refuses_envelopes_that_would_not_help(block: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(block, **{"envelope": True, "cutoff": 3.0, **options})


def test_a_repeating_cell_needs_its_shifts() -> None:
    model = build("dgn", task="node", node_types="atoms", graph_state=False)
    (crystal,) = symgnn.data.read(bulk("Cu"), radius=4.0, columns=[], elements=[])
    crystal.edge_shift = None
    with pytest.raises(ValueError, match="edge_shift: is missing, but pbc says"):
        Potential(model)(crystal)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"references": {"Cu": float("nan")}}, "references.Cu: is nan; give a finite number"),
        ({"references": {29: "a"}}, "references.29: is 'a'; give a finite number"),
        ({"references": [1.0, 2.0]}, "references: is a list; give energies by element"),
        ({"references": {"Xx": 1.0}}, "references: 'Xx' is not an element"),
        ({"scale": float("nan")}, "scale: is nan; give a positive number"),
        ({"scale": 0.0}, "scale: is 0.0; give a positive number"),
    ],
)
def test_wrong_energies_of_elements(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Potential(potential("dgn").model, **options)


def test_wrong_graphs() -> None:
    model, crystal = potential("dgn"), graph(bulk("Cu"))
    for other in (bulk("Cu"), [crystal]):
        with pytest.raises(TypeError, match=r"data: is a \w+; give a PyG Data or Batch, such as"):
            model(other)
    whole = Data(
        pos=torch.tensor([[0, 0, 0], [0, 0, 2]]),
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        z=torch.tensor([29, 29]),
    )
    with pytest.raises(ValueError, match=r"pos: is torch\.int64; give floating-point numbers"):
        model(whole)
    two = Batch.from_data_list([crystal, crystal])
    two.cell = crystal.cell
    with pytest.raises(ValueError, match="cell: has 1 cells for 2 graphs; give one each"):
        model(two, stress=True)
