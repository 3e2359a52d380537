"""What is computed in parts has the values and derivatives that it has at once."""

import gc

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.graphs import KNNGraph
from symgnn.nn import build
from symgnn.nn._engine.chunks import Chunks
from symgnn.nn.architectures import ARCHITECTURES

INDEX = torch.tensor([3, 0, 0, 5, 3, 1, 2, 3])
PLACES = [slice(0, 3), slice(3, 4), slice(4, 8)]


class Layers(nn.Module):
    """Two layers that read rows of a table; parts of the second compute those of the first."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 3)
        self.dropout = dropout

    def forward(self, table: Tensor, parts: bool) -> Tensor:
        table = table.sin() @ self.first.weight  # depends on a parameter that parts read, too
        weight = self.second.weight * 2
        if not parts:
            rows = self._rows(table.index_select(0, INDEX), weight)
            out = rows.cumsum(0)
            return out + out.sin() * rows
        chunks = Chunks(4, self)
        rows, weight = chunks.table(table), chunks.share(weight)

        def compute(number: int) -> Tensor:
            return self._rows(rows.rows(INDEX[PLACES[number]]), weight)

        out = chunks.each(compute, PLACES, table.new_empty(0, 3)).cumsum(0)
        # what comes of parts goes into other parts, which read the first ones, too
        more = chunks.table(out)
        rest = chunks.each(lambda k: more.rows(PLACES[k]).sin() * compute(k), PLACES, out)
        return out + rest

    def _rows(self, rows: Tensor, weight: Tensor) -> Tensor:
        rows = F.dropout(F.silu(self.first(rows)), self.dropout, self.training)
        return F.silu(F.linear(rows, weight) + self.second(rows))


def derivatives(parts: bool) -> list[Tensor]:
    torch.manual_seed(0)
    model, table = Layers().double(), torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    inputs = [table, *model.parameters()]
    out = model(table, parts)
    loss = (out * torch.randn_like(out)).sum()
    once = torch.autograd.grad(loss, inputs, create_graph=True)
    penalty = sum(grad.square().sum() for grad in once)
    twice = torch.autograd.grad(penalty, inputs, retain_graph=True)
    return [out, *once, *twice, *torch.autograd.grad(loss, inputs)]


def test_values_and_two_derivatives() -> None:
    for one, other in zip(derivatives(True), derivatives(False), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_the_same_rows_are_dropped_in_the_backward_pass() -> None:
    torch.manual_seed(0)
    model, table = Layers(0.5).double(), torch.randn(6, 4, dtype=torch.float64)

    def loss(at: Tensor) -> Tensor:
        torch.manual_seed(1)
        return model(at, parts=True).sum()

    torch.autograd.gradcheck(loss, table.requires_grad_())
    torch.manual_seed(1)
    model(table, parts=True)
    expected = torch.rand(3)
    torch.manual_seed(1)
    model(table, parts=True).sum().backward()
    assert torch.equal(torch.rand(3), expected), "the backward pass took random numbers"


def test_autocast() -> None:
    torch.manual_seed(0)
    model, table = Layers(), torch.randn(6, 4, requires_grad=True)
    found = []
    for parts in (True, False):
        with torch.autocast("cpu", torch.bfloat16):
            out = model(table, parts)
        found.append([out, *torch.autograd.grad(out.sum(), [table, *model.parameters()])])
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=3e-2, atol=3e-2)


def test_the_table_gets_one_gradient() -> None:
    table = torch.randn(6, 4, requires_grad=True)
    whole, seen = table * 1, []
    whole.register_hook(seen.append)
    chunks = Chunks(4, nn.Identity())
    rows = chunks.table(whole)
    chunks.each(lambda k: rows.rows(INDEX[PLACES[k]]), PLACES, whole).sum().backward()
    assert len(seen) == 1
    assert seen[0][:, 0].tolist() == [2, 1, 1, 3, 0, 1]
    assert rows.gradient is None


@pytest.mark.parametrize("index", [slice(1, 4), torch.tensor([1, 2, 3])])
def test_rows_by_number_or_range(index: slice | Tensor) -> None:
    table = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    chunks = Chunks(4, nn.Identity())
    rows = chunks.table(table.sin())
    once, twice = [], []
    for out in (
        chunks.each(lambda _: rows.rows(index).square(), [slice(0, 3)], table),
        table.sin()[1:4].square(),
    ):
        once += torch.autograd.grad(out.exp().sum(), table, create_graph=True)
        twice += torch.autograd.grad(once[-1].sin().sum(), table)
    torch.testing.assert_close(*once)
    torch.testing.assert_close(*twice)


def test_each_part_is_computed_twice() -> None:
    table = torch.randn(6, 4, requires_grad=True)
    chunks = Chunks(4, nn.Identity())
    rows = chunks.table(table)
    calls = []

    def compute(number: int) -> Tensor:
        calls.append(number)
        return rows.rows(INDEX[PLACES[number]]).exp()

    out = chunks.each(compute, PLACES, table)
    assert calls == [0, 1, 2]
    out.sum().backward()
    assert calls == [0, 1, 2] * 2


def test_derivatives_of_some_inputs_leave_nothing_behind() -> None:
    torch.manual_seed(0)
    model = Layers().double()
    table = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    found = []
    for parts in (True, False):
        out = model(table, parts).sum()
        torch.autograd.grad(out, table, retain_graph=True)
        (force,) = torch.autograd.grad(out, table, create_graph=True)
        found.append(torch.autograd.grad(force.square().sum(), list(model.parameters())))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_no_parts() -> None:
    like = torch.randn(0, 3)
    assert Chunks(4, nn.Identity()).each(lambda _: like, [], like) is like


def test_torch_func() -> None:
    torch.manual_seed(0)
    model, table = Layers().double(), torch.randn(6, 4, dtype=torch.float64)
    one, other = (torch.func.grad(lambda t, p=p: model(t, p).sum())(table) for p in (True, False))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "architecture",
    [
        *("agn", "dgn", "dimenet++"),
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ARCHITECTURES
            if n not in ("agn", "dgn")
        ),
    ],
)
@pytest.mark.parametrize("backward", [True, False])
def test_a_pass_leaves_nothing_behind(architecture: str, backward: bool) -> None:
    graph = KNNGraph(k=4)(Data(pos=torch.rand(40, 3, generator=torch.Generator().manual_seed(0))))
    graph.z = torch.ones(40, dtype=torch.long) if architecture == "dimenet++" else None
    options = {"dimension": 3} if architecture == "gn" else {}
    if architecture in ("combined", "dgn"):
        options["coordinate_map"] = "neighbour-sum"
    model = build(architecture, hidden=8, layers=2, chunk=50, **options)
    graph.topology = model.topology(graph)
    counts = []
    for _ in range(3):
        out = model(graph).sum()
        if backward:
            out.backward()
        del out
        gc.collect()
        counts.append(sum(issubclass(type(thing), Tensor) for thing in gc.get_objects()))
    assert counts[1] == counts[2]
