"""Outputs and inputs that are tensors, pseudovectors or irreps: declared, and inferred."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from audit.faulty import molecule
from symgnn.audit import audit
from symgnn.audit._representations import harmonics, matrices


def few(model, data=None, **options):
    options = {"elements": 3, "search": 0, "grow": False, "checks": False, **options}
    return audit(model, molecule() if data is None else data, **options)


def centred(pos: Tensor) -> Tensor:
    return pos - pos.mean(0)


def inertia(pos: Tensor) -> Tensor:
    return centred(pos).T @ centred(pos)


def pulls(pos: Tensor, width: float = 1.0) -> Tensor:
    apart = pos[:, None] - pos
    return (apart * torch.exp(-width * apart.square().sum(-1, keepdim=True))).sum(1)


def degree(l: int, pos: Tensor) -> Tensor:
    """Sums of spherical harmonics of the rays, `[N, 2l+1]`, in e3nn's order."""
    rays = pos[:, None] - pos
    lengths = rays.norm(dim=-1, keepdim=True)
    unit = rays / lengths.clamp(min=1e-12)
    return (harmonics(l, unit) * torch.exp(-lengths) * (lengths > 0)).sum(1)


def voigt(square: Tensor) -> Tensor:
    index = torch.tensor([0, 1, 2, 1, 0, 0]), torch.tensor([0, 1, 2, 2, 2, 1])
    return square[..., index[0], index[1]]


def upper(square: Tensor) -> Tensor:
    i, j = torch.triu_indices(3, 3)
    return square[..., i, j]


def mixed(pos: Tensor) -> Tensor:
    size = pulls(pos).norm(dim=1, keepdim=True)
    return torch.cat([size, pulls(pos), degree(2, pos)], 1)


def volume(pos: Tensor) -> Tensor:
    a, b, c = pulls(pos), pulls(pos, 0.5), pulls(pos, 0.2)
    return (torch.linalg.cross(a, b) * c).sum()


ROOT = torch.tensor([[1.0, 1, 0], [1, -1, 0], [0, 0, 2**0.5]]) / 2**0.5

INFERRED = [
    (inertia, "symmetric tensor per graph"),
    (lambda pos: pulls(pos).T @ pulls(pos, 0.5), "tensor per graph"),
    (lambda pos: pulls(pos)[:, :, None] * pulls(pos, 0.5)[:, None], "tensor per node"),
    (lambda pos: inertia(pos).flatten(), "symmetric tensor per graph"),
    (lambda pos: voigt(inertia(pos)), "voigt per graph"),
    (lambda pos: upper(inertia(pos)), "voigt per graph"),
    (lambda pos: torch.linalg.cross(pulls(pos), pulls(pos, 0.5)), "pseudovector per node"),
    (volume, "pseudoscalar per graph"),
    (lambda pos: degree(2, pos), "1x2e per node"),
    (lambda pos: pulls(pos).norm(dim=1) @ degree(3, pos), "1x3o per graph"),
    (lambda pos: mixed(pos)[:, :4], "1x0e+1x1o per node"),
    (lambda pos: mixed(pos), "1x0e+1x1o+1x2e per node"),
    (lambda pos: mixed(pos)[:, 4:][:, [4, 2, 0, 1, 3]], "1x2e in a basis of its own per node"),
    (lambda pos: torch.stack([degree(2, pos), 2 * degree(2, pos)], 1), "1x2e per node"),
]


@pytest.mark.parametrize(("model", "type_"), INFERRED, ids=range(len(INFERRED)))
def test_types_are_inferred_by_fitting_a_representation(model, type_) -> None:
    report = few(model, groups=["E(3)", "permutations"])
    assert str(report.outputs[0]) == type_
    assert report.outputs[0].known == "inferred"
    assert report.holds("E(3)"), report
    assert report.holds("permutations"), report


DECLARED = [
    (inertia, "tensor"),
    (inertia, "symmetric tensor"),
    (lambda pos: voigt(inertia(pos)), "voigt"),
    (lambda pos: torch.linalg.cross(pulls(pos), pulls(pos, 0.5)), "pseudovector"),
    (lambda pos: torch.linalg.cross(pulls(pos), pulls(pos, 0.5)), "1e"),
    (volume, "pseudoscalar"),
    (volume, "0o per graph"),
    (mixed, "1x0e+1x1o+1x2e"),
    (mixed, "0e + 1o + 2e per node"),
    (pulls, "1x1o"),
]


@pytest.mark.parametrize(("model", "type_"), DECLARED, ids=range(len(DECLARED)))
def test_declared_types_are_believed_and_checked(model, type_) -> None:
    report = few(model, outputs=type_, groups="E(3)")
    assert report.outputs[0].known == "told"
    assert report.holds("E(3)"), report


WRONG = [
    (pulls, "pseudovector", "reflection"),
    (volume, "invariant", "reflection"),
    (lambda pos: torch.linalg.cross(pulls(pos), pulls(pos, 0.5)), "vector", "reflection"),
    (lambda pos: mixed(pos)[:, [1, 2, 3, 0]], "1x0e+1x1o", "rotation"),
    (lambda pos: degree(2, pos)[:, [1, 0, 2, 3, 4]], "1x2e", "rotation"),
    (lambda pos: pos.T @ pos, "symmetric tensor", "translation"),
    (lambda pos: upper(inertia(pos)), "voigt", "rotation"),
]


@pytest.mark.parametrize(("model", "type_", "kind"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_declaration_is_a_broken_symmetry(model, type_, kind) -> None:
    assert few(model, outputs=type_, kinds=[kind]).findings[kind].verdict == "broken"


FAULTS = [
    lambda pos: pulls(pos) * pos.new_tensor([1.0, 1.0, 0.5]),  # one axis is scaled
    lambda pos: pulls(pos)[:, [1, 2, 0]],  # forces in another order
    lambda pos: pulls(pos) @ ROOT.to(pos),  # forces in other axes
    lambda pos: degree(2, pos) * pos.new_tensor([1.0, 1.0, 1.0, 1.0, 2.0]),
    lambda pos: inertia(pos) * (1 + torch.eye(3).to(pos)),
]


@pytest.mark.parametrize("model", FAULTS, ids=range(len(FAULTS)))
def test_no_representation_is_fitted_to_a_fault(model) -> None:
    assert not few(model, groups="SO(3)").holds("SO(3)")


def test_an_energy_is_no_pseudoscalar() -> None:
    """Its name says what it has to be."""
    report = few(lambda pos: {"energy": volume(pos), "chirality": volume(pos)})
    assert [str(o) for o in report.outputs] == ["invariant per graph", "pseudoscalar per graph"]
    assert not report.holds("reflections")
    assert report.findings["reflection"].verdicts["chirality"] == "rounding"


@pytest.mark.parametrize("n", [2, 4])
def test_tensors_in_other_dimensions(n: int) -> None:
    pos = torch.randn(7, n, generator=torch.Generator().manual_seed(n))
    report = few(inertia, Data(pos=pos), groups="E(n)")
    assert str(report.outputs[0]) == "symmetric tensor per graph"
    assert report.holds("E(n)"), report
    with pytest.raises(ValueError, match=f"has {n} dimensions and irreps are those of O"):
        few(inertia, Data(pos=pos), outputs="1x2e")
    with pytest.raises(ValueError, match="pseudovectors exist in 3"):
        few(inertia, Data(pos=pos), outputs="pseudovector")


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ("voight", "did you mean 'voigt'"),
        ("1x2e", r"cannot be '1x2e' by its shape \[3, 3\]"),
        ("tensor per atom", "is declared per 'atom'"),
    ],
)
def test_wrong_types_are_one_clear_line(outputs, message) -> None:
    with pytest.raises(ValueError, match=message) as error:
        few(inertia, outputs=outputs)
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------- inputs


def with_inputs() -> Data:
    data, generator = molecule(), torch.Generator().manual_seed(3)
    data.spin = torch.randn(9, 3, generator=generator)
    data.alpha = torch.randn(9, 3, 3, generator=generator)
    data.h = torch.randn(9, 9, generator=generator)
    data.e_field = torch.randn(3, generator=generator)
    data.hand = torch.randn(9, 1, generator=generator)
    return data


def reads_all(pos, spin, alpha, h, e_field, hand):
    c = centred(pos)
    found = torch.einsum("ni,nij,nj->n", c, alpha, c)
    found = found + (torch.linalg.cross(c, pulls(pos)) * spin).sum(1) + h[:, 0]
    found = found + (h[:, 1:4] * c).sum(1) + (h[:, 4:9] * degree(2, pos)).sum(1)
    return found + c @ e_field + hand[:, 0] * volume(pos)


INPUTS = {
    "spin": "pseudovector",
    "alpha": "tensor",
    "h": "1x0e+1x1o+1x2e",
    "e_field": "vector",
    "hand": "pseudoscalar",
}


def test_declared_inputs_move() -> None:
    data = with_inputs()
    report = few(reads_all, data, inputs=INPUTS, groups=["E(3)", "permutations"])
    assert report.holds("E(3)"), report
    assert report.holds("permutations"), report
    assert "alpha (tensor)" in report.moved
    for key in INPUTS:
        less = {k: v for k, v in INPUTS.items() if k != key}
        assert not few(reads_all, data, inputs=less, groups="O(3)").holds("O(3)"), key


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"spun": "vector"}, "inputs: 'spun' is not an attribute of the data"),
        ({"h": "1x2e"}, "inputs: 'h' has 9 columns, which are no 1x2e in 3 dimensions, of 5 each"),
        ({"h": "vecter"}, "did you mean 'vector'"),
        ({"spin": "coordinates"}, "but only pos can be"),
    ],
)
def test_wrong_inputs_are_one_clear_line(inputs, message) -> None:
    with pytest.raises(ValueError, match=message) as error:
        few(reads_all, with_inputs(), inputs=inputs)
    assert "\n" not in str(error.value)


def test_irreps_are_those_of_e3nn() -> None:
    o3 = pytest.importorskip("e3nn.o3")
    generator = torch.Generator().manual_seed(0)
    turn = torch.linalg.qr(torch.randn(4, 3, 3, generator=generator, dtype=torch.float64)).Q
    irreps = "2x0e+1x0o+1x1o+1x1e+1x2e+1x3o+1x4e"
    wanted = o3.Irreps(irreps).D_from_matrix(turn)
    assert torch.allclose(matrices(irreps, turn), wanted, atol=1e-6)


# ---------------------------------------------------------------- pairs of nodes


@pytest.mark.parametrize(
    ("model", "type_"),
    [
        (lambda pos: torch.cdist(pos, pos), "invariant per pair"),
        (lambda pos: torch.cdist(pos, pos).to_sparse(), "invariant per pair"),
        (lambda pos: (pos[:, None] - pos)[..., None] * torch.ones(2).to(pos), "vector per pair"),
    ],
)
def test_outputs_of_pairs_of_nodes(model, type_) -> None:
    for nodes in (3, 9):  # three nodes have as many rows as there are components
        report = audit(model, molecule(nodes).pos, groups=["E(3)", "permutations"], elements=3)
        assert str(report.outputs[0]) == type_
        assert report.as_expected, report


def test_a_matrix_that_depends_on_the_order_of_its_columns_is_broken() -> None:
    def columns(pos: Tensor) -> Tensor:
        return (pos[:, None] - pos).norm(dim=2) * torch.arange(len(pos))

    report = audit(columns, molecule().pos, groups=["E(3)", "permutations"], elements=3)
    assert report.holds("E(3)")
    assert not report.holds("permutations")


def test_noise_on_the_diagonal_of_distances_is_rounding() -> None:
    """`torch.cdist` of more than 25 points has roots of sums that cancel there: up to 1e-7."""
    for seed in range(4):
        pos = molecule(30, seed=seed).pos
        report = audit(lambda pos: torch.cdist(pos, pos), pos, groups="E(3)", seed=seed)
        assert report.as_expected, report

    def nearest(pos: Tensor) -> Tensor:  # the first channel has nothing but this noise
        return torch.cdist(pos, pos).sort(1).values[:, :4]

    assert audit(nearest, pos, groups=["E(3)", "permutations"]).as_expected


def test_an_output_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="model: 'output' is empty for the data"):
        audit(lambda pos: pos[:0], molecule().pos)


@pytest.mark.parametrize("order", ["yzx", "zxy", "zyx", "xzy"])
def test_components_in_another_order_are_named(order: str) -> None:
    places = ["xyz".index(letter) for letter in order]
    report = few(lambda pos: centred(pos)[:, places], groups="E(3)")
    assert not report.holds("rotations")
    assert any(f"components are in the order {order}" in w for w in report.warnings), report


def test_what_fits_no_type_gets_a_hint() -> None:
    report = few(lambda pos: centred(pos) ** 3, groups="E(3)")
    assert not report.holds("rotations")
    assert any("fits no type, and is judged as" in w for w in report.warnings), report
