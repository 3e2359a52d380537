"""The page of the blocks says of each what the code says."""

import re
from pathlib import Path

import pytest

from symgnn.nn import ARCHITECTURES, RUNGS, build

PAGE = (Path(__file__).parents[2] / "docs" / "blocks.md").read_text()
BLOCKS = {**ARCHITECTURES, **RUNGS}
DOMAINS = ("angle", "edge", "node", "graph")


def section(name: str) -> dict[str, str]:
    """The lines `- **Key**: value` under the heading of a block."""
    (text,) = re.findall(rf"^### {re.escape(name)}$(.*?)(?=^##|\Z)", PAGE, re.S | re.M)
    assert "$$" in text
    return dict(re.findall(r"^- \*\*([^*]+)\*\*: (.+)$", text, re.M))


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_are_as_the_page_says(name: str) -> None:
    spec = BLOCKS[name]
    said = section(spec.name)
    updates = "; ".join(f"{domain} {spec[domain]}" for domain in DOMAINS if spec[domain])
    assert said["Updates"] == f"`{updates}`"
    assert said["Symmetry"] == str(build(name, dimension=3).symmetry)
    moved = build(name, dimension=3, coordinate_map="neighbour-sum")
    assert said["Symmetry, coordinates moved"] == str(moved.symmetry)
    built = eval(said["Build"].strip("`"), {"build": build})
    assert built.network.layer == spec


@pytest.mark.parametrize("name", BLOCKS)
def test_equations_read_what_the_block_reads(name: str) -> None:
    """Each measure of the specification is in the equations, and no other is."""
    spec = BLOCKS[name]
    (text,) = re.findall(rf"^### {re.escape(spec.name)}$.*?\$\$(.*?)\$\$", PAGE, re.S | re.M)
    measures = {
        "theta": r"\\theta_",
        "kappa": r"\\kappa_",
        "d2": r"d(_\{\w+\})?\^2",
        "offset": r"v_j,\\ (\\frac\{)?x_j - x_i",
        "height, distance across": r"\\ h_\{ji\}",
        "height size, distance across": r"\\lvert h_\{ji\} \\rvert",
        "x": r"features",
    }
    read = {re.sub(r"^reduce\((\w+)\).*", r"\1", str(i)).partition(".")[0] for i in spec.all_inputs}
    for measure, tex in measures.items():
        assert (re.search(tex, text) is not None) == (measure in read), measure


def test_options_are_as_the_page_says() -> None:
    for name in ("agn", "combined", "cgn"):
        assert build(f"{name}-separable").symmetry == build(name).symmetry
    for name in ("dgn", "sdgn", "combined", "tgn", "ugn"):
        size = {"dimension": 3} if name == "tgn" else {}
        assert build(name, filtered=True, **size).symmetry == build(name, **size).symmetry
    for name in ("dgn", "agn", "combined", "cgn"):
        plain, chiral = build(name), build(name, chiral=True, dimension=3)
        gone = set(plain.symmetry) - set(chiral.symmetry)
        assert gone <= {"reflection", "inversion", "axis-reflection", "flex"}
        assert "reflection" in gone
        assert "flex" not in chiral.symmetry
