"""Trained potentials as a calculator of ASE, with a neighbour list that is kept between steps."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from symgnn._argument_checks import check_at_least
from symgnn.graphs import periodic_graph
from symgnn.nn import Potential
from symgnn.nn._engine.force_pass import cutoff_of
from symgnn.train._known_elements import check_known

PROPERTIES = ["energy", "free_energy", "energies", "forces", "stress"]
#: What of an `ase.Atoms` the neighbour list depends on, besides positions.
_STRUCTURE = ("numbers", "cell", "pbc")


class NeighbourCache:
    """Graphs of atoms, whose edges are searched again only when atoms have moved far enough.

    Edges are listed up to cutoff + skin. An envelope is 0 beyond the cutoff, so further edges
    change nothing, and none is missed until two atoms have come nearer by the skin: until one has
    moved by half of it. Where a network does not leave them out by itself, they are left out here.

    Args:
        potentials: Those of an ensemble, with the same network.
        cutoff: How far atoms see each other, in Angstrom.
        skin: In Angstrom; 0 for a network without an envelope.
    """

    def __init__(self, potentials: Sequence[Potential], cutoff: float, skin: float) -> None:
        self.potentials, self.cutoff, self.skin = potentials, cutoff, skin
        self.searches = 0  # how often neighbours were searched
        self._cuts = skin > 0 and cutoff_of(potentials[0].model) is None
        self._known: dict[str, Any] = {}
        self._graph: Data | None = None

    def graph(self, atoms: Any, dtype: torch.dtype) -> Data:
        """The graph of some atoms, with its topology."""
        now = {name: np.array(getattr(atoms, name)) for name in _STRUCTURE}
        positions = atoms.positions
        strange = np.flatnonzero(~np.isfinite(positions).all(1))
        if len(strange):
            raise ValueError(
                f"positions: that of atom {strange[0]} is {positions[strange[0]].tolist()}; a "
                "smaller time step may help"
            )
        if self._graph is None or self._is_stale(now, positions):
            self._search(now, positions, dtype)
        assert self._graph is not None
        graph = copy.copy(self._graph)
        moved = positions - self._known["home"]
        graph.pos = torch.tensor(moved, dtype=dtype)
        return self._within_cutoff(graph) if self._cuts else graph

    def _within_cutoff(self, graph: Data) -> Data:
        """The graph without the edges that are longer than the cutoff."""
        source, target = graph.edge_index
        apart = graph.pos.index_select(0, source) - graph.pos.index_select(0, target)
        near = (apart + graph.edge_shift).square().sum(1) < self.cutoff**2
        graph.edge_index = graph.edge_index[:, near]
        graph.edge_shift = graph.edge_shift[near]
        del graph.topology
        graph.topology = self.potentials[0].topology(graph)
        return graph

    def _is_stale(self, now: Mapping[str, np.ndarray], positions: np.ndarray) -> bool:
        known = self._known
        if any(not np.array_equal(now[name], known[name]) for name in _STRUCTURE):
            return True
        away = positions - known["positions"]
        return bool((away**2).sum(1).max(initial=0.0) > (self.skin / 2) ** 2)

    def _search(
        self, now: Mapping[str, np.ndarray], positions: np.ndarray, dtype: torch.dtype
    ) -> None:
        self.searches += 1
        # near the origin, where float32 has most digits
        home = positions.mean(0, keepdims=True) if len(positions) else np.zeros((1, 3))
        pos = torch.tensor(positions - home)
        cell, pbc = torch.tensor(now["cell"]), torch.tensor(now["pbc"])
        index, shift = periodic_graph(pos, cell, self.cutoff + self.skin, pbc)
        graph = Data(
            pos=pos.to(dtype),
            z=torch.tensor(now["numbers"]).long(),
            edge_index=index,
            edge_shift=shift.to(dtype),
            cell=cell[None].to(dtype),
        )
        graph.topology = self.potentials[0].topology(graph)
        self._graph, self._known = graph, {**now, "positions": positions.copy(), "home": home}


def calculator_of(
    potentials: Sequence[Potential],
    *,
    cutoff: float,
    elements: Sequence[int],
    skin: float = 0.5,
    precision: str | None = None,
) -> Any:
    """A calculator of ASE for the mean of some potentials.

    Args:
        potentials: Those of an ensemble.
        cutoff: How far atoms see each other, in Angstrom.
        elements: The atomic numbers that they were trained on.
        skin: How much farther neighbours are listed, in Angstrom.
        precision: "32" or "64"; that of the potentials if not given.
    """
    skin = check_at_least("skin", skin, 0)
    if precision not in (None, "32", "64"):
        raise ValueError(f"precision: is {precision!r}; choose from '32', '64'")
    fades = all(each.model.network.layer.envelope is not None for each in potentials)
    copies = [copy.deepcopy(each).eval().requires_grad_(False) for each in potentials]
    if precision is not None:
        for each in copies:
            each.to(torch.float64 if precision == "64" else torch.float32)
    for each in copies:  # evaluated one after the other, so one memory is enough
        each.workspaces = copies[0].workspaces
    cache = NeighbourCache(copies, cutoff, skin if fades else 0.0)
    return _calculator_class()(cache, frozenset(elements))


def _remade(neighbours: NeighbourCache, elements: frozenset[int]) -> Any:
    """A calculator of a file or a copy."""
    return _calculator_class()(neighbours, elements)


@cache
def _calculator_class() -> type:
    from ase.calculators.calculator import Calculator, PropertyNotImplementedError, all_changes

    class PotentialCalculator(Calculator):
        """Energy, forces and stress of trained potentials; of several, their mean.

        `results` has also `energies` of atoms and, of several seeds, `energy_deviation` and
        `forces_deviation [N]`, the deviations over the seeds (of the forces, the root of the sum
        over their components).
        """

        implemented_properties = PROPERTIES

        def __init__(self, neighbours: NeighbourCache, elements: frozenset[int]) -> None:
            super().__init__()
            self.neighbours, self.elements = neighbours, elements

        def __reduce__(self) -> tuple[Any, ...]:
            return _remade, (self.neighbours, self.elements), vars(self)

        def calculate(
            self,
            atoms: Any = None,
            properties: Sequence[str] = ("energy",),
            system_changes: Sequence[str] = all_changes,
        ) -> None:
            """Compute energy and forces, and stress where it is asked for."""
            super().calculate(atoms, properties, system_changes)
            assert self.atoms is not None
            check_known("atoms:", np.unique(self.atoms.numbers), self.elements)
            stress = "stress" in properties
            if stress and self.atoms.cell.rank < 3:
                raise PropertyNotImplementedError("stress: the atoms have no cell; give them one")
            if stress and not self.atoms.cell.volume > 0:
                raise PropertyNotImplementedError("stress: the cell has no volume; correct it")
            potentials = self.neighbours.potentials
            dtype = next(potentials[0].parameters()).dtype
            graph = self.neighbours.graph(self.atoms, dtype)
            with torch.no_grad():
                found = [each(graph, forces=True, stress=stress) for each in potentials]
            energy = torch.cat([each.energy for each in found])
            forces = torch.stack([each.forces for each in found]).double()
            energies = torch.stack([each.energies for each in found])
            self.results = {
                "energy": float(energy.mean()),
                "free_energy": float(energy.mean()),
                "energies": energies.mean(0).numpy(),
                "forces": forces.mean(0).numpy(),
            }
            if stress:
                each = torch.cat([each.stress for each in found]).double()
                self.results["stress"] = each.mean(0).numpy()
            if len(found) > 1:
                self.results["energy_deviation"] = float(energy.std())
                spread = forces.var(0).sum(1).sqrt()
                self.results["forces_deviation"] = spread.numpy()

    return PotentialCalculator
