"""Rules of the tests themselves: short files, an assertion in each test, no sleeping."""

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LONGEST = 400
#: A folder whose files may be longer, until they are divided.
LONGER = ("audit/", 600)


def files() -> list[str]:
    return [path.relative_to(TESTS).as_posix() for path in sorted(TESTS.rglob("*.py"))]


@cache
def tree(name: str) -> ast.Module:
    return ast.parse((TESTS / name).read_text())


def called(node: ast.AST) -> set[str]:
    """The names of all functions that are called, or handed on."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return names | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


@cache
def asserting() -> frozenset[str]:
    """The names of functions that assert something, themselves or by another one."""
    functions: dict[str, list[ast.AST]] = {}
    for name in files():
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append(node)
    found = {"raises", "warns", "assert_close", "assert_symmetric", "gradcheck", "gradgradcheck"}
    before = 0
    while len(found) > before:
        before = len(found)
        for name, nodes in functions.items():
            if any(asserts(node, found) for node in nodes):
                found.add(name)
    return frozenset(found)


def asserts(node: ast.AST, by: frozenset[str] | set[str]) -> bool:
    own = any(isinstance(inner, ast.Assert) for inner in ast.walk(node))
    return own or bool(called(node) & by)


@pytest.mark.parametrize("name", files())
def test_files_are_short(name: str) -> None:
    longest = LONGER[1] if name.startswith(LONGER[0]) else LONGEST
    assert len((TESTS / name).read_text().splitlines()) <= longest


def test_every_test_asserts_something() -> None:
    runs = {"test_snippets_run"}  # whose snippets assert
    empty = [
        f"{name}: {node.name}"
        for name in files()
        for node in ast.walk(tree(name))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and node.name not in runs
        and not asserts(node, asserting())
    ]
    assert not empty


def test_no_test_sleeps() -> None:
    asleep = [
        f"{name}:{node.lineno}"
        for name in files()
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute) and node.attr == "sleep"
    ]
    assert not asleep


def test_tests_have_the_folders_of_the_source() -> None:
    source = TESTS.parent / "src" / "symgnn"
    cross_cutting = {"docs", "properties"}
    for folder in TESTS.iterdir():
        if folder.is_dir() and any(folder.glob("*.py")):
            assert folder.name in cross_cutting or (source / folder.name).is_dir(), folder.name
