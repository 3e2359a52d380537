"""Rays, angles, buckets and pairs against brute force, and how they travel with PyG's data."""

import copy
import itertools

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from graphs.topology_cases import few, multigraphs, named
from helpers import (
    FEATURES,
    directed,
    distance,
    flexible_edges,
    generic_edges,
    graph,
    graphs,
    random_model,
    rng,
)
from symgnn.geometry import angle
from symgnn.graphs import AddTopology, Movement, Topology
from symgnn.nn import AGN
from symgnn.nn._engine.rows import move
from symgnn.nn.inputs import a, theta, u, v


def neighbours_of(edge_index: torch.Tensor, nodes: int) -> list[set[int]]:
    near = [set() for _ in range(nodes)]
    for j, i in edge_index.T.tolist():
        if i != j:
            near[i].add(j)
            near[j].add(i)
    return near


# ------------------------------------------------------------------ against brute force


@given(multigraphs())
@few
def test_angles_are_all_ordered_pairs_of_neighbours(case):
    edge_index, nodes = case
    topology = Topology.build(edge_index, nodes)
    near = neighbours_of(edge_index, nodes)
    expected = {
        (j, i, k) for i in range(nodes) for j, k in itertools.permutations(sorted(near[i]), 2)
    }
    found = [tuple(row) for row in topology.angle_index.T.tolist()]
    assert len(found) == len(set(found)) == topology.num_angles
    assert set(found) == expected
    assert topology.num_angles == sum(len(n) * (len(n) - 1) for n in near)


@given(multigraphs())
@few
def test_rays_are_sorted_and_have_angles(case):
    edge_index, nodes = case
    topology = Topology.build(edge_index, nodes)
    near = neighbours_of(edge_index, nodes)
    rays = list(zip(topology.ray_vertex.tolist(), topology.ray_neighbour.tolist(), strict=True))
    assert rays == sorted((i, j) for i in range(nodes) if len(near[i]) > 1 for j in near[i])
    assert topology.degree.tolist() == [len(n) if len(n) > 1 else 0 for n in near]


def matrix(movement: Movement, columns: int) -> torch.Tensor:
    """A movement as the matrix that it is."""
    offsets = movement.offsets
    if movement.is_lift:
        offsets = torch.arange(len(movement.reads) + 1)
    rows = torch.zeros(len(offsets) - 1, columns)
    for i, row in enumerate(rows):
        for k in movement.reads[offsets[i] : offsets[i + 1]].tolist():
            row[k] += 1
    return rows


@given(multigraphs())
@few
def test_movements_are_what_they_are_called(case):
    """Near ends, the sum of both ends, and their transposes, on edges, rays and angles."""
    edge_index, nodes = case
    topology = Topology.build(edge_index, nodes)
    j, i, k = topology.angle_index
    ray = {(v, n): r for r, (v, n) in enumerate(topology.ray_index.T.tolist())}
    first = torch.tensor([ray[p] for p in zip(i.tolist(), j.tolist(), strict=True)]).long()
    second = torch.tensor([ray[p] for p in zip(i.tolist(), k.tolist(), strict=True)]).long()
    for ends, near, far, size in (
        (topology.edges, edge_index[1], edge_index[0], nodes),
        (topology.rays, *topology.ray_index, nodes),
        (topology.pairs, first, second, topology.num_rays),
    ):
        one_hot = torch.nn.functional.one_hot
        if not len(near):
            assert not len(ends[0].reads)
            continue
        lift = one_hot(near, size).float()
        assert torch.equal(matrix(ends[0], size), lift)
        assert torch.equal(matrix(ends[0].T, len(near)), lift.T)
        both = one_hot(2 * near, 2 * size) + one_hot(2 * far + 1, 2 * size)
        assert torch.equal(matrix(ends.both, 2 * size), both.float())
        assert torch.equal(matrix(ends.both.T, len(near)), both.T.float())


@given(multigraphs())
@few
def test_edges_of_rays_and_rays_of_edges(case):
    edge_index, nodes = case
    topology = Topology.build(edge_index, nodes)
    edges = [tuple(edge) for edge in edge_index.T.tolist()]
    rays = list(zip(topology.ray_vertex.tolist(), topology.ray_neighbour.tolist(), strict=True))
    weights = topology.ray_edge_weight
    assert topology.ray_edge.shape[0] == len(rays)
    for r, (i, j) in enumerate(rays):
        # e_ij is the edge i -> j; where there is none, j -> i stands in
        expected = [k for k, edge in enumerate(edges) if edge == (i, j)]
        expected = expected or [k for k, edge in enumerate(edges) if edge == (j, i)]
        row = topology.ray_edge[r].tolist()
        if weights is None:
            assert row == expected
        else:
            used = {e: w for e, w in zip(row, weights[r].tolist(), strict=True) if w}
            assert used == pytest.approx(dict.fromkeys(expected, 1 / len(expected)))
    number = {ray: r for r, ray in enumerate(rays)}
    for k, (j, i) in enumerate(edges):
        assert int(topology.target_ray[k]) == number.get((i, j), len(rays))
        assert int(topology.source_ray[k]) == number.get((j, i), len(rays))


@given(multigraphs(), st.integers(1, 60))
@example((generic_edges(), 9), 20)
@example((generic_edges(), 9), 45)
@few
def test_parts_are_the_whole_cut(case, angles):
    topology = Topology.build(*case)
    (whole,) = topology.parts()
    parts = list(topology.parts(angles))
    assert [p.number for p in parts] == list(range(len(parts)))
    for part in ("vertices", "rays", "angles"):
        stops = [0, *(getattr(p.cut, part).stop for p in parts)]
        assert [getattr(p.cut, part).start for p in parts] == stops[:-1]
        assert stops[-1] == getattr(whole.cut, part).stop
    pairs = [p.pairs.both.reads + 2 * p.cut.rays.start for p in parts]
    assert torch.equal(torch.cat(pairs), whole.pairs.both.reads)
    for p in parts:
        vertices, inside = p.cut.vertices, p.cut.angles
        assert vertices.stop - vertices.start == 1 or inside.stop - inside.start <= angles


@given(multigraphs(), st.integers(1, 30))
@few
def test_edge_parts_are_the_edges_by_target(case, most):
    edge_index, nodes = case
    topology = Topology.build(edge_index, nodes, angles=False)
    cuts = topology.edge_cuts(most)
    vertices, edges = ([cut[k] for cut in cuts] for k in (0, 1))
    assert [v for cut in vertices for v in range(cut.start, cut.stop)] == list(range(nodes))
    assert [e for cut in edges for e in range(cut.start, cut.stop)] == [*range(edge_index.shape[1])]
    parts = [topology.edge_part(cut) for cut in cuts]
    found = torch.cat([edge_index[0, :0], *(part.edges for part in parts)]).long()
    assert sorted(found.tolist()) == list(range(edge_index.shape[1]))
    for cut, part in zip(vertices, parts, strict=True):
        assert len(part.edges) <= most or cut.stop - cut.start == 1
        source, target = edge_index[:, part.edges.long()]
        assert torch.equal(
            part.ends.view(-1, 2).long(), torch.stack([2 * target, 2 * source + 1], 1)
        )
        rows = torch.randn(len(part.edges), 3, generator=rng(0))
        total = torch.zeros(nodes, 3).index_add(0, target, rows)[cut]
        torch.testing.assert_close(move(rows, part.target.T), total)
        torch.testing.assert_close(move(total, part.target), total[target - cut.start])


@given(multigraphs(), st.integers(1, 4), st.integers(0, 10**6))
@few
def test_pairs(case, num_graphs, seed):
    edge_index, nodes = case
    # nodes of a graph need not stand together
    batch = torch.randint(num_graphs, (nodes,), generator=rng(seed))
    edge_index = edge_index[:, batch[edge_index[0]] == batch[edge_index[1]]]
    topology = Topology.build(
        edge_index, nodes, batch, num_graphs=num_graphs, pairs=True, angles=False
    )
    found = [tuple(row) for row in topology.all_pairs.edge_index.T.tolist()]
    expected = [(j, i) for j, i in itertools.permutations(range(nodes), 2) if batch[i] == batch[j]]
    assert len(found) == len(set(found))
    assert set(found) == set(expected)
    for (j, i), pair in zip(edge_index.T.tolist(), topology.edge_pair.tolist(), strict=True):
        assert pair == len(found) if i == j else found[pair] == (j, i)
    complete = topology.all_pairs
    assert complete.edges_of_node.tolist() == [sum(i == k for _, i in found) for k in range(nodes)]
    assert complete.num_graphs == num_graphs


@given(multigraphs(), st.booleans())
@few
def test_lines(case, both_ways):
    edge_index, nodes = case
    if both_ways:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
    topology = Topology.build(edge_index, nodes, angles=False, lines=True)
    edges = [tuple(sorted(edge)) for edge in edge_index.T.tolist()]
    if len(set(edges)) > 0.7 * len(edges):  # not worth it
        assert topology.lines is None
        assert topology.line_index is None
        return
    lines = [tuple(line) for line in topology.line_index.T.tolist()]
    assert len(lines) == len(set(lines))
    assert [lines[number] for number in topology.lines.reads.tolist()] == edges


@given(multigraphs())
@few
def test_counts(case):
    edge_index, nodes = case
    topology = Topology.build(edge_index, nodes, pairs=True)
    assert (topology.num_nodes, topology.num_edges) == (nodes, edge_index.shape[1])
    assert topology.num_graphs == 1
    assert topology.nodes_of_graph.tolist() == [nodes]
    targets = edge_index[1].tolist()
    assert topology.edges_of_node.tolist() == [targets.count(i) for i in range(nodes)]
    counts = f"graphs=1, nodes={nodes}, edges={len(targets)}, angles={topology.num_angles}"
    assert repr(topology) == f"Topology({counts})"


@given(st.lists(multigraphs(), min_size=1, max_size=4))
@few
def test_a_batch_is_its_graphs_side_by_side(cases):
    parts = [Data(pos=torch.zeros(nodes, 2), edge_index=e) for e, nodes in cases]
    for transform in (lambda data: data, AddTopology()):
        batch = Batch.from_data_list([transform(copy.copy(data)) for data in parts])
        whole = Topology.of(batch, pairs=True)
        offset, angles, pairs = 0, set(), set()
        for data in parts:
            one = Topology.of(data, pairs=True)
            angles |= named(one, offset)
            pairs |= {tuple(row) for row in (one.all_pairs.edge_index.T + offset).tolist()}
            offset += data.num_nodes
        assert named(whole) == angles
        assert {tuple(row) for row in whole.all_pairs.edge_index.T.tolist()} == pairs
        assert whole.num_graphs == len(parts)
        assert whole.nodes_of_graph.tolist() == [data.num_nodes for data in parts]


def test_empty_graphs_of_a_batch_count():
    empty = Data(pos=torch.zeros(0, 3), edge_index=torch.zeros(2, 0, dtype=torch.long))
    full = graph(generic_edges(), 3, 0)
    full = Data(pos=full.pos.float(), edge_index=full.edge_index)
    batch = Batch.from_data_list([empty, full, empty, empty])
    topology = Topology.of(batch, pairs=True)
    assert topology.nodes_of_graph.tolist() == [0, 9, 0, 0]
    assert topology.num_graphs == 4
    only = Topology.of(Batch.from_data_list([empty, empty]), pairs=True)
    assert (only.num_graphs, only.num_nodes, only.num_angles) == (2, 0, 0)
    assert Topology.of(empty).num_graphs == 1


def test_nodes_of_a_graph_need_not_stand_together():
    """PyG sorts a batch, but `batch` may come from elsewhere."""
    chosen = graphs(3, one_way=True)
    batch = Batch.from_data_list(chosen)
    order = torch.randperm(batch.num_nodes, generator=rng(3))
    mixed = Data(
        pos=batch.pos[order],
        x=batch.x[order],
        edge_index=order.argsort()[batch.edge_index],
        edge_attr=batch.edge_attr,
        u=batch.u,
        batch=batch.batch[order],
    )
    for psi in ("neighbour-sum", "egcn"):
        for architecture in ("gn", "sdgn", "agn+edges", "cgn"):
            model = random_model(architecture, dimension=3, coordinate_map=psi, **FEATURES)
            error = distance(model(batch), model(mixed))
            assert error <= 1e-12, f"{architecture}, {psi}: {error}"


# ------------------------------------------------------------------ the order of angle features


@pytest.mark.parametrize("chunk", [None, 1, 25])
def test_angle_features_are_in_the_order_of_angle_index(chunk):
    """AGN with its own angles as features is the AGN that measures them."""
    data = graph(directed(flexible_edges(3)), 3, 0)
    j, i, k = Topology.of(data).angle_index
    angles = angle(data.pos[j] - data.pos[i], data.pos[k] - data.pos[i])
    given_angles = data.clone()
    given_angles.angle_attr = angles.unsqueeze(1)

    reads = [v.vertex, v.first, v.second]
    measured = random_model(
        AGN.replace(angle=[*reads, theta, u]), layers=1, chunk=chunk, **FEATURES
    )
    given_ = random_model(
        AGN.replace(angle=[*reads, a, u]), layers=1, angle_features=1, chunk=chunk, **FEATURES
    )
    given_.load_state_dict(measured.state_dict())
    error = distance(measured(data), given_(given_angles))
    assert error <= 1e-12, f"chunk={chunk}: {error}"
    given_angles.angle_attr = angles.unsqueeze(1).flip(0)
    assert distance(measured(data), given_(given_angles)) > 1e-6


def test_angle_features_are_batched_as_the_graphs_are():
    """PyG concatenates them, and the angles of a batch come in that order."""
    chosen = graphs(3, one_way=True)
    for number, data in enumerate(chosen):
        angles = Topology.of(data).num_angles
        data.angle_attr = torch.randn(angles, 2, generator=rng(number), dtype=torch.float64)
    for architecture in ("agn", "agn-to-edges"):
        model = random_model(architecture, angle_features=2, **FEATURES)
        together = model(Batch.from_data_list(chosen))
        error = distance(together, torch.cat([model(data) for data in chosen]))
        assert error <= 1e-12, f"{architecture}: {error}"
