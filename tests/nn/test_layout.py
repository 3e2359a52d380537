"""The mathematics and what makes it fast live apart."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import symgnn.nn
from symgnn.nn.state import reduce_rows
from symgnn.nn.update import Update, edges_to_rays

NN = Path(symgnn.nn.__file__).parent
#: The mathematics, in the order in which to read it.
MATHEMATICS = (
    "inputs",
    "spec",
    "form",
    "state",
    "update",
    "block",
    "coordinate_maps",
    "model",
)
SPEED = re.compile(r"chunk|\btiles?\b|tiled|autocast|is_compiling|compile|thread", re.IGNORECASE)


def imports(path: Path) -> set[str]:
    """The modules that a file imports, those inside functions and type checks too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports in full"
            found.add(str(node.module))
    return found


@pytest.mark.parametrize("name", MATHEMATICS)
def test_the_mathematics_does_not_mention_speed(name: str) -> None:
    lines = (NN / f"{name}.py").read_text().splitlines()
    found = [f"{number}: {line}" for number, line in enumerate(lines, 1) if SPEED.search(line)]
    assert not found


def test_the_mathematics_can_be_read_in_one_sitting() -> None:
    lines = {name: len((NN / f"{name}.py").read_text().splitlines()) for name in MATHEMATICS}
    assert len(lines) <= 8
    assert sum(lines.values()) < 2200, lines
    path = (Update.reference, Update._at_home, Update._gathered, edges_to_rays, reduce_rows)
    assert sum(len(inspect.getsource(part).splitlines()) for part in path) < 100


def test_private_parts_of_torch_are_in_one_file() -> None:
    private = re.compile(r"torch\._(?!_)|from torch\._|forward_ad\._|fx\.experimental")
    found = {
        str(path.relative_to(NN)) for path in NN.rglob("*.py") if private.search(path.read_text())
    }
    assert found == {"_engine/torch_private.py"}


def test_speed_is_only_known_to_the_engine() -> None:
    """Whether anything is compiled, in which type, by how many threads: no other file asks."""
    asks = re.compile(r"is_compiling|is_autocast_enabled|get_num_threads|functorch")
    found = {
        str(path.relative_to(NN)) for path in NN.rglob("*.py") if asks.search(path.read_text())
    }
    assert all(name.startswith("_engine/") for name in found), found


def test_direction_of_imports() -> None:
    """geometry -> graphs -> nn; nothing below knows what is above."""
    root = NN.parent
    above = ("data", "train", "audit", "experiments", "bench", "commands", "report", "demo", "cli")
    allowed = {"geometry": (), "graphs": ("geometry",), "nn": ("geometry", "graphs")}
    for room, below in allowed.items():
        for path in (root / room).rglob("*.py"):
            for module in imports(path):
                if module.startswith("symgnn."):
                    other = module.split(".")[1]
                    assert other == room or other in below, f"{path}: imports {module}"
                    assert other not in above


def test_no_global_of_the_engine_is_changed() -> None:
    """A policy is an argument or a context."""
    for path in (NN / "_engine").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(node, ast.Global), path
