"""The protocols of benchmarks/discover, on small sets."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "discover"


@pytest.fixture
def protocol(monkeypatch: pytest.MonkeyPatch) -> object:
    """A script of the folder as a module; they import each other by name."""
    if not FOLDER.is_dir():
        pytest.skip(f"{FOLDER} is not there: benchmarks come with the repository")
    monkeypatch.syspath_prepend(str(FOLDER))

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in ("planted",):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("shape", "rule"), [("cloud-3d", "angles"), ("cloud-2d", "heights")])
def test_planted_symmetry_is_found(protocol, shape: str, rule: str) -> None:
    found = protocol("planted_truth").judged(shape, rule, 5, graphs=200)
    assert found["right"], found["wrong"]
    assert not found["blind"]


def test_p_values_of_symmetric_sets(protocol) -> None:
    size = protocol("size")
    rows = [size.p_values(seed, graphs=30) for seed in range(3)]
    every = [p for row in rows for values in row.values() for p in values.values()]
    assert all(0 < p <= 1 for p in every)
    assert size.summary(rows)["inputs"]["rotation"][1] == 3
    # 12 exact p-values: below 0.01 once in 8 runs, twice in 170, three times in 5000
    assert sum(p <= 0.01 for row in rows for p in row["inputs"].values()) < 3
