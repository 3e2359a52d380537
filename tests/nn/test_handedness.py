"""Handedness: mirror images differ, and nothing else does that did not before."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from helpers import FEATURES, bridge_edges, graph, random_model
from symgnn.audit import audit
from symgnn.geometry import KINDS, Reflection, Rotation, SpecialConformal, Symmetry
from symgnn.geometry.symmetry import REVERSING
from symgnn.nn import ARCHITECTURES, Spec, averages, build
from symgnn.nn.handedness import determinant
from symgnn.nn.variants import SEPARABLE

NAMES = sorted(SEPARABLE)


def made(name: str, dimension: int, **options: object) -> torch.nn.Module:
    given = {"outputs": 2, "aggregation": "sum", **FEATURES, **options}
    return random_model(name, noise=0.3, dimension=dimension, **given).float()


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("chiral", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_measured_is_derived(name: str, chiral: bool, dimension: int) -> None:
    model = made(name, dimension, chiral=chiral)
    report = audit(model, graph(bridge_edges(), dimension, 0), elements=2)
    assert report.agrees, f"{model}\n{report.agrees}\n{report}"
    measured = [kind for kind in KINDS if report.findings[kind].verdict != "unmeasured"]
    assert {k for k in measured if k in report.symmetry} == {
        k for k in measured if k in model.symmetry
    }
    assert {"reflection", "torsion"} <= set(measured)
    if chiral:
        # approximate: changed by more than rounding but little, as where distances dominate
        small = {"broken", "approximate"} if name == "agn+distances-separable" else {"broken"}
        assert report.findings["reflection"].verdict in small


def test_symmetries_in_words() -> None:
    def words(name: str, dimension: int = 3) -> str:
        return str(build(name, chiral=True, dimension=dimension).symmetry)

    of_angles = "torsions, redrawings, angle flexes, permutations"
    assert words("agn-separable") == f"orientation-preserving similarities, {of_angles}"
    assert words("combined-separable") == "SE(n), torsions, permutations"
    assert words("agn+distances-separable") == "SE(n), torsions, permutations"
    kept = "orientation-preserving Moebius maps, torsions, permutations"
    assert words("cgn-separable") == kept
    # in the plane, a torsion mirrors one side of the graph
    assert (
        words("agn-separable", 2)
        == "orientation-preserving similarities, redrawings, angle flexes, permutations"
    )


@pytest.mark.parametrize("name", [*NAMES, *(n for n in ARCHITECTURES if n != "gn")])
def test_only_what_reverses_orientation_is_lost(name: str) -> None:
    lost = build(name).symmetry - build(name, chiral=True, dimension=3).symmetry
    flexes = Symmetry(["flex"]) if name in ("dgn", "sdgn") else Symmetry([])
    assert lost == (build(name).symmetry & REVERSING) | flexes
    assert "reflection" in lost


@pytest.mark.parametrize("name", ["agn-separable", "cgn-separable", "dgn", "sdgn", "agn-raw"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_any_dimension(name: str, n: int) -> None:
    """Reflections change the output by far more than rounding, rotations do not."""
    torch.manual_seed(n)
    # as many features as moments that have to differ
    model = build(name, chiral=True, dimension=n, node_features=8, aggregation="sum").double()
    nodes = n + 4
    pos, x = torch.randn(nodes, n).double(), torch.randn(nodes, 8).double()
    edges = torch.combinations(torch.arange(nodes)).T
    data = Data(pos=pos, x=x, edge_index=torch.cat([edges, edges.flip(0)], 1))
    out, generator = model(data), torch.Generator().manual_seed(0)

    def change(kind: type) -> Tensor:
        moved = kind.random(data.pos, generator=generator).apply(data)
        return (model(moved) - out).abs().max() / out.abs().max()

    # determinants of untrained weights are small in many dimensions: 1e-7 for CGN and n = 5
    assert change(Reflection) > (1e-6 if n < 5 else 1e-8)
    if n > 1:
        assert change(Rotation) < 1e-12
    if name == "cgn-separable":
        assert change(SpecialConformal) < 1e-8


def test_determinants() -> None:
    torch.manual_seed(0)
    for n in range(1, 7):
        vectors = torch.randn(5, n, n, dtype=torch.float64)
        assert torch.allclose(determinant(vectors), torch.linalg.det(vectors), rtol=1e-10)
    flat = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(determinant, (flat,))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="pass dimension=3"):
        build("agn-separable", chiral=True)
    with pytest.raises(ValueError, match="no node update that is an MLP"):
        build(Spec("edges only", edge=ARCHITECTURES["dgn"].edge), chiral=True, dimension=3)
    with pytest.raises(TypeError, match="takes no option 'chiral'"):
        build("schnet", chiral=True)


# ------------------------------------------------------------------ molecules

#: Rings that are bound to the centre, at a carbon next to carbons: those to learn from, and others.
TRAINING = ("c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CC1")
HELD_OUT = ("c1ccsc1", "C1CCCC1", "c1ccc2ccccc2c1", "C1CCNCC1", "c1ccoc1")


def test_the_two_hands_of_a_molecule() -> None:
    """CHFClBr: mirror images differ with chiral=True and are the same without."""
    pytest.importorskip("rdkit", reason="the molecule is made by RDKit")
    from stereocentres import embedded, graph_of

    mols = [embedded(f"[C{hand}H](F)(Cl)Br") for hand in ("@", "@@")]
    one = graph_of(mols[0])
    mirrored = one.clone()
    mirrored.pos = one.pos * torch.tensor([-1.0, 1.0, 1.0])
    other = graph_of(mols[1])
    for name in NAMES:
        torch.manual_seed(0)
        options = {"node_features": 9, "edge_features": 4, "aggregation": "sum", "dimension": 3}
        blind, seeing = (build(name, chiral=c, **options).double() for c in (False, True))
        pair = [
            d.apply(lambda t: t.double() if t.is_floating_point() else t) for d in (one, mirrored)
        ]
        same, apart = (abs(m(pair[0]) - m(pair[1])).item() for m in (blind, seeing))
        assert same < 1e-12, name
        assert apart > 1e-6, name
        assert (
            abs(
                seeing(pair[0])
                - seeing(other.apply(lambda t: t.double() if t.is_floating_point() else t))
            ).item()
            > 1e-6
        )


def mirrored(graphs: list[Data]) -> list[Data]:
    """The mirror images, with the other label."""
    images = [each.clone() for each in graphs]
    for image in images:
        image.pos = image.pos * torch.tensor([-1.0, 1.0, 1.0])
        image.y = 1 - image.y
    return images


def accuracy(model: torch.nn.Module, graphs: list[Data]) -> float:
    batch = Batch.from_data_list(graphs)
    with torch.no_grad():
        return float((model(batch).argmax(1) == batch.y.long()).double().mean())


def taught(graphs: list[Data], epochs: int, chiral: bool = True) -> torch.nn.Module:
    """A network trained on molecules and their mirror images."""
    graphs = graphs + mirrored(graphs)
    widths = {"node_features": 9, "edge_features": 4, "outputs": 2, "graph_state": False}
    options = {"dimension": 3, "degree": 1, **widths}
    network = build("agn-separable", chiral=chiral, **options).network
    torch.manual_seed(0)
    known = averages(graphs, network)
    model = build("agn-separable", chiral=chiral, averages=known, **options)
    steps = -(-len(graphs) // 20) * epochs
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    for _ in range(epochs):
        for chosen in torch.randperm(len(graphs)).split(20):
            batch = Batch.from_data_list([graphs[k] for k in chosen.tolist()])
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), batch.y.long()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    return model


def test_r_and_s_on_other_scaffolds() -> None:
    """A small version; without handedness, a molecule and its mirror image are told the same."""
    pytest.importorskip("rdkit", reason="the molecules are made by RDKit")
    from stereocentres import stereocentres

    train, test = stereocentres(120, TRAINING, 0), stereocentres(50, HELD_OUT, 1)
    assert accuracy(taught(train, 8), test) > 0.8
    assert accuracy(taught(train, 1, chiral=False), test + mirrored(test)) == 0.5


@pytest.mark.slow
def test_r_and_s_of_200_labels() -> None:
    """Recorded with torch 2.13: 200 of 200 right."""
    pytest.importorskip("rdkit", reason="the molecules are made by RDKit")
    from stereocentres import stereocentres

    model = taught(stereocentres(200, TRAINING, 0), 15)
    assert accuracy(model, stereocentres(200, HELD_OUT, 1)) > 0.95
