"""The submodule that breaks a symmetry is named, and no other, whatever goes through the rest."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from audit.faulty import molecule
from symgnn.audit import audit
from symgnn.audit._representations import harmonics


class Ends(nn.Module):
    """Sums numbers up; broken if it prefers an axis or the first node."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def forward(self, features: Tensor, pos: Tensor) -> Tensor:
        out = features.square().sum()
        if self.fault == "rotation":
            return out * (1 + 0.1 * (pos[:, 2] - pos[:, 2].mean()).square().mean())
        if self.fault == "reflection":
            return out * (1 + 0.1 * signed(pos))
        if self.fault == "permutation":
            return out * (1 + 0.1 * (pos[0] - pos[1]).norm())
        return out


def signed(pos: Tensor) -> Tensor:
    c = pos - pos.mean(0)
    far = c.norm(dim=1, keepdim=True)
    three = torch.stack([(c * far**k).sum(0) for k in (1, 2, 3)])
    return torch.linalg.det(three).tanh()


class Permuted(nn.Module):
    """Vectors with components in the order y, z, x, as older networks have them."""

    def forward(self, pos: Tensor) -> Tensor:
        rays = (pos[:, None] - pos).flatten(0, 1)
        return (rays * torch.exp(-rays.square().sum(1, keepdim=True)))[:, [1, 2, 0]]


class Few(nn.Module):
    """Degree 3 of one ray: seven numbers in one row."""

    def forward(self, pos: Tensor) -> Tensor:
        c = pos - pos.mean(0)
        far = (c * c.norm(dim=1, keepdim=True)).sum(0)
        return harmonics(3, (far / far.norm())[None])


class Antisymmetric(nn.Module):
    """One row for each pair i < j, whose vectors change their sign when i and j are exchanged."""

    def forward(self, pos: Tensor) -> Tensor:
        i, j = torch.triu_indices(len(pos), len(pos), 1)
        rays = pos[i] - pos[j]
        return rays * torch.exp(-rays.square().sum(1, keepdim=True))


class Matrices(nn.Module):
    """Matrices that turn as R X R^T, made of all three parts, as TensorNet has them."""

    def forward(self, pos: Tensor) -> Tensor:
        rays = pos[:, None] - pos
        near = torch.exp(-rays.square().sum(-1))[..., None, None]
        outer = rays[..., :, None] * rays[..., None, :]
        x, y, z = rays.unbind(-1)
        o = torch.zeros_like(x)
        rows = [torch.stack(r, -1) for r in ((o, -z, y), (z, o, -x), (-y, x, o))]
        skew = torch.stack(rows, -2)
        return (near * (torch.eye(3).to(pos) + skew + outer)).sum(1)


class Wide(nn.Module):
    """Sixteen vectors in a row of 48 columns, mixed by a random orthogonal matrix."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        turn = torch.linalg.qr(torch.randn(48, 48, generator=generator, dtype=torch.float64)).Q
        self.register_buffer("turn", turn)

    def forward(self, pos: Tensor) -> Tensor:
        c = pos - pos.mean(0)
        size = c.norm(dim=1, keepdim=True)
        return torch.cat([c * torch.exp(-k * size / 9) for k in range(16)], 1) @ self.turn


class ChannelsFirst(nn.Module):
    """`[1, 3, N]`, as convolutions over points have it."""

    def forward(self, pos: Tensor) -> Tensor:
        return (pos - pos.mean(0)).T[None]


class Neighbourhoods(nn.Module):
    """`[N, K, 3]`: all others of each node, in the order of their numbers."""

    def forward(self, pos: Tensor) -> Tensor:
        keep = ~torch.eye(len(pos), dtype=torch.bool)
        return (pos[:, None] - pos)[keep].reshape(len(pos), -1, 3)


class Packed(nn.Module):
    """Symmetric tensors as six numbers."""

    def forward(self, pos: Tensor) -> Tensor:
        c = pos - pos.mean(0)
        i, j = torch.triu_indices(3, 3)
        return (c[:, :, None] * c[:, None])[:, i, j]


class Through(nn.Module):
    """Features, then what breaks."""

    def __init__(self, features: nn.Module, fault: str) -> None:
        super().__init__()
        self.features, self.end = features, Ends(fault)

    def forward(self, pos: Tensor) -> Tensor:
        found = self.features(pos)
        if isinstance(self.features, Packed):  # its square is no invariant
            found = found[:, [0, 3, 5]].sum(1)
        return self.end(found, pos)


EXOTIC = [
    (kind, fault)
    for kind in (
        Permuted,
        Few,
        Antisymmetric,
        Matrices,
        Wide,
        ChannelsFirst,
        Neighbourhoods,
        Packed,
    )
    for fault in ("rotation", "reflection", "permutation")
    if (kind, fault) != (Few, "reflection")
]


@pytest.mark.parametrize(("kind", "fault"), EXOTIC, ids=lambda v: getattr(v, "__name__", v))
def test_unusual_features_are_not_blamed(kind, fault: str) -> None:
    options = {"elements": 2, "search": 0, "grow": False, "checks": False}
    model = Through(kind(), fault)
    report = audit(model, molecule(), kinds=[fault], **options)
    finding = report.findings[fault]
    assert finding.verdict == "broken", report
    assert finding.where is not None, report
    assert finding.where.module == "end", finding.where
    named = {layer.module: layer.error for layer in finding.profile}
    assert named["features"] < 1e-9 < named["end"]


def test_the_place_of_an_atom_in_the_sequence() -> None:
    """With equal atoms, the embedding is the same before and after, and wrong."""

    class Positional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(10, 4)
            self.place = nn.Embedding(100, 4)
            self.head = nn.Linear(4, 1)

        def forward(self, z: Tensor, pos: Tensor) -> Tensor:
            h = self.embed(z) + self.place(torch.arange(len(z)))
            far = (pos - pos.mean(0)).norm(dim=1, keepdim=True)
            return self.head(h * far).sum()

    torch.manual_seed(0)
    data = molecule()
    data.z = torch.full((9,), 6)
    report = audit(Positional(), data, kinds=["permutation"], elements=3)
    where = report.findings["permutation"].where
    assert where.module == "place", where
    assert "depends on the order of the nodes" in report.suggestions()[0]


def test_what_cannot_be_located_is_not_guessed() -> None:
    """Every submodule is sound; the function around them is not, or there is none."""

    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(1, 4)

        def forward(self, d: Tensor) -> Tensor:
            return self.linear(d).tanh().sum()

    torch.manual_seed(0)
    inner = Inner()

    def before(pos):
        return inner(torch.pdist(pos)[:, None] + 0.1 * pos[:36, 2:].sum())

    def behind(pos):
        return inner(torch.pdist(pos)[:, None]) + pos[:, 2].tanh().sum()

    options = {"kinds": ["rotation"], "elements": 2, "search": 0, "grow": False}
    first = audit(before, molecule(), **options).findings["rotation"]
    assert "in the function itself, before it calls" in str(first.where)
    last = audit(behind, molecule(), **options)
    assert last.findings["rotation"].where is None
    assert "not located, every submodule's output moves along" in str(last)
    none = audit(lambda pos: pos[:, 2].tanh().sum(), molecule(), **options)
    assert "not located, the model is a function without modules" in str(none)


def test_a_frame_that_jumps_is_not_blamed_for_a_fault_elsewhere() -> None:
    """What a submodule gives may depend on a choice that its parent undoes."""

    class Frame(nn.Module):
        def forward(self, pos: Tensor) -> Tensor:
            c = pos - pos.mean(0)
            _, axes = torch.linalg.eigh(c.T @ c)
            return axes * axes.sum(0).sign()  # signs by the axes of the coordinates

    class InFrame(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.frame = Frame()

        def forward(self, pos: Tensor) -> Tensor:
            return ((pos - pos.mean(0)) @ self.frame(pos)).square()

    class Whole(nn.Module):
        def __init__(self, fault: str) -> None:
            super().__init__()
            self.inner, self.end = InFrame(), Ends(fault)

        def forward(self, pos: Tensor) -> Tensor:
            return self.end(self.inner(pos), pos)

    options = {"kinds": ["rotation"], "elements": 3, "search": 0, "grow": False}
    assert audit(Whole(""), molecule(), **options).holds("SO(3)")
    report = audit(Whole("rotation"), molecule(), **options)
    assert report.findings["rotation"].where.module == "end"
