"""The swish with derivatives in closed form, against that of PyTorch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nn.potential_cases import STRUCTURES, graph, potential
from symgnn.nn._engine import unchunked_engine
from symgnn.nn._engine.policy import using_policy
from symgnn.nn._engine.swish import TILE, swish


def all_derivatives(function, rows: Tensor) -> list[Tensor]:  # type: ignore[no-untyped-def]
    """The value, and the first three derivatives of sums of cubes of those before."""
    found = [function(rows)]
    for _ in range(3):
        (slope,) = torch.autograd.grad(found[-1].pow(3).sum(), rows, create_graph=True)
        found.append(slope)
    return found


@pytest.mark.parametrize("shape", [(5, 3), (0, 4), (7,), (2, 3, 4)])
def test_three_derivatives_are_those_of_torch(shape: tuple[int, ...]) -> None:
    rows = (2 * torch.randn(shape, generator=torch.Generator().manual_seed(0))).double()
    rows.requires_grad_()
    for one, two in zip(all_derivatives(swish, rows), all_derivatives(F.silu, rows), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_second_derivatives_in_tiles(dtype: torch.dtype) -> None:
    """More rows than a tile has, with the last derivative not differentiated again."""
    random = torch.Generator().manual_seed(1)
    rows = torch.linspace(-80, 80, TILE + 100).view(-1, 4).to(dtype).requires_grad_()
    other = torch.randn(rows.shape, generator=random).to(dtype)
    results = []
    for function in (swish, F.silu):
        (slope,) = torch.autograd.grad((other * function(rows)).sum(), rows, create_graph=True)
        results.append(torch.autograd.grad((slope * slope).sum(), rows)[0])
    assert bool(results[0].isfinite().all())
    small = {torch.float64: 1e-12, torch.float32: 1e-4}.get(dtype, 0.0)
    torch.testing.assert_close(*results, rtol=small, atol=small)


@pytest.mark.parametrize("block", ["dgn", "combined", "combined-separable", "combined-filtered"])
def test_it_is_used_where_forces_are_trained(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And gives the gradients of the reference engine; energies alone use that of PyTorch."""
    data = graph(STRUCTURES["layer"]())
    used: list[int] = []
    recorded = lambda rows: used.append(len(rows)) or swish(rows)  # noqa: E731
    monkeypatch.setattr(unchunked_engine, "swish", recorded)
    gradients = []
    for engine in ("fast", "reference"):
        model = potential(block, engine=engine).train()
        with using_policy(few=0):
            model(data, forces=False)
            assert not used or engine == "reference"
            found = model(data)
        loss = found.forces.square().sum() + found.energy.square().sum()
        gradients.append(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True))
    assert used
    for one, two in zip(*gradients, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            torch.testing.assert_close(one, two, rtol=1e-8, atol=1e-8)
