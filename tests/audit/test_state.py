"""What a function keeps between calls, what a partial function takes, and what reports say."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import Tensor, nn

from audit.faulty import molecule
from symgnn.audit import audit
from symgnn.audit._precision import bend

CACHE: dict[str, Tensor] = {}


def few(model, **options):
    options = {"elements": 2, "search": 0, "groups": "E(n)", **options}
    return audit(model, options.pop("data", molecule()), **options)


def in_a_global(pos: Tensor) -> Tensor:
    if "d" not in CACHE:
        CACHE["d"] = torch.pdist(pos.double())
    return (CACHE["d"].to(pos) * torch.pdist(pos)).sum()


def in_a_closure():
    kept: list[Tensor] = []

    def call(pos: Tensor) -> Tensor:
        if not kept:
            kept.append(torch.pdist(pos.double()))
        return (kept[0].to(pos) * torch.pdist(pos)).sum()

    return call


class InAnAttribute:
    def __init__(self) -> None:
        self.kept: Tensor | None = None

    def __call__(self, pos: Tensor) -> Tensor:
        if self.kept is None:
            self.kept = torch.pdist(pos.double())
        return (self.kept.to(pos) * torch.pdist(pos)).sum()


@pytest.mark.parametrize("make", [lambda: in_a_global, in_a_closure, InAnAttribute])
def test_what_a_function_keeps_of_its_first_call_is_found(make) -> None:
    CACHE.clear()
    report = few(make(), grow=False)
    assert report.checks["no cache"].verdict == "broken", report
    assert not report.consistent


def test_a_memory_by_input_is_no_fault() -> None:
    kept: dict[bytes, Tensor] = {}

    def call(pos: Tensor) -> Tensor:
        key = pos.detach().numpy().tobytes()
        if key not in kept:
            kept[key] = torch.pdist(pos).sum()
        return kept[key]

    assert few(call).checks["no cache"].holds


# ---------------------------------------------------------------- partial functions


def scaled(factor: float, pos: Tensor, power: int, x: Tensor) -> Tensor:
    return factor * (torch.cdist(pos, pos) ** power * x[:, 0]).sum()


def by_name(pos: Tensor, *, x: Tensor) -> Tensor:
    return (torch.cdist(pos, pos) * x[:, 0]).sum()


class Energy(nn.Module):
    def forward(self, x: Tensor, pos: Tensor) -> Tensor:
        return (torch.cdist(pos, pos) * x[:, :1]).sum()


@pytest.mark.parametrize(
    "model", [functools.partial(scaled, 2.0, power=2), functools.partial(Energy()), by_name]
)
def test_partial_functions_and_parameters_by_name(model) -> None:
    assert few(model).as_expected


# ---------------------------------------------------------------- what reports say


def test_only_what_was_asked_for_is_in_the_text() -> None:
    report = few(lambda pos: torch.pdist(pos).sum())
    text = str(report)
    assert "not asked for" not in text
    assert "dilations" not in text
    assert text.count("E(n): yes") == 1
    assert report.findings["dilation"].verdict == "unmeasured"


def test_the_table_has_the_error_of_the_search() -> None:
    def pole(pos: Tensor) -> Tensor:
        ray = pos[1] - pos[0]
        return torch.pdist(pos).sum() + 5.0 * (ray[2] > 0.98 * ray.norm())

    report = few(pole, search=320, checks=False)
    finding = report.findings["rotation"]
    assert finding.verdict == "broken"
    assert finding.largest("float64") == finding.error > 0.01
    row = next(line for line in str(report).splitlines() if line.startswith("rotations "))
    assert float(row.split()[3]) > 0.01  # the largest in float64


def test_an_output_that_is_zero_but_for_rounding_says_nothing() -> None:
    """Terms that cancel leave the last digits, which no rotation keeps."""

    def cancels(pos: Tensor) -> Tensor:
        turns = torch.stack([pos, -pos])
        return torch.tanh(turns).sum((1, 2)).sum() * 0.5

    report = few(cancels)
    assert report.findings["rotation"].verdict == "vacuous", report
    assert not report.holds("E(n)").known


def test_edges_of_its_own_are_no_fault_of_a_larger_graph() -> None:
    """All pairs, whose number is not that of the edges of copies side by side."""

    def pairs(pos: Tensor) -> Tensor:
        edges = (~torch.eye(len(pos), dtype=torch.bool)).nonzero().T
        return (pos[edges[0]] - pos[edges[1]]).norm(dim=1)

    report = few(pairs)
    assert str(report.outputs[0]) == "invariant per edge"
    assert report.as_expected, report


def test_a_handed_output_of_a_model_with_constants_in_float32() -> None:
    def volume(pos: Tensor) -> Tensor:
        third = torch.tensor([1 / 3] * 3, dtype=torch.float32).to(pos)
        axes = torch.tensor([0.01, 0.02, 0.03], dtype=torch.float32).to(pos)
        sides = pos[:3] - pos[3:6]
        # what float32 leaves of thirds, along the axes
        return torch.linalg.det(sides) + ((3 * third - 1) * axes * sides[0]).sum()

    report = audit(volume, molecule().pos, groups="E(3)", elements=3, search=0)
    assert str(report.outputs[0]) == "pseudoscalar per graph"
    assert report.as_expected, report


def test_bend_of_a_jump_back() -> None:
    one, two = torch.tensor([1.0]), torch.tensor([2.0])
    assert bend(one, two, one) == float("inf")
    assert bend(one, one, one) == 0
