"""Energies of atoms with forces and stress: derivatives of one invariant number per graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn._argument_checks import check_positive
from symgnn.geometry.symmetry import Symmetry
from symgnn.graphs import Topology
from symgnn.nn._element_energies import energy_table
from symgnn.nn._engine.force_pass import ForcePass, cutoff_of
from symgnn.nn._engine.policy import using_policy
from symgnn.nn._engine.workspaces import Workspaces
from symgnn.nn.model import Model
from symgnn.nn.node_types import ATOMS, check_types

#: Rows and columns of the components of a symmetric matrix in Voigt's order, by dimension.
VOIGT = {
    1: ((0,), (0,)),
    2: ((0, 1, 0), (0, 1, 1)),
    3: ((0, 1, 2, 1, 0, 0), (0, 1, 2, 2, 2, 1)),
}


class EnergyForces(NamedTuple):
    """Energies `[G]`, those of the atoms `[N]` in float64, forces `[N, n]`, stress `[G, 6]`.

    Stress is that of ASE: the derivative of the energy by the strain over the volume of the cell,
    in the order xx, yy, zz, yz, xz, xy; NaN for a graph without a cell. What was not asked for is
    None.
    """

    energy: Tensor
    energies: Tensor
    forces: Tensor | None = None
    stress: Tensor | None = None


class Potential(nn.Module):
    """A network for nodes as a potential energy: `E = sum_i (scale v_i + reference(z_i))`.

    Forces are minus the derivative of the energy by the coordinates, and stress is that by a strain
    of coordinates and cell over its volume, so both are exactly those of the energy, and
    both can be differentiated again, for training or for force constants.

    Args:
        model: A model of `build(..., task="node", outputs=1, graph_state=False)` that
            translations and rotations leave unchanged. For energies without jumps, build it with
            `envelope=True, cutoff=...`, and with `cosines=True` if it reads angles.
        references: The energy of each element alone, by symbol or atomic number; 0 if not given.
            :func:`reference_energies` finds them by least squares.
        scale: The energy that an output of 1 stands for.

    Shapes:
        See :class:`EnergyForces`; `data` has `pos [N, n]` and `edge_index [2, E]`, in cells
        `edge_shift [E, n]` and, for stress, `cell [G, n, n]`.

    Example:
        >>> model = symgnn.nn.build("dgn", task="node", node_types="atoms", graph_state=False)
        >>> potential = symgnn.nn.Potential(model, references={"H": -13.6})
        >>> pos = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.74]])
        >>> edge_index, z = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1, 1])
        >>> from torch_geometric.data import Data
        >>> found = potential(Data(pos=pos, edge_index=edge_index, z=z))
        >>> found.energy.shape, found.forces.shape
        (torch.Size([1]), torch.Size([2, 3]))
    """

    references: Tensor
    scale: Tensor

    def __init__(
        self,
        model: Model,
        *,
        references: Mapping[Any, float] | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        _check_model(model)
        self.model = model
        size = check_positive("scale", scale)
        self.register_buffer("references", energy_table(references))
        self.register_buffer("scale", torch.tensor(size, dtype=torch.float64))
        self.workspaces = Workspaces()
        self._cutoff: tuple[float | None] | None = None  # found when it is needed

    def forward(
        self,
        data: Data,
        *,
        forces: bool = True,
        stress: bool = False,
        create_graph: bool | None = None,
    ) -> EnergyForces:
        """Energies, and forces and stress if wanted, of a graph or batch.

        Args:
            data: A `Data` or `Batch`, as the model reads it.
            forces: Whether forces are computed.
            stress: Whether stress is computed.
            create_graph: Whether forces and stress can be differentiated again; if not given,
                while training.
        """
        _check_data(data)
        pbc, made = data.get("pbc"), data.get("topology")
        shift = data.get("edge_shift") if made is None else made.edge_shift
        if pbc is not None and bool(pbc.any()) and shift is None:
            raise ValueError(
                "edge_shift: is missing, but pbc says that the cell repeats; join the atoms with "
                "symgnn.graphs.PeriodicGraph"
            )
        if not (forces or stress):
            return EnergyForces(*self._energies(data, data.pos, None))
        again = self.training if create_graph is None else create_graph
        numbers = not (again or data.pos.requires_grad or torch.is_grad_enabled())
        fast = self._force_pass(data) if numbers else None
        with (
            torch.enable_grad(),
            using_policy(force_pass=fast),
            nullcontext() if fast is None else fast,
        ):
            pos = data.pos if data.pos.requires_grad else data.pos.detach().requires_grad_()
            topology = self.topology(data)
            strain, moved = None, pos
            if stress:
                strain, moved, topology = _strained(pos, topology)
            energy, energies = self._energies(data, moved, topology)
            wanted = [pos] if strain is None else [pos, strain]
            found = torch.autograd.grad(
                energy.sum(), wanted, create_graph=again, materialize_grads=True
            )
        if numbers:
            energy, energies = energy.detach(), energies.detach()
        virial = found[1] if stress else None
        return EnergyForces(
            energy,
            energies,
            -found[0] if forces else None,
            None if virial is None else _stress(virial, data),
        )

    def _force_pass(self, data: Data) -> ForcePass:
        """How a pass is computed whose results are numbers, not differentiated again."""
        kinds = None
        if data.get("x") is None:
            kinds = data.get("z") if self.model.needs_types else torch.zeros(len(data.pos)).long()
        if self._cutoff is None:
            self._cutoff = (cutoff_of(self.model),)
        return ForcePass(self.workspaces, kinds, self._cutoff[0])

    def _energies(
        self, data: Data, pos: Tensor, topology: Topology | None
    ) -> tuple[Tensor, Tensor]:
        """The energy of each graph `[G]` and of each atom `[N]`, in float64."""
        topology = self.topology(data) if topology is None else topology
        given = {name: data.get(name) for name in ("x", "edge_attr", "angle_attr", "u")}
        z = data.get("z")
        read = z if self.model.needs_types else None
        rows = self.model(pos=pos, topology=topology, z=read, **given)
        return self.totals(rows, z, topology)

    def totals(self, rows: Tensor, z: Tensor | None, topology: Topology) -> tuple[Tensor, Tensor]:
        """Energies of graphs `[G]` and atoms `[N]`, of the outputs of the network `[N, 1]`."""
        energies = rows.squeeze(-1).double() * self.scale
        if z is not None:
            energies = energies + self.references[check_types(z, ATOMS, topology)]
        elif bool((self.references != 0).any()):
            raise ValueError(
                "z: is missing; reference energies need the atomic number of each atom"
            )
        energy = energies.new_zeros(topology.num_graphs).index_add(0, topology.batch, energies)
        return energy, energies

    def topology(self, data: Data) -> Topology:
        """The topology of a graph, as :meth:`Model.topology`."""
        return self.model.topology(data)

    @property
    def symmetry(self) -> Symmetry:
        """The transformations that keep the energy; forces turn with them."""
        return self.model.symmetry

    def _apply(self, function, recurse: bool = True):  # type: ignore[no-untyped-def]
        """Moves between devices; energies stay in float64, whatever the type of the model."""
        kept = {"references": self.references, "scale": self.scale}
        super()._apply(function, recurse)
        for name, buffer in kept.items():
            setattr(self, name, buffer.to(getattr(self, name).device))
        return self

    def __repr__(self) -> str:
        known = int((self.references != 0).sum())
        return f"Potential({self.model!r}, scale={float(self.scale):.4g}, references={known})"


def _check_model(model: Any) -> None:
    if not isinstance(model, Model):
        raise TypeError(f"model: is a {type(model).__name__}; give a model of symgnn.nn.build")
    if model.task != "node" or model.outputs != 1 or model.field is not None:
        raise ValueError(
            f"model: gives {model.outputs} numbers for task={model.task!r}; an energy is a sum "
            "over atoms, so build it with task='node', outputs=1"
        )
    lacks = [kind for kind in ("translation", "rotation") if kind not in model.symmetry]
    if lacks:
        raise ValueError(
            f"model: {model.network.name} is not invariant to {'s and '.join(lacks)}s, so its "
            "energy would change as atoms move together; use dgn, agn, combined or a block of them"
        )
    if any("graph" in block.updates for block in model._blocks()):
        raise ValueError(
            "graph_state: is True, so every atom reads the whole graph and energies of two copies "
            "are not twice that of one; build the model with graph_state=False"
        )


def _check_data(data: Any) -> None:
    if not isinstance(data, Data):
        raise TypeError(
            f"data: is a {type(data).__name__}; give a PyG Data or Batch, such as "
            "symgnn.data.read(atoms, radius=cutoff, columns=[], elements=[])[0]"
        )
    pos = data.get("pos")
    if isinstance(pos, Tensor) and not pos.is_floating_point():
        raise ValueError(f"pos: is {pos.dtype}; give floating-point numbers")


def _strained(pos: Tensor, topology: Topology) -> tuple[Tensor, Tensor, Topology]:
    """A strain of 0 for each graph `[G, n, n]`, and coordinates and shifts that it strains."""
    n = pos.shape[1]
    strain = pos.new_zeros(topology.num_graphs, n, n).requires_grad_()
    even = (strain + strain.mT) / 2
    of_nodes = even.index_select(0, topology.batch)
    moved = pos + torch.bmm(pos.unsqueeze(1), of_nodes).squeeze(1)
    shift = topology.edge_shift
    if shift is not None:
        shift = shift.to(pos.dtype)
        of_edges = of_nodes.index_select(0, topology.edge_index[1])
        shift = shift + torch.bmm(shift.unsqueeze(1), of_edges).squeeze(1)
        strained = dataclasses.replace(topology, edge_shift=shift)
        # what was made of the edges and is kept with them does not depend on the shifts
        kept = {name: made for name, made in vars(topology).items() if name.startswith("_")}
        vars(strained).update(kept)
        topology = strained
    return strain, moved, topology


def _stress(virial: Tensor, data: Data) -> Tensor:
    """The stress in Voigt's order, of the derivative by the strain `[G, n, n]`."""
    n = virial.shape[-1]
    if n not in VOIGT:
        raise ValueError(f"stress: is for up to 3 coordinates; there are {n}")
    cell = data.get("cell")
    if cell is None:
        raise ValueError("cell: is missing; stress needs the cell of each graph, [G, n, n]")
    cells = cell.reshape(-1, n, n)
    if len(cells) != len(virial):
        raise ValueError(f"cell: has {len(cells)} cells for {len(virial)} graphs; give one each")
    volume = torch.linalg.det(cells.to(virial.dtype)).abs()
    rows, columns = VOIGT[n]
    components = virial[:, list(rows), list(columns)]
    there = (volume > 0).unsqueeze(-1)
    # by no division by NaN: derivatives of other graphs of a batch would be NaN too
    found = components / torch.where(there, volume.unsqueeze(-1), 1.0)
    return torch.where(there, found, torch.nan)
