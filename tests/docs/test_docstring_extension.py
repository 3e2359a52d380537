"""The extension that shows docstrings finds public names without one."""

import logging
import sys
from pathlib import Path

import pytest

griffe = pytest.importorskip("griffe", reason="needs symgnn[docs]: griffe")
FOLDER = Path(__file__).parents[2] / "docs" / "_site"


@pytest.fixture
def docstrings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import docstrings

    yield docstrings
    sys.modules.pop("docstrings")


def package(tmp_path: Path, docstrings, text: str):
    """A package of the name and the rooms of symgnn, with this text in one of them."""
    for name in ("geometry", "nn", "commands"):
        (tmp_path / "symgnn" / name).mkdir(parents=True)
        (tmp_path / "symgnn" / name / "__init__.py").write_text('"""A room."""\n__all__ = []\n')
    (tmp_path / "symgnn" / "__init__.py").write_text('"""A house."""\n__all__ = ["nn"]\n')
    (tmp_path / "symgnn" / "nn" / "__init__.py").write_text(text)
    extensions = griffe.load_extensions(docstrings.Docstrings)
    return griffe.load("symgnn", search_paths=[tmp_path], extensions=extensions)


def test_public_names_need_a_docstring(
    tmp_path: Path, docstrings, caplog: pytest.LogCaptureFixture
) -> None:
    text = (
        '__all__ = ["f", "g", "C"]\ndef f(): ...\ndef g():\n    """Documented."""\ndef h(): ...\n'
        'class C:\n    """Documented."""\n    def bare(self): ...\n    def _own(self): ...\n'
        "    @property\n    def size(self): ...\n"
    )
    with caplog.at_level(logging.WARNING):
        package(tmp_path, docstrings, text)
    bare = ("symgnn.nn.C.bare", "symgnn.nn.C.size", "symgnn.nn.f")
    assert caplog.messages == [f"{name}: is public and has no docstring" for name in bare]


def test_summaries_are_whole_paragraphs(tmp_path: Path, docstrings) -> None:
    text = (
        '__all__ = ["f", "g"]\ndef f():\n    """One sentence\n    in two lines.\n\n    More."""\n'
        'def g():\n    """A list:\n    - one\n    - two"""\n'
    )
    found = package(tmp_path, docstrings, text)
    assert found["nn.f"].docstring.value == "One sentence in two lines.\n\nMore."
    assert found["nn.g"].docstring.value == "A list:\n- one\n- two"


def test_roles_become_links_to_public_names(tmp_path: Path, docstrings) -> None:
    text = (
        '__all__ = ["f"]\ndef f():\n    """See :func:`symgnn.nn.f`, :func:`f`, :func:`hidden`.\n\n'
        '    Example:\n        >>> 1\n        1\n    """\n'
    )
    shown = package(tmp_path, docstrings, text)["nn.f"].docstring
    link = "[`{}`][symgnn.nn.f]"
    assert f"See {link.format('symgnn.nn.f')}, {link.format('f')}, `hidden`." in shown.value
    assert [section.kind.value for section in shown.parse("google")] == ["text", "examples"]
