"""Every Python snippet of the documentation runs, one file after the other, each from the top."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def snippets(page: Path) -> str:
    """The page's code, with every other line left blank so that errors have its line numbers."""
    lines, inside = [], False
    for line in page.read_text().splitlines():
        fence = re.match(r"```(\w*)", line)
        lines.append(line if inside and not fence else "")
        if fence:
            inside = not inside and fence[1] == "python"
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "torch.compile" in snippets(page) and torch.__version__ < "2.13":
        pytest.skip("torch.compile records these networks from PyTorch 2.13 on")
    if "run.export(" in snippets(page) and torch.__version__ < "2.12":
        pytest.skip("potentials are exported from PyTorch 2.12 on")
    monkeypatch.chdir(tmp_path)  # for what they write
    torch.manual_seed(0)
    exec(compile(snippets(page), str(page), "exec"), {"__name__": "snippet"})


def test_there_are_snippets() -> None:
    assert sum(bool(snippets(page).strip()) for page in PAGES) >= 4
