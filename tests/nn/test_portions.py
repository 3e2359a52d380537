"""Rows read in portions have the gradients that they have when read at once."""

import torch
from torch import Tensor

from symgnn.nn.portions import Portions

INDEX = torch.tensor([3, 0, 0, 5, 3, 1, 2, 3])


def read(table: Tensor, size: int | None) -> Tensor:
    table = table.sin()  # not a leaf, as in a network
    if size is None:
        return table.index_select(0, INDEX).square().cumsum(0)
    portions = Portions(table)
    return torch.cat([portions.rows(part).square() for part in INDEX.split(size)]).cumsum(0)


def derivatives(size: int | None) -> list[Tensor]:
    torch.manual_seed(0)
    table = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    out = read(table, size)
    weight = torch.randn_like(out)
    (once,) = torch.autograd.grad((out * weight).sum(), table, create_graph=True)
    (twice,) = torch.autograd.grad(once.square().sum(), table, retain_graph=True)
    (again,) = torch.autograd.grad((out * weight).sum(), table)
    return [out, once, twice, again]


def test_two_derivatives() -> None:
    for size in (1, 3, 8):
        for one, other in zip(derivatives(size), derivatives(None), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_the_table_gets_one_gradient() -> None:
    table = torch.randn(6, 4, requires_grad=True)
    whole = table * 1
    seen: list[Tensor] = []
    whole.register_hook(seen.append)
    portions = Portions(whole)
    sum(portions.rows(part).sum() for part in INDEX.split(2)).backward()
    assert len(seen) == 1
    assert seen[0][:, 0].tolist() == [2, 1, 1, 3, 0, 1]
    assert portions.gradient is None


def test_torch_func() -> None:
    table = torch.randn(6, 4, dtype=torch.float64)
    one, other = (torch.func.grad(lambda t, s=s: read(t, s).sum())(table) for s in (3, None))
    torch.testing.assert_close(one, other)
