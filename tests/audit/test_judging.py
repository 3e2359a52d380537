"""Each output is judged by itself, an answer needs a reaction, and failures are findings."""

from __future__ import annotations

import json

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from audit.faulty import molecule
from symgnn.audit import Counterexample, audit
from symgnn.geometry import EVERYTHING


def few(model, data=None, **options):
    options = {"elements": 3, "search": 0, "grow": False, "checks": False, **options}
    return audit(model, molecule() if data is None else data, **options)


def distances(pos: Tensor) -> Tensor:
    return torch.pdist(pos).sum()


def pulls(pos: Tensor) -> Tensor:
    apart = pos[:, None] - pos
    return (apart * torch.exp(-apart.square().sum(-1, keepdim=True))).sum(1)


# ---------------------------------------------------------------- one output, one verdict


def test_rounding_of_one_output_does_not_excuse_another() -> None:
    """An energy of -1e10 has a large rounding; the forces beside it break a little."""

    def model(pos):
        forces = pulls(pos) * (1 + 1e-6 * pos.new_tensor([0.0, 0.0, 1.0]))
        return {"energy": distances(pos) - 1e10, "forces": forces}

    report = few(model, molecule(dtype=torch.float64), groups="E(n)")
    finding = report.findings["rotation"]
    assert finding.verdicts == {"energy": "rounding", "forces": "approximate"}, report
    assert finding.counterexample.output.name == "forces"
    assert not report.holds("E(n)")


def test_rounding_of_one_channel_does_not_excuse_another() -> None:
    def model(pos):
        tilt = 1e-4 * (pos[:, 2] - pos[:, 2].mean()).square().sum()
        return torch.stack([distances(pos) - 1e10, distances(pos) + tilt])[None]

    assert few(model, groups="E(n)").findings["rotation"].verdict == "approximate"


# ---------------------------------------------------------------- a yes needs a reaction


class Cutoff(nn.Module):
    """Reads distances below a cutoff and z; with a small cutoff, z alone."""

    def __init__(self, cutoff: float, leak: float = 0.0) -> None:
        super().__init__()
        self.cutoff, self.leak = cutoff, leak
        self.embed = nn.Embedding(10, 1)

    def forward(self, z: Tensor, pos: Tensor) -> Tensor:
        near = torch.pdist(pos)
        near = near[near < self.cutoff]
        return self.embed(z).sum() + (self.cutoff - near).square().sum()


def test_a_cutoff_without_neighbours_is_no_yes() -> None:
    torch.manual_seed(0)
    none = few(Cutoff(0.01))
    for group in ("E(n)", "SO(3)", "similarities", "translations"):
        answer = none.holds(group)
        assert not answer, group
        assert not answer.known
        assert "no output depends on the coordinates here" in repr(answer)
    assert none.holds("permutations")  # the output reacts to z
    assert none.constant == ["output"]
    assert "does not depend on the coordinates" in str(none)
    assert none.to_dict()["holds"]["E(n)"] is None
    assert few(Cutoff(5.0)).holds("E(n)")


def test_a_constant_is_no_yes_under_permutations_either() -> None:
    report = few(lambda pos: 0 * pos.sum() + 3, Data(pos=molecule().pos))
    assert not report.holds("permutations")
    assert report.findings["permutation"].verdict == "vacuous"


def test_one_output_that_reacts_is_enough() -> None:
    report = few(lambda pos, z: {"energy": distances(pos), "charge": z.double().sum()})
    assert report.holds("E(n)"), report
    assert report.constant == ["charge"]


def test_a_model_that_says_so_may_ignore_coordinates() -> None:
    class Blind(nn.Module):
        symmetry = EVERYTHING

        def forward(self, x: Tensor, pos: Tensor) -> Tensor:
            return x.sum() + 0 * pos.sum()

    report = few(Blind())
    assert report.agrees, report.agrees
    assert not report.holds("E(n)").known


@pytest.mark.parametrize("offset", [0.0, -8000.0])
def test_an_offset_hides_nothing(offset: float) -> None:
    """In a model that runs in float32 alone: neither a break nor that it reacts."""

    def model(pos, tilt=0.0):
        pos = pos.float()
        return offset + torch.pdist(pos).sum() / 9 + tilt * pos[:, 2].tanh().sum()

    sound = few(model, groups="E(n)")
    assert not sound.constant
    assert sound.holds("E(n)"), sound
    broken = few(lambda pos: model(pos, 0.5), groups="E(n)")
    assert broken.findings["translation"].verdict == "broken"
    assert broken.findings["rotation"].verdict == "broken"


# ---------------------------------------------------------------- failures are findings


def fails_where_x_is_large(pos: Tensor) -> Tensor:
    if pos.abs().max() > 6:
        raise RuntimeError("out of the box\nand more")
    return distances(pos)


def is_nan_far_away(pos: Tensor) -> Tensor:
    return distances(pos) + 0 * torch.sqrt(5 - pos.max())


def gives_fewer_rows(pos: Tensor) -> Tensor:
    return (pos - pos.mean(0))[pos.max(1).values < 5].norm(dim=1)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (fails_where_x_is_large, "makes the model raise RuntimeError: out of the box"),
        (is_nan_far_away, "to nan"),
        (gives_fewer_rows, "from shape [9] to ["),
    ],
)
def test_a_model_that_fails_after_a_transformation_is_broken(model, text, tmp_path) -> None:
    report = few(model, elements=12, seed=1)
    finding = report.findings["translation"]
    assert finding.verdict == "broken"
    assert text in str(finding.counterexample)
    assert text in repr(report.holds("translations"))
    assert "\n" not in repr(report.holds("translations"))
    json.dumps(report.to_dict(), allow_nan=False)
    report.save(tmp_path / "audit.html")
    again = Counterexample.load(finding.counterexample.save(tmp_path / "c.npz"))
    assert str(again) == str(finding.counterexample)
    assert again.rerun(model) == float("inf")
    if model is not gives_fewer_rows:
        assert again.rerun(distances) < 1e-9
        assert report.holds("O(n)"), report


def test_shapes_that_a_model_refuses_are_left_out() -> None:
    given = molecule().pos.double()

    def picky(pos):
        if (torch.pdist(pos) - torch.pdist(given.to(pos))).abs().max() > 0.5:
            raise ValueError("another molecule")
        return distances(pos)

    report = few(picky, groups="E(n)")
    assert report.holds("E(n)"), report


def test_a_model_that_fails_on_the_data_itself_is_refused() -> None:
    def fails(pos):
        raise ZeroDivisionError

    with pytest.raises(ValueError, match="model: fails on the data: ZeroDivisionError"):
        few(fails)
