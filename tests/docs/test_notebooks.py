"""The tutorials run: with small settings in this process, and as they are by a kernel (slow)."""

import warnings
from pathlib import Path

import pytest
import torch

nbformat = pytest.importorskip("nbformat", reason="needs symgnn[test]: nbformat")
FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path: Path) -> list:
    found = nbformat.read(path, as_version=4)
    nbformat.validate(found)
    return found.cells


def source(cell) -> str:
    """The code of a cell, with the values for a quick run."""
    quick = cell.metadata.get("quick", {})
    return "\n".join([cell.source, *(f"{name} = {value!r}" for name, value in quick.items())])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.usefixtures("one_thread")
def test_they_run_quickly(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells but those that assert what only the full run reaches."""
    matplotlib = pytest.importorskip("matplotlib", reason="needs symgnn[test]: matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, object] = {"__name__": "notebook"}
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, cell in enumerate(cells(path)):
            if cell.cell_type == "code" and "full" not in cell.metadata.get("tags", []):
                exec(compile(source(cell), f"{path.name}, cell {number}", "exec"), names)
                count += 1
    matplotlib.pyplot.close("all")
    assert count > 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_are_stored_as_they_ran(path: Path) -> None:
    """Every cell was executed in order, without an error, and there are plots and solutions."""
    found = cells(path)
    code = [cell for cell in found if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    text = "\n".join(cell.source for cell in found if cell.cell_type == "markdown")
    assert "## Exercises" in text
    assert "## Solutions" in text
    assert any(cell.metadata.get("quick") for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_run_as_they_are(path: Path, tmp_path: Path) -> None:
    client = pytest.importorskip("nbclient", reason="needs symgnn[test]: nbclient")
    pytest.importorskip("ipykernel", reason="needs symgnn[test]: ipykernel")
    found = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(found, timeout=600, resources=resources).execute()
    assert all(cell.execution_count for cell in found.cells if cell.cell_type == "code")
