"""Adapters that wrap models of other packages as functions for the audit.

Each adapter takes a model of its package and returns a function of coordinates and atomic numbers,
which builds the neighbour list that the package expects. ASE calculators need no adapter: pass them
to :func:`symgnn.audit.audit` with `Atoms`.

Example:
    audit(adapters.schnetpack(model), atoms, groups="E(3)")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

#: Signature: (pos [N, 3], z [N], cell [1, 3, 3] or None, pbc [1, 3] or None) -> outputs by name
Adapted = Callable[..., dict[str, Tensor]]

__all__ = ["e3nn", "mace", "nequip", "schnetpack", "torchmd_net"]


def neighbours(
    pos: Tensor, cutoff: float, cell: Tensor | None = None, pbc: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """All pairs up to a cutoff: `edge_index` `[2, E]`, shifts in cells `[E, 3]` and as vectors.

    A pair (j, i) has the vector `pos[i] - pos[j] + shift` from source to target.
    """
    points = pos.detach()
    if cell is None or pbc is None or not bool(pbc.any()):
        near = torch.cdist(points, points) < cutoff
        near.fill_diagonal_(False)
        edge_index = near.nonzero().T.contiguous()
        none = torch.zeros(edge_index.size(1), 3, dtype=torch.long, device=pos.device)
        return edge_index, none, none.to(pos)
    box = cell.detach().reshape(3, 3)
    heights = 1 / torch.linalg.inv(box).norm(dim=0)  # between opposite faces
    inverse = points @ torch.linalg.inv(box)
    extent = inverse.amax(0) - inverse.amin(0)
    counts = [
        int(torch.ceil(cutoff / h + e)) if periodic else 0
        for h, e, periodic in zip(heights, extent, pbc.reshape(3).tolist(), strict=True)
    ]
    steps = torch.cartesian_prod(*[torch.arange(-c, c + 1, device=pos.device) for c in counts])
    images = points[None] + (steps.to(pos) @ box)[:, None]  # [S, N, 3], of targets
    distances = (images[:, None] - points[None, :, None]).norm(dim=-1)  # [S, source, target]
    near = distances < cutoff
    home = int((steps == 0).all(1).nonzero()[0])
    near[home].fill_diagonal_(False)
    shift, source, target = near.nonzero().T
    moved = steps[shift]
    return torch.stack([source, target]), moved, moved.to(pos) @ (cell.reshape(3, 3).to(pos))


def _answer(out: Mapping[str, Any], names: Sequence[str]) -> dict[str, Tensor]:
    """The outputs that a user knows, and not what the model keeps for itself."""
    known = {key: out[key] for key in names if isinstance(out.get(key), Tensor)}
    if known:
        return known
    return {k: v for k, v in out.items() if isinstance(v, Tensor) and v.is_floating_point()}


def schnetpack(model: Any, cutoff: float | None = None) -> Adapted:
    """Wrap a model of schnetpack (SchNet, PaiNN, FieldSchNet, SO3net, ...).

    Args:
        model: An `AtomisticModel`, such as `NeuralNetworkPotential`.
        cutoff: The radius of the neighbour list; if not given, that of the representation.

    Returns:
        A function of `pos [N, 3]`, `z [N]`, `cell` and `pbc` that returns the outputs by name.
    """
    from schnetpack import properties

    radius = cutoff or float(model.representation.cutoff)
    names = [str(name) for name in getattr(model, "model_outputs", [])]

    def call(
        pos: Tensor, z: Tensor, cell: Tensor | None = None, pbc: Tensor | None = None
    ) -> dict[str, Tensor]:
        edge_index, _, shifts = neighbours(pos, radius, cell, pbc)
        box = torch.zeros(1, 3, 3).to(pos) if cell is None else cell.reshape(1, 3, 3)
        out = model(
            {
                properties.R: pos,
                properties.Z: z,
                properties.cell: box,
                properties.pbc: torch.zeros(3, dtype=torch.bool) if pbc is None else pbc.reshape(3),
                properties.idx: torch.zeros(1, dtype=torch.long),
                properties.idx_m: torch.zeros_like(z),
                properties.n_atoms: torch.tensor([len(z)]),
                properties.idx_i: edge_index[0],
                properties.idx_j: edge_index[1],
                properties.offsets: shifts,
            }
        )
        return _answer(out, names)

    return call


def mace(model: Any, **options: Any) -> Adapted:
    """Wrap a model of mace-torch.

    Args:
        model: A `MACE`, `ScaleShiftMACE` or similar. Models of dipoles read `charges` `[N]` from
            the data; the default is 0.
        **options: Options of its forward, such as `compute_stress=True`.

    Returns:
        A function of `pos [N, 3]`, `z [N]`, `cell`, `pbc` and `charges` that returns the outputs by
        name.
    """
    radius = float(model.r_max)
    elements = model.atomic_numbers

    def call(
        pos: Tensor,
        z: Tensor,
        cell: Tensor | None = None,
        pbc: Tensor | None = None,
        charges: Tensor | None = None,
    ) -> dict[str, Tensor]:
        edge_index, unit_shifts, shifts = neighbours(pos, radius, cell, pbc)
        kinds = (z[:, None] == elements.to(z)[None]).to(pos)
        if not bool((kinds.sum(1) == 1).all()):
            missing = z[kinds.sum(1) != 1].unique().tolist()
            raise ValueError(f"data: has the elements {missing}, which the model does not know")
        batch = {
            "positions": pos,
            "node_attrs": kinds,
            "edge_index": edge_index,
            "shifts": shifts,
            "unit_shifts": unit_shifts.to(pos),
            "cell": torch.zeros(3, 3).to(pos) if cell is None else cell.reshape(3, 3),
            "batch": torch.zeros_like(z),
            "ptr": torch.tensor([0, len(z)]),
            "head": torch.zeros(1, dtype=torch.long),
            "pbc": torch.zeros(1, 3, dtype=torch.bool) if pbc is None else pbc.reshape(1, 3),
            "charges": torch.zeros(len(z)).to(pos) if charges is None else charges,
        }
        out = model(batch, **{"compute_force": True, **options})
        return _answer(out, ("energy", "forces", "stress", "dipole", "polarizability"))

    return call


def nequip(model: Any, cutoff: float | None = None) -> Adapted:
    """Wrap a model of nequip or allegro.

    Args:
        model: A `GraphModel`, as `nequip.model` builds it.
        cutoff: The radius of the neighbour list; if not given, the model's `r_max`.

    Returns:
        A function of `pos [N, 3]`, `z [N]`, `cell` and `pbc` that returns the outputs by name.
    """
    metadata = getattr(model, "metadata", {})
    radius = float(cutoff or metadata.get("r_max") or getattr(model, "r_max", None) or 0.0)
    if radius <= 0:
        raise ValueError("cutoff: is missing, and the model has no r_max; pass cutoff=...")
    names = list(getattr(model, "type_names", []))

    def call(
        pos: Tensor, z: Tensor, cell: Tensor | None = None, pbc: Tensor | None = None
    ) -> dict[str, Tensor]:
        edge_index, unit_shifts, _ = neighbours(pos, radius, cell, pbc)
        data = {
            "pos": pos,
            "atomic_numbers": z,
            "atom_types": _types_of(z, names),
            "edge_index": edge_index,
            "edge_cell_shift": unit_shifts.to(pos),
            "batch": torch.zeros_like(z),
            "num_atoms": torch.tensor([len(z)]),
        }
        data["cell"] = torch.eye(3).to(pos)[None] if cell is None else cell.reshape(1, 3, 3)
        data["pbc"] = torch.zeros(1, 3, dtype=torch.bool) if pbc is None else pbc.reshape(1, 3)
        return _answer(model(data), ("total_energy", "forces", "stress"))

    return call


def _types_of(z: Tensor, names: Sequence[str]) -> Tensor:
    """The numbers of the types of atoms, by their symbols; sorted numbers where there are none."""
    if not names:
        return torch.unique(z, return_inverse=True)[1]
    from ase.data import chemical_symbols

    places = {name: k for k, name in enumerate(names)}
    return torch.tensor([places[chemical_symbols[int(number)]] for number in z])


def torchmd_net(model: nn.Module) -> Adapted:
    """Wrap a model of torchmd-net (TensorNet, equivariant transformer, graph network, ...).

    Args:
        model: A `TorchMD_Net`, from `torchmdnet.models.model.create_model`.

    Returns:
        A function of `pos [N, 3]`, `z [N]`, `cell` and `pbc` that returns the energy and forces.
    """

    def call(
        pos: Tensor, z: Tensor, cell: Tensor | None = None, pbc: Tensor | None = None
    ) -> dict[str, Tensor]:
        box = None if cell is None else cell.reshape(3, 3)
        pos = pos.detach().requires_grad_()
        energy, forces = model(z, pos, batch=torch.zeros_like(z), box=box)
        out = {"energy": energy}
        if isinstance(forces, Tensor) and forces.numel():
            out["forces"] = forces
        return out

    return call


def e3nn(model: nn.Module) -> Adapted:
    """Wrap a network of e3nn that takes a dictionary with `pos` and `x`, and optionally `batch`.

    Args:
        model: A network such as `e3nn.nn.models.v2106.gate_points_networks.SimpleNetwork`. Its
            output irreps are the type of the output: pass `outputs="1x0e+1x1o"` to the audit, or
            let the audit infer them.

    Returns:
        A function of `pos [N, 3]`, `x` and `z` that returns `{"output": ...}`.
    """

    def call(pos: Tensor, x: Tensor | None = None, z: Tensor | None = None) -> dict[str, Tensor]:
        given: dict[str, Tensor] = {"pos": pos}
        if x is not None:
            given["x"] = x
        if z is not None:
            given["z"] = z
        return {"output": model(given)}

    return call
