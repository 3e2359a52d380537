"""A potential as the training loop sees it: one row of outputs for each atom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.data._task import Task
from symgnn.geometry.symmetry import Symmetry
from symgnn.graphs import Topology
from symgnn.nn import Model, Potential, reference_energies
from symgnn.nn._engine.engine import Reference
from symgnn.nn.potential import EnergyForces
from symgnn.train._metrics import Scaler, parts_of


class PotentialRows(nn.Module):
    """Energy per atom, forces and stress as rows `[N, targets]`, as the labels of the task are.

    Energy and stress of a graph stand in the rows of all its atoms; only the first has a label.

    Args:
        potential: The potential.
        targets: The names of the columns of the task.
        deviation: The size of each column, by which rows are divided, `[targets]`.
    """

    #: Values of graphs that are not read.
    unread: tuple[str, ...] = ()
    deviation: Tensor

    def __init__(
        self, potential: Potential, targets: Sequence[str], deviation: Sequence[float]
    ) -> None:
        super().__init__()
        self.potential = potential
        size = torch.tensor(deviation, dtype=torch.float64)
        self.register_buffer("deviation", size, persistent=False)
        self.forces, self.stress = "force_x" in targets, "stress_xx" in targets

    def forward(self, data: Data) -> Tensor:
        """`[N, targets]`, energy per atom, forces and stress over their sizes, in float64."""
        found: EnergyForces = self.potential(data, forces=self.forces, stress=self.stress)
        topology = self.topology(data)
        per_atom = found.energy / topology.nodes_of_graph.clamp(min=1)
        columns = [per_atom[topology.batch].unsqueeze(-1)]
        if found.forces is not None:
            columns.append(found.forces.double())
        if found.stress is not None:
            columns.append(found.stress.double()[topology.batch])
        return torch.cat(columns, -1) / self.deviation.double()

    def topology(self, data: Data) -> Topology:
        """The topology of a graph."""
        return self.potential.topology(data)

    @property
    def network(self) -> Model:
        """The network of the potential."""
        return self.potential.model

    @property
    def symmetry(self) -> Symmetry:
        """That of the energy."""
        return self.potential.symmetry

    @property
    def needs_angles(self) -> bool:
        """Whether angles are read."""
        return self.network.needs_angles

    @property
    def engine(self) -> Reference:
        """How the network is computed."""
        return self.network.engine

    def __repr__(self) -> str:
        return repr(self.potential)


def potential_facts(graphs: Sequence[Data], given: Mapping[str, float] | None) -> dict[str, Any]:
    """Reference energies (fitted, or those given), elements and number of atoms of training graphs.

    Args:
        graphs: The training graphs, with y as the task of a potential has it.
        given: Energies of elements by symbol, in eV.
    """
    known = [graph for graph in graphs if not bool(graph.y[0, 0].isnan())]
    if not known:
        raise ValueError("energy: no training graph has one; a potential needs some")
    if not any(graph.num_edges for graph in graphs):
        raise ValueError(
            "model.cutoff: no training graph has two atoms that are so near, so nothing would be "
            "learned; give a larger one, in Angstrom"
        )
    elements = sorted({int(z) for graph in graphs for z in graph.z.unique()})
    if given is None:
        energies = [float(graph.y[0, 0]) * graph.num_nodes for graph in known]
        references = reference_energies([graph.z for graph in known], energies)
    else:
        from ase.data import atomic_numbers, chemical_symbols

        lacking = [chemical_symbols[z] for z in elements if chemical_symbols[z] not in given]
        if lacking or any(symbol not in atomic_numbers for symbol in given):
            wrong = lacking or [symbol for symbol in given if symbol not in atomic_numbers]
            said = "have no energy of" if lacking else "are no elements:"
            raise ValueError(f"train.references: {said} {', '.join(wrong)}; give one per element")
        references = {atomic_numbers[symbol]: float(energy) for symbol, energy in given.items()}
    atoms = sum(graph.num_nodes for graph in graphs) / len(graphs)
    return {
        "references": {str(z): energy for z, energy in references.items()},
        "elements": elements,
        "atoms": atoms,
    }


def potential_scaler(
    graphs: Sequence[Data], task: Task, facts: Mapping[str, Any], standardise: bool
) -> Scaler:
    """Nothing is subtracted, as references stand in the potential; the deviation of the energy per
    atom from them, and the root mean square of forces and of stress.
    """
    size = torch.ones(len(task.targets), dtype=torch.float64)
    none = torch.zeros_like(size)
    if not standardise:
        return Scaler(none, size)
    table = {int(z): energy for z, energy in facts["references"].items()}
    rest = torch.tensor(
        [float(g.y[0, 0]) - sum(table[int(z)] for z in g.z) / g.num_nodes for g in graphs]
    ).double()
    y = torch.cat([graph.y for graph in graphs]).double()
    for name, columns in parts_of(task):
        found = rest if name == " energy" else y[:, columns]
        found = found[~found.isnan()]
        spread = float(found.square().mean().sqrt()) if found.numel() else 0.0
        size[columns] = spread if spread > 1e-12 else 1.0
    return Scaler(none, size)


def label_weights(task: Task, given: Mapping[str, float] | None, atoms: float) -> Tensor:
    """The weight of a label of each column: energy, forces and stress of a graph of average size
    count alike, times the weights given.
    """
    weights = torch.ones(len(task.targets), dtype=torch.float64)
    for name, columns in parts_of(task):
        labels = (columns.stop - columns.start) * (atoms if name == " forces" else 1)
        weights[columns] = (given or {}).get(name.strip(), 1.0) / labels
    return weights


def potential_of(model: Model, task: Task, facts: Mapping[str, Any] | None) -> PotentialRows:
    """The potential of a network, with the facts of its training graphs."""
    known = facts or {}
    references = {int(z): energy for z, energy in known.get("references", {}).items()}
    potential = Potential(model, references=references, scale=known.get("scale", 1.0))
    return PotentialRows(potential, task.targets, known.get("deviation", [1.0] * len(task.targets)))
