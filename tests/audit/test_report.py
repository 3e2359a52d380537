"""Verdicts, answers for tests, counterexamples and the page."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from audit import faulty
from audit.faulty import molecule
from helpers import bridge_edges, graph, ring_edges
from symgnn.audit import Counterexample, Report, audit
from symgnn.audit._verdicts import verdict_of
from symgnn.geometry import EUCLIDEAN, KINDS, SIMILARITIES


def network(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    return getattr(faulty, name)()


@pytest.fixture(scope="module")
def leak() -> Report:
    return audit(network("Leak"), molecule(), elements=3)


@pytest.fixture(scope="module")
def sound() -> Report:
    data = graph(bridge_edges(), 3, 0)
    data.x = torch.cat([data.x, data.x], 1)
    return audit(network("Net"), data, elements=3)


# ---------------------------------------------------------------- verdicts

VERDICTS = [
    # float64 error and rounding, float32 error and rounding
    ("rounding", 1e-14, 1e-14, 1e-5, 1e-5),
    ("rounding", 0.0, 0.0, 0.0, 0.0),
    ("rounding", 1e-11, 1e-14, 1e-3, 1e-5),  # falls with the precision
    ("rounding", 1e-9, 1e-10, 0.3, 0.1),  # an ill-conditioned output
    ("approximate", 1e-8, 1e-15, 1e-6, 1e-8),  # does not fall, and float32 would show it
    ("single", 1e-8, 1e-15, 1e-6, 1e-6),  # does not fall, but is lost in float32
    ("approximate", 1e-3, 1e-15, 1e-3, 1e-6),
    ("broken", 0.3, 1e-15, 0.3, 1e-6),
    ("broken", 0.3, 0.1, 0.3, 0.1),  # it jumps: rounding explains nothing
    ("broken", float("inf"), 1e-15, float("inf"), 1e-6),
]


@pytest.mark.parametrize(("verdict", "error", "rounding", "error32", "rounding32"), VERDICTS)
def test_verdicts(verdict, error, rounding, error32, rounding32) -> None:
    errors = {"float64": [0.0, error], "float32": [error32, 0.0]}
    known = {"float64": rounding, "float32": rounding32}
    assert verdict_of(errors, known) == (verdict, error)
    if verdict == "single":
        assert verdict_of(errors, known, "float64") == ("approximate", error)


def test_verdict_of_one_precision() -> None:
    assert verdict_of({"float32": [1e-5]}, {"float32": 1e-6})[0] == "rounding"
    assert verdict_of({"float32": [1e-3]}, {"float32": 1e-6})[0] == "approximate"


# ---------------------------------------------------------------- answers

GROUPS = {
    "E(n)": True,
    "e(3)": True,
    "SO(3)": True,
    "O(n)": True,
    "SE(n)": True,
    "translations": True,
    "rotation": True,
    "permutations": True,
    "similarities": False,
    "conformal": False,
    "Moebius maps": False,
    "affine": False,
    "torsions": False,
    "flexes": False,
    "redrawings": False,
}


@pytest.mark.parametrize(("name", "holds"), GROUPS.items())
def test_groups_by_name(sound: Report, name: str, holds: bool) -> None:
    answer = sound.holds(name)
    assert bool(answer) is holds, answer
    assert answer == holds
    assert (": yes" if holds else ": no, error") in repr(answer)


def test_groups_as_symmetries(sound: Report) -> None:
    assert sound.holds(EUCLIDEAN)
    assert not sound.holds(SIMILARITIES)
    assert sound.symmetry == EUCLIDEAN


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("E(k)", r"group: 'E\(k\)' is not known; did you mean 'E\(n\)'\?"),
        ("rotatoins", "did you mean 'rotations'"),
        ("similarity maps", "did you mean 'similarities'"),
        ("E(2)", r"group: 'E\(2\)', but the data has 3 dimensions"),
        (3, "group: is 3; pass a name"),
    ],
)
def test_unknown_groups(sound: Report, name, message) -> None:
    with pytest.raises(ValueError, match=message) as error:
        sound.holds(name)
    assert "\n" not in str(error.value)


def test_a_wrong_claim_fails_with_its_counterexample(leak: Report) -> None:
    with pytest.raises(AssertionError) as failure:
        assert leak.holds("E(n)")
    text = str(failure.value)
    assert re.search(r"E\(n\): no, error [\d.e+]+: a shift by \(.*\) changes '\w+'", text)
    assert "first in embed (Linear)" in text


def test_what_was_not_measured_does_not_hold(leak: Report) -> None:
    answer = leak.holds("torsions")
    assert not answer
    assert "unknown, torsions: not measured, no bridge of the graph" in repr(answer)


def test_a_tolerance() -> None:
    report = audit(network("HalfMeasure"), molecule(), elements=3)
    assert not report.holds("E(n)")
    assert report.holds("E(n)", tolerance=0.1)
    assert not report.holds("E(n)", tolerance=1e-9)


def test_the_summary_is_in_terms_of_groups(sound: Report, leak: Report) -> None:
    assert sound.summary()[0] == "E(n): yes"
    assert any(line.startswith("dilations: no (error") for line in sound.summary())
    assert leak.summary()[0].startswith("E(n): no (error")
    hand = audit(network("Chiral"), molecule(), outputs={"energy": "invariant"}, elements=3)
    assert hand.summary()[0] == "SE(n): yes"
    assert hand.summary()[1].endswith("so it can tell mirror images apart")
    plain = audit(network("Net"), molecule(), outputs={"energy": "invariant"}, elements=3)
    assert "reflections: yes, so it cannot tell mirror images apart" in plain.summary()


# ---------------------------------------------------------------- counterexamples


@pytest.mark.parametrize("kind", KINDS)
def test_every_counterexample_can_be_saved_and_run_again(kind: str, tmp_path: Path) -> None:
    data = graph(ring_edges() if kind == "angle-flex" else bridge_edges(), 3, 0)

    def model(pos, x, edge_index):  # keeps nothing
        weights = torch.arange(len(pos)).to(pos)
        return (weights[:, None] * torch.sin(pos + 0.3 * pos**2)).sum() + x.sum()

    found = audit(model, data, kinds=[kind], elements=2).findings[kind].counterexample
    path = found.save(tmp_path / "deep" / f"{kind}.npz")
    loaded = Counterexample.load(path)
    assert str(loaded) == str(found)
    assert torch.equal(loaded.pos[1], found.pos[1])
    assert loaded.rerun(model) == pytest.approx(found.error, rel=1e-9)
    assert loaded.rerun(lambda pos, x, edge_index: x.sum()) < 1e-12
    with np.load(path) as file:
        assert {"pos_before", "pos_after", "output_expected", "output_after"} <= set(file)


def test_a_counterexample_is_small(leak: Report) -> None:
    shift = leak.findings["translation"].counterexample
    assert shift.error < leak.findings["translation"].error
    assert shift.element.offset.norm() < 0.5
    capped = audit(network("Capped"), molecule(), elements=3).findings["permutation"]
    assert "a swap of nodes" in str(capped.counterexample)


def test_a_counterexample_in_a_batch(tmp_path: Path) -> None:
    batch = Batch.from_data_list([molecule(5, 1), molecule(6, 2)])

    def model(data):
        return torch.zeros(2).to(data.pos).index_add(0, data.batch, data.pos[:, 0])

    report = audit(model, batch, kinds=["rotation", "permutation"], elements=2)
    assert report.holds("permutations")
    found = report.findings["rotation"].counterexample
    again = Counterexample.load(found.save(tmp_path / "c.npz"))
    assert again.rerun(model) == pytest.approx(found.error, rel=1e-9)


def test_files_that_are_no_counterexamples(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no such file"):
        Counterexample.load(tmp_path / "none.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    (tmp_path / "text.npz").write_text("no")
    for name in ("other.npz", "text.npz"):
        with pytest.raises(ValueError, match=f"{name}: is no counterexample of an audit"):
            Counterexample.load(tmp_path / name)


# ---------------------------------------------------------------- files


def test_json(leak: Report, tmp_path: Path) -> None:
    found = json.loads(leak.save(tmp_path / "audit.json").read_text())
    assert found["holds"]["E(n)"] is False
    assert found["holds"]["permutation"] is True
    assert found["findings"]["rotation"]["module"] == "embed"
    assert found["findings"]["rotation"]["verdict"] == "broken"
    assert len(found["findings"]["rotation"]["errors"]["float64"]) == 3
    with pytest.raises(ValueError, match=r"audit\.txt is neither \.html nor \.json"):
        leak.save(tmp_path / "audit.txt")


def test_the_page_is_complete_and_whole(leak: Report, tmp_path: Path) -> None:
    page = leak.save(tmp_path / "audit.html").read_text()
    for heading in (
        "The symmetry of Leak",
        "At a glance",
        "Measured",
        "Where it breaks",
        "Errors",
        "Error against size",
        "A counterexample",
    ):
        assert f"{heading}</h" in page
    assert page.count("data:image/png;base64") == 4
    assert not re.findall(r"(?:src|href)=\"(?!data:)", page)
    assert "embed (Linear)" in page
    assert [path.name for path in tmp_path.iterdir()] == ["audit.html"]


def test_the_page_of_a_sound_model(sound: Report, tmp_path: Path) -> None:
    page = sound.save(tmp_path / "audit.html").read_text()
    assert "Symmetric to: E(n), permutations." in page
    assert "Where it breaks" not in page


def test_text_of_others_is_escaped(tmp_path: Path) -> None:
    report = audit(
        lambda pos: {"<b>": torch.pdist(pos).sum()}, molecule(), kinds=["rotation"], elements=2
    )
    page = report.save(tmp_path / "audit.html").read_text()
    assert "<b> (" not in page
    assert "&lt;b&gt; (" in page


def test_the_page_without_matplotlib(
    leak: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.import_module

    def missing(name, *args):
        if name == "matplotlib":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", missing)
    page = leak.save(tmp_path / "audit.html").read_text()
    assert "Install symgnn[plot] for the figures." in page
    assert "data:image" not in page


def test_errors_in_physical_units_are_on_the_page(tmp_path: Path) -> None:
    def tilted(pos: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"energy": 3.0 * pos[:, 0].sum(), "size": torch.pdist(pos).sum()}

    options = {"elements": 2, "search": 0, "checks": False, "grow": False}
    report = audit(tilted, molecule(), groups="O(3)", units={"energy": "eV"}, **options)
    finding = report.findings["rotation"]
    shift = finding.counterexample
    assert "eV): a rotation" in repr(report.holds("SO(3)"))
    # 3 eV/Å times the change of the sum of x, the largest over the rotations
    assert finding.absolute["energy"] > abs(shift.after - shift.expected).item() > 0
    page = report.save(tmp_path / "page.html").read_text()
    assert re.search(r"<td>energy: [\d.e+-]+ eV</td>", page)
    assert not re.search(r"(<td>|<br>)size:", page)
    plain = audit(tilted, molecule(), groups="O(3)", **options)
    assert "in units" not in plain.save(tmp_path / "plain.html").read_text()
