"""The audit's own behaviour: what it calls, what it gives back, what it says."""

from __future__ import annotations

import ast
import functools
import random
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

import symgnn.audit
from audit.faulty import Net, molecule
from symgnn.audit import audit
from symgnn.geometry import AFFINE, EUCLIDEAN, Symmetry


def distances(pos: Tensor) -> Tensor:
    """The sum of all distances: a number that rigid motions keep."""
    return torch.pdist(pos).sum()


def few(model, data=None, **options):
    return audit(model, molecule() if data is None else data, elements=2, **options)


# ---------------------------------------------------------------- what is given back


class Stateful(nn.Module):
    """Changes all that a forward can change about its module."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.calls = 0
        self.seen: list[int] = []
        self.register_buffer("count", torch.zeros(()))

    def forward(self, data: Data) -> Tensor:
        self.calls += 1
        self.seen.append(self.calls)
        self.last = data.pos
        self.count += 1
        data.pos.mul_(1.0)
        return self.norm(self.linear(data.pos)).sum()


def test_the_model_comes_back_as_it_was() -> None:
    model = Stateful()
    model.linear.train()
    model.norm.eval()
    model.linear.weight.requires_grad_(False)
    fired = []
    model.linear.register_forward_hook(lambda *_: fired.append(1))
    (model.linear(torch.ones(2, 3)).sum()).backward()
    data = molecule()
    kept_data = data.clone()
    before = {name: (value, value.clone()) for name, value in model.state_dict().items()}
    gradients = {n: p.grad for n, p in model.named_parameters()}
    flags = [m.training for m in model.modules()]
    needs = [p.requires_grad for p in model.parameters()]
    numbers = np.random.get_state()[1].copy()  # noqa: NPY002
    states = torch.get_rng_state(), random.getstate()
    few(model, data)
    assert flags == [m.training for m in model.modules()]
    assert needs == [p.requires_grad for p in model.parameters()]
    assert model.calls == 0
    assert model.seen == []
    assert not hasattr(model, "last")
    for name, value in model.state_dict().items():
        assert value.data_ptr() == before[name][0].data_ptr()
        assert torch.equal(value, before[name][1])
        assert value.dtype == before[name][1].dtype
    for name, parameter in model.named_parameters():
        assert parameter.grad is gradients[name]
    assert len(model.linear._forward_hooks) == 1
    assert not model.norm._forward_hooks
    assert fired  # the model's own hooks are a part of it
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == numbers).all()  # noqa: NPY002
    assert random.getstate() == states[1]
    assert torch.get_default_dtype() == torch.float32
    for key, value in kept_data.to_dict().items():
        assert torch.equal(data[key], value)
        assert data[key].dtype == value.dtype


def test_it_comes_back_also_when_it_fails() -> None:
    class Fails(Stateful):
        def forward(self, data: Data) -> Tensor:
            super().forward(data)
            raise RuntimeError("no such thing\nand more")

    model = Fails().train()
    with pytest.raises(ValueError, match=r"^model: fails on the data: no such thing$"):
        few(model)
    assert model.training
    assert model.calls == 0
    assert all(p.dtype == torch.float32 for p in model.parameters())


# ---------------------------------------------------------------- what is called

Answer = namedtuple("Answer", ["energy", "forces"])


class Takes(nn.Module):
    """Called in PyG's way, with parts by name."""

    def forward(self, x: Tensor, pos: Tensor, edge_index: Tensor, batch: Tensor, scale=2.0):
        assert len(batch) == len(pos) == len(x)
        source, target = edge_index
        return scale * (pos[source] - pos[target]).norm(dim=1).sum()


def rest(pos, **rest):
    assert set(rest) == {"x", "z", "edge_index"}
    return distances(pos)


def forces(pos: Tensor) -> Answer:
    pos = pos.detach().requires_grad_()
    energy = distances(pos)
    return Answer(energy.detach(), -torch.autograd.grad(energy, pos)[0])


def as_data(data: Data) -> Data:
    out = data.clone()
    out.pos = 2 * data.pos - data.pos.mean(0)
    return out


CALLED = [
    (distances, ["invariant per graph"]),
    (rest, ["invariant per graph"]),
    (Takes(), ["invariant per graph"]),
    (functools.partial(lambda pos, p: distances(pos) ** p, p=2), ["invariant per graph"]),
    (lambda coords, atomic_numbers: (atomic_numbers * coords.norm(dim=1)).sum(), None),
    (lambda graph: {"a": {"b": distances(graph.pos)}}, ["invariant per graph"]),
    (forces, ["invariant per graph", "vector per node"]),
    (as_data, ["coordinates per node"]),
    (lambda pos: float(distances(pos)), ["invariant per graph"]),
    (lambda pos: distances(pos).detach().numpy(), ["invariant per graph"]),
]


@pytest.mark.parametrize(("model", "types"), CALLED, ids=range(len(CALLED)))
def test_ways_to_be_called(model, types) -> None:
    report = few(model)
    if types is not None:
        assert [str(output) for output in report.outputs] == types
        assert report.holds("E(n)"), report
    assert report.holds("SO(n)"), report
    assert report.holds("permutations"), report


def test_names_of_outputs() -> None:
    assert [o.name for o in few(forces).outputs] == ["energy", "forces"]
    assert [o.name for o in few(as_data).outputs] == ["pos"]
    assert [o.name for o in few(lambda pos: (pos, pos.sum())).outputs] == ["0", "1"]
    assert [o.name for o in few(lambda g: {"a": {"b": g.pos.sum()}}).outputs] == ["a.b"]
    only = few(forces, outputs={"forces": "vector"})
    assert [(o.name, o.known) for o in only.outputs] == [("forces", "told")]


def test_batches_and_lists() -> None:
    graphs = [molecule(5, 1), molecule(7, 2)]

    def energy(data):
        size = data.pos.norm(dim=1)
        return torch.zeros(2).to(size).index_add(0, data.batch, size)

    for data in (graphs, Batch.from_data_list(graphs)):
        report = few(energy, data)
        assert report.nodes == 12
        assert str(report.outputs[0]) == "invariant per graph"
        assert report.holds("O(n)"), report
        assert report.holds("permutations"), report
        assert not report.holds("translations")


class Tangled(nn.Module):
    """float32 numbers in float64 coordinates: it only works in one precision."""

    def forward(self, pos: Tensor) -> Tensor:
        return pos.square().sum(1) @ torch.ones(len(pos), dtype=torch.float32)


def test_a_model_that_works_in_float32_only() -> None:
    report = few(Tangled())
    assert report.precisions == ["float32"]
    assert "float64: not measured, the model fails" in report.warnings[0]
    assert report.holds("O(n)"), report
    assert not report.holds("translations")


# ---------------------------------------------------------------- what outputs are

TURN = torch.randn(3, 2, generator=torch.Generator().manual_seed(1))


def rays(pos: Tensor, edge_index: Tensor) -> Tensor:
    return pos[edge_index[1]] - pos[edge_index[0]]


def pulls(pos: Tensor) -> Tensor:
    apart = pos[:, None] - pos
    return (apart * torch.exp(-apart.square().sum(-1, keepdim=True))).sum(1)


INFERRED = [
    (lambda pos: pos.norm(dim=1), "invariant per node"),
    (lambda pos, edge_index: rays(pos, edge_index).norm(dim=1), "invariant per edge"),
    (lambda pos, edge_index: rays(pos, edge_index), "vector per edge"),
    (lambda pos: pulls(pos), "vector per node"),
    (lambda pos: torch.stack([pulls(pos), 2 * pulls(pos)], 1), "vector per node"),
    (lambda pos: torch.stack([pulls(pos), 2 * pulls(pos)], 2), "vector per node"),
    (lambda pos: torch.cat([pulls(pos), 2 * pulls(pos)], 1), "vector per node"),
    (lambda pos: pos + pulls(pos), "coordinates per node"),
    (lambda pos: pos.mean(0), "coordinates per graph"),
    (lambda pos: pos.mean(0, keepdim=True), "coordinates per graph"),
    (lambda pos: pulls(pos).norm(dim=1) @ (pos - pos.mean(0)), "vector per graph"),
    (lambda pos: torch.cdist(pos, pos).flatten().sort().values[9:12], "invariant per graph"),
]


@pytest.mark.parametrize(("model", "type_"), INFERRED, ids=range(len(INFERRED)))
def test_types_are_inferred(model, type_) -> None:
    report = few(model)
    assert str(report.outputs[0]) == type_
    assert report.outputs[0].known == "inferred"
    assert report.holds("SO(n)"), report


def test_places_are_told_apart_by_permutations() -> None:
    """As many edges as nodes: the shape alone does not say."""
    data = molecule()
    ring = torch.arange(9)
    data.edge_index = torch.stack([ring, (ring + 1) % 9])
    assert str(few(lambda pos: pos.norm(dim=1), data).outputs[0]) == "invariant per node"
    edges = few(lambda pos, edge_index: rays(pos, edge_index).norm(dim=1), data)
    assert str(edges.outputs[0]) == "invariant per edge"


def test_what_is_said_of_outputs_is_believed_and_checked() -> None:
    wrong = few(pulls, outputs="invariant")
    assert not wrong.holds("rotations")
    assert wrong.outputs[0].known == "told"
    for outputs, message in (
        ("vektor", "outputs: 'output' is declared as 'vektor'; did you mean 'vector'"),
        ("vector per edge", "cannot be 'vector per edge' by its shape"),
        ({"force": "vector"}, "the model gives no 'force'; choose from output"),
    ):
        with pytest.raises(ValueError, match=message):
            few(pulls, outputs=outputs)
    with pytest.raises(ValueError, match="did you mean 'forces'"):
        few(forces, outputs={"force": "vector"})
    with pytest.raises(ValueError, match="there are energy, forces; pass a type for each"):
        few(forces, outputs="vector")


def test_an_output_that_fits_no_type_is_said_to_be_unclear() -> None:
    report = few(lambda pos: torch.tanh(pos) @ torch.diag(pos.new_tensor([1.0, 2.0, -1.0])))
    assert report.outputs[0].known == "unclear"
    assert "(unclear)" in str(report)


# ---------------------------------------------------------------- dimensions, constants, noise


@pytest.mark.parametrize("n", [1, 2, 4])
def test_any_dimension(n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    pos = torch.randn(7, n, generator=generator)
    edges = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]])
    report = few(distances, Data(pos=pos, edge_index=torch.cat([edges, edges.flip(0)], 1)))
    assert report.holds("E(n)"), report
    assert report.holds(f"E({n})"), report
    assert not report.holds("dilations")
    assert (report.findings["rotation"].verdict == "unmeasured") is (n == 1)
    assert (report.findings["torsion"].verdict == "unmeasured") is (n == 1)


def test_an_output_that_does_not_see_the_coordinates_is_reported_as_such() -> None:
    report = few(lambda x, pos: x.sum() + 0 * pos.sum())
    assert report.constant == ["output"]
    assert "does not depend on the coordinates" in str(report)
    assert not report.holds(AFFINE)  # nothing is known: a yes needs an output that reacts
    assert not report.holds(AFFINE).known


def test_errors_are_relative_to_how_much_the_output_varies() -> None:
    """A large constant hides nothing, and a tiny factor excuses nothing."""
    for scale, shift in ((1.0, 0.0), (1e-12, 0.0), (1e12, 0.0), (1.0, 1e4)):
        report = few(lambda pos, a=scale, b=shift: a * pos.norm(dim=1).sum() + b)
        assert report.holds("O(n)"), report
        assert report.findings["translation"].verdict == "broken"
        assert 0.1 < report.findings["translation"].error < 1e3


def test_a_regulariser_is_an_approximate_symmetry() -> None:
    def normed(pos: Tensor) -> Tensor:
        apart = pos[:, None] - pos
        return (apart / (apart.norm(dim=-1, keepdim=True) + 1e-5)).sum(1)

    finding = few(normed, outputs="invariant per node").findings["dilation"]
    assert finding.verdict == "approximate"
    assert 1e-7 < finding.error < 1e-3
    assert finding.sizes[0][1] < finding.sizes[-1][1]


def test_an_output_that_jumps_is_noticed() -> None:
    """At coordinates that lie on the boundary of a cutoff, rounding decides."""
    grid = torch.cartesian_prod(*[torch.arange(2.0)] * 3)

    def neighbours(pos: Tensor) -> Tensor:
        return (torch.cdist(pos, pos) <= 1.0).double().sum(1)

    report = audit(neighbours, Data(pos=grid), elements=12)
    assert not report.holds("rotations")


# ---------------------------------------------------------------- claims


class Claims(nn.Module):
    """Says what it is symmetric to."""

    def __init__(self, symmetry: Symmetry) -> None:
        super().__init__()
        self.symmetry = symmetry

    def forward(self, data: Data) -> Tensor:
        return torch.pdist(data.pos).sum()


def test_claims_are_compared() -> None:
    right = few(Claims(EUCLIDEAN))
    assert right.agrees
    assert "E(n), permutations: measured as derived" in str(right)
    more = few(Claims(EUCLIDEAN | Symmetry(["dilation"])))
    assert not more.agrees
    assert "dilations claimed, but error" in repr(more.agrees)
    assert "a scaling by" in repr(more.agrees)
    less = few(Claims(Symmetry(["permutation", "translation", "rotation"])))
    assert repr(less.agrees) == "reflections not claimed, but kept"
    assert few(distances).agrees  # which claims nothing


# ---------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (3, molecule(), "model: int cannot be called"),
        (distances, 3, "data: int has no coordinates"),
        (distances, Data(x=torch.ones(3, 1)), "data: Data has no coordinates"),
        (distances, Data(pos=torch.ones(1, 3)), "data: a graph has 1 nodes; pass at least 2"),
        (distances, Data(pos=torch.full((3, 3), torch.nan)), "pos: has coordinates"),
        (lambda pos, spin: pos, molecule(), "the model takes 'spin', but the graph has only"),
        (lambda pos: None, molecule(), "gave NoneType; let it give a tensor"),
        (lambda pos: pos / 0, molecule(), "'output' is not finite"),
    ],
)
def test_wrong_input_is_one_clear_line(model, data, message) -> None:
    with pytest.raises(ValueError, match=message) as error:
        few(model, data)
    assert "\n" not in str(error.value)


def test_too_few_elements_and_unknown_kinds() -> None:
    with pytest.raises(ValueError, match="elements: is 1; give at least 2"):
        audit(distances, molecule(), elements=1)
    with pytest.raises(ValueError, match="unknown transformation 'turn'"):
        few(distances, kinds=["turn"])
    report = few(distances, kinds=["rotation"])
    assert report.findings["translation"].reason == "it was not asked for"
    assert report.holds("rotations")


# ---------------------------------------------------------------- the package


def test_it_knows_nothing_of_our_networks() -> None:
    for path in Path(symgnn.audit.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.startswith("symgnn.nn")], path.name


def test_a_bar_is_shown_when_it_takes_long(capfd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, a terminal
    clock = iter(range(0, 100_000, 3))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    few(Net(), progress=False)
    assert capfd.readouterr() == ("", "")
    few(Net(), progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "auditing Net" in err


def test_the_same_seed_gives_the_same_report() -> None:
    torch.manual_seed(0)
    model = Net()
    one, two, other = (few(model, seed=seed) for seed in (0, 0, 1))
    assert one.findings["dilation"].errors == two.findings["dilation"].errors
    assert one.findings["dilation"].errors != other.findings["dilation"].errors
