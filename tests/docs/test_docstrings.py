"""Public functions say what they take and give, and every example in a docstring runs."""

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

import symgnn

FACES = ("symgnn", *(f"symgnn.{name}" for name in ("geometry", "graphs", "nn", "data", "train")))
#: Names that examples may use without an import, besides those of their module.
GIVEN = {"torch": torch, "symgnn": symgnn}


def public_functions() -> dict[str, object]:
    found = {}
    for face in FACES:
        module = importlib.import_module(face)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                found[f"{face}.{name}"] = value
    return found


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(symgnn.__path__, "symgnn."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def examples() -> dict[str, doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = {}
    for module in modules():
        for test in finder.find(module, module.__name__, globs={**vars(module), **GIVEN}):
            if test.examples:
                found[test.name] = test
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL, verbose=False)
    runner.run(EXAMPLES[name], out=said.append)
    result = runner.summarize(verbose=False)
    assert result.failed == 0, "".join(said)


@pytest.mark.parametrize("name", public_functions())
def test_public_functions_are_documented(name: str) -> None:
    function = public_functions()[name]
    text = inspect.getdoc(function) or ""
    wanted = ["Returns:", ">>> "] + (["Args:"] if inspect.signature(function).parameters else [])
    assert not [word for word in wanted if word not in text]
