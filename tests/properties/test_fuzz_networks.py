"""Random networks on random graphs: what every network has to keep, whatever it reads.

A network is the one of its seed: `check(17)` is the whole of case 17. The slow test goes through
more than a thousand, the other through a few dozen.
"""

import itertools
from random import Random

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from helpers import element_of
from properties.networks import (
    FIELD,
    Case,
    Concatenated,
    random_graph,
    random_network,
    with_features,
)
from symgnn.geometry import Permutation
from symgnn.nn import PEERS, Conv, EGNNMap, Model, NeighbourSum, Spec
from symgnn.nn.block import Block
from symgnn.nn.peers.isogcn import LAPLACIAN, SQUARED_GRADIENT

FEW, MANY = range(40), range(1000, 2200)


# ------------------------------------------------------------------ what is compared


def rows_of(model: Model, data: Data) -> int:
    nodes, graphs = len(data.pos), data.num_graphs if hasattr(data, "ptr") else 1
    edges = data.edge_index.shape[1]
    return {"graph": graphs, "node": nodes, "edge": edges, "coordinates": nodes}[model.task]


def evaluated(model: Model, data: Data) -> Tensor:
    with torch.no_grad():
        return model(data)


def uncertainty(model: Model, data: Data) -> float:
    """How much the output changes when coordinates change by 1e-10 of their size.

    The change is a linear map, which leaves nodes in one place or on a line as they are.
    """
    before = evaluated(model, data)
    if not before.numel():
        return 0.0
    largest = float(before.abs().max())
    n = data.pos.shape[1]
    generator = torch.Generator().manual_seed(n)
    changes = [1e-13 * largest]
    for _ in range(2):
        twist = torch.randn(n, n, generator=generator, dtype=torch.float64)
        moved = data.clone()
        moved.pos = data.pos + 1e-10 * data.pos @ twist
        changes.append(float((evaluated(model, moved) - before).abs().max()))
    return 1e-11 * largest + max(changes)


def assert_equal(found: Tensor, expected: Tensor, bound: float, case: object) -> None:
    assert found.shape == expected.shape, f"{case}: {found.shape} and {expected.shape}"
    error = _error(found, expected)
    assert error <= bound, f"{case}: error {error}, bound {bound}"


def _error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max()) if found.numel() else 0.0


# ------------------------------------------------------------------ the properties


def check_values(case: Case, data: Data, seed: int) -> None:
    """The output is finite and of the right shape, and so are first and second derivatives."""
    model, data = case.model, data.clone()
    data.pos = data.pos.clone().requires_grad_()
    output = model(data)
    width = data.pos.shape[1] if model.task == "coordinates" else model.outputs
    assert output.shape == (rows_of(model, data), width), f"{case}: shape {list(output.shape)}"
    assert output.isfinite().all(), f"{case}: the output is not finite"
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(output.shape, generator=generator, dtype=torch.float64)
    inputs = {"pos": data.pos, **dict(model.named_parameters())}
    first = torch.autograd.grad(
        (output * weight).sum(),
        list(inputs.values()),
        create_graph=True,
        materialize_grads=True,
    )
    wrong = [k for k, g in zip(inputs, first, strict=True) if not g.isfinite().all()]
    assert not wrong, f"{case}: first derivatives are not finite: {wrong}"
    along = torch.randn(data.pos.shape, generator=generator, dtype=torch.float64)
    slope = (first[0] * along).sum()
    if not slope.requires_grad:
        return
    second = torch.autograd.grad(slope, list(inputs.values()), materialize_grads=True)
    wrong = [k for k, g in zip(inputs, second, strict=True) if not g.isfinite().all()]
    assert not wrong, f"{case}: second derivatives are not finite: {wrong}"


def check_permutation(
    case: Case, graphs: list[Data], expected: Tensor, bound: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    images, nodes, edges = [], [], []
    for data in graphs:
        order = torch.randperm(len(data.pos), generator=generator)
        shuffled = torch.randperm(data.edge_index.shape[1], generator=generator)
        image = Permutation(order).apply(data)
        image.edge_index = image.edge_index[:, shuffled]
        if image.edge_attr is not None:
            image.edge_attr = image.edge_attr[shuffled]
        images.append(image)
        nodes.append(order + sum(map(len, nodes)))
        edges.append(shuffled + sum(map(len, edges)))
    index = {"edge": torch.cat(edges), "graph": torch.arange(len(graphs))}
    expected = expected[index.get(case.model.task, torch.cat(nodes))]
    found = evaluated(case.model, Batch.from_data_list(images))
    assert_equal(found, expected, bound, f"{case}: permutation")


def check_symmetry(case: Case, graphs: list[Data], seed: int) -> None:
    """Every kind of transformation that is claimed leaves the output as it is, or moves it along.

    A graph of no extent has no scale to divide by, so dilations are left to the others.
    """
    model, generator = case.model, torch.Generator().manual_seed(seed)
    scaled = model.network.start.scaling is not None
    graphs = [data for data in graphs if len(data.pos)]
    before = [(data, evaluated(model, data), uncertainty(model, data)) for data in graphs]
    for kind, (data, expected, bound) in itertools.product(model.symmetry, before):
        if kind == "permutation":
            continue
        source, target = data.edge_index
        lengths = (data.pos[source] - data.pos[target]).norm(dim=1)
        if kind in ("flex", "angle-flex") and bool((lengths[source != target] == 0).any()):
            continue  # its linear algebra needs directions
        if kind == "dilation" and scaled and bool((data.pos == data.pos[:1]).all()):
            continue
        element = element_of(kind, data, generator)
        if element is None:
            continue
        image = element.apply(data)
        if kind not in ("torsion", "flex", "redrawing", "angle-flex", "part-motion"):
            image.pos = image.pos[first_of_its_place(data.pos)]
        if "vel" in data:  # a vector: only the linear part of the map acts on it
            image.vel = element(data.vel) - element(torch.zeros_like(data.vel))
        if model.task == "coordinates":
            expected = element(expected)
        found = evaluated(model, image)
        if _error(found, expected) > bound:  # the image may be worse conditioned
            bound += uncertainty(model, image)
        assert_equal(found, expected, bound, f"{case}: {kind}")


def check_copies(
    case: Case, batch: Data, expected: Tensor, bound: float, generic: Data, seed: int
) -> None:
    """Chunks, checkpoints, plain forms and new parameters.

    Gradients are compared on a generic graph: where a maximum has two places, either is right.
    """
    model, chunk = case.model, 1 + seed % 7
    torch.manual_seed(seed)
    cut = case.again(chunk=chunk)
    cut.load_state_dict(model.state_dict())
    assert_equal(evaluated(cut, batch), expected, bound, f"{case}: chunk={chunk}")
    slopes = [_slope(one, generic) for one in (model, cut)]
    size = float(slopes[0].abs().max()) + 1e-3 * float(evaluated(model, generic).abs().sum())
    assert_equal(slopes[1], slopes[0], 1e-9 * size, f"{case}: chunk={chunk}, gradient")
    other = case.again()
    other.load_state_dict(model.state_dict())
    assert_equal(evaluated(other, batch), expected, 0.0, f"{case}: state_dict")
    plain = concatenated(case)
    if plain is not None:
        plain.load_state_dict(model.state_dict())
        assert_equal(evaluated(plain, batch), expected, 10 * bound, f"{case}: plain forms")
    with torch.no_grad():
        for parameter in other.parameters():
            parameter += 5 + torch.rand_like(parameter)
    before = {name: p.clone() for name, p in other.named_parameters()}
    other.reset_parameters()
    kept = [name for name, p in other.named_parameters() if bool((p == before[name]).any())]
    assert not kept, f"{case}: not drawn anew: {kept}"


def _slope(model: Model, data: Data) -> Tensor:
    data = data.clone()
    data.pos = data.pos.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(data).sum(), data.pos, materialize_grads=True)
    return slope


def concatenated(case: Case) -> Model | None:
    """The same network with the plain form of every MLP, or None where there is no such form."""
    spec = case.architecture
    if not isinstance(spec, Spec) or case.options["mlp_layers"] != 1:
        return None
    forms = {domain: Concatenated for domain in ("angle", "edge", "node", "graph") if spec[domain]}
    try:
        return case.again(spec.replace(forms={**forms, **spec.forms}))
    except ValueError as error:  # a form has to have all its inputs, in one direction
        refused = ("which this layer does not have", "differs between an edge and its reverse")
        assert any(reason in str(error) for reason in refused), error  # noqa: PT017
        return None


def check_gradient(case: Case, data: Data, seed: int) -> None:
    """The derivative along a random direction, against a finite difference."""
    generator = torch.Generator().manual_seed(seed)
    along = torch.randn(data.pos.shape, generator=generator, dtype=torch.float64)
    exact = float((_slope(case.model, data) * along).sum())
    step, ends = 1e-6, []
    for sign in (1, -1):
        moved = data.clone()
        moved.pos = data.pos + sign * step * along
        ends.append(float(evaluated(case.model, moved).sum()))
    found = (ends[0] - ends[1]) / (2 * step)
    size = abs(exact) + float(evaluated(case.model, data).abs().sum()) * 1e-3
    assert abs(found - exact) <= 1e-3 * size, f"{case}: derivative {exact}, measured {found}"


def check_layer(case: Case, data: Data) -> None:
    """The same specification as a single layer: it runs, or it is refused."""
    if isinstance(case.architecture, str) and case.architecture in PEERS:
        return
    given, psi = case.features, case.options["coordinate_map"]
    try:
        layer = Conv(
            case.architecture,
            given["node_features"],
            3,
            edge_dim=given["edge_features"] or None,
            hidden=3,
            coordinate_map="identity" if psi is None else psi,
            aggregation=case.options["aggregation"] or "mean",
            dimension=data.pos.shape[1],
        ).double()
    except ValueError as error:
        assert FIELD.match(str(error)), error  # noqa: PT017
        return
    pos = data.pos.clone().requires_grad_()
    velocity = data.vel if "vel" in data else torch.zeros_like(data.pos)
    moves = layer.block.map is not None and layer.block.map.velocity
    out = layer(
        data.x, pos, data.edge_index, data.edge_attr, data.batch, vel=velocity if moves else None
    )
    rows, moved = out if isinstance(out, tuple) else (out, pos)
    assert rows.shape == (len(pos), 3), f"{case}: layer"
    assert moved.shape == pos.shape, f"{case}: layer"
    total = rows.sum() + moved.sum()
    total.backward()
    found = {"rows": rows, "moved": moved, **{k: p.grad for k, p in layer.named_parameters()}}
    wrong = [k for k, t in found.items() if t is not None and not t.isfinite().all()]
    assert not wrong, f"{case}: layer: not finite: {wrong}"


def check(seed: int) -> bool:
    """All properties of the network of a seed; False where it was refused."""
    random = Random(seed)
    case, _ = random_network(random)
    if case is None:
        return False
    n = case.options["dimension"]
    psi = case.options["coordinate_map"]
    grows = isinstance(psi, EGNNMap) or (isinstance(psi, NeighbourSum) and psi.max_growth is None)
    grows = grows or (psi is None and case.architecture == "egnn")
    scale = 10.0 ** (0 if grows else random.choice([0, 0, -6, -3, 3, 6]))
    plain = [random_graph(random, n, scale) for _ in range(random.randint(1, 4))]
    graphs = [with_features(data, case, random) for data in plain]
    batch = Batch.from_data_list(graphs)
    for data in (batch, *graphs):
        check_values(case, data, seed)
    check_layer(case, batch)
    if any(block.map is not None for block in case.model.blocks):
        graphs = [data for data in graphs if not coincident(data)]
        batch = Batch.from_data_list(graphs) if graphs else None
    if batch is None:
        return True
    expected, bound = evaluated(case.model, batch), uncertainty(case.model, batch)
    alone = torch.cat([evaluated(case.model, data) for data in graphs])
    assert_equal(expected, alone, bound, f"{case}: batch")
    check_permutation(case, graphs, expected, bound, seed)
    generic = with_features(random_graph(random, n, 1.0, generic=True), case, random)
    check_copies(case, batch, expected, bound, generic, seed)
    check_symmetry(case, [graphs[0], generic], seed)
    if not any(_holds_something(block) for block in case.model.blocks):
        check_gradient(case, generic, seed)
    return True


def first_of_its_place(pos: Tensor) -> Tensor:
    """The first node in the place of each node `[N]`.

    A product of matrices may round equal rows differently, and then nodes in one place are not in
    one place any more.
    """
    same = (pos.unsqueeze(0) == pos.unsqueeze(1)).all(-1)
    return same.int().argmax(1)


def coincident(data: Data) -> bool:
    """Whether two nodes are in one place.

    A coordinate map leaves them there up to rounding, so the angle between rays to them is
    anything: its values are finite, and cannot be compared.
    """
    return len(data.pos.unique(dim=0)) < len(data.pos)


def _holds_something(block: Block) -> bool:
    """Whether a block takes something for a constant in derivatives.

    EGNN's code does so with the lengths of rays, and IsoGCN's operators with what the neighbours
    of a node span.
    """
    if isinstance(block.map, EGNNMap) and block.map.normalise is True:
        return True
    return any(source in (LAPLACIAN, SQUARED_GRADIENT) for source in block.inputs)


# ------------------------------------------------------------------ the tests


def test_random_networks() -> None:
    checked = [seed for seed in FEW if check(seed)]
    assert len(checked) > 0.9 * len(FEW)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(12))
def test_a_thousand_random_networks(block: int) -> None:
    seeds = MANY[100 * block : 100 * (block + 1)]
    checked = [seed for seed in seeds if check(seed)]
    assert len(checked) > 0.9 * len(seeds)
