"""First and second derivatives with respect to coordinates, where a graph has next to nothing."""

import functools

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from helpers import both_ways, rng
from symgnn.nn import ARCHITECTURES, COORDINATE_MAPS, PEERS, Model, build

SMALL = {
    "schnet": {"types": 4, "basis": 4, "filters": 4},
    "dimenet": {"types": 4, "basis": 2, "degrees": 3},
    "dimenet++": {"types": 4, "basis": 2, "degrees": 3, "interaction": 3, "output_embedding": 5},
}
BLOCKS = [*ARCHITECTURES, *PEERS]


@functools.cache
def small_graphs() -> dict[str, Data]:
    pos = torch.randn(3, 3, generator=rng(5), dtype=torch.float64)
    none = torch.zeros(2, 0, dtype=torch.long)
    cases = {
        "two nodes": (2, both_ways([(0, 1)])),
        "one directed edge": (2, torch.tensor([[0], [1]])),
        "one node": (1, none),
        "one self-loop": (1, torch.zeros(2, 1, dtype=torch.long)),
        "no edges": (3, none),
        "a path": (3, both_ways([(0, 1), (1, 2)])),
        "no nodes": (0, none),
    }
    return {
        name: Data(pos=pos[:nodes], edge_index=edges, z=torch.ones(nodes, dtype=torch.long))
        for name, (nodes, edges) in cases.items()
    }


def small_model(name: str, coordinate_map: str, **options) -> Model | None:
    """A model, or None where the two do not go together."""
    torch.manual_seed(0)
    sizes = {"hidden": 4, "mlp_hidden": 4, "layers": 2, "dimension": 3, **SMALL.get(name, {})}
    try:
        model = build(name, coordinate_map=coordinate_map, **{**sizes, **options})
    except ValueError as error:
        assert str(error).startswith("coordinate_map: egcn"), error  # noqa: PT017
        return None
    model = model.double()
    with torch.no_grad():  # DimeNet starts with zeros
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def energy_of(model: Model, data: Data):
    topology, z = model.topology(data), data.z if model.network.types else None

    def energy(pos: Tensor) -> Tensor:
        return model(pos=pos, topology=topology, z=z).square().sum()

    return energy


def hessian_of(energy, pos: Tensor) -> Tensor:
    """By two backward passes, as force training takes them, `[N, n, N, n]`."""
    pos = pos.clone().requires_grad_()
    (slope,) = torch.autograd.grad(energy(pos), pos, create_graph=True, materialize_grads=True)
    assert slope.isfinite().all()
    rows = [
        torch.autograd.grad(one, pos, retain_graph=True, materialize_grads=True)[0]
        if one.requires_grad
        else torch.zeros_like(pos)
        for one in slope.flatten()
    ]
    return torch.stack(rows).view(*pos.shape, *pos.shape) if rows else pos.new_zeros(0, 3, 0, 3)


@pytest.mark.parametrize("coordinate_map", COORDINATE_MAPS)
@pytest.mark.parametrize("name", BLOCKS)
def test_second_derivatives_by_autograd(name: str, coordinate_map: str) -> None:
    model = small_model(name, coordinate_map)
    if model is None:
        return
    graphs = small_graphs()
    for case, data in {**graphs, "a batch": Batch.from_data_list([*graphs.values()])}.items():
        energy = energy_of(model, data)
        pos = data.pos.clone().requires_grad_()
        (force,) = torch.autograd.grad(energy(pos), pos, create_graph=True, materialize_grads=True)
        model.zero_grad()
        loss = force.square().sum()
        if loss.requires_grad:
            loss.backward()
        found = {"force": force, "pos": pos.grad}
        found |= {key: p.grad for key, p in model.named_parameters()}
        wrong = [k for k, g in found.items() if g is not None and not g.isfinite().all()]
        assert not wrong, f"{name}, {coordinate_map}, {case}: not finite: {wrong}"


@pytest.mark.parametrize("name", BLOCKS)
def test_second_derivatives_by_transforms(name: str) -> None:
    """`torch.func.hessian`, forward over backward under vmap, and a vmap over coordinates."""
    model = small_model(name, "neighbour-sum", layers=1)
    assert model is not None
    check_transforms(model, ("one self-loop", "no nodes"))


@pytest.mark.slow
@pytest.mark.parametrize("coordinate_map", COORDINATE_MAPS)
@pytest.mark.parametrize("name", BLOCKS)
def test_second_derivatives_by_transforms_everywhere(name: str, coordinate_map: str) -> None:
    model = small_model(name, coordinate_map)
    if model is not None:
        check_transforms(model, tuple(small_graphs()))


def check_transforms(model: Model, cases: tuple[str, ...]) -> None:
    for case in cases:
        data = small_graphs()[case]
        energy = energy_of(model, data)
        expected = hessian_of(energy, data.pos)
        found = torch.func.hessian(energy)(data.pos).detach()
        assert found.shape == expected.shape
        error = (found - expected).abs().max() if found.numel() else torch.zeros(())
        limit = 1e-9 * max(1.0, float(expected.abs().max()) if expected.numel() else 0.0)
        assert float(error) <= limit, f"{model}, {case}: {float(error)}"
        stack = torch.stack([data.pos, 2 * data.pos])
        slopes = torch.vmap(torch.func.grad(energy))(stack)
        each = torch.stack([torch.func.grad(energy)(pos) for pos in stack])
        assert torch.allclose(slopes, each, rtol=1e-9, atol=1e-12), f"{model}, {case}: vmap"
