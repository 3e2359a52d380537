"""The coordinate maps by a matrix, and within subgraphs."""

import pytest
import torch
from torch_geometric.data import Data

from helpers import both_ways, bridge_edges, distance, graph, random_model, rng
from symgnn.audit import audit
from symgnn.geometry import PartMotion, Symmetry, Torsion
from symgnn.nn import Conv, PartSum, build

BLOCKS = ["dgn", "sdgn", "agn", "combined", "cgn"]


# ------------------------------------------------------------------ matrices


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_mirror_is_orthogonal_with_determinant_minus_one(n):
    model = random_model("dgn", coordinate_map="mirror", task="coordinates", dimension=n, noise=1.0)
    x = torch.randn(n + 1, n, generator=rng(), dtype=torch.float64)
    data = Data(pos=x, edge_index=both_ways([(k, k + 1) for k in range(n)]))
    y = model(data).detach()
    one = random_model(
        "dgn", coordinate_map="mirror", task="coordinates", dimension=n, layers=1, noise=1.0
    )
    z = one(data).detach()
    rays, images = x[1:] - x[:1], z[1:] - z[:1]
    matrix = torch.linalg.solve(rays, images).T
    eye = torch.eye(n, dtype=torch.float64)
    torch.testing.assert_close(matrix @ matrix.T, eye, rtol=0, atol=1e-10)
    assert float(torch.linalg.det(matrix)) == pytest.approx(-1.0)
    # two of them in a row: lengths are kept, whatever the parameters
    torch.testing.assert_close(torch.pdist(x), torch.pdist(y))


def test_a_new_linear_map_moves_nothing_and_a_new_mirror_mirrors():
    data = graph(bridge_edges(), 3, 0)
    bare = Data(pos=data.pos, edge_index=data.edge_index)
    options = {"task": "coordinates", "dimension": 3, "layers": 1}
    linear = build("dgn", coordinate_map="linear", **options).double()
    assert torch.equal(linear(bare), bare.pos)
    mirror = build("dgn", coordinate_map="mirror", **options).double()
    signs = torch.tensor([-1.0, 1, 1], dtype=torch.float64)
    torch.testing.assert_close(mirror(bare), bare.pos * signs, rtol=0, atol=1e-12)


def test_linear_is_the_matrix_that_its_parameters_say():
    model = random_model("dgn", coordinate_map="linear", task="coordinates", dimension=2, layers=1)
    entries = model.blocks[0].map.coefficients.detach()
    matrix = torch.eye(2, dtype=torch.float64) + entries[:4].view(2, 2)
    pos = torch.randn(3, 2, generator=rng(), dtype=torch.float64)
    image = model(Data(pos=pos, edge_index=both_ways([(0, 1), (1, 2)]))).detach()
    torch.testing.assert_close(image, pos @ matrix.T + entries[4:])


@pytest.mark.parametrize(
    ("architecture", "kept"),
    [
        ("dgn", ["translation"]),
        ("sdgn", ["translation", "dilation"]),
        ("agn", ["translation", "dilation", "redrawing"]),
        ("combined", ["translation"]),
        ("cgn", ["translation", "dilation"]),
    ],
)
def test_the_symmetry_that_follows_from_a_matrix(architecture, kept):
    model = random_model(architecture, coordinate_map="linear", dimension=3)
    assert model.symmetry == Symmetry(["permutation", *kept])
    # the matrix of the last layer is read by nobody
    assert (
        "rotation"
        in random_model(architecture, coordinate_map="linear", dimension=3, layers=1).symmetry
    )


# ------------------------------------------------------------------ within parts


def change(model, first: Data, second: Data) -> float:
    """The largest difference of the outputs, relative to them."""
    before, after = model(first).detach(), model(second).detach()
    return distance(before, after) / float(before.abs().max())


def two_threes(n: int = 3) -> Data:
    """The paper's figure: two subgraphs of three nodes, joined by a bond."""
    pos = torch.randn(6, n, generator=rng(4), dtype=torch.float64)
    edges = both_ways([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)])
    return Data(pos=pos, edge_index=edges, part=torch.tensor([0, 0, 0, 1, 1, 1]))


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("block", BLOCKS)
def test_the_papers_figure_of_two_subgraphs(block, n):
    """Each may be turned about the bond; moved coordinates keep it within parts alone."""
    data = two_threes(n)
    turned = PartMotion.random(data.pos, data.edge_index, generator=rng(2), part=data.part)
    image = turned.apply(data)
    assert distance(torch.cdist(data.pos, data.pos), torch.cdist(image.pos, image.pos)) > 0.1
    for task in ("graph", "node"):
        options = {"task": task, "layers": 3, "noise": 0.4, "dimension": n}
        within = random_model(block, coordinate_map="part-sum", **options)
        assert "part-motion" in within.symmetry
        assert change(within, data, image) <= 1e-11
    across = random_model(block, coordinate_map="neighbour-sum", **options)
    assert "part-motion" not in across.symmetry
    assert change(across, data, image) > 1e-5
    # and the coordinates that come out move as those that went in
    points = random_model(block, coordinate_map="part-sum", **{**options, "task": "coordinates"})
    found, wanted = points(image).detach(), turned(points(data).detach())
    assert distance(found, wanted) <= 1e-11 * float(wanted.abs().max())
    assert distance(points(data), data.pos) > 1e-3


def test_nodes_move_within_their_part_and_ends_stay():
    data = two_threes()
    model = random_model("dgn", coordinate_map="part-sum", task="coordinates", noise=0.4)
    moved = (model(data) - data.pos).norm(dim=1).detach()
    assert moved[2] == 0
    assert moved[3] == 0
    assert (moved[[0, 1, 4, 5]] > 1e-4).all()
    # a part does not feel where the other is
    other = data.clone()
    other.pos = data.pos.clone()
    other.pos[4] += 1.0
    one = random_model("dgn", coordinate_map="part-sum", task="coordinates", noise=0.4, layers=1)
    assert torch.equal(one(data)[:3], one(other)[:3])
    assert not torch.equal(one(data)[3:], one(other)[3:])


def test_a_torsion_of_a_molecule_with_moved_coordinates():
    """n-hexane: the torsion about the bond between two parts is kept, one inside is seen."""
    chem = pytest.importorskip("rdkit.Chem")
    allchem = pytest.importorskip("rdkit.Chem.AllChem")
    mol = chem.AddHs(chem.MolFromSmiles("CCCCCC"))
    assert allchem.EmbedMolecule(mol, randomSeed=7) == 0
    pos = torch.tensor(mol.GetConformer().GetPositions(), dtype=torch.float64)
    edges = both_ways([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds()])
    between, inside = (2, 3), (0, 1)
    turns = [Torsion.about(pos, edges, bridge=b, angle=1.3) for b in (between, inside)]
    part = turns[0].moved.long()
    data, kept, seen = (
        Data(pos=x, edge_index=edges, part=part) for x in (pos, *(turn(pos) for turn in turns))
    )
    for block in BLOCKS:
        options = {"task": "node", "layers": 3, "noise": 0.4}
        model = random_model(block, coordinate_map="part-sum", **options)
        size = float(model(data).detach().abs().max())
        assert distance(model(data), model(kept)) <= 1e-10 * size, block
        assert distance(model(data), model(seen)) > 1e-6 * size, block


def test_the_audit_measures_motions_of_parts():
    data = two_threes()
    model = random_model("dgn", coordinate_map="part-sum", noise=0.4, layers=3)
    report = audit(model, data, elements=3, kinds=["part-motion", "rotation"])
    assert report.agrees, report
    assert report.holds("motions of parts"), report
    plain = random_model("dgn", coordinate_map="neighbour-sum", noise=0.4, layers=3)
    report = audit(plain, data, elements=3, kinds=["part-motion"])
    assert not report.holds("motions of parts"), report
    points = random_model("agn", coordinate_map="part-sum", task="coordinates", noise=0.4)
    report = audit(points, data, outputs="coordinates", elements=3, kinds=["part-motion"])
    assert report.holds("motions of parts"), report
    bare = Data(pos=data.pos, edge_index=data.edge_index)
    report = audit(build("dgn"), bare, elements=2, kinds=["part-motion"])
    assert report.findings["part-motion"].verdict == "unmeasured"
    assert "has no attribute part" in str(report)


def test_errors_name_the_part():
    data = two_threes()
    model = random_model("dgn", coordinate_map="part-sum")
    with pytest.raises(ValueError, match=r"part: is missing, .* give data.part \[N\]"):
        model(Data(pos=data.pos, edge_index=data.edge_index))
    data.part = data.part[:4]
    with pytest.raises(ValueError, match=r"part: is torch.int64 of shape \[4\]"):
        model(data)
    with pytest.raises(ValueError, match=r"limit: is -1; give a positive number"):
        PartSum(limit=-1)
    layer = Conv("dgn", 2, 3, coordinate_map="part-sum").double()
    with pytest.raises(ValueError, match="part: is missing"):
        layer(torch.ones(6, 2, dtype=torch.float64), data.pos, data.edge_index)
