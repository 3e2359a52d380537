"""A hook of MkDocs: notebooks become pages, with the outputs that are stored in them.

nbconvert writes each notebook as Markdown, so that equations, links and search are those of the
other pages; pictures become files beside the page.
"""

import re
import textwrap
from pathlib import Path
from posixpath import dirname

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

#: Characters in a line of an output, as code has.
WIDTH = 100


def folded(text: str) -> str:
    """Long lines of prose, broken at blanks as Jupyter shows them; rows of tables stay whole."""
    lines = text.split("\n")
    return "\n".join(
        line if len(line) <= WIDTH or "  " in line.strip() else textwrap.fill(line, WIDTH)
        for line in lines
    )


def page_of(path: Path) -> tuple[str, dict[str, bytes]]:
    """The Markdown of a notebook, and its pictures by name."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:  # asserts of the full run, and what only sets the scene
        if cell.cell_type == "code" and "full" in cell.metadata.get("tags", ()):
            cell.outputs = []
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = folded(output["text"])
            elif "text/plain" in output.get("data", {}):
                output["data"]["text/plain"] = folded(output["data"]["text/plain"])
    resources = {"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
    text, found = MarkdownExporter().from_notebook_node(notebook, resources=resources)
    return text, found["outputs"]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace each notebook by its page and its pictures."""
    for file in [f for f in files if f.src_uri.endswith(".ipynb")]:
        assert file.abs_src_path is not None
        text, pictures = page_of(Path(file.abs_src_path))
        files.remove(file)
        source = file.src_uri.removesuffix(".ipynb") + ".md"
        files.append(File.generated(config, source, content=text))
        for name, content in pictures.items():
            place = f"{dirname(file.src_uri)}/{name}"
            files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links to notebooks lead to their pages."""
    return re.sub(r"\]\(([\w./-]+)\.ipynb\)", r"](\1.md)", markdown)
