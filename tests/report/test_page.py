"""The page in HTML."""

from __future__ import annotations

import importlib
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import symgnn
from report.sample import classification, efficiency
from symgnn.report import _page as page
from symgnn.report import write_report
from symgnn.report._palette import heat_colour, ink

VOID = {"meta", "img"}
FIGURES = ["confusion", "heat_map", "polytopes", "training"]


class Parsed(HTMLParser):
    """The page's elements; a wrongly closed one fails."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(classification(), tmp_path_factory.mktemp("report") / "new" / "place")


def test_files(written: Path) -> None:
    assert written.name == "report.html"
    names = ["figures", *(f"figures/{name}.png" for name in FIGURES), "report.html"]
    assert files(written.parent) == names
    for name in FIGURES:
        png = (written.parent / "figures" / f"{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG")


def test_page_is_self_contained(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    assert "://" not in text
    assert "url(" not in text
    parsed = Parsed(text)
    assert not parsed.all("link")
    assert not parsed.all("script")
    sources = [image["src"] or "" for image in parsed.all("img")]
    assert len(sources) == len(FIGURES)
    assert all(source.startswith("data:image/png;base64,iVBOR") for source in sources)
    assert all(image["alt"] for image in parsed.all("img"))


def test_page_has_all_rows_and_numbers(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    table = text[text.index("<table>") : text.index("</table>")]
    assert table.count("<tr>") == 1 + 5
    assert table.count("<tbody>") == 4  # a group for each block
    for block, rest in (("AGN", "sum, neighbour-sum"), ("GN", "mean"), ("CGN", "sum, identity")):
        assert f"{block} <small>{rest}</small>" in table
    assert len(re.findall(r"<td ", table)) == 20
    assert "0.93<small>±0.02</small>" in table
    assert table.count('<span class="paper">0.96±0.04</span>') == 1
    assert table.count('class="paper"') == 15
    assert table.count('<td class="violated"') == 1
    assert table.count('<td class="differs"') == 2
    for head in ("train", "+dil.", "μ=3", "conf."):
        assert f">{head}</th>" in table


def test_page_has_summary_differences_and_environment(written: Path) -> None:
    words = " ".join(Parsed(written.read_text(encoding="utf-8")).texts)
    assert "12 of 15 cells that the paper has agree with it" in words
    assert "although theory fixes this cell" in words
    assert "SDGN, mean, identity: all 5 classes" in words
    for fact in ("abc123", "1000", "2 min", "0, 1", "59,013", "similarities, permutations"):
        assert fact in words
    assert "symgnn[plot]" not in words


def test_text_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_matplotlib(monkeypatch)
    evil = "<script>alert('1')</script> \"&\""
    results = classification()
    results["title"] = results["name"] = evil
    results["columns"][0] = evil
    results["environment"] = {evil: evil}
    for row in results["rows"]:
        row["block"] = row["aggregation"] = row["coordinate_map"] = row["symmetry"] = evil
        row["cells"][evil] = row["cells"].pop("train")
    text = write_report(results, tmp_path).read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    parsed = Parsed(text)
    assert not parsed.all("script")
    assert {head.get("title") for head in parsed.all("th")} >= {evil, f"symmetry: {evil}"}


def test_without_matplotlib_there_are_no_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_matplotlib(monkeypatch)
    text = write_report(classification(), tmp_path).read_text(encoding="utf-8")
    assert "Install symgnn[plot] for the figures" in text
    assert "<img" not in text
    assert "0.93<small>±0.02</small>" in text
    assert files(tmp_path) == ["report.html"]


def test_imports_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    no_matplotlib(monkeypatch)
    monkeypatch.setattr(symgnn, "report", symgnn.report)  # put back afterwards
    for name in [name for name in sys.modules if name.startswith("symgnn.report")]:
        monkeypatch.delitem(sys.modules, name)
    module = importlib.import_module("symgnn.report")
    assert all(hasattr(module, name) for name in module.__all__)


def test_without_numbers_of_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_matplotlib(monkeypatch)
    results = classification()
    for row in results["rows"]:
        for entry in row["cells"].values():
            entry.update(paper_mean=None, paper_std=None, verdict="new")
    text = write_report(results, tmp_path).read_text(encoding="utf-8")
    assert "No cell has a number of the paper beside it." in text
    assert '<span class="paper">' not in text
    assert "<p>None.</p>" in text


def test_data_efficiency(tmp_path: Path) -> None:
    text = write_report(efficiency(), tmp_path).read_text(encoding="utf-8")
    parsed = Parsed(text)
    assert len(parsed.all("img")) == 1
    assert "GN <small>sum, 100 samples</small>" in text
    assert "2 h 30 min" in text
    assert files(tmp_path) == ["figures", "figures/efficiency.png", "report.html"]


@pytest.mark.parametrize("old", [None, "the old report"])
def test_failed_write_leaves_no_half_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str | None
) -> None:
    no_matplotlib(monkeypatch)
    if old is not None:
        (tmp_path / "report.html").write_text(old, encoding="utf-8")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr(Path, "replace", fail)  # of Python 3.10, which does not call os.replace
    with pytest.raises(OSError, match="disk full"):
        write_report(classification(), tmp_path)
    assert files(tmp_path) == ([] if old is None else ["report.html"])
    if old is not None:
        assert (tmp_path / "report.html").read_text(encoding="utf-8") == old


def test_failed_drawing_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("cannot draw")

    monkeypatch.setattr("symgnn.report.figures.all_figures", fail)
    with pytest.raises(RuntimeError, match="cannot draw"):
        write_report(classification(), tmp_path / "new")
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (119, "119.0 s"), (150, "2 min"), (7260, "2 h 1 min")]
)
def test_duration(seconds: float, text: str) -> None:
    assert page.duration(seconds) == text


def test_heat_colours() -> None:
    assert heat_colour(0.0) == heat_colour(-1.0) == "#f6f4ee"
    assert heat_colour(1.0) == heat_colour(2.0) == "#134e6f"
    assert ink(0.0) == "#1b1b1b"
    assert ink(1.0) == "#ffffff"
