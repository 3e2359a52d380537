"""Packages import from those below them, at the top of a file; names of modules are unique.

The direction is that of the contracts in pyproject.toml, which `make lint` checks.
"""

import ast
from collections import Counter
from pathlib import Path

import pytest

import symgnn

ROOT = Path(symgnn.__file__).parent
#: Packages that need not be installed, or that only some functions need and that are slow.
OPTIONAL = {
    "ase",
    "vesin",
    "dash",
    "egnn_pytorch",
    "fast_tsp",
    "matplotlib",
    "networkx",
    "pandas",
    "rdkit",
    "resource",  # not on Windows
    "schnetpack",
    "scipy",
    "skimage",
    "trimesh",
    "werkzeug",
}
#: Where imports wait for a call, so that `symgnn --help` and `import symgnn` need no torch, and
#: in `audit` so that an audit needs torch and numpy alone.
AT_START = ("__init__.py", "cli.py", "commands/", "audit/")


def modules() -> dict[str, ast.Module]:
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for path in sorted(ROOT.rglob("*.py"))
    }


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [str(node.module)] if isinstance(node, ast.ImportFrom) else []


def test_the_contracts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    linter = pytest.importorskip("importlinter.cli", reason="needs symgnn[dev]: import-linter")
    monkeypatch.chdir(ROOT.parents[1])
    assert linter.lint_imports(no_cache=True) == linter.EXIT_STATUS_SUCCESS


def test_imports_are_at_the_top_but_for_optional_packages() -> None:
    late = []
    for name, tree in modules().items():
        if name.startswith(AT_START):
            continue
        functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
        for node in (inner for function in functions for inner in ast.walk(function)):
            for module in imported(node):
                figures = module.startswith("symgnn.report.figures")  # which need matplotlib
                board = module == "torch.utils.tensorboard"
                if not (figures or board or module.split(".")[0] in OPTIONAL):
                    late.append(f"{name}:{node.lineno} {module}")
    assert not late


def test_no_two_modules_share_a_name() -> None:
    names = Counter(Path(name).name for name in modules() if not name.endswith("__init__.py"))
    # a command is named as its package, whose modules are private
    assert not [name for name, count in names.items() if count > 1]


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for name, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name)
    assert not {name: files for name, files in places.items() if len(files) > 1}


@pytest.mark.parametrize(
    "package", ["bench", "data", "data/files", "experiments", "explorer", "report", "train"]
)
def test_modules_that_are_not_imported_from_are_private(package: str) -> None:
    """The public names are those of `__init__`; bench.document is run, not imported."""
    found = [path.stem for path in (ROOT / package).glob("*.py")]
    public = [name for name in found if not name.startswith("_") and name != "document"]
    assert not public
