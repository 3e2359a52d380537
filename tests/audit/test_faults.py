"""Faults as users plant them: each is found, and located in the module that has it."""

import pytest
import torch
from torch_geometric.data import Batch

from audit import faulty
from audit.faulty import molecule
from symgnn.audit import Report, audit

EUCLIDEAN = ("translation", "rotation", "reflection")


def report_of(name: str, **options) -> Report:
    torch.manual_seed(0)
    return audit(getattr(faulty, name)(), molecule(), elements=3, **options)


def test_the_sound_network_passes() -> None:
    report = report_of("Net")
    assert report.holds("E(n)"), report
    assert report.holds("permutations"), report
    assert not report.holds("dilations")
    assert not report.warnings
    assert not report.stochastic
    assert {o.name: str(o) for o in report.outputs} == {
        "energy": "invariant per graph",
        "moved": "coordinates per node",
    }


LOCATED = [
    ("NormedCoordinates", EUCLIDEAN, "norm", "norm (LayerNorm)"),
    ("Leak", EUCLIDEAN, "embed", "embed (Linear)"),
    ("Capped", ("permutation",), "", "the forward of the model (Capped) itself, before it calls"),
    ("CappedModule", ("permutation",), "search", "search (RadiusGraph)"),
    ("Chiral", ("reflection",), "hand", "hand (Handedness)"),
]


@pytest.mark.parametrize(("name", "kinds", "module", "text"), LOCATED)
def test_a_fault_breaks_what_it_should_and_is_located(name, kinds, module, text) -> None:
    report = report_of(name)
    broken = {k for k in ("permutation", *EUCLIDEAN) if not report.findings[k].holds}
    assert broken == set(kinds), report
    for kind in kinds:
        finding = report.findings[kind]
        assert finding.verdict == "broken"
        assert finding.where is not None
        assert finding.where.module == module
        assert text in str(finding.where)
        assert text in str(report)
        assert repr(finding.counterexample.output.name) in repr(report.holds(kind))


@pytest.mark.parametrize("seed", range(3))
def test_the_same_edges_for_other_nodes_are_another_graph(seed: int) -> None:
    """A cap may give the very same numbers of nodes before and after they are renumbered."""
    report = report_of("CappedModule", kinds=["permutation"], seed=seed)
    assert report.findings["permutation"].where.module == "search"


def test_dropout_left_on_is_found_and_does_not_hide_the_rest() -> None:
    report = report_of("Dropping")
    assert "other outputs each time" in report.stochastic
    assert "layers.1 (DroppingLayer)" in report.stochastic
    assert "random:" in str(report)
    assert report.holds("E(n)"), report  # with the same random numbers in each call


def test_dropout_that_eval_mode_turns_off_is_no_fault() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    model.train()
    report = audit(lambda pos: model(pos).sum(), molecule(), elements=2)
    assert not report.stochastic
    assert model.training


def test_half_precision_on_what_turns_is_an_approximate_symmetry() -> None:
    report = report_of("HalfMeasure")
    for kind in ("rotation", "reflection"):
        finding = report.findings[kind]
        assert finding.verdict == "approximate"
        assert finding.where.module == "layers.1.measure"
        # as large in float64: no rounding of the run's own precision
        assert max(finding.errors["float64"]) > 0.1 * max(finding.errors["float32"])
    assert report.holds("translations")
    assert not report.holds("rotations")
    assert report.holds("rotations", tolerance=1e-2)


@pytest.mark.parametrize(
    ("name", "module"),
    [("HalfMeasure", "layers.1.measure"), ("HalfFeatures", "layers.1.update")],
)
def test_half_precision_is_found_whether_or_not_a_symmetry_breaks(name, module) -> None:
    (warning,) = report_of(name).warnings
    assert "half precision" in warning
    assert f"in {module} (" in warning


def test_edge_vectors_that_do_not_turn() -> None:
    data = molecule()
    data.edge_attr = 2 * (data.pos[data.edge_index[1]] - data.pos[data.edge_index[0]])
    torch.manual_seed(0)
    model = faulty.EdgeVectors()
    left = audit(model, data, elements=3)
    assert not left.holds("rotations")
    assert left.holds("translations")
    (warning,) = left.warnings
    assert warning.startswith("edge_attr, columns 0 to 2: these are edge vectors")
    for name in ("edge_attr", "edge_attr[0:3]"):  # as the warning says
        turned = audit(model, data, vectors=(name,), elements=3)
        assert turned.holds("E(n)"), turned
        assert not turned.warnings


def test_faults_are_found_in_a_batch() -> None:
    torch.manual_seed(0)
    batch = Batch.from_data_list([molecule(6, 1), molecule(8, 2)])

    class PerGraph(faulty.Leak):
        def forward(self, data):
            h = self.embed(self.features(data))
            return torch.zeros(2, h.size(1)).to(h).index_add(0, data.batch, h.tanh())

    report = audit(PerGraph(), batch, elements=4)
    assert str(report.outputs[0]) == "invariant per graph"
    assert report.holds("permutations"), report
    assert report.findings["rotation"].where.module == "embed"
