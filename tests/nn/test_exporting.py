"""Exported programs: saved, loaded where symgnn is not, for graphs of any size."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from symgnn.graphs import AngleRays, EdgeEnds, Movement, RayEnds, Topology, knn_graph
from symgnn.graphs.plain import plain_topology
from symgnn.nn import EGNNMap, Model, build, export

#: Networks by name, with what they are built with.
NETWORKS: dict[str, dict[str, Any]] = {
    "gn": {"dimension": 3},
    "dgn": {"node_types": 9},
    "agn": {},
    "combined": {"coordinate_map": "neighbour-sum", "task": "coordinates"},
    "sdgn": {"coordinate_map": "egcn", "task": "coordinates"},
    "cgn": {"task": "node"},
    "schnet": {"filters": 4, "basis": 4},
    "egnn": {"node_types": 9, "task": "coordinates"},
    "dimenet++": {"degrees": 2, "basis": 2, "interaction": 4, "output_embedding": 4},
}
MORE: dict[str, dict[str, Any]] = {
    "agn+edges": {"edge_features": 2},
    "agn-to-edges": {"edge_features": 2, "task": "edge"},
    "agn-raw": {},
    "agn+distances": {"coordinate_map": "rigid-u", "dimension": 3, "aggregation": "max"},
    "dimenet": {"degrees": 2, "basis": 2},
    "isogcn": {"node_features": 2},
    "cgn+vectors": {"task": "graph-vectors"},
}


def graph(nodes: int, neighbours: int, seed: int) -> Data:
    """Points with their nearest neighbours: not every edge has its reverse."""
    generator = torch.Generator().manual_seed(seed)
    pos = torch.randn(nodes, 3, generator=generator, dtype=torch.float64)
    edges = knn_graph(pos, neighbours) if neighbours else torch.zeros(2, 0, dtype=torch.long)
    return Data(pos=pos, edge_index=edges)


def batches() -> list[Batch]:
    """One node, no edges, no angles, several graphs, and many neighbours."""
    sizes: list[list[tuple[int, int]]] = [
        [(1, 0)],
        [(2, 1)],
        [(3, 0), (2, 1), (1, 0)],
        [(6, 3), (4, 2), (1, 0), (9, 5)],
        [(40, 12)],
    ]
    return [
        Batch.from_data_list([graph(n, k, 10 * i + j) for j, (n, k) in enumerate(of)])
        for i, of in enumerate(sizes)
    ]


def with_features(batch: Batch, model: Model) -> tuple[Batch, dict[str, Tensor]]:
    """The batch with all that the model reads, and the arguments of its program."""
    batch, generator = batch.clone(), torch.Generator().manual_seed(3)
    rows = {"v": batch.num_nodes, "e": batch.num_edges, "u": batch.num_graphs}
    if model.features.get("a"):
        rows["a"] = Topology.of(batch).num_angles
    for value, name in (("v", "x"), ("e", "edge_attr"), ("a", "angle_attr"), ("u", "u")):
        width = model.features.get(value, 0)
        if width and not (name == "x" and model.network.types):
            batch[name] = torch.randn(rows[value], width, generator=generator).double()
    if model.needs_types:
        batch.z = torch.arange(batch.num_nodes) % 7 + 1
    if model.needs_velocity:
        batch.vel = torch.randn(batch.num_nodes, 3, generator=generator).double()
    names = ("pos", "edge_index", "batch", "x", "z", "vel", "edge_attr", "angle_attr", "u")
    return batch, {n: batch[n] for n in names if batch.get(n) is not None}


def model_of(name: str, **options: Any) -> Model:
    torch.manual_seed(0)
    model = build(name.removesuffix("+vectors"), hidden=4, layers=2, **options).double()
    for parameter in model.parameters():
        if parameter.abs().max() < 0.01:
            nn.init.normal_(parameter, std=0.1)
    return model


@cache
def exported(name: str) -> tuple[Model, Any]:
    """A model, and its program as it was saved."""
    model = model_of(name, **(NETWORKS | MORE)[name])
    return model, export(model, with_features(batches()[3], model)[0])


def check(model: Model, program: Any, batch: Batch) -> None:
    """Values and gradients of the coordinates are those of the model."""
    ready, given = with_features(batch, model)
    results = []
    for run in (lambda: model(ready), lambda: program(**given)):
        pos = batch.pos.clone().requires_grad_()
        ready.pos = given["pos"] = pos
        out = run()
        (force,) = torch.autograd.grad(out.square().sum(), pos, allow_unused=True)
        results.append((out, torch.zeros_like(pos) if force is None else force))
    for found, wanted in zip(*results, strict=True):
        assert found.shape == wanted.shape
        size = wanted.detach().abs().max() if wanted.numel() else torch.tensor(1.0)
        assert ((found - wanted).abs() < 1e-8 * size.clamp(min=1)).all()


@pytest.mark.parametrize(
    "name", [*NETWORKS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)]
)
def test_graphs_of_any_size(name: str) -> None:
    model, program = exported(name)
    assert model.training
    assert not [node for node in program.graph.nodes if "symgnn" in str(node.target)]
    module = program.module()
    for batch in batches():
        check(model, module, batch)


def test_all_features() -> None:
    widths = {"node_features": 2, "edge_features": 1, "angle_features": 2, "graph_features": 3}
    model = model_of("agn", node_types=9, **widths)
    module = export(model, with_features(batches()[3], model)[0]).module()
    for batch in batches():
        check(model, module, batch)


def test_velocities() -> None:
    model = model_of("dgn", coordinate_map=EGNNMap(velocity=True), task="coordinates")
    module = export(model, with_features(batches()[1], model)[0]).module()
    for batch in batches():
        check(model, module, batch)


def test_from_a_single_node() -> None:
    """The sizes of the example do not matter, nor does what it has none of."""
    model = model_of("dgn")
    module = export(model, batches()[0]).module()
    for batch in batches():
        check(model, module, batch)
    nothing = {"pos": torch.zeros(0, 3).double(), "batch": torch.zeros(0, dtype=torch.long)}
    assert module(**nothing, edge_index=torch.zeros(2, 0, dtype=torch.long)).shape == (0, 1)


SCRIPT = """
import sys

for name in ("symgnn", "torch_geometric"):
    sys.modules[name] = None  # an import would fail
import torch

for path in sys.argv[1:]:
    module = torch.export.load(path + ".pt2").module()
    given = torch.load(path + ".in", weights_only=True)
    torch.save([module(**each).detach() for each in given], path + ".out")
"""


def test_a_process_without_symgnn(tmp_path: Path) -> None:
    wanted = {}
    for name in ("agn", "sdgn", "schnet", "dimenet++"):
        model, program = exported(name)
        torch.export.save(program, tmp_path / f"{name}.pt2")
        ready = [with_features(batch, model) for batch in batches()]
        torch.save([given for _, given in ready], tmp_path / f"{name}.in")
        wanted[name] = [model(batch).detach() for batch, _ in ready]
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    call = [sys.executable, "-I", str(script), *(str(tmp_path / name) for name in wanted)]
    done = subprocess.run(call, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    for name, values in wanted.items():
        found = torch.load(tmp_path / f"{name}.out", weights_only=True)
        torch.testing.assert_close(found, values, rtol=1e-9, atol=1e-12)


def test_dropout_is_left_out() -> None:
    model = model_of("dgn", dropout=0.5)
    module = export(model, batches()[3]).module()
    assert model.training
    check(model.eval(), module, batches()[3])


def test_what_cannot_be_exported() -> None:
    with pytest.raises(ValueError, match="chunk: is 100; an exported program"):
        export(model_of("agn", chunk=100), batches()[3])
    with pytest.raises(TypeError, match="model: is a Linear; give a model of"):
        export(nn.Linear(2, 2), batches()[3])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="z: is missing"):
        export(model_of("dgn", node_types=3), batches()[3])


def test_a_program_that_takes_a_topology_can_be_saved(tmp_path: Path) -> None:
    model, batch = model_of("agn"), batches()[3]
    given = {"pos": batch.pos, "topology": model.topology(batch)}
    torch.export.save(torch.export.export(model, (), given), tmp_path / "model.pt2")
    with torch.serialization.safe_globals([Topology, EdgeEnds, RayEnds, AngleRays, Movement]):
        loaded = torch.export.load(tmp_path / "model.pt2").module()
    torch.testing.assert_close(loaded(**given), model(batch))


@pytest.mark.parametrize("seed", range(20))
def test_the_plain_topology_is_the_topology(seed: int) -> None:
    """On graphs with self-loops, parallel edges and nodes without any."""
    generator = torch.Generator().manual_seed(seed)

    def number(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=generator)

    nodes = int(number(0, 12))
    batch = number(0, 3, nodes).sort().values
    edges = number(0, max(nodes, 1), 2, int(number(0, 30)) if nodes else 0)
    edges = edges[:, batch[edges[0]] == batch[edges[1]]]
    one = Topology.build(edges, nodes, batch, num_graphs=3, pairs=True)
    other = plain_topology(edges, batch, num_graphs=3, pairs=True)
    for name in ("nodes_of_graph", "edges_of_node", "ray_index", "target_ray", "source_ray"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    assert torch.equal(one.edge_pair, other.edge_pair)
    assert torch.equal(one.angle_index, other.angle_index)
    assert torch.equal(one.all_pairs.edge_index, other.all_pairs.edge_index)
    for name in ("graphs", "edges", "rays", "pairs", "rays_in"):
        parts = [getattr(topology, name) for topology in (one, other)]
        for a, b in zip(*(p if hasattr(p, "both") else [p] for p in parts), strict=True):
            assert torch.equal(a.reads.long(), b.reads), name
            assert torch.equal(a.offsets.long(), b.offsets), name
