"""`assert_symmetric`, the pytest plugin, `groups=`, the light import and the page's first lines."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
from torch import nn

from audit.faulty import Leak, Net, molecule
from symgnn.audit import assert_symmetric, audit

pytest_plugins = ["pytester"]


def energy(pos):
    return torch.pdist(pos).sum()


def test_a_symmetric_model_passes_and_gives_its_report() -> None:
    report = assert_symmetric(energy, molecule(), "E(3)")
    assert report.expected == ["E(n)"]
    assert assert_symmetric(energy, molecule().pos, ["SE(3)", "permutations"])


def test_a_broken_model_fails_with_all_that_is_known() -> None:
    torch.manual_seed(0)
    with pytest.raises(AssertionError) as failure:
        assert_symmetric(Leak(), molecule(), ["E(3)", "permutations"], elements=3)
    first, group, repair = str(failure.value).split("\n")
    assert first == "Leak is not symmetric"
    assert group.startswith("E(n): no, error")
    assert "first in embed (Linear)" in group
    assert repair.startswith("repair: embed: it mixes coordinates with other numbers")
    assert_symmetric(Leak(), molecule(), "permutations", elements=3)


def test_a_tolerance_and_an_unknown_answer() -> None:
    def nearly(pos):
        return energy(pos) * (1 + 1e-4 * pos[:, 2].tanh().sum())

    with pytest.raises(AssertionError, match="error"):
        assert_symmetric(nearly, molecule(), "E(3)")
    assert_symmetric(nearly, molecule(), "E(3)", tolerance=0.1)
    with pytest.raises(AssertionError, match="unknown"):
        assert_symmetric(lambda pos: 0 * pos.sum() + 1, molecule(), "E(3)")


def test_only_what_was_asked_for_is_measured() -> None:
    torch.manual_seed(0)
    report = audit(Net(), molecule(), groups="E(3)", elements=3)
    measured = [kind for kind, finding in report.findings.items() if finding.measured]
    assert measured == ["translation", "rotation", "reflection"]
    assert report.as_expected
    assert [f.expected for f in report.findings.values()].count(True) == 3
    every = audit(Net(), molecule(), elements=3, search=0)
    assert report.calls < every.calls + 400
    assert "dilations" not in str(report).partition("\n\n- ")[0]
    with pytest.raises(ValueError, match="did you mean"):
        audit(Net(), molecule(), groups="E(k)")
    with pytest.raises(ValueError, match="groups: is empty"):
        audit(Net(), molecule(), groups=[])


def test_the_page_leads_with_what_was_expected(tmp_path: Path) -> None:
    torch.manual_seed(0)
    report = audit(Leak(), molecule(), groups=["E(3)", "permutations"], elements=3)
    page = report.save(tmp_path / "audit.html").read_text()
    body = page.partition("<h1>")[2]
    assert body.index("Expected") < body.index("At a glance")
    assert "E(n): no, error" in body.partition("At a glance")[0]
    assert "Repair" in body
    every = audit(Net(), molecule(), elements=3, search=0)
    page = every.save(tmp_path / "every.html").read_text()
    dilation = next(line for line in page.split("<tr") if "dilations</th>" in line)
    assert "unclaimed" in dilation
    rotation = next(line for line in page.split("<tr") if "rotations</th>" in line)
    assert "unclaimed" not in rotation


# ---------------------------------------------------------------- the plugin

TESTS = """
import torch

def test_good(assert_symmetric):
    assert_symmetric(lambda pos: torch.pdist(pos).sum(), torch.randn(6, 3), "E(3)")

def test_bad(assert_symmetric):
    assert_symmetric(lambda pos: pos[:, 0].tanh().sum(), torch.randn(6, 3), "E(3)")

def test_audit(audit):
    assert audit(lambda pos: torch.pdist(pos).sum(), torch.randn(6, 3), groups="E(3)").as_expected
"""


def test_the_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    # The plugin is found by its entry point, as in the tests of a user. In a process of its own:
    # dash's plugin imports the backport importlib_metadata, which takes the place of the finder of
    # importlib.metadata, and pytester would remove that finder when the inner run ends.
    found = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--symmetry-reports", "pages")
    found.assert_outcomes(passed=2, failed=1)
    found.stdout.fnmatch_lines(["*E(n): no, error*a shift by*"])
    assert len(list((pytester.path / "pages").glob("*.html"))) == 3  # of the failure too
    assert metadata.version("torch")  # installed packages are still found in this process


def test_the_plugin_is_registered_and_imports_nothing() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert 'symgnn = "symgnn.audit.pytest_plugin"' in text
    code = "import sys, symgnn.audit.pytest_plugin; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# ---------------------------------------------------------------- the import

LIGHT = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        allowed = {*sys.stdlib_module_names, "torch", "numpy", "symgnn", "typing_extensions"}
        allowed |= {"torchgen", "sympy", "mpmath", "filelock", "fsspec", "jinja2", "markupsafe"}
        allowed |= {"networkx"}  # which torch needs
        if name.partition(".")[0] not in allowed and ours():
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

def ours():  # whether symgnn asks for it, and not torch, which tries what it can do without
    frame = sys._getframe(2)
    while "importlib" in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
    return frame.f_globals.get("__name__", "").startswith("symgnn")

sys.meta_path.insert(0, Block())
import torch
import symgnn.audit
from symgnn.audit import adapters, assert_symmetric, audit, audit_map, symmetrised

def energy(positions, numbers):
    return (numbers[:, None] * numbers / (1 + torch.cdist(positions, positions) ** 2)).sum()

data = {"positions": torch.randn(6, 3), "numbers": torch.arange(1, 7)}
report = assert_symmetric(energy, data, ["E(3)", "permutations"])

class Broken(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(3)

    def forward(self, pos, edge_index):
        return self.norm(pos[edge_index[0]] - pos[edge_index[1]]).sum(0)

chain = {"pos": torch.randn(6, 3), "edge_index": torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])}
whole = audit(Broken(), chain, outputs="vector")
assert whole.findings["rotation"].where.module == "norm", whole
assert "scipy" in whole.findings["flex"].reason, whole
whole.save("report.json")
try:
    whole.save("report.html")
except ValueError as error:
    assert "a page needs rich" in str(error), error
else:
    raise AssertionError("the page was written without rich")
whole.findings["rotation"].counterexample.save("found.npz")
assert symgnn.audit.Counterexample.load("found.npz").rerun(Broken()) > 0.01
print(report.nodes, sorted(m for m in sys.modules if m in ("torch_geometric", "scipy", "rich")))
"""


def test_torch_and_numpy_are_enough(tmp_path: Path) -> None:
    code = [sys.executable, "-c", LIGHT]
    done = subprocess.run(code, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "6 []\n"


def test_dictionaries_go_in_as_they_are() -> None:
    class Takes(nn.Module):
        def forward(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            assert set(inputs) == {"R", "Z"}
            return {**inputs, "energy": (inputs["Z"] * inputs["R"].norm(dim=1)).sum()}

    report = audit(Takes(), {"R": torch.randn(5, 3), "Z": torch.arange(5)}, groups="O(3)")
    assert [o.name for o in report.outputs] == ["energy"]
    assert report.as_expected, report
    with pytest.raises(ValueError, match="data: the dictionary has x and no coordinates"):
        audit(Takes(), {"x": torch.randn(5, 3)})
