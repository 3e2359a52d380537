"""The examples by which the paper tells its blocks apart, and the theorems behind its tables.

Two graphs are the same for a block if no choice of its parameters tells them apart, and differ if
some does: several random ones stand in for all.
"""

import itertools
import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from helpers import both_ways, distance, random_model, rng
from symgnn.data import polytopes
from symgnn.geometry import (
    SpecialConformal,
    Torsion,
    angle,
    folding_square,
    hoberman_sphere,
    kappa,
)
from symgnn.nn import GN
from symgnn.nn.inputs import v

SAME, APART = 1e-12, 1e-5
SEEDS = range(3)
BLIND = GN.replace(name="GN without coordinates", inputs=[v])


def gaps(architecture, graphs, **options):
    """The largest distance of the outputs of each two graphs, `{(i, j): gap}`.

    It is relative to the outputs where those are larger than 1.
    """
    outputs = []
    with torch.no_grad():
        for seed in SEEDS:
            model = random_model(architecture, seed=seed, noise=0.3, **options)
            output = torch.stack([model(data) for data in graphs])
            outputs.append(output / output.abs().max().clamp(min=1))
    pairs = itertools.combinations(range(len(graphs)), 2)
    return {(i, j): max(distance(y[i], y[j]) for y in outputs) for i, j in pairs}


def assert_same(architecture, graphs, tolerance=SAME, **options):
    found = gaps(architecture, graphs, **options)
    wrong = {pair: gap for pair, gap in found.items() if not gap <= tolerance}
    assert not wrong, f"{architecture} {options}: told apart, gaps {wrong}"


def assert_apart(architecture, graphs, **options):
    found = gaps(architecture, graphs, **options)
    wrong = {pair: gap for pair, gap in found.items() if not gap > APART}
    assert not wrong, f"{architecture} {options}: confused, gaps {wrong}"


def made(pair):
    return Data(pos=pair[0], edge_index=pair[1])


# ------------------------------------------------------------------ hexagon and two triangles


def ring(sides: int, offset: float = 0.0) -> tuple[torch.Tensor, list[tuple[int, int]]]:
    """A regular polygon of side 1."""
    turns = 2 * math.pi * torch.arange(sides, dtype=torch.float64) / sides
    radius = 0.5 / math.sin(math.pi / sides)
    pos = radius * torch.stack([turns.cos(), turns.sin()], 1)
    pos[:, 0] += offset
    return pos, [(i, (i + 1) % sides) for i in range(sides)]


@pytest.fixture(scope="module")
def rings():
    hexagon, edges = ring(6)
    left, triangle = ring(3)
    right, _ = ring(3, 5.0)
    triangles = [*triangle, *[(i + 3, j + 3) for i, j in triangle]]
    return [
        Data(pos=hexagon, edge_index=both_ways(edges)),
        Data(pos=torch.cat([left, right]), edge_index=both_ways(triangles)),
    ]


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_hexagon_and_two_triangles(rings, aggregation):
    assert_same("dgn", rings, aggregation=aggregation)
    assert_same("sdgn", rings, aggregation=aggregation)
    assert_same(BLIND, rings, aggregation=aggregation)
    for block in ("agn", "agn-raw", "combined"):
        assert_apart(block, rings, aggregation=aggregation)
    # with two neighbours a vertex has one s and kappa is 1, so CGN has nothing to see
    assert_same("cgn", rings, aggregation=aggregation)


# ------------------------------------------------------------------ mechanisms


def test_a_square_folded_to_a_line():
    square = made(folding_square(math.pi / 2))
    flat = [made(folding_square(0.0)), made(folding_square(math.pi))]
    half = made(folding_square(1.0))
    assert_same("dgn", [square, half, *flat])
    assert_same("sdgn", [square, half, *flat])
    for block in ("agn", "agn+edges", "agn+distances", "agn-to-edges", "agn-raw", "combined"):
        assert_apart(block, [square, half, flat[0]])
    # either way to fold it gives two angles of 0 and two of pi
    assert_same("agn", flat)


def test_the_hoberman_sphere_over_its_whole_range():
    spheres = [made(hoberman_sphere(opening)) for opening in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert_same("dgn", spheres)
    assert_same("sdgn", spheres)
    for block in ("agn", "combined", "cgn"):
        assert_apart(block, spheres)
    # once its nodes have moved along the bars, DGN sees the opening too
    assert_apart("dgn", spheres, coordinate_map="neighbour-sum")


# ------------------------------------------------------------------ molecules


@pytest.fixture(scope="module", params=["CCCCCC", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"])
def molecule(request):
    """n-hexane or ibuprofen, as it is and after a turn about one of its bonds."""
    chem = pytest.importorskip("rdkit.Chem")
    allchem = pytest.importorskip("rdkit.Chem.AllChem")
    mol = chem.AddHs(chem.MolFromSmiles(request.param))
    assert allchem.EmbedMolecule(mol, randomSeed=7) == 0
    pos = torch.tensor(mol.GetConformer().GetPositions(), dtype=torch.float64)
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds()]
    numbers = torch.tensor([a.GetAtomicNum() for a in mol.GetAtoms()])
    kinds, atoms = numbers.unique(return_inverse=True)
    before = Data(
        pos=pos,
        edge_index=both_ways(bonds),
        x=torch.nn.functional.one_hot(atoms, len(kinds)).double(),
    )
    rotatable = next(
        (b.GetBeginAtomIdx(), b.GetEndAtomIdx())
        for b in mol.GetBonds()
        if not b.IsInRing() and b.GetBeginAtom().GetDegree() == b.GetEndAtom().GetDegree() == 4
    )
    turn = Torsion.about(pos, before.edge_index, bridge=rotatable, angle=1.5)
    after = turn.apply(before)
    assert distance(torch.cdist(pos, pos), torch.cdist(after.pos, after.pos)) > 0.5
    return [before, after]


@pytest.mark.parametrize("block", ["agn", "dgn", "combined", "cgn", "agn-to-edges", "sdgn"])
def test_a_torsion_of_a_molecule_is_not_seen(molecule, block):
    features = {"node_features": molecule[0].x.shape[1]}
    assert_same(block, molecule, tolerance=1e-11, **features)


def test_a_torsion_of_a_molecule_is_seen(molecule):
    features = {"node_features": molecule[0].x.shape[1]}
    assert_apart("gn", molecule, dimension=3, **features)
    # only the atoms near the bond notice, so each is asked
    options = {"coordinate_map": "neighbour-sum", "task": "node", "layers": 3}
    for block in ("agn", "dgn", "combined", "cgn"):
        assert_apart(block, molecule, **options, **features)


# ------------------------------------------------------------------ regular polytopes


@pytest.fixture(scope="module", params=[3, 4, 5])
def solids(request):
    return polytopes(request.param, dtype=torch.float64)


def confused(graphs, block, **options):
    """The pairs of names whose outputs coincide; the others have to differ clearly."""
    found = gaps(block, graphs, **options)
    named = {(graphs[i].name, graphs[j].name): gap for (i, j), gap in found.items()}
    unclear = {pair: gap for pair, gap in named.items() if SAME < gap <= APART}
    assert not unclear, f"{block} {options}: neither the same nor apart, gaps {unclear}"
    return {pair for pair, gap in named.items() if gap <= SAME}


def test_sdgn_with_mean_sees_the_same_in_every_polytope(solids):
    assert_same("sdgn", solids, aggregation="mean")
    assert_same("sdgn", solids, aggregation="mean", layers=4)


def test_sdgn_with_neighbour_sum_confuses_simplex_and_orthoplex_in_3d_alone(solids):
    """A vertex moves by 1 - a c, c = n + 1 for the simplex and 2 (n - 1) for the orthoplex."""
    expected = {("simplex", "orthoplex")} if solids[0].pos.shape[1] == 3 else set()
    found = confused(solids, "sdgn", aggregation="mean", coordinate_map="neighbour-sum")
    assert found == expected


def test_dgn_with_mean_confuses_what_has_equal_edges(solids):
    """With circumradius 1, only the tesseract and the 24-cell do."""
    expected = {("hypercube", "24-cell")} if solids[0].pos.shape[1] == 4 else set()
    assert confused(solids, "dgn", aggregation="mean") == expected


def test_dgn_with_sum_confuses_nothing(solids):
    assert confused(solids, "dgn", aggregation="sum") == set()
    assert confused(solids, "dgn", aggregation="mean", coordinate_map="neighbour-sum") == set()


def test_agn_tells_all_polytopes_apart_by_their_angles(solids):
    small = [data for data in solids if data.num_nodes < 100]
    assert confused(small, "agn", aggregation="mean") == set()


# ------------------------------------------------------------------ conformal maps


@pytest.mark.parametrize("n", [2, 3, 4])
def test_straight_line_angles_are_moved_by_a_special_conformal_map_and_kappa_is_not(n):
    pos = torch.randn(7, n, generator=rng(n), dtype=torch.float64)
    moved = SpecialConformal.random(pos, generator=rng(n))(pos)
    rays, images = pos[1:] - pos[0], moved[1:] - moved[0]
    j, k = torch.combinations(torch.arange(6)).T
    turned = distance(angle(rays[j], rays[k]), angle(images[j], images[k]))
    assert turned > 0.05, f"the angles moved by {turned} rad only"
    error = distance(kappa(rays[None]), kappa(images[None]))
    assert error < 1e-12, f"kappa moved by {error}"

    edges = both_ways(list(itertools.combinations(range(7), 2)))
    graphs = [Data(pos=p, edge_index=edges) for p in (pos, moved)]
    assert_apart("agn", graphs)
    assert_same("cgn", graphs, tolerance=1e-9)
    # and each graph of a batch may have a map of its own
    models = [random_model("cgn", seed=seed) for seed in SEEDS]
    others = [SpecialConformal.random(pos, generator=rng(s))(pos) for s in range(5)]
    batch = Batch.from_data_list([Data(pos=p, edge_index=edges) for p in others])
    for model in models:
        error = distance(model(batch), model(graphs[0]).expand(5, -1))
        assert error < 1e-9, error
