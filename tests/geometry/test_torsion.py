import math

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clouds import directed, edge_lengths, random_tree, rng, vertex_angles
from clouds import graph_points as points
from symgnn.geometry import TRANSFORMATIONS, NoSuchTransformation, Torsion
from symgnn.geometry.symmetry import KINDS

few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 10**6)


def dumbbell():
    """Two rings of 4 and 5 nodes joined by the edge (0, 4), the only bridge."""
    graph = nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(5))
    graph.add_edge(0, 4)
    return graph


def test_every_kind_is_listed_under_its_name():
    assert tuple(TRANSFORMATIONS) == KINDS
    assert all(kind.name == name for name, kind in TRANSFORMATIONS.items())


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_every_kind_can_be_drawn_by_name(name, n):
    if name == "part-motion":
        pytest.skip("needs parts; see test_part_motions.py")
    if (name, n) == ("axis-rotation", 2):
        pytest.skip("there are none in a plane")
    if (name, n) == ("angle-flex", 2):
        pytest.skip("in a plane, angles at vertices fix the directions of all edges")
    pos, edge_index = points(9, n), directed(dumbbell())
    element = TRANSFORMATIONS[name].random(pos, edge_index, generator=rng(2))
    image = element(pos)
    assert not torch.allclose(image, pos)
    assert torch.equal(TRANSFORMATIONS[name].random(pos, edge_index, generator=rng(2))(pos), image)
    assert torch.autograd.gradcheck(element, pos.requires_grad_())


@given(n=st.integers(2, 6), seed=seeds)
@few
def test_torsion_keeps_edge_lengths_and_vertex_angles(n, seed):
    graph = random_tree(8, seed)
    if nx.diameter(graph) < 3:  # a star has no inner edge
        return
    pos, edge_index = points(8, n, seed), directed(graph)
    element = Torsion.random(pos, edge_index, generator=rng(seed))
    image = element(pos)
    assert graph.has_edge(*element.bridge)
    assert torch.allclose(
        edge_lengths(image, edge_index), edge_lengths(pos, edge_index), rtol=1e-11
    )
    assert torch.allclose(vertex_angles(image, graph), vertex_angles(pos, graph), atol=1e-7)
    assert (torch.pdist(image) - torch.pdist(pos)).abs().max() > 1e-4


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_torsion_moves_one_side_of_the_bridge(n):
    graph = dumbbell()
    graph.add_nodes_from([9, 10])  # another component stays
    graph.add_edges_from([(9, 10), (2, 2)])  # so does a self-loop
    pos, edge_index = points(11, n), directed(graph)
    seen = set()
    for seed in range(12):
        element = Torsion.random(pos, edge_index, generator=rng(seed))
        seen.add(element.bridge)
        side = {0, 1, 2, 3} if element.bridge == (4, 0) else {4, 5, 6, 7, 8}
        assert set(element.moved.nonzero().flatten().tolist()) == side
        image = element(pos)
        still = [i for i in range(11) if i not in side] + [element.bridge[1]]
        assert torch.allclose(image[still], pos[still], atol=1e-14)
        matrix = element.matrix
        assert torch.allclose(matrix @ matrix.T, torch.eye(n).double(), atol=1e-13)
        assert float(torch.linalg.det(matrix)) == pytest.approx(-1 if n == 2 else 1)
        axis = pos[0] - pos[4]
        assert torch.allclose(matrix @ axis, axis, rtol=1e-12)
    assert seen == {(0, 4), (4, 0)}


def test_torsion_about_an_angle():
    # from a to b along z, the next node sticks out along x
    pos = torch.tensor([[-1, 0, 0], [0, 0, 0], [0, 0, 1], [1, 0, 1]]).double()
    edge_index = directed(nx.path_graph(4))
    image = Torsion.about(pos, edge_index, bridge=(1, 2), angle=math.pi / 2)(pos)
    assert torch.allclose(image[3], torch.tensor([0, 1, 1]).double())
    assert torch.equal(image[:3], pos[:3])
    back = Torsion.about(pos, edge_index, bridge=(2, 1), angle=math.pi / 2)(pos)
    # the other side the same way about the opposite direction changes the same dihedral angle
    assert torch.allclose(back[0], torch.tensor([0, 1, 0]).double())
    assert torch.allclose(torch.pdist(image), torch.pdist(back))
    full = Torsion.about(pos, edge_index, bridge=(1, 2), angle=math.tau)(pos)
    assert torch.allclose(full, pos)


def test_torsion_of_a_molecule():
    chem = pytest.importorskip("rdkit.Chem")
    all_chem = pytest.importorskip("rdkit.Chem.AllChem")
    transforms = pytest.importorskip("rdkit.Chem.rdMolTransforms")
    molecule = chem.AddHs(chem.MolFromSmiles("CCCC"))
    assert all_chem.EmbedMolecule(molecule, randomSeed=7) == 0
    pos = torch.tensor(molecule.GetConformer().GetPositions(), dtype=torch.float64)
    graph = nx.Graph(
        [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    )
    edge_index = directed(graph)
    dihedral = transforms.GetDihedralRad(molecule.GetConformer(), 0, 1, 2, 3)
    image = Torsion.about(pos, edge_index, bridge=(1, 2), angle=1.0)(pos)
    assert torch.allclose(
        edge_lengths(image, edge_index), edge_lengths(pos, edge_index), rtol=1e-12
    )
    assert torch.allclose(vertex_angles(image, graph), vertex_angles(pos, graph), atol=1e-7)
    for i, x in enumerate(image.tolist()):
        molecule.GetConformer().SetAtomPosition(i, x)
    turned = transforms.GetDihedralRad(molecule.GetConformer(), 0, 1, 2, 3)
    assert math.cos(turned - dihedral - 1.0) == pytest.approx(1, abs=1e-10)
    # of the 13 bonds, those between carbons alone have two nodes on both sides
    for seed in range(8):
        assert max(Torsion.random(pos, edge_index, generator=rng(seed)).bridge) < 4


@pytest.mark.parametrize(
    ("graph", "count"), [(nx.cycle_graph(5), 5), (nx.star_graph(4), 5), (nx.empty_graph(3), 3)]
)
def test_no_torsion_without_a_bridge_between_parts(graph, count):
    edge_index = directed(graph)
    with pytest.raises(NoSuchTransformation, match="torsion: no bridge of the graph"):
        Torsion.random(points(count, 3), edge_index)


def test_no_torsion_that_changes_nothing():
    path = directed(nx.path_graph(4))
    straight = torch.arange(4).double().unsqueeze(1) * torch.tensor([1.0, 2.0, 3.0])
    with pytest.raises(NoSuchTransformation, match="torsion: no bridge of the graph"):
        Torsion.random(straight, path)
    pos = points(4, 3)
    pos[2] = pos[1]
    with pytest.raises(NoSuchTransformation, match="torsion: no bridge of the graph"):
        Torsion.random(pos, path)


def test_torsion_errors():
    path, cycle = directed(nx.path_graph(4)), directed(nx.cycle_graph(4))
    with pytest.raises(ValueError, match="torsion: needs a dimension of 2 or more; pos has 1"):
        Torsion.random(points(4, 1), path)
    with pytest.raises(ValueError, match="edge_index: is needed"):
        Torsion.random(points(4, 3))
    with pytest.raises(ValueError, match=r"edge_index: has shape \[6\]"):
        Torsion.random(points(4, 3), path[0])
    with pytest.raises(ValueError, match="edge_index: names nodes 0 to 3, but pos has 3"):
        Torsion.random(points(3, 3), path)
    for edge_index, bridge in ((cycle, (0, 1)), (path, (0, 2))):
        with pytest.raises(NoSuchTransformation, match=r"bridge: \(0, \d\) is not an edge"):
            Torsion.about(points(4, 3), edge_index, bridge=bridge, angle=1.0)
    with pytest.raises(
        ValueError, match="pos: has dimension 2; an angle gives a torsion only in 3"
    ):
        Torsion.about(points(4, 2), path, bridge=(1, 2), angle=1.0)
    with pytest.raises(ValueError, match="angle: must be finite, got nan"):
        Torsion.about(points(4, 3), path, bridge=(1, 2), angle=math.nan)
    element = Torsion.about(points(4, 3), path, bridge=(1, 2), angle=1.0)
    with pytest.raises(ValueError, match="pos: has 5 nodes, but this torsion was made for 4"):
        element(points(5, 3))
