"""Meshes and point clouds by trimesh."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from symgnn.data.files.structure import How, Piece, Structure

SUFFIXES = (".obj", ".ply", ".stl", ".off")


def parse(piece: Piece, how: How) -> list[Structure]:
    """The vertices in the order of the file (STL: merged), and the triangles, if there are any."""
    import trimesh

    suffix = piece.path.suffix.lower()
    loaded: Any
    if suffix == ".obj":
        shape = io.StringIO(shape_of_obj(piece.path))
        loaded = trimesh.load(shape, file_type="obj", process=False, maintain_order=True)
    else:
        # an STL repeats a vertex for each triangle: processed, they are merged
        loaded = trimesh.load(piece.path, process=suffix == ".stl")
    if isinstance(loaded, trimesh.Scene):
        raise ValueError("has no mesh")
    faces = getattr(loaded, "faces", None)
    face = None if faces is None or not len(faces) else np.asarray(faces, dtype=np.int64).T
    return [
        Structure(
            piece.path.stem,
            piece.where,
            np.asarray(loaded.vertices, dtype=np.float64),
            face=face,
            aliases=(piece.path.name,),
        )
    ]


def shape_of_obj(path: Path) -> str:
    """Vertices and faces only: by materials and textures, trimesh would cut the mesh apart."""
    lines = []
    vertices = 0
    for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        kind, *values = line.split("#")[0].split() or [""]
        if kind == "v":
            vertices += 1
            lines.append(" ".join([kind, *values[:3]]))
        elif kind == "f":
            corners = [int(value.split("/")[0]) for value in values]
            # counted from 1, or back from the last vertex so far
            corners = [corner if corner > 0 else vertices + 1 + corner for corner in corners]
            lines.append(" ".join([kind, *map(str, corners)]))
    return "\n".join(lines) + "\n"
